"""The verifier: what it refuses, each mistake by the sentence that names it."""

import pytest

from tests.kernel_ir.kernels import kernels

MISTAKES = {
    "read beyond the end": r"a read must end inside the buffer\. Got x\[\(g \+ 1\)\] and 1 elements, not proven within n",
    "read before the start": r"a read must start inside the buffer\. Got x\[\(g - 1\)\], not proven >= 0",
    "vector across the end": r"must end inside the buffer\. Got x\[g\] and 4 elements",
    "guard of another index": r"a read must end inside the buffer",
    "guard of the other branch": r"a read must end inside the buffer",
    "guard already over": r"a write must end inside the buffer",
    "index from memory": r"a read must start inside the buffer",
    "local memory's end": r"a write must end inside the buffer\. Got tile\[\(l \+ 1\)\]",
    "barrier under a thread's condition": r"a barrier must be reached by all threads",
    "barrier in a thread's loop": r"a barrier must be reached by all threads",
    "barrier under what local memory says": r"a barrier must be reached by all threads",
    "write to an input": r"only read is not written\. Got x",
    "texel beyond the end": r"a read must end inside the buffer\. Got texels\[\(g \+ 1\)\] and 1 elements",
    "texels by the vector": r"a buffer of vectors is read one by one\. Got 4 of texels",
    "write to an image": r"only read is not written\. Got texels",
    "atomic on an image": r"atomics need memory that threads share and that is read and written\. Got texels",
    "block read of an image": r"a subgroup reads blocks of global memory that is only read\. Got texels",
    "read of an output": r"only written is not read\. Got y",
    "atomic on a register": r"atomics need memory that threads share",
    "shuffle without subgroups": r"needs subgroups",
    "shuffle beyond the subgroup": r"a shuffle names a place of the subgroup\. Got \(l \+ 1\)",
    "matrices of a small subgroup": r"a product of matrices needs subgroups of 32 threads\. Got 16",
    "matrices that are too wide": r"float32x2 of the second\. Got float32x4, float32x4, float32x4",
    "matrices under a thread's condition": r"a product of matrices must be reached by all threads",
    "floats as words of bytes": r"dot4 must fit its operands\. Got float32",
    "integers to tf32": r"to_tf32 must fit its operands\. Got int32",
    "block read that differs": r"starts at one place for the whole subgroup\. Got l",
    "types": r"add must fit its operands\. Got float32, int32",
    "value of another type": r"a value has the type of its buffer\. Got int32 for y of float32",
    "division by what may be zero": r"a divisor is not zero|must start inside",
    "variable out of its scope": r"a variable is declared before its use\. Got i",
    "index beyond 32 bits": r"computed within 32 bits|must start inside|must end inside",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused(mistake):
    with pytest.raises(RuntimeError, match=MISTAKES[mistake]):
        kernels.build_wrong(mistake)


def test_every_mistake_is_listed():
    with pytest.raises(RuntimeError, match="must be known") as raised:
        kernels.build_wrong("")
    listed = str(raised.value).split("expected one of ")[1].split("\n")[0].split("; ")
    assert sorted(listed) == sorted(MISTAKES)


def test_a_size_outside_its_range_is_refused():
    with pytest.raises(RuntimeError, match=r"size m must lie in its range\. Got 9000, expected 1 \.\.\. 8192"):
        kernels.geometry("gemm_local", {"m": 9000, "n": 1, "k": 1})


def test_a_size_must_be_given():
    with pytest.raises(RuntimeError, match="every size of a launch must be given. Got no k"):
        kernels.geometry("gemm_local", {"m": 1, "n": 1})


def test_geometry_follows_the_sizes():
    geometry = kernels.geometry("gemm_local", {"m": 65, "n": 64, "k": 10})
    assert geometry["groups"] == [1, 2, 1]
    assert geometry["locals"] == [16, 16, 1]
    assert [p[2] for p in geometry["parameters"]] == [-1, -1, -1, 650, 640, 4160]

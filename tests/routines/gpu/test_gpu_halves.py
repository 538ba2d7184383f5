"""Programs whose memory holds halves: bit for bit what those of float32 give, rounded, on operands that are halves."""

import numpy as np
import pytest

from tests.routines.gpu.basic import check
from tests.routines.gpu.programs import ON, Program

PLANE = {"kh": 3, "kw": 3, "phb": 1, "pwb": 1, "phe": 1, "pwe": 1, "bias": 1, "residual": 1}
BLOCKED = {**PLANE, "ic": 16, "oc": 32}
# Name, choice, dims and memory of the inputs, then of the output, how many packed constants are float32.
PROGRAMS = {
    "direct": (
        "conv_direct",
        BLOCKED | {"in_block": 8, "out_block": 8, "lanes": 8, "vectors": 2, "columns": 3, "inner": 4, "load": 4},
        [((1, 16, 7, 7), (1, 2, 7, 7, 8)), ((1, 32, 7, 7), (1, 4, 7, 7, 8))],
        ((1, 32, 7, 7), (1, 4, 7, 7, 8)),
        0,
    ),
    "depthwise": (
        "conv_depthwise",
        {**PLANE, "ic": 16, "oc": 16, "groups": 16, "block": 4, "lanes": 4, "columns": 2, "reuse": 1, "residual": 0},
        [((1, 16, 5, 6), (1, 4, 5, 6, 4))],
        ((1, 16, 5, 6), (1, 4, 5, 6, 4)),
        0,
    ),
    "subgroup": (
        "conv_subgroup",
        BLOCKED | {"size": 16, "columns": 3, "load": 4, "reuse": 1, "unroll": 1},
        [((1, 16, 5, 6), (1, 1, 5, 6, 16)), ((1, 32, 5, 6), (1, 2, 5, 6, 16))],
        ((1, 32, 5, 6), (1, 2, 5, 6, 16)),
        0,
    ),
    "tiled": (
        "conv_tiled",
        BLOCKED | {"tp": 8, "tc": 4, "pixels": 2, "channels": 2, "depth": 8},
        [((1, 16, 5, 6),) * 2, ((1, 32, 5, 6),) * 2],
        ((1, 32, 5, 6),) * 2,
        0,
    ),
    "winograd": (
        "conv_winograd",
        BLOCKED | {"block": 8, "tile": 2, "width": 8, "lanes": 8, "vectors": 1, "columns": 4, "threads": 2},
        [((1, 16, 5, 6), (1, 2, 5, 6, 8)), ((1, 32, 5, 6), (1, 4, 5, 6, 8))],
        ((1, 32, 5, 6), (1, 4, 5, 6, 8)),
        1,
    ),
    "fused winograd": (
        "conv_winograd",
        BLOCKED | {"block": 8, "tile": 4, "width": 8, "lanes": 8, "vectors": 2, "columns": 2, "steps": 2, "workers": 2},
        [((1, 16, 9, 6), (1, 2, 9, 6, 8)), ((1, 32, 9, 6), (1, 4, 9, 6, 8))],
        ((1, 32, 9, 6), (1, 4, 9, 6, 8)),
        1,
    ),
    "product": (
        "gemm",
        {"lanes": 8, "vectors": 2, "rows": 3, "inner": 2, "tm": 2, "tn": 2, "bias": 1, "b0": 13, "b1": 17},
        [((7, 13),) * 2],
        ((7, 17),) * 2,
        0,
    ),
    "product of two operands": (
        "gemm",
        {"lanes": 4, "vectors": 1, "rows": 2, "packs_b": 0, "a_rank": 3, "b_rank": 3, "residual": 1},
        [((2, 5, 6),) * 2, ((2, 6, 7),) * 2, ((2, 5, 7),) * 2],
        ((2, 5, 7),) * 2,
        0,
    ),
    "product by matrices": (
        "gemm_tf32",
        {"subgroups": 1, "rows": 16, "columns": 1, "depth": 8, "bias": 1, "b0": 13, "b1": 17},
        [((7, 13),) * 2],
        ((7, 17),) * 2,
        0,
    ),
    "recurrent": (
        "recurrent",
        {"kind": 0, "input": 5, "hidden": 11, "y": 1, "initial_h": 1, "initial_c": 1},
        [((4, 2, 5),) * 2, ((1, 2, 11),) * 2, ((1, 2, 11),) * 2],
        ((4, 1, 2, 11),) * 2,
        0,
    ),
}


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_halves(name, on):
    maker, choice, inputs, (dims, memory), wide_constants = PROGRAMS[name]
    rng = np.random.default_rng(8)
    operands = [(d, rng.standard_normal(m).astype("f2")) for d, m in inputs]
    wide, half = Program(maker, **choice), Program(maker, half=1, **choice)
    sizes = {}
    _, launches = wide.native.launches([*(list(d) for d, _ in inputs), list(dims)])
    for kind, index, size in (a for _, arguments in launches for a in arguments if len(a) == 3):
        if kind == "packed":
            sizes[index] = max(size // 4, sizes.get(index, 0))
    packed = [rng.standard_normal(sizes[i]).astype("f2") / np.float16(4) for i in sorted(sizes)]
    results = []
    for program, dtype in ((wide, "f4"), (half, "f2")):
        constants = [x.astype("f4" if i < wide_constants else dtype) for i, x in enumerate(packed)]
        given = [(d, x.astype(dtype)) for d, x in operands]
        results.append(program.run(given, [(dims, dtype, memory)], constants, on)[0][0])
    # By matrices, and what a GPU program keeps between two launches where B is an operand, is rounded on the way.
    exact = on == "c" and "two operands" not in name
    expected, tolerance = results[0].astype("f2"), 0 if exact else 2e-3
    np.testing.assert_allclose(results[1].astype("f4"), expected.astype("f4"), rtol=tolerance, atol=tolerance)


WORKLOADS = [
    ("y = MaxPool(i0) {kernel_shape=[3,3], pads=[1,1,1,1]} <- i0: HALF[2,5,6,7]", 1),
    ("y = AveragePool(i0) {kernel_shape=[2,2]} <- i0: HALF[2,5,6,7]", 1),
    ("y = Softmax(i0) <- i0: HALF[3,37]", 1),
    ("y = ReduceMean(i0) {axes=[1]} <- i0: HALF[3,5,7]", 1),
    ("y = LayerNormalization(i0, i1) <- i0: HALF[3,5,37], i1: HALF[37]", 2),
    ("y = InstanceNormalization(i0, i1, i2) <- i0: HALF[2,3,5,7], i1: HALF[3], i2: HALF[3]", 3),
    ("y = LRN(i0) {size=3} <- i0: HALF[1,5,3,4]", 1),
    ("y = Mul(i0, i1) <- i0: HALF[3,5,8], i1: HALF[5,1]", 2),
    ("y = Sigmoid(i0) <- i0: HALF[3,41]", 1),
    ("y = Cast(i0) {to=1} <- i0: HALF[3,41]", 1),
    ("y = Concat(i0, i1) {axis=1} <- i0: HALF[2,3,4], i1: HALF[2,5,4]", 2),
    ("y = Transpose(i0) {perm=[2,0,1]} <- i0: HALF[2,3,8]", 1),
]


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize(("workload", "count"), WORKLOADS)
def test_a_workload_of_halves(workload, count, half):
    import ml_dtypes

    dtype = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[half]
    rng = np.random.default_rng(count)
    shapes = [[int(d) for d in part.split("]")[0].split(",")] for part in workload.split("HALF[")[1:]]
    inputs = [np.asarray(1 + rng.random(shape), dtype) for shape in shapes]
    tolerance = 2e-3 if half == "float16" else 1.6e-2
    check(workload.replace("HALF", half), inputs, rtol=tolerance, atol=tolerance)

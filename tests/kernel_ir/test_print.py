"""What the printer writes: goldens, and that CUDA's compilers take it.

``NEO_UPDATE_GOLDENS=1 pytest tests/kernel_ir`` writes the goldens anew.
"""

import os
import re
from pathlib import Path

import pytest

from tests.kernel_ir.compilers import CLANG, compile_cuda, compile_opencl
from tests.kernel_ir.kernels import kernels

GOLDENS = Path(__file__).parent / "goldens"
# Kernel, language, subgroups: all statements, each language's own words, each way to be without subgroups.
GOLDEN = [
    ("gemm_6x2x8", "opencl", "none"),
    ("gemm_local", "cuda", "none"),
    ("scan_add", "opencl", "none"),
    ("scan_add", "cuda", "none"),
    ("scan_add", "c", "none"),
    ("sort_blocks", "opencl", "none"),
    ("softmax_subgroup", "opencl", "intel"),
    ("softmax_subgroup", "opencl", "khronos"),
    ("softmax_subgroup", "opencl", "none"),
    ("softmax_subgroup", "cuda", "none"),
    ("softmax_subgroup", "c", "none"),
    ("conv_subgroup", "opencl", "intel"),
    ("eltwise_vector", "opencl", "none"),
    ("eltwise_vector", "cuda", "none"),
    ("eltwise_vector", "c", "none"),
    ("histogram", "opencl", "none"),
    ("image_blur", "opencl", "none"),
    ("image_blur", "cuda", "none"),
    ("image_blur", "c", "none"),
    ("gemm_matrices", "cuda", "matrices"),
    ("gemm_matrices", "c", "none"),
    ("dot_bytes", "opencl", "none"),
    ("dot_bytes", "opencl", "dots"),
    ("dot_bytes", "opencl", "arm_dots"),
    ("dot_bytes", "cuda", "dots"),
    ("dot_bytes", "c", "none"),
    ("scale_codes", "opencl", "none"),
    ("mirror_vector_float16", "opencl", "none"),
    ("mirror_vector_float16", "cuda", "none"),
    ("mirror_vector_float16", "c", "none"),
    ("round_to_bfloat16", "opencl", "none"),
    ("round_to_bfloat16", "cuda", "none"),
]


@pytest.mark.parametrize(("name", "language", "subgroups"), GOLDEN)
def test_printed_text_is_the_golden(name, language, subgroups):
    path = GOLDENS / f"{name}.{subgroups}.{language}"
    text = kernels.print(name, language, subgroups)
    if os.environ.get("NEO_UPDATE_GOLDENS"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", ["gemm_6x4x16", "softmax_subgroup", "sort_merge"])
def test_printing_is_deterministic(name):
    assert kernels.print(name, "opencl") == kernels.print(name, "opencl")


def test_a_block_that_fits_is_not_guarded():
    text = kernels.print("scan_blocks", "opencl")
    assert not re.search(r"\bmin\(0|\b/ 1\b|\+ 0\b", text)


@pytest.mark.skipif(CLANG is None, reason="clang is needed to compile OpenCL C")
@pytest.mark.parametrize("features", ["none", "software_halves", "intel", "dots", "arm_dots"])
def test_opencl_compiles_as_1_2(features):
    compile_opencl([kernels.print(name, "opencl", features) for name in kernels.names()])


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("capability", "features"), [(87, "matrices"), (90, "matrices"), (87, "dots"), (75, "dots"), (75, "none")]
)
def test_cuda_compiles_for_edge_and_data_centre(capability, features):
    compile_cuda([kernels.print(name, "cuda", features) for name in kernels.names()], capability)


def test_matrices_are_instructions_where_there_are_some():
    assert "mma.sync" in kernels.print("gemm_matrices", "cuda", "matrices")
    for language in ("cuda", "opencl", "c"):
        assert "mma.sync" not in kernels.print("gemm_matrices", language)


@pytest.mark.nvcc
def test_nvrtc_gives_machine_code():
    assert kernels.compile_cuda(kernels.print("scan_add", "cuda"), 87)[:4] == b"\x7fELF"


@pytest.mark.nvcc
def test_nvrtc_says_which_line_is_wrong():
    with pytest.raises(RuntimeError, match=r"(?s)kernel\.cu\(2\).*Line 2 is:   a\[0\] = nonsense;"):
        kernels.compile_cuda('extern "C" __global__ void f(float *a) {\n  a[0] = nonsense;\n}\n', 90)

"""Kernels on every way to run them: plain C under sanitizers, OpenCL on PoCL, CUDA's compilers."""

import os

import pytest

from tests.kernel_ir.compilers import NVCC
from tests.kernel_ir.kernels import PlainC, kernels


def pytest_collection_modifyitems(config, items):
    """Without the CUDA toolkit nothing can compile CUDA: those tests are left out, and the run says how many."""
    if NVCC is not None:
        return
    left_out = [item for item in items if item.get_closest_marker("nvcc")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def plain_c():
    return PlainC()


@pytest.fixture(scope="session")
def opencl():
    return kernels.Runner(os.environ.get("NEO_TEST_DEVICE", "opencl"))

"""A sample of ONNX's backend suite with target "opencl"; ``python -m tests.conformance.on_device`` runs all of it."""

from __future__ import annotations

import pytest

from .on_device import run_on

# Empty tensors have a place on the device, and one case of each of the larger families.
SAMPLE = (
    "test_reduce_l1_empty_set_expanded",
    "test_split_zero_size_splits_opset18",
    "test_relu",
    "test_softmax_axis_1",
    "test_nonzero_example",
    "test_top_k",
    "test_transpose_all_permutations_3",
    "test_matmul_3d",
    "test_gather_1",
    "test_det_2d",
    "test_adam",
)


@pytest.mark.parametrize("name", SAMPLE)
def test_passes_on_opencl(name: str) -> None:
    assert not run_on(name, "opencl").failure


def test_says_where_nodes_ran() -> None:
    assert run_on("test_relu", "opencl").on_device == {"Relu": 1}
    assert run_on("test_det_2d", "opencl").on_cpu == {"Det": 1}

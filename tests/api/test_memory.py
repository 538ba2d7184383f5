"""Memory stays flat, whatever shapes come."""

import gc
import os
from pathlib import Path

import neo
import numpy as np
import pytest
from onnx import helper, numpy_helper


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_memory_is_flat_over_ten_thousand_random_shapes(digits, images):
    module = digits.with_threads(1)
    largest = 8
    sizes = np.random.default_rng(0).integers(0, largest + 1, 10_000)
    for n in range(largest + 1):
        module(images[:n])
    gc.collect()
    kept, before = module._native.kept_bytes, resident_bytes()
    for n in sizes:
        module(images[:n])
    gc.collect()
    assert module._native.kept_bytes == kept
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # it keeps freed memory for a while
        assert resident_bytes() - before < 8 << 20


def test_bindings_are_kept_for_a_bounded_number_of_shapes(pair):
    module = pair.with_threads(1)
    for n in range(500):
        x = np.full((n, 3), n, np.float32)
        np.testing.assert_array_equal(module(x, x)[0], 2 * x)
    assert module._native.binding_count <= 256


def shared_weights(op, count):
    """Weights of 2.4 MB read by many nodes whose inputs differ in size."""
    random = np.random.default_rng(3)
    shape, attrs = ((256, 256, 3, 3), {"pads": [1, 1, 1, 1]}) if op == "Conv" else ((768, 768), {})
    weight = numpy_helper.from_array(random.standard_normal(shape, dtype=np.float32), "w")
    dims = [[1, 256, 16, 16 + i % 2] if op == "Conv" else [40 + i, 768] for i in range(count)]
    nodes = [helper.make_node(op, [f"x{i}", "w"], [f"y{i}"], f"node{i}", **attrs) for i in range(count)]
    ends = [[helper.make_tensor_value_info(f"{n}{i}", 1, d) for i, d in enumerate(dims)] for n in "xy"]
    graph = helper.make_graph(nodes, "g", *ends, [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, [random.standard_normal(d, dtype=np.float32) for d in dims]


@pytest.mark.parametrize("op", ["Conv", "MatMul"])
def test_constants_that_several_nodes_read_are_packed_once(op):
    model, inputs = shared_weights(op, 40)
    module = neo.compile(model, threads=2, limits=neo.Limits(memory=60 << 20))  # 40 times would be 94 MB or more
    plain = neo.compile(model, threads=1)
    for y, expected in zip(module(*inputs), plain(*inputs), strict=True):
        # Sums of up to 2,304 products by other algorithms: an element near zero has the error of the largest.
        assert np.abs(y - expected).max() <= 1e-3 * np.abs(expected).max()

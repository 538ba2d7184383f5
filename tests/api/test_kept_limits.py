"""Limits on memory, error and latency hold on the finished module, and what cannot be kept to names the nearest."""

import itertools

import neo
import numpy as np
import onnx
import pytest
from neo.difference import energy_ratio
from neo.select import InfeasibleError
from onnx import TensorProto, helper, numpy_helper


def model_of(nodes, constants, x, y):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(np.asarray(c, np.float32), name) for name, c in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def convolutions(seed=0, widths=(24, 40, 40, 17), size=20, batch=1):
    """3x3 convolutions with clamps between, which Winograd's algorithm may compute."""
    rng = np.random.default_rng(seed)
    nodes, constants, x = [], {}, "x"
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        constants[f"w{i}"] = rng.standard_normal((b, a, 3, 3)) / (3 * a**0.5)
        nodes.append(helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4))
        x = "y" if i == len(widths) - 2 else f"r{i}"
        nodes.append(helper.make_node("Relu", [f"c{i}"], [x], f"relu{i}"))
    return model_of(nodes, constants, [batch, widths[0], size, size], [batch, widths[-1], size, size])


def products(seed=1, rows=5, widths=(31, 64, 64, 10)):
    """Products, the second and third with the same weights."""
    rng = np.random.default_rng(seed)
    constants = {"a": rng.standard_normal(widths[:2]), "b": rng.standard_normal((widths[1],) * 2) / 8}
    constants["c"] = rng.standard_normal(widths[2:])
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"], "first"),
        helper.make_node("MatMul", ["p", "b"], ["q"], "second"),
        helper.make_node("MatMul", ["q", "b"], ["r"], "third"),
        helper.make_node("MatMul", ["r", "c"], ["y"], "last"),
    ]
    return model_of(nodes, constants, [rows, widths[0]], [rows, widths[-1]])


def separable(seed=2, channels=29, size=15):
    """A depthwise convolution between two of 1x1."""
    rng = np.random.default_rng(seed)
    constants = {
        "a": rng.standard_normal((2 * channels, channels, 1, 1)) / channels,
        "b": rng.standard_normal((2 * channels, 1, 3, 3)),
        "c": rng.standard_normal((channels, 2 * channels, 1, 1)) / channels,
    }
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], "wider"),
        helper.make_node("Conv", ["p", "b"], ["q"], "apart", pads=[1] * 4, group=2 * channels),
        helper.make_node("Conv", ["q", "c"], ["y"], "narrower"),
    ]
    return model_of(nodes, constants, [1, channels, size, size], [1, channels, size, size])


MODELS = {
    "convolutions": convolutions,
    "wide": lambda: convolutions(3, (8, 64, 96), 33),
    "products": products,
    "separable": separable,
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", MODELS)
def test_memory(name, seed):
    model = MODELS[name]()
    free = neo.compile(model, threads=1)
    with pytest.raises(InfeasibleError, match="limit on memory must be reachable. Got 1, the smallest") as caught:
        neo.compile(model, threads=1, memory=1)
    smallest = int(caught.value.smallest)
    assert 1 < smallest <= free.memory.bound
    limit = int(np.random.default_rng(seed).integers(smallest, free.memory.bound + 1)) if seed else smallest
    module = neo.compile(model, threads=1, memory=limit)
    x = np.random.default_rng(seed).standard_normal(module.inputs[0].shape).astype(np.float32)
    np.testing.assert_allclose(module(x), free(x), rtol=1e-3, atol=1e-3)
    memory = module.memory
    assert memory.bound <= limit
    assert memory.constants + max(memory.call, memory.kept) <= memory.bound


def test_a_limit_that_all_keep_to_changes_nothing():
    model = convolutions()
    free = neo.compile(model, threads=1)
    limited = neo.compile(model, threads=1, memory=1 << 40, latency=1e9, accuracy=0.5)
    assert [s.routine for s in limited.steps] == [s.routine for s in free.steps]


def test_memory_is_that_of_the_largest_sizes():
    model = convolutions(batch="N")
    hints = neo.compile(model, threads=1, shapes={"N": 1})
    module = neo.compile(model, threads=1, shapes={"N": (1, 12)})
    x = np.ones((12, 24, 20, 20), np.float32)
    module(x)
    memory = module.memory
    assert memory.bound >= memory.constants + memory.kept > hints.memory.bound
    # Twelve images of one intermediate value: more than whatever routines need for one image.
    limit = 4 * x.size
    assert neo.compile(model, threads=1, shapes={"N": 1}, memory=limit).memory.bound <= limit
    with pytest.raises(InfeasibleError):
        neo.compile(model, threads=1, shapes={"N": (1, 12)}, memory=limit)


@pytest.mark.parametrize("threads", [1, 3])
def test_memory_counts_the_scratch_of_every_executor(threads):
    module = neo.compile(convolutions(), executors=(threads, 1))
    regions = module._native.regions_at_hints()
    scratch = max(r["scratch_bytes"] for r in regions)
    (region,) = regions
    assert module.memory.call == region["passing_bytes"] + region["kept_bytes"] + threads * scratch


@pytest.mark.parametrize("exponent", [-16, -14, -13, -12.5, -12, -10, -6])
@pytest.mark.parametrize("name", ["convolutions", "wide"])
def test_accuracy(name, exponent):
    model = MODELS[name]()
    direct = neo.compile(model, threads=1, accuracy="strict")
    module = neo.compile(model, threads=1, accuracy=1 - 10**exponent)
    for seed in range(3):
        x = np.random.default_rng(100 + seed).standard_normal(module.inputs[0].shape).astype(np.float32)
        assert energy_ratio(module(x), direct(x)) <= 10**exponent * 1.01


def test_accuracy_of_one_is_the_direct_method():
    model = convolutions()
    direct, module = (neo.compile(model, threads=1, accuracy=a) for a in ("strict", 1.0))
    x = np.random.default_rng(0).standard_normal(module.inputs[0].shape).astype(np.float32)
    np.testing.assert_array_equal(module(x), direct(x))


def test_accuracy_and_memory_together():
    model = convolutions()
    direct = neo.compile(model, threads=1, accuracy="strict")
    module = neo.compile(model, threads=1, accuracy=1 - 1e-15, memory=direct.memory.bound)
    x = np.random.default_rng(0).standard_normal(module.inputs[0].shape).astype(np.float32)
    assert energy_ratio(module(x), direct(x)) <= 1e-15
    assert module.memory.bound <= direct.memory.bound


def test_latency_that_cannot_be_kept_to_names_what_the_fastest_takes():
    with pytest.raises(InfeasibleError, match="limit on latency must be reachable. Got 0 ms, the fastest") as caught:
        neo.compile(convolutions(), threads=1, latency=0)
    assert caught.value.resource == "latency"
    assert caught.value.smallest > 0


@pytest.mark.parametrize("limit", [{"latency": 10.0}, {"accuracy": 0.9}])
def test_what_is_measured_needs_inputs_that_can_be_synthetic(limit):
    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["x"], ["y"], "upper", case_change_action="UPPER")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [2])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["N"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(neo.UnsupportedError, match="must be"):
        neo.compile(model, **limit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"latency": -1}, "latency must be milliseconds. Got -1"),
        ({"latency": float("nan")}, "latency must be milliseconds. Got nan"),
        ({"latency": True}, "latency must be milliseconds. Got True"),
        ({"memory": 1.5}, "memory must be a number of bytes. Got 1.5"),
        ({"accuracy": 1.5}, "accuracy must be known. Got 1.5, expected 'default', 'strict', 'reduced' or a number"),
        ({"accuracy": float("nan")}, "accuracy must be known. Got nan"),
        ({"accuracy": "high"}, "accuracy must be known. Got 'high'"),
    ],
)
def test_malformed_limits(arguments, message):
    with pytest.raises(neo.ModelError, match=message):
        neo.compile(products(), **arguments)

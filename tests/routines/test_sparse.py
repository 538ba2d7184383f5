"""1x1 convolutions with many zeros among their weights against the reference."""

import neo
import numpy as np
import pytest
from neo import _native
from onnx import TensorProto, helper, numpy_helper

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections
from tests.routines.test_conv import ACTIVATIONS, lanes
from tests.saved.parts import Parts

SPARSE = "cpu:float32/sparse_pointwise"
by_tier = pytest.mark.parametrize("tier", TIERS)


def sparse_weight(random, oc, ic, zeros):
    """About so many zeros, of both signs; at least the least that the routine takes."""
    weight = floats(random, [oc, ic])
    count = max(int(np.ceil(zeros * weight.size)), int(np.ceil(0.6 * weight.size)))
    at = random.permutation(weight.size)[:count]
    weight.ravel()[at] = 0.0
    weight.ravel()[at[::2]] = -0.0
    return weight


def graph_of(random, x_dims, weight, *, bias=False, tail="", symbols=False):
    """x -> Conv "conv" [-> Add "add"] [-> an activation "act"], and the inputs; the name of the last node."""
    graph = _native.Graph()
    dims = [d if i == 1 or not symbols else f"d{i}" for i, d in enumerate(x_dims)]
    x = graph.add_input("x", "float32", dims)
    inputs, ends = [floats(random, x_dims)], "conv"
    operands = [x, graph.add_constant("w", weight.reshape(*weight.shape, *[1] * (len(x_dims) - 2)))]
    if bias:
        operands.append(graph.add_constant("b", floats(random, [weight.shape[0]])))
    attrs = {"clamp_min": 0.0} if tail == "clamp" else {}
    value = graph.add_node("Conv", operands, ["conv"], attrs, "conv").outputs[0]
    if "add" in tail:
        residual = graph.add_input("residual", "float32", list(value.shape))
        inputs.append(floats(random, [x_dims[0], weight.shape[0], *x_dims[2:]]))
        value, ends = graph.add_node("Add", [value, residual], ["add"], {}, "add").outputs[0], "add"
    for op in tail.split():
        if op not in ("add", "clamp"):
            value, ends = graph.add_node(op, [value], ["act"], ACTIVATIONS.get(op, {}), "act").outputs[0], "act"
    graph.outputs = [value]
    return graph, inputs, ends


@by_tier
@pytest.mark.parametrize("seed", range(24))
def test_agrees_with_the_reference(tier, seed):
    random = np.random.default_rng(seed)
    oc, ic = (int(n) for n in random.integers(1, 50, 2))
    sizes = [int(n) for n in random.integers(1, pick(random, [3, 24]), pick(random, [1, 2, 2]))]
    weight = sparse_weight(random, oc, ic, float(random.uniform(0.6, 1)))
    tail = pick(random, ["", "clamp", "add", "add Relu", "HardSwish", "Sigmoid", "add Swish"])
    graph, inputs, ends = graph_of(
        random, [pick(random, [1, 1, 3]), ic, *sizes], weight, bias=bool(seed % 2), tail=tail, symbols=seed % 3 == 0
    )
    pinned = compile_pinned(graph, tier, {ends: SPARSE})
    assert pinned.routines[ends].startswith(SPARSE)
    found = pinned(*inputs)
    assert_close(found, graph.evaluate(inputs)[0], ic, f"{graph}")
    for threads in (2, 3):
        np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


@by_tier
@pytest.mark.parametrize("rest", [-1, 0, 1])
@pytest.mark.parametrize("vectors", range(1, 18))
def test_every_number_of_pixels(tier, vectors, rest):
    """No pixel is left out, and none behind the last is written."""
    random = np.random.default_rng(vectors)
    pixels = vectors * lanes(tier) + rest
    graph, inputs, ends = graph_of(random, [1, 9, pixels], sparse_weight(random, 5, 9, 0.7), bias=True)
    found = compile_pinned(graph, tier, {ends: SPARSE})(*inputs)
    assert_close(found, graph.evaluate(inputs)[0], 9)


@by_tier
def test_work_for_many_tasks_gives_the_same_bits(tier):
    random = np.random.default_rng(0)
    graph, inputs, ends = graph_of(random, [2, 160, 14, 14], sparse_weight(random, 224, 160, 0.85), bias=True)
    pinned = compile_pinned(graph, tier, {ends: SPARSE})
    found = pinned(*inputs)
    assert_close(found, graph.evaluate(inputs)[0], 160)
    for threads in (2, 3, 5):
        np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


@by_tier
def test_weights_that_are_all_zeros_leave_the_bias(tier):
    random = np.random.default_rng(0)
    weight = np.zeros((7, 6), np.float32)
    weight[0, 0] = 1e-30
    graph, inputs, ends = graph_of(random, [1, 6, 5, 5], weight, bias=True)
    assert_close(compile_pinned(graph, tier, {ends: SPARSE})(*inputs), graph.evaluate(inputs)[0], 6)


@pytest.mark.parametrize(
    ("weight", "attrs", "reason"),
    [
        (lambda r: floats(r, [8, 8, 1, 1]), {}, "fewer than 60 % of the weights are zeros"),
        (lambda r: np.zeros((8, 8, 3, 3), np.float32), {}, "not a 1x1 convolution"),
        (lambda r: np.eye(8, dtype=np.float32).reshape(8, 8, 1, 1), {"strides": [2, 2]}, "not a 1x1 convolution"),
        (
            lambda r: np.eye(8, dtype=np.float32)[:, :4].reshape(8, 4, 1, 1).copy(),
            {"group": 2},
            "not a 1x1 convolution",
        ),
    ],
)
def test_rejects(weight, attrs, reason):
    random = np.random.default_rng(0)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 8, 6, 6])
    operands = [x, graph.add_constant("w", weight(random))]
    graph.outputs = [graph.add_node("Conv", operands, ["conv"], attrs, "conv").outputs[0]]
    assert reason in rejections(graph, TIERS[-1], "conv")[SPARSE]


def test_chosen_where_it_is_faster():
    """Nine of ten zeros in a layer of MobileNet's size: chosen; two of three: the dense routine stays."""
    random = np.random.default_rng(0)
    chosen = {}
    for zeros in (0.61, 0.95):
        graph, _, ends = graph_of(random, [1, 512, 14, 14], sparse_weight(random, 512, 512, zeros))
        module = compile_pinned(graph, TIERS[-1], {})
        chosen[zeros] = SPARSE in module.routines[ends]
        (sparse,) = (c for c in candidates(graph, TIERS[-1], ends) if c["routine"].startswith(SPARSE))
        assert sparse["packed_bytes"] == pytest.approx(8 * (1 - zeros) * 512 * 512, rel=0.03)
    assert chosen == {0.61: False, 0.95: True}


def pinned_module(**arguments):
    """A module whose one convolution is sparse, and an input."""
    random = np.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], "conv")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 24, 9, 11])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 40, 9, 11])],
        [numpy_helper.from_array(sparse_weight(random, 40, 24, 0.9).reshape(40, 24, 1, 1), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = neo.compile(model, threads=1, routines={"conv": [SPARSE]}, **arguments)
    assert any(step.routine.startswith(SPARSE) for step in module.steps)
    return module, floats(random, [1, 24, 9, 11])


def test_a_saved_module_gives_the_same_bits(tmp_path):
    module, x = pinned_module()
    module.save(tmp_path / "m.neo")
    np.testing.assert_array_equal(neo.load(tmp_path / "m.neo", threads=1)(x), module(x))


def test_indices_of_a_damaged_module_are_refused(tmp_path):
    """Any packed number may be another one: loading is refused, or gives an answer."""
    module, x = pinned_module()
    module.save(tmp_path / "m.neo")
    file = (tmp_path / "m.neo").read_bytes()
    parts = Parts.of(file)
    refused = 0
    for at in range(0, len(parts.data) - 3, 4):
        data = bytearray(parts.data)
        data[at : at + 4] = np.int32(2**30).tobytes()
        parts.data = bytes(data)
        try:
            neo.load(parts.join(), threads=1)(x)
        except neo.ModelError:
            refused += 1
        parts = Parts.of(file)
    assert refused >= 40 + 90  # where channels begin, and which input channel a weight is for


def test_it_is_timed_with_its_own_weights(tmp_path):
    module, x = pinned_module()
    tuned, _ = pinned_module(tune=5, database=tmp_path / "t.db")
    assert tuned.tuning.measured > 0
    np.testing.assert_array_equal(tuned(x), module(x))

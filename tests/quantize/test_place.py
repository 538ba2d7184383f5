"""Where values are rounded: what routines for codes need, and nothing beside."""

import neo
import numpy as np
from neo.quantize.float_model import prepare
from neo.quantize.place import find_layers, place

from tests.quantize.networks import Net


def rounded(net: Net, *outputs: str, shape=("N", 8, 6, 6), skip=()):
    """The operators behind each rounded value, by their names, and the layers."""
    model = prepare(net.model(list(shape), *outputs), None)
    layers, reasons = find_layers(model, ("Conv", "Gemm", "MatMul"))
    placement = place(model, layers, skip)
    makers = {model.producer[v]: v for v in placement.rounded if v in model.producer}
    names = ["x" for v in placement.rounded if v not in model.producer]
    names += [model.nodes[i].name for i in sorted(makers)]
    return names, placement, reasons


def test_a_clamp_is_part_of_its_product():
    net = Net()
    y = net.conv(net.node("Relu", net.conv("x", 8, 8), name="relu"), 8, 8)
    assert rounded(net, y)[0] == ["x", "relu"]


def test_a_value_that_others_read_is_rounded_before_its_clamp():
    net = Net()
    a = net.conv("x", 8, 8, name="a")
    relu = net.node("Relu", a, name="relu")
    y = net.conv(net.node("Add", relu, a, name="sum"), 8, 8)
    assert rounded(net, y)[0] == ["x", "a", "relu", "sum"]


def test_both_operands_of_a_sum_are_rounded():
    net = Net()
    a = net.conv("x", 8, 8, name="a")
    b = net.conv(a, 8, 8, name="b")
    y = net.conv(net.node("Relu", net.node("Add", a, b), name="relu"), 8, 8)
    assert rounded(net, y)[0] == ["x", "a", "b", "relu"]


def test_a_sum_with_something_float_stays_float():
    net = Net()
    a = net.conv("x", 8, 8, name="a")
    b = net.node("Softmax", net.conv("x", 8, 8, name="b"), axis=1)
    y = net.conv(net.node("Add", a, b, name="sum"), 8, 8)
    assert rounded(net, y)[0] == ["x", "sum"]


def test_a_chain_of_functions_is_one_table():
    net = Net()
    a = net.conv("x", 8, 8, name="a")
    b = net.node("Mul", net.node("Tanh", a), net.constant(np.float32(2)), name="scaled")
    assert rounded(net, net.conv(b, 8, 8))[0] == ["x", "a", "scaled"]


def test_a_swish_in_two_nodes_is_one_function():
    net = Net()
    a = net.conv("x", 8, 8, name="a")
    b = net.node("Mul", net.node("Sigmoid", a), a, name="swish")
    names = rounded(net, net.conv(b, 8, 8))[0]
    assert names[:2] == ["x", "a"]
    assert names[2].startswith("swish")
    assert len(names) == 3


def test_the_last_product_keeps_its_sums():
    net = Net()
    y = net.node("Softmax", net.conv(net.conv("x", 8, 8, name="a"), 8, 8), axis=1)
    assert rounded(net, y)[0] == ["x", "a"]


def test_concatenated_and_pooled_values_share_a_scale():
    net = Net()
    a, b = net.conv("x", 8, 8, name="a"), net.conv("x", 8, 8, name="b")
    pooled = net.node("MaxPool", a, kernel_shape=[3, 3], pads=[1] * 4, name="pool")
    y = net.conv(net.node("Concat", pooled, b, axis=1, name="both"), 16, 8)
    names, placement, _ = rounded(net, y)
    assert names == ["x", "a", "b", "pool", "both"]
    assert len(set(placement.rounded.values())) == 2


def test_a_skipped_layer_reads_and_makes_floats():
    net = Net()
    a = net.node("Relu", net.conv("x", 8, 8, name="a"))
    b = net.node("Relu", net.conv(a, 8, 8, name="b"))
    y = net.conv(net.node("Add", a, b, name="sum"), 8, 8, name="c")
    names, placement, _ = rounded(net, y, skip=["b"])
    assert names == ["x", "sum"]
    assert [layer.name for layer in placement.layers] == ["a", "c"]


def test_weights_that_are_no_constants_stay_float():
    net = Net()
    w = net.node("Reshape", net.node("ReduceSum", "x", keepdims=1), net.constant(np.array([1, 1, 1, 1])))
    w = net.node("Expand", w, net.constant(np.array([8, 8, 1, 1])))
    y = net.node("Conv", net.conv("x", 8, 8, name="a"), w, name="b", kernel_shape=[1, 1])
    names, placement, reasons = rounded(net, y)
    assert names == ["x"]
    assert [layer.name for layer in placement.layers] == ["a"]
    assert reasons["b"] == "its weights are not constant"


def test_a_scaled_gemm_stays_float():
    net = Net()
    y = net.node("Gemm", "x", net.weights(8, 8), net.node("ReduceSum", "x"), alpha=2.0, transA=1, name="g")
    _, placement, reasons = rounded(net, y, shape=(8, 8))
    assert not placement.layers
    assert "g" in reasons


def padded(net: Net, sides, **attrs):
    return net.node("Pad", "x", net.constant(np.array(sides)), name="pad", **attrs)


def test_zeros_around_a_convolution_are_its_own():
    net = Net()
    a = net.node("Relu", net.conv("x", 8, 8, name="a"), name="relu")
    pad = net.node("Pad", a, net.constant(np.array([0, 0, 0, 0, 0, 0, 1, 2])), name="pad")
    model = net.model(["N", 8, 6, 6], net.conv(pad, 8, 8, 3, name="b", strides=[2, 2]))
    names, _, _ = rounded(net, net.nodes[-1].output[0])
    assert names == ["x", "relu"]
    x = np.random.default_rng(0).standard_normal((2, 8, 6, 6)).astype(np.float32)
    found = neo.compile(prepare(model, None).proto)(x)
    np.testing.assert_allclose(found, neo.compile(model)(x), rtol=1e-5, atol=1e-5)
    assert neo.quantize(model, [x]).report.error < 0.01


def test_other_pads_stay():
    for sides, attrs in (
        ([0, 1, 0, 0, 0, 0, 0, 0], {}),
        ([0, 0, -1, 0, 0, 0, 1, 0], {}),
        ([0, 0, 1, 1] * 2, {"mode": "edge"}),
    ):
        net = Net()
        channels = 8 + sides[1]
        y = net.conv(padded(net, sides, **attrs), channels, 8, 3)
        assert any(node.op_type == "Pad" for node in prepare(net.model(["N", 8, 6, 6], y), None).nodes)


def test_a_pad_that_others_read_stays_for_them():
    net = Net()
    pad = padded(net, [0, 0, 1, 1, 0, 0, 1, 1])
    a, b = net.conv(pad, 8, 8, 3), net.node("MaxPool", pad, kernel_shape=[3, 3])
    model = net.model(["N", 8, 6, 6], a, b)
    ops = [node.op_type for node in prepare(model, None).nodes]
    assert sorted(ops) == ["Conv", "MaxPool", "Pad"]
    x = np.random.default_rng(0).standard_normal((2, 8, 6, 6)).astype(np.float32)
    for got, expected in zip(neo.compile(prepare(model, None).proto)(x), neo.compile(model)(x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)

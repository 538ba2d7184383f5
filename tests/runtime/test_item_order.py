"""A plan's items in any order that their dependencies allow, and on any executors: the same bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from onnx import TensorProto, helper, numpy_helper

EXECUTORS = [(1, 1), (1, 2), (2, 1), (3, 1), (2, 2), (5, 1)]


class Builder:
    """A graph whose values have all one shape until a convolution or a pool says another."""

    def __init__(self, seed: int, channels: int = 8, size: int = 9) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.channels, self.size = channels, size

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        name = f"k{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"{op}{len(self.nodes)}", **attributes))
        return names

    def conv(self, x: str, channels: int | None = None, *, kernel: int = 3) -> str:
        out = channels or self.channels
        weight = self.numbers.standard_normal((out, self.channels, kernel, kernel)).astype(np.float32) * 0.1
        return self.add("Conv", x, self.constant(weight), pads=[kernel // 2] * 4)[0]

    def model(self, results: list[str]) -> onnx.ModelProto:
        shape = [1, self.channels, self.size, self.size]
        graph = helper.make_graph(
            self.nodes,
            "branches",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def any_branches(seed: int) -> onnx.ModelProto:
    """Convolutions, sums, concatenations that are parted again, and what has many readers."""
    b = Builder(seed)
    values = ["x"]
    for _ in range(6 + b.random.randrange(18)):
        pick = b.random.randrange(7)
        x, y = b.random.choice(values), b.random.choice(values[-4:])
        if pick < 2:
            values.append(b.conv(x, kernel=b.random.choice((1, 3))))
        elif pick == 2:
            values.append(b.add("Relu", y)[0])
        elif pick == 3:
            values.append(b.add("Add", x, y)[0])
        elif pick == 4:
            values.append(b.add("MaxPool", y, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])[0])
        elif pick == 5:
            parts = [b.conv(v) for v in (x, y, x)]
            whole = b.add("Concat", *parts, axis=1)[0]
            values += b.add("Split", whole, b.constant(np.array([b.channels] * 3)), outputs=3, axis=1)
        else:
            values.append(b.add("Sigmoid", b.add("Mul", x, y)[0])[0])
    return b.model([values[-1], b.random.choice(values[1:])])


def growing_concat(seed: int) -> onnx.ModelProto:
    """DenseNet's: each layer reads all before it."""
    b = Builder(seed, channels=4)
    all_before = "x"
    first = b.channels
    for i in range(6):
        b.channels = first * (i + 1)
        normal = b.add("Relu", all_before)[0]
        new = b.conv(normal, first)
        all_before = b.add("Concat", all_before, new, axis=1)[0]
    b.channels = first
    return b.model([all_before])


def inception(seed: int) -> onnx.ModelProto:
    b = Builder(seed, channels=16, size=11)
    x = "x"
    for _ in range(3):
        pooled = b.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])[0]
        branches = [b.conv(x, 4, kernel=1), b.conv(b.conv(x), 4), b.conv(b.conv(b.conv(x)), 4), b.conv(pooled, 4)]
        x = b.add("Concat", *branches, axis=1)[0]
    return b.model([x])


def recurrent(seed: int) -> onnx.ModelProto:
    """Three stacked layers beside three others, over the same input."""
    b = Builder(seed, channels=1, size=16)
    steps = b.add("Reshape", "x", b.constant(np.array([16, 1, 16])))[0]
    ends = []
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        y = steps
        for _ in range(3):
            w, r = (b.numbers.standard_normal((1, gates * 16, 16)).astype(np.float32) * 0.2 for _ in "wr")
            y = b.add(
                "Squeeze", b.add(op, y, b.constant(w), b.constant(r), hidden_size=16)[0], b.constant(np.array([1]))
            )[0]
        ends.append(y)
    return b.model([b.add("Add", *ends)[0]])


def control_flow(seed: int) -> onnx.ModelProto:
    """Branches and loops of bodies beside each other and beside convolutions."""
    b = Builder(seed)
    body = onnx.parser.parse_graph(
        "body (int64 i, bool more, float[1,8,9,9] d) => (bool more_out, float[1,8,9,9] e) "
        "{ more_out = Identity (more) t = Tanh (d) e = Add (t, d) }"
    )
    yes = onnx.parser.parse_graph("yes () => (float[1,8,9,9] p) { p = Exp (x) }")
    no = onnx.parser.parse_graph("no () => (float[1,8,9,9] q) { q = Neg (x) }")
    three, go = b.constant(np.array(3, np.int64)), b.constant(np.array(True))
    ends = []
    for _ in range(3):
        ends.append(b.add("Loop", three, go, b.conv("x"), body=body)[0])
        total = b.add("ReduceSum", b.conv("x"), keepdims=0)[0]
        chosen = b.add("Greater", total, b.constant(np.array(0, np.float32)))[0]
        ends.append(b.conv(b.add("If", chosen, then_branch=yes, else_branch=no)[0]))
    return b.model([b.add("Sum", *ends)[0], ends[0]])


MODELS: dict[str, Callable[[int], onnx.ModelProto]] = {
    **{f"branches-{seed}": any_branches for seed in range(12)},
    "growing-concat": growing_concat,
    "inception": inception,
    "recurrent": recurrent,
    "control-flow": control_flow,
}


def arrays_of(module: neo.Module) -> list[np.ndarray[Any, Any]]:
    numbers = np.random.default_rng(3)
    return [numbers.standard_normal(t.shape).astype(np.float32) for t in module.inputs]


def assert_same_bits(found: list[Any], right: list[Any]) -> None:
    assert len(found) == len(right)
    for one, other in zip(found, right, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("name", MODELS)
def test_generated_graphs_in_any_order_and_on_any_executors(name: str) -> None:
    number = int(name.rpartition("-")[2]) if name.startswith("branches") else 1
    module = neo.compile(MODELS[name](number), threads=1)
    arrays = arrays_of(module)
    native: _native.Module = module._native
    right = native.call(arrays)
    for seed in range(8):
        assert_same_bits(native.call_shuffled(arrays, seed), right)
    for executors in EXECUTORS:
        several = native.with_executors(*executors)
        for _ in range(3):
            assert_same_bits(several.call(arrays), right)


def test_shuffled_orders_are_other_orders_over_memory_of_their_own() -> None:
    """What an item reads before it was written would be seen: memory is not a number before."""
    module = neo.compile(inception(1), threads=1)
    native, arrays = module._native, arrays_of(module)
    native.call(arrays)
    assert all(np.isfinite(np.asarray(r)).all() for r in native.call_shuffled(arrays, 5))
    plain = [e["item"] for e in native.trace(arrays)[1]]
    assert plain == sorted(plain)
    together = native.with_executors(3, 1).trace(arrays)[1]
    assert sorted(e["item"] for e in together) == plain
    assert {e["executor"] for e in together} <= {0, 1, 2}


@pytest.mark.slow
def test_ten_thousand_items_are_planned() -> None:
    """Quadratic work would take minutes."""
    b = Builder(1, channels=1, size=2)
    values = ["x"]
    for i in range(10_000):
        values.append(
            b.add("MaxPool", values[-1 - i % 3 % len(values)], kernel_shape=[1, 1])[0]
            if i % 2
            else b.add("CumSum", values[-1], b.constant(np.array(2)))[0]
        )
    module = neo.compile(b.model([values[-1]]), threads=1)
    assert module.run({"x": np.ones((1, 1, 2, 2), np.float32)})

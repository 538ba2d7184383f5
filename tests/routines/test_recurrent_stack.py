"""Pipelines over the layers of a recurrent stack, of every instruction set, against the reference."""

import numpy as np
import pytest
from neo import ShapeError, _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections

ROUTINE = "cpu:float32/recurrent_stack"
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CASES = 12

by_tier = pytest.mark.parametrize("tier", TIERS)


class Stack:
    """Recurrent nodes "layer0" ... one above the other, with random weights."""

    def __init__(self, random, ops, steps, batch, inputs, hidden, *, states=True, sizes=None, outputs=3, attrs=None):
        self.graph = _native.Graph()
        self.ops, self.depth = ops, inputs + max(hidden)
        attrs = attrs or [{}] * len(ops)
        x_dims = sizes or [steps, batch, inputs]
        x = self.graph.add_input("x", "float32", x_dims)
        self.inputs = [floats(random, [steps, batch, inputs])]
        for i, op in enumerate(ops):
            size = hidden[i - 1] if i > 0 else inputs
            rows, scale = GATES[op] * hidden[i], np.float32(1 / np.sqrt(hidden[i]))
            operands = [x]
            for name, dims in {"w": [1, rows, size], "r": [1, rows, hidden[i]], "b": [1, 2 * rows]}.items():
                operands.append(self.graph.add_constant(f"{name}{i}", floats(random, dims) * scale))
            operands.append(None)
            for name in ["h", "c"][: 2 if op == "LSTM" else 1] if states else []:
                operands.append(self.graph.add_input(f"{name}{i}", "float32", [1, x_dims[1], hidden[i]]))
                self.inputs.append(floats(random, [1, batch, hidden[i]]))
            is_last = i + 1 == len(ops)
            names = ["y", "y_h", "y_c"][: min(outputs, 3 if op == "LSTM" else 2)] if is_last else [f"y{i}"]
            node = self.graph.add_node(op, operands, names, {"hidden_size": hidden[i], **attrs[i]}, f"layer{i}")
            x = node.outputs[0]
            if not is_last:
                axis = self.graph.add_constant(f"axis{i}", np.array([1], np.int64))
                x = self.graph.add_node("Squeeze", [x, axis], [f"x{i + 1}"], {}, f"move{i}").outputs[0]
        self.last = f"layer{len(ops) - 1}"
        self.graph.outputs = [v for v in node.outputs if v is not None]

    def ways(self, tier):
        """Schedules of the pipeline that selection is offered."""
        found = candidates(self.graph, tier, self.last, 2)
        return [c["routine"] for c in found if c["routine"].startswith(ROUTINE)]

    def run(self, tier, routine, threads=2):
        """All outputs, which do not depend on the size of the team."""
        pinned = compile_pinned(self.graph, tier, {self.last: routine}, threads=threads)
        assert pinned.routines[self.last] == routine
        results = [pinned.module.with_threads(n).call(self.inputs) for n in (threads, 1, 5)]
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(a, b)
        return results[0]

    def check(self, tier, routine, threads=2):
        """Compare with the reference."""
        for a, e in zip(self.run(tier, routine, threads), self.graph.evaluate(self.inputs), strict=True):
            assert_close(a, e, 4 * self.depth * len(self.ops), f"{routine} {self.graph}")


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_any_stack(tier, seed):
    random = np.random.default_rng(seed)
    ops = [pick(random, list(GATES)) for _ in range(pick(random, [2, 3, 4, 7]))]
    attrs = [{"linear_before_reset": int(random.integers(2))} if op == "GRU" else {} for op in ops]
    steps, batch = pick(random, [2, 3, 7, 17, 33]), pick(random, [1, 1, 2, 7])
    hidden = [pick(random, [1, 5, 16, 33, 64]) for _ in ops]
    stack = Stack(
        random, ops, steps, batch, pick(random, [1, 8, 37]), hidden, states=pick(random, [True, False]), attrs=attrs
    )
    ways = stack.ways(tier)
    assert ways
    for routine in ways:
        stack.check(tier, routine)


@by_tier
def test_every_number_of_stages(tier):
    stack = Stack(np.random.default_rng(1), ["LSTM"] * 5, 9, 1, 20, [24, 40, 8, 24, 16])
    for stages in range(2, 6):
        for chunk in (1, 2, 8):
            stack.check(tier, f"{ROUTINE}{{chunk={chunk} stages={stages}}}", stages)


@by_tier
@pytest.mark.parametrize("op", list(GATES))
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_the_bits_are_those_of_any_chunks_and_stages(tier, op, batch):
    stack = Stack(np.random.default_rng(2), [op] * 3, 13, batch, 12, [20, 20, 20])
    expected = stack.run(tier, f"{ROUTINE}{{chunk=8 stages=2}}")
    for chunk, stages in ((1, 2), (4, 3), (8, 3)):
        for a, e in zip(stack.run(tier, f"{ROUTINE}{{chunk={chunk} stages={stages}}}", stages), expected, strict=True):
            np.testing.assert_array_equal(a, e)


@by_tier
@pytest.mark.parametrize("steps", [0, 1, 2, 16, 17, 50])
@pytest.mark.parametrize("batch", [1, 6])
def test_sizes_of_the_run(tier, steps, batch):
    stack = Stack(np.random.default_rng(3), ["LSTM", "GRU", "LSTM"], steps, batch, 9, [12, 20, 17], sizes=["t", "b", 9])
    for routine in stack.ways(tier):
        stack.check(tier, routine)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_results_that_nobody_reads(outputs):
    stack = Stack(np.random.default_rng(4), ["LSTM", "LSTM"], 5, 2, 8, [8, 8], outputs=outputs)
    stack.check(TIERS[-1], f"{ROUTINE}{{chunk=2 stages=2}}")
    keep = [v for v in stack.graph.outputs if v.name != "y"]
    if keep:
        stack.graph.outputs = keep
        _native.run_passes(stack.graph, ["remove_dead_nodes"])
        stack.check(TIERS[-1], f"{ROUTINE}{{chunk=2 stages=2}}")


def test_rows_of_one_sequence_may_come_first():
    random = np.random.default_rng(5)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 7, 6])
    for i in range(2):
        weights = [
            graph.add_constant(f"{n}{i}", floats(random, d)) for n, d in {"w": [1, 24, 6], "r": [1, 24, 6]}.items()
        ]
        node = graph.add_node("LSTM", [x, *weights], ["y"], {"hidden_size": 6, "layout": 1}, f"layer{i}")
        shape = graph.add_constant(f"shape{i}", np.array([1, 7, 6], np.int64))
        x = graph.add_node("Reshape", [node.outputs[0], shape], [f"x{i}"], {}, f"move{i}").outputs[0]
    graph.outputs = [x]
    inputs = [floats(random, [1, 7, 6])]
    pinned = compile_pinned(graph, TIERS[-1], {"layer1": f"{ROUTINE}{{chunk=2 stages=2}}"}, threads=2)
    assert_close(pinned.module.call(inputs)[0], graph.evaluate(inputs)[0], 48)


REFUSED = {
    "backwards": ({"direction": "reverse"}, 5, "the last step before the first"),
    "one-step": ({}, 1, "one step"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_stacks_that_are_no_pipeline(name):
    attrs, steps, reason = REFUSED[name]
    stack = Stack(np.random.default_rng(6), ["LSTM"] * 2, steps, 2, 8, [8, 8], attrs=[attrs] * 2)
    assert reason in rejections(stack.graph, TIERS[-1], stack.last)[ROUTINE]
    assert not stack.ways(TIERS[-1])


def test_other_readers():
    """A value between two layers that is read elsewhere keeps them apart."""
    stack = Stack(np.random.default_rng(7), ["LSTM"] * 3, 5, 2, 8, [8, 8, 8])
    assert stack.ways(TIERS[-1])
    between = next(v for n in stack.graph.nodes if n.name == "move1" for v in n.outputs)
    stack.graph.outputs = [*stack.graph.outputs, between]
    assert not stack.ways(TIERS[-1])
    below = [c["routine"] for c in candidates(stack.graph, TIERS[-1], "layer1", 2)]
    assert any(routine.startswith(ROUTINE) for routine in below)


def test_an_initial_state_of_another_batch_is_refused():
    stack = Stack(np.random.default_rng(8), ["GRU"] * 2, 5, 2, 8, [8, 8], sizes=["t", "b", 8])
    inputs = list(stack.inputs)
    inputs[2] = floats(np.random.default_rng(0), [1, 3, 8])
    pinned = compile_pinned(stack.graph, TIERS[-1], {stack.last: f"{ROUTINE}{{chunk=1 stages=2}}"}, threads=2)
    with pytest.raises(ShapeError):
        pinned.module.call(inputs)

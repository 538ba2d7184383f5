"""Pipelines over the layers of a recurrent stack, of every instruction set, against the reference."""

from pathlib import Path

import neo
import numpy as np
import pytest
from neo import ShapeError, _native
from neo.select import Flat, Problem, solve

from benchmarks.models.recurrent import recurrent_stack
from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections

ROUTINE = "cpu:float32/recurrent_stack"
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CASES = 12

by_tier = pytest.mark.parametrize("tier", TIERS)


class Stack:
    """Recurrent nodes "layer0" ... one above the other, with random weights."""

    def __init__(self, random, ops, steps, batch, inputs, hidden, *, states=True, sizes=None, outputs=3, attrs=None,
                 inner="", moved_states=False):  # fmt: skip
        """``inner``: what of the layers below is a result, too: y, x (y without the axis of directions), h or c.

        ``moved_states``: nodes between the layers make the initial states.
        """
        self.graph = _native.Graph()
        read = []
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
                state = self.graph.add_input(f"{name}{i}", "float32", [1, x_dims[1], hidden[i]])
                if moved_states:
                    state = self.graph.add_node("Relu", [state], [f"{name}{i}_relu"], {}, f"{name}{i}_relu").outputs[0]
                operands.append(state)
                self.inputs.append(floats(random, [1, batch, hidden[i]]))
            is_last = i + 1 == len(ops)
            names = ["y", "y_h", "y_c"][: min(outputs, 3 if op == "LSTM" else 2)] if is_last else [f"y{i}"]
            names += [f"y{i}_{n}" if n in inner else "" for n in ("hc" if op == "LSTM" else "h")] if not is_last else []
            node = self.graph.add_node(op, operands, names, {"hidden_size": hidden[i], **attrs[i]}, f"layer{i}")
            x = node.outputs[0]
            if not is_last:
                axis = self.graph.add_constant(f"axis{i}", np.array([1], np.int64))
                read += [v for n, v in zip("yhc", node.outputs, strict=False) if n in inner]
                x = self.graph.add_node("Squeeze", [x, axis], [f"x{i + 1}"], {}, f"move{i}").outputs[0]
                read += [x] if "x" in inner else []
        self.last = f"layer{len(ops) - 1}"
        self.graph.outputs = [v for v in node.outputs if v is not None] + read

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


@by_tier
@pytest.mark.parametrize("inner", ["h", "c", "hc", "y", "x", "hcx"])
@pytest.mark.parametrize("moved_states", [False, True])
def test_results_of_the_layers_below(tier, inner, moved_states):
    ops = ["LSTM", "GRU", "LSTM", "RNN"]
    for steps, batch in ((7, 1), (6, 3), (0, 2)):
        random = np.random.default_rng(7)
        stack = Stack(
            random, ops, steps, batch, 9, [12, 20, 17, 5], sizes=["t", "b", 9], inner=inner, moved_states=moved_states
        )
        ways = stack.ways(tier)
        assert ways
        for routine in ways:
            stack.check(tier, routine)


def test_nodes_that_read_the_layers_below():
    """They stand before the layer that the group ends in, and run behind it."""
    graph = _native.Graph()
    random = np.random.default_rng(11)
    x = graph.add_input("x", "float32", [9, 1, 6])
    inputs = [floats(random, [9, 1, 6])]
    results = []
    for name, below in (("encoder", None), ("decoder", "encoder")):
        states = {}
        for i in range(3):
            weights = [graph.add_constant(f"{name}_{n}{i}", floats(random, [1, 24, 6]) / 2) for n in "wr"]
            start = [None, None, *results[-1][i]] if below else []
            node = graph.add_node(
                "LSTM", [x, *weights, *start], [f"{name}_{o}{i}" for o in "yhc"], {"hidden_size": 6}, f"{name}{i}"
            )
            axis = graph.add_constant(f"{name}_axis{i}", np.array([1], np.int64))
            x = graph.add_node("Squeeze", [node.outputs[0], axis], [f"{name}_x{i}"], {}, f"{name}_move{i}").outputs[0]
            states[i] = [
                graph.add_node("Tanh", [v], [f"{v.name}_tanh"], {}, f"{v.name}_tanh").outputs[0]
                for v in node.outputs[1:]
            ]
        results.append(states)
        top, x = x, graph.inputs[0]
    last = [top, *(v for pair in results[1].values() for v in pair)]
    graph.outputs = [*last, results[0][1][0]]
    pins = dict.fromkeys(["encoder2", "decoder2"], f"{ROUTINE}{{chunk=2 stages=2}}")
    pinned = compile_pinned(graph, TIERS[-1], pins, threads=2)
    assert {pinned.routines[name] for name in pins} == set(pins.values())
    for a, e in zip(pinned.module.call(inputs), graph.evaluate(inputs), strict=True):
        assert_close(a, e, 96)


def test_other_readers():
    """A layer's states that the next one begins with, directly or through a node, keep the two apart."""
    random = np.random.default_rng(7)
    for through in (False, True):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", [5, 1, 8])
        state = None
        for i in range(3):
            weights = [graph.add_constant(f"{n}{i}", floats(random, [1, 32, 8]) / 2) for n in "wr"]
            start = [None, None, state] if i == 1 else []
            node = graph.add_node("LSTM", [x, *weights, *start], [f"y{i}", f"h{i}"], {"hidden_size": 8}, f"layer{i}")
            state = node.outputs[1]
            if through:
                state = graph.add_node("Relu", [state], [f"s{i}"], {}, f"relu{i}").outputs[0]
            axis = graph.add_constant(f"axis{i}", np.array([1], np.int64))
            x = graph.add_node("Squeeze", [node.outputs[0], axis], [f"x{i}"], {}, f"move{i}").outputs[0]
        graph.outputs = [x, state]
        assert not any(c["routine"].startswith(ROUTINE) for c in candidates(graph, TIERS[-1], "layer1", 2))
        above = [c for c in candidates(graph, TIERS[-1], "layer2", 2) if c["routine"].startswith(ROUTINE)]
        inputs = [floats(random, [5, 1, 8])]
        for choice in above:
            assert "layer0" not in choice["nodes"]
            pinned = compile_pinned(graph, TIERS[-1], {"layer2": choice["routine"]}, threads=2)
            for a, e in zip(pinned.module.call(inputs), graph.evaluate(inputs), strict=True):
                assert_close(a, e, 96)


def test_hidden_states_that_are_read_in_two_forms():
    stack = Stack(np.random.default_rng(7), ["LSTM"] * 3, 5, 2, 8, [8, 8, 8], inner="xy")
    assert not stack.ways(TIERS[-1])


def test_an_initial_state_of_another_batch_is_refused():
    stack = Stack(np.random.default_rng(8), ["GRU"] * 2, 5, 2, 8, [8, 8], sizes=["t", "b", 8])
    inputs = list(stack.inputs)
    inputs[2] = floats(np.random.default_rng(0), [1, 3, 8])
    pinned = compile_pinned(stack.graph, TIERS[-1], {stack.last: f"{ROUTINE}{{chunk=1 stages=2}}"}, threads=2)
    with pytest.raises(ShapeError):
        pinned.module.call(inputs)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_the_states_of_all_layers_in_a_module_that_is_saved(op, tmp_path: Path):
    model, feeds = recurrent_stack(op, 4, 17, 2, 24, states=True)
    routine = f"{ROUTINE}{{chunk=2 stages=2}}"
    pins = {"layer*": ["cpu:float32/recurrent", "cpu:float32/recurrent{*}"]}
    plain = neo.compile(model, threads=2, shapes={"t": 17}, routines=pins)
    module = neo.compile(model, threads=2, shapes={"t": 17}, routines={"layer3": routine})
    assert [s.routine for s in module.steps if s.op == op] == [routine]
    module.save(tmp_path / "m.neo")
    expected = plain.run(feeds)
    for found in (module.run(feeds), neo.load(tmp_path / "m.neo").run(feeds)):
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_layers_that_read_each_other_anyhow(seed):
    """Groups neither wait for each other nor for what reads them, whatever the order of the nodes."""
    random = np.random.default_rng(seed)
    graph = _native.Graph()
    sequences = [graph.add_input("x", "float32", [4, 2, 6])]
    states = [graph.add_input("s", "float32", [1, 2, 6])]
    inputs = [floats(random, [4, 2, 6]), floats(random, [1, 2, 6])]
    tops = []
    for i in range(9):
        if tops and random.random() < 0.3:
            v = pick(random, states)
            states.append(graph.add_node("Tanh", [v], [f"s{i}"], {}, f"s{i}").outputs[0])
        weights = [graph.add_constant(f"{n}{i}", floats(random, [1, 24, 6]) / 2) for n in "wr"]
        start = [pick(random, states) if random.random() < 0.4 else None for _ in "hc"]
        x = tops[-1] if tops and random.random() < 0.8 else pick(random, sequences)
        names = [f"{n}{i}" if n == "y" or random.random() < 0.5 else "" for n in "yhc"]
        node = graph.add_node("LSTM", [x, *weights, None, None, *start], names, {"hidden_size": 6}, f"layer{i}")
        states += [v for v in node.outputs[1:] if v is not None]
        axis = graph.add_constant(f"axis{i}", np.array([1], np.int64))
        tops.append(graph.add_node("Squeeze", [node.outputs[0], axis], [f"x{i}"], {}, f"move{i}").outputs[0])
        sequences.append(tops[-1])
    graph.outputs = [tops[-1], *(v for v in states[1:] + tops[:-1] if random.random() < 0.4)]
    tier = TIERS[-1]

    def allow(node, routine):
        return routine.startswith((ROUTINE, "cpu/reference")) or not node.startswith("layer")

    problem = _native.build_problem(graph, f"cpu:{tier}", 2, allow)
    solution = solve(Problem.from_flat(Flat(*problem.flat)))
    module = problem.lower(list(solution.choice), float(solution.total), 2, keeps_denormals=False)
    for a, e in zip(module.call(inputs), graph.evaluate(inputs), strict=True):
        assert_close(a, e, 200)

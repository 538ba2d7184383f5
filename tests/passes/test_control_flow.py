"""inline_branches and refine_ranks."""

import neo
import numpy as np
import pytest
from neo import _native
from neo.candidates import selection_arrays

from tests.passes.rewriting import after, lines_of, ops_of, parsed

BRANCHES = """graph "g" (x: float32[2,3]) -> (y) {{
  constant c = bool[] {{{taken}}}
  constant k = float32[3] {{1.0, 2.0, 3.0}}
  y = If(c, x, k) with {{
    then_branch = graph "then" (x: float32[2,3], k: float32[3]) -> (a) {{
      a = Mul(x, k)
    }}
    else_branch = graph "else" (x: float32[2,3], k: float32[3]) -> (k) {{
    }}
  }}
}}"""

# The rank of t is open: LSTM takes three axes, the last of them 4.
OPEN = """graph "g" (x: float32[N,4], c: bool[]) -> (y) {
  constant one = int64[1] {1}
  constant w = float32[1,8,4] splat 0.5
  constant r = float32[1,8,2] splat 0.25
  t = If(c, x) with {
    then_branch = graph "then" (x: float32[N,4]) -> (a) {
      constant one = int64[1] {1}
      a = Unsqueeze(x, one)
    }
    else_branch = graph "else" (x: float32[N,4]) -> (b) {
      b = Identity(x)
    }
  }
  u = Tanh(t)
  y = LSTM(u, w, r) {hidden_size=2}
}"""


def test_the_branch_always_taken_stands_for_its_if() -> None:
    assert lines_of(after(BRANCHES.format(taken="true"), "inline_branches")) == ["y = Mul(x, k_1)"]


def test_a_branch_that_hands_on_a_constant() -> None:
    assert ops_of(after(BRANCHES.format(taken="false"), "inline_branches")) == ["Identity"]


def test_bodies_hold_the_constants_they_read() -> None:
    text = BRANCHES.format(taken="true").replace("(x: float32[2,3]) -> (y)", "(x: float32[2,3], c: bool[]) -> (y)")
    text = text.replace("  constant c = bool[] {true}\n", "")
    lines = lines_of(after(text, "inline_branches"))
    assert lines[0] == "y = If(c, x)"


def test_a_loop_keeps_the_count_of_what_it_captures() -> None:
    text = """graph "g" (x: float32[3]) -> (y) {
      constant n = int64[] {3}
      constant k = float32[3] {1.0, 2.0, 3.0}
      y = Loop(n, -, x, k, x) {num_captured=2} with {
        body = graph "body" (i: int64[], c: bool[], v: float32[3], k: float32[3], x: float32[3]) -> (c, s) {
          t = Add(v, k)
          s = Add(t, x)
        }
      }
    }"""
    [loop, *_] = lines_of(after(text, "inline_branches"))
    assert loop == "y = Loop(n, -, x, x) {num_captured=1}"


def test_an_open_rank_is_what_its_reader_takes() -> None:
    graph = _native.run_passes(parsed(OPEN), ["refine_ranks"])
    graph.verify()
    [t] = [node.outputs[0] for node in graph.nodes if node.op == "If"]
    assert len(t.shape) == 3
    assert t.shape[2] == 4


def test_what_a_branch_needs_is_not_asked_of_the_other() -> None:
    text = """graph "g" (x: float32[N,M], c: bool[]) -> (y) {
      constant one = int64[1] {1}
      t = If(c, x) with {
        then_branch = graph "then" (x: float32[N,M]) -> (a) {
          constant one = int64[1] {1}
          a = Unsqueeze(x, one)
        }
        else_branch = graph "else" (x: float32[N,M]) -> (b) {
          b = Identity(x)
        }
      }
      y = If(c, t) with {
        then_branch = graph "then" (t: float32[*]) -> (a) {
          a = GlobalMaxPool(t)
        }
        else_branch = graph "else" (t: float32[*]) -> (b) {
          constant w = float32[1,8,4] splat 0.5
          constant r = float32[1,8,2] splat 0.25
          b, h = LSTM(t, w, r) {hidden_size=2}
        }
      }
    }"""
    graph = _native.run_passes(parsed(text), ["refine_ranks"])
    assert graph.nodes[0].outputs[0].shape is None


@pytest.mark.parametrize("rank", [2, 3])
def test_another_rank_is_refused_when_it_comes(rank: int) -> None:
    problem = _native.build_problem(_native.run_passes(parsed(OPEN)), "cpu", 1)
    module = problem.lower([int(np.argmin(costs)) for costs in selection_arrays(problem).costs], 0.0, 1)
    feeds = [np.ones((5, 4), np.float32), np.array(rank == 3)]
    if rank == 3:
        assert module.call(feeds)[0].shape == (5, 1, 1, 2)
    else:
        with pytest.raises(neo.ShapeError, match=r"a value must have the shape that its readers need. Got \[5,4\]"):
            module.call(feeds)


def test_types_are_checked_again_when_they_change() -> None:
    text = """graph "g" (x: float32[N,4], c: bool[]) -> (y) {
      constant w = float32[4,5] splat 0.5
      t = If(c, x) with {
        then_branch = graph "then" (x: float32[N,4]) -> (a) {
          constant one = int64[1] {1}
          a = Unsqueeze(x, one)
        }
        else_branch = graph "else" (x: float32[N,4]) -> (b) {
          b = Transpose(x)
        }
      }
      y = MatMul(t, w)
    }"""
    problem = _native.build_problem(parsed(text), "cpu", 1)
    module = problem.lower([int(np.argmin(costs)) for costs in selection_arrays(problem).costs], 0.0, 1)
    for rows, fits in [(3, True), (3, True), (6, True), (6, False), (6, False), (6, True), (4, True)]:
        feeds = [np.ones((rows, 4), np.float32), np.array(fits)]
        if fits:
            np.testing.assert_array_equal(module.call(feeds)[0], np.full((rows, 1, 5), 2, np.float32))
        else:
            # The reference itself would name both shapes.
            with pytest.raises(neo.ShapeError, match="the summed sizes must be equal. Got 6 and 4"):
                module.call(feeds)

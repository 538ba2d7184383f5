"""recognize_cells and join_steps: cells that are written out, one by one and step after step."""

import numpy as np
import pytest
from neo import _native

from tests.passes import recurrent_cells as cells
from tests.passes.rewriting import after, lines_of, ops_of, parsed

PASSES = ("recognize_cells", "join_steps", "remove_dead_nodes", "eliminate_reshapes")


def layers_of(graph: _native.Graph) -> list[str]:
    return [op for op in ops_of(graph) if op not in ("Squeeze", "Unsqueeze")]


@pytest.mark.parametrize("name", cells.CELLS)
@pytest.mark.parametrize("batch", ["1", "3", "B"])
@pytest.mark.parametrize("steps", [2, 5])
def test_steps_become_a_layer(name: str, batch: str, steps: int) -> None:
    op, gates, write = cells.CELLS[name]
    assert layers_of(after(cells.unrolled(write, gates, steps, batch=batch), *PASSES)) == [op]


@pytest.mark.parametrize("name", cells.CELLS)
def test_states_of_zero(name: str) -> None:
    op, gates, write = cells.CELLS[name]
    graph = after(cells.unrolled(write, gates, 4, zero=True), "fold_constants", *PASSES)
    assert layers_of(graph) == [op]


@pytest.mark.parametrize("name", ["lstm-split", "gru-before", "rnn"])
def test_steps_from_the_last_on(name: str) -> None:
    op, gates, write = cells.CELLS[name]
    graph = after(cells.unrolled(write, gates, 3, order=[2, 1, 0]), *PASSES)
    layers = [line for line in lines_of(graph) if f" = {op}(" in line]
    assert len(layers) == 1
    assert 'direction="reverse"' in layers[0]


def test_steps_in_no_order() -> None:
    graph = after(cells.unrolled(cells.lstm_split, 4, 3, order=[1, 0, 2]), *PASSES)
    assert layers_of(graph) == ["Gather", "Gather", "Gather", "Concat", "LSTM"]


@pytest.mark.parametrize("name", [n for n, (op, _, _) in cells.CELLS.items() if op == "LSTM"])
def test_one_step(name: str) -> None:
    _, gates, write = cells.CELLS[name]
    assert layers_of(after(cells.unrolled(write, gates, 1), *PASSES)) == ["Gather", "LSTM", "Concat"]


def test_sequences_by_batch() -> None:
    text = cells.unrolled(cells.lstm_split, 4, 4)
    text = text.replace("x: float32[4,3,3]", "x: float32[3,4,3]").replace("{axis=0}", "{axis=1}")
    text = text.replace("constant front = int64[1] {0}", "constant front = int64[1] {1}")
    assert layers_of(after(text, *PASSES)) == ["Transpose", "LSTM", "Transpose"]


def test_layers_above_each_other() -> None:
    text = cells.unrolled(cells.gru_before, 3, 3)
    above = []
    h = "c"  # the other state that the graph takes
    extra = [cells.weights(n, 2 * cells.HIDDEN, cells.HIDDEN) for n in ("vz", "vr", "vn")]
    for t in range(3):
        lines = [
            line.replace("wz", "vz").replace("wr", "vr").replace("wn", "vn")
            for line in cells.gru_before(f"9{t}", f"h{t}", h, "")
        ]
        above += lines
        h = f"h9{t}"
    text = text.replace("\n  x0 = ", "\n  " + "\n  ".join(extra) + "\n  x0 = ")
    text = text.replace("-> (y, h2)", f"-> (y, {h})").replace("\n}", "\n  " + "\n  ".join(above) + "\n}")
    assert layers_of(after(text, *PASSES)) == ["GRU", "GRU"]


def test_float64() -> None:
    text = cells.unrolled(cells.lstm_split, 4, 2).replace("float32", "float64")
    assert layers_of(after(text, *PASSES)) == ["LSTM"]


def test_steps_that_wait_for_the_one_before() -> None:
    """A decoder whose next input is made of the last result keeps its steps, each an operator."""
    text = cells.unrolled(cells.lstm_split, 4, 3)
    text = text.replace("x1 = Gather(x, step1) {axis=0}", "x1 = Slice(h0, at0, stop, last)")
    text = text.replace("constant one", f"constant stop = int64[1] {{{cells.INPUT}}}\n  constant one", 1)
    graph = after(text, *PASSES)
    assert layers_of(graph).count("LSTM") == 2
    assert [line.split("=")[0] for line in lines_of(graph) if "LSTM" in line]


def test_a_cell_state_that_is_read() -> None:
    text = cells.unrolled(cells.lstm_split, 4, 4).replace("-> (y, h3, c3)", "-> (y, h3, c3, c1)")
    assert layers_of(after(text, *PASSES)).count("LSTM") == 2


UNLIKE = {
    "functions": ("f0 = Sigmoid", "f0 = Tanh"),
    "third-factor": ("kept0 = Mul(f0, c)", "both0 = Mul(f0, o0) \n kept0 = Mul(both0, c)"),
    "between": ("out0 = Tanh(c0)", "twice0 = Add(c0, c0) \n out0 = Tanh(twice0)"),
    "weights": ("q0 = Gemm(h, r, rb) {transB=1}", "q0 = Gemm(h, r, rb) {transB=1, alpha=0.5}"),
    "product": ("s0 = Add(p0, q0)", "s0 = Mul(p0, q0)"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_what_is_no_cell(name: str) -> None:
    old, new = UNLIKE[name]
    text = cells.unrolled(cells.lstm_split, 4, 1)
    assert old in text
    assert "LSTM" not in ops_of(after(text.replace(old, new), *PASSES))


def test_layers_are_no_steps() -> None:
    """A stack of dense layers has no weights in common."""
    text = f"""graph "g" (x: float32[4,5]) -> (y) {{
      {cells.weights("a", 5, 5)}
      {cells.weights("b", 5, 5)}
      p = MatMul(x, a)
      q = Tanh(p)
      r = MatMul(q, b)
      y = Tanh(r)
    }}"""
    assert ops_of(after(text, *PASSES)) == ["MatMul", "Tanh", "MatMul", "Tanh"]


@pytest.mark.parametrize("name", cells.CELLS)
@pytest.mark.parametrize("threads", [1, 2])
def test_whole_models(name: str, threads: int) -> None:
    """What the pipeline makes of a graph computes what the graph says."""
    _, gates, write = cells.CELLS[name]
    after(cells.unrolled(write, gates, 7, batch="1" if threads == 1 else "4"), *_native.pass_names())


def test_a_state_that_broadcasts_stays() -> None:
    text = cells.unrolled(cells.lstm_split, 4, 1).replace("c: float32[3,5]", "c: float32[1,5]")
    graph = parsed(text)
    left = _native.run_passes(graph, ["recognize_cells"])
    assert "LSTM" not in ops_of(left)
    np.testing.assert_array_equal(left.outputs[0].shape, graph.outputs[0].shape)

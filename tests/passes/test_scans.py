"""turn_loops_into_scans and lift_from_scans: loops over time, and what need not wait for the step before."""

import numpy as np
import pytest
from neo import _native

from tests.passes import recurrent_cells as cells
from tests.passes.rewriting import after, inputs_of, lines_of, ops_of, parsed

LIFTS = ("remove_dead_nodes", "eliminate_reshapes", "recognize_cells", "lift_from_scans")
LOOPS = (*LIFTS, "turn_loops_into_scans")


def layers_of(graph: _native.Graph) -> list[str]:
    return [op for op in ops_of(graph) if op not in ("Squeeze", "Unsqueeze", "neo.Dims")]


def sizes_agree(text: str, *passes: str) -> None:
    """Sequences of no, one and several steps."""
    graph = parsed(text)
    result = _native.run_passes(graph, list(passes))
    for size in (0, 1, 2, 5):
        feeds = inputs_of(graph, size=size)
        for left, right in zip(result.evaluate(feeds), graph.evaluate(feeds), strict=True):
            assert left.shape == right.shape
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", cells.CELLS)
def test_a_scan_of_a_cell_becomes_a_layer(name: str) -> None:
    op, gates, write = cells.CELLS[name]
    text = cells.scanned(write, gates)
    assert layers_of(after(text, *LIFTS)) == [op]
    sizes_agree(text, *LIFTS)


@pytest.mark.parametrize("name", ["lstm-concat", "gru-after", "rnn"])
def test_backwards(name: str) -> None:
    op, gates, write = cells.CELLS[name]
    text = cells.scanned(write, gates, attrs=", scan_input_directions=[1], scan_output_directions=[1]")
    graph = after(text, *LIFTS)
    assert layers_of(graph) == [op]
    assert 'direction="reverse"' in str(graph)


def test_results_in_the_other_order_are_scanned() -> None:
    text = cells.scanned(cells.lstm_split, 4, attrs=", scan_output_directions=[1]")
    graph = after(text, *LIFTS)
    assert layers_of(graph) == ["LSTM", "Scan"]
    sizes_agree(text, *LIFTS)


def test_other_axes() -> None:
    text = cells.scanned(cells.lstm_split, 4, attrs=", scan_input_axes=[1], scan_output_axes=[-2]")
    text = text.replace(f"x: float32[T,B,{cells.INPUT}]", f"x: float32[B,T,{cells.INPUT}]")
    assert layers_of(after(text, *LIFTS)) == ["Transpose", "LSTM", "Transpose"]
    sizes_agree(text, *LIFTS)


PROJECTION = cells.weights("v", cells.HIDDEN, 2)


def test_what_reads_the_result_of_a_layer_goes_with_it() -> None:
    extra = (PROJECTION, "pt = MatMul(ht, v)", "st = Softmax(pt) {axis=1}")
    text = cells.scanned(cells.gru_before, 3, extra=extra, collected="st")
    assert layers_of(after(text, *LIFTS)) == ["GRU", "MatMul", "Softmax"]
    sizes_agree(text, *LIFTS)


KEPT_STATES = {
    "old-state": ("zt = Add(ht, h)", "zt"),
    "cell-state": ("zt = Neg(ct)", "zt"),
    "collected-cell-state": ("zt = Neg(ht)", "ct"),
    "gate": ("zt = Neg(ot)", "zt"),
}


@pytest.mark.parametrize("name", KEPT_STATES)
def test_a_cell_that_others_look_into_keeps_its_loop(name: str) -> None:
    """Its products of the input leave, which is worth more than one operator for each step."""
    line, collected = KEPT_STATES[name]
    text = cells.scanned(cells.lstm_split, 4, extra=(line,), collected=collected)
    graph = after(text, *LIFTS)
    assert layers_of(graph) == ["Transpose", "MatMul", "Add", "Scan"]
    assert "LSTM" not in str(graph)
    sizes_agree(text, *LIFTS)


def norm_cell(t: str, x: str, h: str, c: str) -> list[str]:
    """An LSTM with normalized sums, which no operator of ONNX is."""
    lines = cells.lstm_split(t, x, h, c)
    at = next(i for i, line in enumerate(lines) if line.startswith(f"s{t} = "))
    return [
        *lines[:at],
        f"s0{t} = Add(p{t}, q{t})",
        f"s{t} = LayerNormalization(s0{t}, wb) {{axis=-1}}",
        *lines[at + 1 :],
    ]


def test_the_products_of_the_input_leave_a_cell_of_its_own_kind() -> None:
    text = cells.scanned(norm_cell, 4)
    graph = after(text, *LIFTS)
    assert layers_of(graph) == ["Transpose", "MatMul", "Add", "Scan"]
    assert str(graph).count("Gemm(") == 1
    sizes_agree(text, *LIFTS)


def gated(t: str, x: str, h: str, c: str) -> list[str]:
    """A cell that is none of ONNX's, with one product of both operands."""
    del c
    return [
        f"m{t} = Mul({x}, two)",
        f"e{t} = Exp(m{t})",
        f"xh{t} = Concat(e{t}, {h}) {{axis=1}}",
        f"q{t} = Gemm(xh{t}, k, kb)",
        f"s{t} = Sin(q{t})",
        f"h{t} = Add(s{t}, {h})",
    ]


def test_a_product_of_both_operands_is_parted() -> None:
    text = cells.scanned(gated, 1).replace("constant one", "constant two = float32[] {0.25}\n      constant one", 1)
    graph = after(text, *LIFTS)
    assert layers_of(graph) == ["Mul", "Exp", "MatMul", "Scan"]
    assert "Concat" not in str(graph)
    sizes_agree(text, *LIFTS)


LIFTED = {
    "rank": "a = Unsqueeze(xt, first) \n b = Transpose(a) {perm=[1, 0, 2]} \n c = Squeeze(b, second)",
    "split": "a, b = Split(xt, parts) {axis=1} \n e = Concat(b, a) {axis=1} \n c = Relu(e)",
    "slice": "a = Slice(xt, first, second, second) \n c = Concat(a, a, a) {axis=-1}",
    "softmax": "a = Softmax(xt) {axis=0} \n c = LogSoftmax(a) {axis=-1}",
    "reduce": "a = ReduceMean(xt, second) \n c = Sub(xt, a)",
    "embedding": 'i = Cast(xt) {to="int64"} \n j = Clip(i, low, high) \n e = Gather(table, j) {axis=0} \n a = ReduceSum(e, last) {keepdims=0} \n c = Neg(a)',
}
CONSTANTS = (
    "constant first = int64[1] {0}",
    "constant second = int64[1] {1}",
    "constant last = int64[1] {-1}",
    "constant parts = int64[2] {1, 2}",
    "constant low = int64[] {0}",
    "constant high = int64[] {3}",
    cells.weights("table", 4, 2),
)


@pytest.mark.parametrize("name", LIFTED)
def test_each_kind_of_node_that_leaves(name: str) -> None:
    lines = "\n      ".join([*CONSTANTS, *LIFTED[name].split("\n")])
    text = f"""graph "g" (x: float32[T,B,3], h: float32[B,3]) -> (hn, y) {{
      hn, y = Scan(h, x) {{num_scan_inputs=1}} with {{
        body = graph "step" (h: float32[B,3], xt: float32[B,3]) -> (ht, h) {{
          {lines}
          s = Add(h, c)
          ht = Tanh(s)
        }}
      }}
    }}"""
    graph = after(text, "lift_from_scans")
    inside = str(graph).split("with {")[1]
    assert inside.count(" = ") - inside.count("constant") == 3  # the sum, its function, and the name of the body
    sizes_agree(text, "lift_from_scans")


def test_what_only_makes_more_of_a_slice_stays() -> None:
    """An outer product for the sum of a memory, and its function; what also leaves the loop by itself is lifted."""
    text = f"""graph "g" (x: float32[T,B,5], h: float32[B,5,5]) -> (hn, y) {{
      hn, y = Scan(h, x) {{num_scan_inputs=1}} with {{
        body = graph "step" (h: float32[B,5,5], xt: float32[B,5]) -> (ht, z) {{
          {cells.weights("v", 5, 5)}
          constant first = int64[1] {{1}}
          constant second = int64[1] {{2}}
          k = MatMul(xt, v)
          column = Unsqueeze(k, second)
          row = Unsqueeze(xt, first)
          outer = Mul(column, row)
          gate = Tanh(outer)
          ht = Add(h, gate)
          other = Sub(column, row)
          z = Exp(other)
        }}
      }}
    }}"""
    graph = after(text, "lift_from_scans")
    outside, inside = str(graph).split("with {")
    assert [op in inside for op in ("Mul(", "Tanh(", "Add(")] == [True] * 3
    assert [op in outside for op in ("MatMul(", "Sub(", "Exp(")] == [True] * 3
    sizes_agree(text, "lift_from_scans")


SPLITS = ("lift_from_scans", "split_scans", "lift_from_scans", "remove_dead_nodes")


def carrying(lines: str, results: str = "z", *, outer: str = "y") -> str:
    """A Scan of a carried h and nodes behind it."""
    body = "\n          ".join(line.strip() for line in lines.splitlines() if line.strip())
    return f"""graph "g" (x: float32[T,B,5], h: float32[B,5]) -> (hn, {outer}) {{
      hn, {outer} = Scan(h, x) {{num_scan_inputs=1}} with {{
        body = graph "step" (h: float32[B,5], xt: float32[B,5]) -> (ht, {results}) {{
          {cells.weights("r", 5, 5)}
          {cells.weights("v", 5, 3)}
          {cells.weights("narrow", 5, 1)}
          {cells.weights("b", 3)}
          p = MatMul(h, r)
          s = Add(p, xt)
          t = Sin(s)
          ht = Add(t, h)
          {body}
        }}
      }}
    }}"""


SPLIT = {
    "product": ("q = MatMul(ht, v) \n z = Add(q, b)", "z", ["Scan", "MatMul", "Add"]),
    "gemm": ("z = Gemm(ht, v, b)", "z", ["Scan", "MatMul", "Add"]),
    "slice": ("g = Sigmoid(xt) \n z = Mul(ht, g)", "z", ["Sigmoid", "Scan", "Mul"]),
    "narrow": ("z = MatMul(ht, narrow)", "z", ["Scan", "MatMul"]),
    "before": ("z = Sub(ht, h)", "z", ["Scan", "Sub"]),
    "inner": ("q = MatMul(t, v) \n z = Softmax(q)", "z", ["Scan", "MatMul", "Softmax"]),
    "two": ("z = Tanh(ht) \n a = Mul(z, xt)", "z, a", ["Scan", "Tanh", "Mul"]),
    "also-itself": ("z = Tanh(ht)", "z, ht", ["Scan", "Tanh"]),
}


@pytest.mark.parametrize("name", SPLIT)
def test_what_no_iteration_waits_for(name: str) -> None:
    lines, results, ops = SPLIT[name]
    text = carrying(
        lines.replace("\\n", "\n"), results, outer=", ".join(f"y{i}" for i in range(results.count(",") + 1))
    )
    assert layers_of(after(text, *SPLITS)) == ops
    sizes_agree(text, *SPLITS)


WHOLE = {
    "other-operators": "z = CumSum(ht, axis)",
    "nothing": "z = Identity(ht)",
}


@pytest.mark.parametrize("name", WHOLE)
def test_scans_that_stay_whole(name: str) -> None:
    text = carrying("constant axis = int64[] {1} \n " + WHOLE[name])
    assert layers_of(after(text, *SPLITS)) == ["Scan"]


def test_a_scan_whose_states_are_much_larger_than_its_results() -> None:
    text = f"""graph "g" (x: float32[T,B,70], h: float32[B,70]) -> (hn, y) {{
      hn, y = Scan(h, x) {{num_scan_inputs=1}} with {{
        body = graph "step" (h: float32[B,70], xt: float32[B,70]) -> (ht, z) {{
          {cells.weights("narrow", 70, 1)}
          t = Sin(h)
          ht = Add(t, xt)
          z = MatMul(ht, narrow)
        }}
      }}
    }}"""
    assert layers_of(after(text, *SPLITS)) == ["Scan"]


LOOP = """graph "g" (x: float32[T,B,{size}], h: float32[B,5], c: float32[B,5]) -> (hn, cn, y) {{
  constant zero = int64[] {{0}}
  constant always = bool[] {{true}}
  {before}
  none = SequenceEmpty() {{dtype=1}}
  hn, cn, ys = Loop({trips}, {condition}, h, c, none, x) {{num_captured=1}} with {{
    body = graph "step" (i: int64[], go: bool[], h: float32[B,5], c: float32[B,5], seq: seq(float32[*]), x: float32[T,B,{size}]) -> (go, ht, ct, grown) {{
      {cell}
      grown = SequenceInsert(seq, ht)
    }}
  }}
  y = ConcatFromSequence(ys) {{axis={axis}, new_axis=1}}
}}"""
LENGTH = "shape = Shape(x) \n n = Gather(shape, zero) {axis=0}"


def loop(axis: int = 0, index: str = "i", before: str = LENGTH, trips: str = "n", condition: str = "always") -> str:
    lines = [*cells.constants(4), f"xt = Gather(x, {index}) {{axis=0}}", *cells.lstm_split("t", "xt", "h", "c")]
    return LOOP.format(
        size=cells.INPUT, before=before, trips=trips, condition=condition, cell="\n      ".join(lines), axis=axis
    )


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("condition", ["always", "-"])
def test_a_loop_that_appends_to_a_sequence(axis: int, condition: str) -> None:
    graph = after(loop(axis, condition=condition), "fold_shapes", *LOOPS)
    assert [op for op in layers_of(graph) if op != "Transpose"] == ["LSTM"]


def test_an_index_with_an_axis() -> None:
    text = loop(index="place").replace(
        "xt = Gather(x, place) {axis=0}",
        "place = Unsqueeze(i, at0) \n xa = Gather(x, place) {axis=0} \n xt = Squeeze(xa, at0)",
    )
    assert layers_of(after(text, "fold_shapes", *LOOPS)) == ["LSTM"]


def split_loop(keepdims: int, trips: str, axis: int = 0) -> str:
    """Return the loop over a sequence that was parted from x, along an axis."""
    shape = f"{'T,B' if axis == 0 else 'B,T'},{cells.INPUT}"
    item = {0: f"B,{cells.INPUT}", 1: f"1,B,{cells.INPUT}" if axis == 0 else f"B,1,{cells.INPUT}"}[keepdims]
    before = f"{LENGTH} \n xs = SplitToSequence(x) {{axis={axis - 3}, keepdims={keepdims}}} \n m = SequenceLength(xs)"
    text = loop(before=before.replace("Gather(shape, zero)", "Gather(shape, along)"), trips=trips)
    at = (
        "xt = SequenceAt(xs, i)"
        if keepdims == 0
        else f"constant part = int64[1] {{{axis}}} \n xa = SequenceAt(xs, i) \n xt = Squeeze(xa, part)"
    )
    text = text.replace("xt = Gather(x, i) {axis=0}", at)
    text = text.replace("none, x)", "none, xs)").replace(
        f"x: float32[T,B,{cells.INPUT}]) -> (go", f"xs: seq(float32[{item}])) -> (go"
    )
    text = text.replace("  constant zero", f"  constant along = int64[] {{{axis}}}\n  constant zero", 1)
    return text.replace(f"(x: float32[T,B,{cells.INPUT}]", f"(x: float32[{shape}]", 1)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("trips", ["n", "m"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_loop_over_a_sequence_that_was_parted(keepdims: int, trips: str, axis: int) -> None:
    text = split_loop(keepdims, trips, axis)
    graph = after(text, "fold_shapes", *LOOPS)
    assert [op for op in layers_of(graph) if op != "Transpose"] == ["LSTM"]
    result = _native.run_passes(parsed(text), ["fold_shapes", *LOOPS])
    for size in (1, 2, 5):
        feeds = inputs_of(parsed(text), size=size)
        for left, right in zip(result.evaluate(feeds), parsed(text).evaluate(feeds), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


def test_a_sequence_of_parts_of_several_steps_keeps_its_loop() -> None:
    text = split_loop(1, "n").replace("SplitToSequence(x)", "SplitToSequence(x, two)")
    text = text.replace("  constant zero", "  constant two = int64[] {2}\n  constant zero", 1)
    assert "Loop" in ops_of(_native.run_passes(parsed(text), ["fold_shapes", *LOOPS]))


def test_a_loop_that_counts_for_itself() -> None:
    text = f"""graph "g" (x: float32[T,B,3], h: float32[B,5]) -> (hn, y) {{
      constant zero = int64[] {{0}}
      constant most = int64[] {{9223372036854775807}}
      shape = Shape(x)
      n = Gather(shape, zero) {{axis=0}}
      some = Less(zero, n)
      hn, last, y = Loop(most, some, h, zero, x, n) {{num_captured=2}} with {{
        body = graph "step" (i: int64[], go: bool[], h: float32[B,5], count: int64[], x: float32[T,B,3], n: int64[]) -> (more, ht, next, ht) {{
          {" ".join(line + chr(10) for line in cells.constants(3))}
          constant unit = int64[] {{1}}
          xt = Gather(x, count) {{axis=0}}
          {" ".join(line + chr(10) for line in cells.gru_before("t", "xt", "h", ""))}
          next = Add(count, unit)
          more = Less(next, n)
        }}
      }}
    }}"""
    assert layers_of(after(text, "fold_shapes", *LOOPS)) == ["GRU"]
    sizes_agree(text, "fold_shapes", *LOOPS)


def test_a_loop_that_gives_its_slices() -> None:
    text = """graph "g" (x: float32[4,3], h: float32[3]) -> (hn, y, z) {
      constant four = int64[] {4}
      hn, y, z = Loop(four, -, h, x) {num_captured=1} with {
        body = graph "step" (i: int64[], go: bool[], h: float32[3], x: float32[4,3]) -> (go, xt, xt, ht) {
          xt = Gather(x, i) {axis=0}
          ht = Exp(h)
        }
      }
    }"""
    graph = after(text, *LOOPS)
    assert "Loop" not in ops_of(graph)


KEPT_LOOPS = {
    "another-length": ("n = Gather(shape, zero) {axis=0}", "n = Identity(zero)"),
    "the-iteration-itself": (
        "xt = Gather(x, i) {axis=0}",
        'number = Cast(i) {to="float32"} \n slice = Gather(x, i) {axis=0} \n xt = Add(slice, number)',
    ),
    "a-condition-of-its-own": (
        "-> (go, ht, ct, grown) {",
        "-> (less, ht, ct, grown) {\n constant bound = int64[] {1} \n less = Less(i, bound)",
    ),
    "inserts-in-front": ("SequenceInsert(seq, ht)", "SequenceInsert(seq, ht, at0)"),
}


@pytest.mark.parametrize("name", KEPT_LOOPS)
def test_loops_that_stay(name: str) -> None:
    old, new = KEPT_LOOPS[name]
    assert old in loop()
    graph = _native.run_passes(parsed(loop().replace(old, new)), ["fold_shapes", *LOOPS])
    graph.verify()
    assert "Loop" in ops_of(graph)


def test_a_scan_of_nothing_but_moves_goes() -> None:
    text = """graph "g" (x: float32[T,3]) -> (y, z) {
      y, z = Scan(x) {num_scan_inputs=1, scan_output_axes=[1, 0]} with {
        body = graph "step" (xt: float32[3]) -> (a, xt) {
          a = Exp(xt)
        }
      }
    }"""
    assert lines_of(after(text, "lift_from_scans"))[0].startswith(("a = Exp", "y"))
    assert "Scan" not in ops_of(after(text, "lift_from_scans"))
    sizes_agree(text, "lift_from_scans")

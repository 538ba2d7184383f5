"""eliminate_transposes: neighbours, and what transposes sink through until they meet their inverses."""

import pytest

from tests.passes.rewriting import after, assert_keeps, assert_rewrites, lines_of, ops_of

TO_LAST = "{perm=[0, 2, 3, 1]}"
TO_SECOND = "{perm=[0, 3, 1, 2]}"


def between(body: str, constants: str = "", inputs: str = "", out: str = "t") -> str:
    """Return a graph of channels-last nodes between two transposes: from ``a`` to ``t``."""
    return f"""graph "g" (x: float32[2,3,4,5]{inputs}) -> (y) {{
      {constants}
      a = Transpose(x) {TO_LAST}
      {body}
      y = Transpose({out}) {TO_SECOND}
    }}"""


def test_neighbours_become_one() -> None:
    assert_rewrites(
        """graph "g" (x: float32[2,3,4]) -> (y) {
          a = Transpose(x) {perm=[1, 0, 2]}
          y = Transpose(a) {perm=[2, 1, 0]}
        }""",
        """graph "g" (x: float32[2,3,4]) -> (y) {
          y = Transpose(x) {perm=[2, 0, 1]}
        }""",
        "eliminate_transposes",
    )


def test_identities_go() -> None:
    text = """graph "g" (x: float32[2,3,4]) -> (y) {
      a = Transpose(x) {perm=[0, 1, 2]}
      y = Relu(a)
    }"""
    assert lines_of(after(text, "eliminate_transposes")) == ["y = Relu(x)"]


def test_an_input_handed_out_stays_a_copy() -> None:
    assert_keeps('graph "g" (x: float32[2,3]) -> (y) {\n y = Transpose(x) {perm=[0, 1]}\n}', "eliminate_transposes")


THROUGH = {
    "pointwise": (between("b = Relu(a) \n t = Sigmoid(b)"), ["b = Relu(x)", "y = Sigmoid(b)"]),
    "vector": (
        between("t = Add(a, c)", "constant c = float32[3] {1.0, 2.0, 3.0}"),
        ["y = Add(x, c)"],
    ),
    "number": (between("t = Mul(c, a)", "constant c = float32[1] {2.0}"), ["y = Mul(c, x)"]),
    "slope": (
        between("t = PRelu(a, c)", "constant c = float32[1,1,3] {0.5, 2.0, 3.0}"),
        ["y = PRelu(x, c)"],
    ),
    "clip": (
        between("t = Clip(a, c, d)", "constant c = float32[] {0.0} \n constant d = float32[] {6.0}"),
        ["y = Clip(x, c, d)"],
    ),
    "both": (
        between(f"b = Transpose(z) {TO_LAST} \n t = Add(a, b)", inputs=", z: float32[2,3,4,5]"),
        ["y = Add(x, z)"],
    ),
    "residual": (between("b = Relu(a) \n t = Add(a, b)"), ["b = Relu(x)", "y = Add(x, b)"]),
    "concat": (
        between(f"b = Transpose(z) {TO_LAST} \n t = Concat(a, b) {{axis=-1}}", inputs=", z: float32[2,7,4,5]"),
        ["y = Concat(x, z) {axis=1}"],
    ),
    "pad": (
        between("t = Pad(a, p)", "constant p = int64[8] {0, 1, 2, 3, 0, 4, 5, 6}"),
        ["y = Pad(x, p)"],
    ),
    "reduce": (
        between("t = ReduceMean(a, p)", "constant p = int64[2] {1, 2}"),
        ["y = ReduceMean(x, p)"],
    ),
    "slice": (
        between(
            "t = Slice(a, b, e, p)",
            "constant b = int64[2] {1, 0} \n constant e = int64[2] {3, 2} \n constant p = int64[2] {2, -1}",
        ),
        ["y = Slice(x, b, e, b_1)"],
    ),
    "split": (
        between("b, c = Split(a) {axis=1, num_outputs=2} \n t = Add(b, c)"),
        ["b, c = Split(x) {axis=2, num_outputs=2}", "y = Add(b, c)"],
    ),
}


@pytest.mark.parametrize("name", THROUGH)
def test_sinks_through(name: str) -> None:
    text, expected = THROUGH[name]
    assert lines_of(after(text, "eliminate_transposes")) == expected


def test_means_of_the_plane_need_no_transpose() -> None:
    text = f"""graph "g" (x: float32[2,3,4,5]) -> (y) {{
      constant p = int64[2] {{1, 2}}
      a = Transpose(x) {TO_LAST}
      y = ReduceMean(a, p) {{keepdims=0}}
    }}"""
    assert lines_of(after(text, "eliminate_transposes")) == ["y = ReduceMean(x, p) {keepdims=0}"]


def test_channel_sums_leave_the_plane_as_it_is() -> None:
    text = f"""graph "g" (x: float32[2,3,4,5]) -> (y) {{
      constant p = int64[1] {{3}}
      a = Transpose(x) {TO_LAST}
      y = ReduceSum(a, p) {{keepdims=0}}
    }}"""
    assert ops_of(after(text, "eliminate_transposes")) == ["ReduceSum"]


def test_a_small_operand_is_transposed_itself() -> None:
    result = after(between("t = Mul(a, s)", inputs=", s: float32[2,1,1,3]"), "eliminate_transposes")
    assert lines_of(result) == [f"s_1 = Transpose(s) {TO_SECOND}", "y = Mul(x, s_1)"]


KEPT = {
    "other-operand": between("t = Add(a, z)", inputs=", z: float32[2,4,5,3]"),
    "other-permutation": between(
        "b = Transpose(z) {perm=[0, 3, 2, 1]} \n t = Add(a, b)", inputs=", z: float32[2,3,5,4]"
    ),
    "reshape": between("b = Reshape(a, s) \n t = Relu(b)", "constant s = int64[4] {2, 5, 4, 3}"),
    "softmax": between("t = Softmax(a) {axis=2}"),
    "no-gain": f"""graph "g" (x: float32[2,3,4,5]) -> (y) {{
      a = Transpose(x) {TO_LAST}
      y = Relu(a)
    }}""",
}


@pytest.mark.parametrize("name", KEPT)
def test_keeps(name: str) -> None:
    assert_keeps(KEPT[name], "eliminate_transposes")


def test_symbolic_sizes() -> None:
    text = between("t = Relu(a)").replace("[2,3,4,5]", "[N,3,H,W]")
    assert lines_of(after(text, "eliminate_transposes")) == ["y = Relu(x)"]


POSITIONS = """graph "g" (x: float32[T,B,3,8]) -> (q, k, v) {
  constant zero = int64[] {0}
  constant one = int64[] {1}
  constant two = int64[] {2}
  constant axis = int64[1] {0}
  constant last = int64[1] {-2}
  u = Unsqueeze(x, axis)
  a = Transpose(u) {perm=[3, 1, 2, 0, 4]}
  s = Squeeze(a, last)
  q = Gather(s, zero) {axis=0}
  k = Gather(s, one) {axis=0}
  v = Gather(s, two) {axis=-4}
}"""


def test_positions_are_taken_before_a_transpose() -> None:
    graph = after(POSITIONS, "eliminate_transposes")
    assert ops_of(graph) == ["Unsqueeze", "Squeeze", "Gather", "Gather", "Gather"]
    taken = [f"{y} = Gather(s, {i}) {{axis=2}}" for y, i in (("q", "zero"), ("k", "one"), ("v", "two"))]
    assert lines_of(graph)[2:] == taken


def test_a_position_of_another_axis_leaves_a_smaller_transpose() -> None:
    text = """graph "g" (x: float32[2,3,4,5]) -> (y) {
      constant i = int64[] {-1}
      a = Transpose(x) {perm=[3, 2, 0, 1]}
      y = Gather(a, i) {axis=1}
    }"""
    graph = after(text, "eliminate_transposes")
    assert ops_of(graph) == ["Gather", "Transpose"]
    assert lines_of(graph)[-1].endswith("{perm=[2, 0, 1]}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v = Gather(s, two) {axis=-4}", "v = Relu(s)"),
        ("(q, k, v)", "(q, k, v, s)"),
        ("two = int64[] {2}", "two = int64[1] {2}"),
    ],
)
def test_what_reads_more_than_positions_stays(old: str, new: str) -> None:
    assert_keeps(POSITIONS.replace(old, new), "eliminate_transposes")

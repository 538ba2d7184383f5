"""remove_identities, remove_dead_nodes, merge_common_nodes, binarize_sum, split_reductions, eliminate_reshapes, and those of Concat."""

import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of, ops_of


@pytest.mark.parametrize(
    "body",
    [
        "t = Identity(x)",
        "t = Dropout(x)",
        "t = Cast(x) {to=1}",
        "t = Sum(x)",
        "t = Mul(x, one)",
        "t = Div(x, one)",
        "t = Add(zero, x)",
        "t = Sub(x, zero)",
    ],
)
def test_identities(body: str) -> None:
    text = f"""graph "g" (x: float32[2,3]) -> (y) {{
      constant one = float32[] {{1.0}}
      constant zero = float32[3] {{0.0, 0.0, 0.0}}
      {body}
      y = Relu(t)
    }}"""
    assert lines_of(after(text, "remove_identities")) == ["y = Relu(x)"]


@pytest.mark.parametrize(
    "body",
    ["t = Cast(x) {to=11}", "t = Div(one, x)", "t = Sub(zero, x)", "t = Mul(x, zero)", "t = Add(x, grown)"],
)
def test_what_only_looks_like_an_identity(body: str) -> None:
    text = f"""graph "g" (x: float32[2,3]) -> (t) {{
      constant one = float32[] {{1.0}}
      constant zero = float32[3] {{0.0, 0.0, 0.0}}
      constant grown = float32[4,1,1] splat 0.0
      {body}
    }}"""
    assert_keeps(text, "remove_identities")


def test_an_input_handed_out_stays_a_copy() -> None:
    assert_keeps('graph "g" (x: float32[2]) -> (y) {\n y = Identity(x)\n}', "remove_identities")


def test_two_outputs_of_one_value() -> None:
    text = 'graph "g" (x: float32[2]) -> (y, z) {\n y = Relu(x)\n z = Identity(y)\n}'
    assert_keeps(text, "remove_identities")


def test_dead_nodes() -> None:
    text = """graph "g" (x: float32[2]) -> (y) {
      constant c = float32[2] {1.0, 2.0}
      a = Exp(x)
      b = Add(a, c)
      y = Relu(x)
    }"""
    result = after(text, "remove_dead_nodes")
    assert str(result).count("constant") == 0
    assert lines_of(result) == ["y = Relu(x)"]


def test_optional_results_that_nobody_reads() -> None:
    text = """graph "g" (x: float32[1,2,4,4]) -> (y) {
      t, i = MaxPool(x) {kernel_shape=[2, 2]}
      y, m = Dropout(t)
    }"""
    result = after(text, "remove_dead_nodes", "remove_identities")
    assert lines_of(result) == ["y = MaxPool(x) {kernel_shape=[2, 2]}"]


def test_parts_of_a_split_stay() -> None:
    text = 'graph "g" (x: float32[4]) -> (a) {\n a, b = Split(x) {axis=0, num_outputs=2}\n}'
    assert_keeps(text, "remove_dead_nodes")


def test_common_nodes_become_one() -> None:
    text = """graph "g" (x: float32[2]) -> (y) {
      constant c = float32[] {0.5}
      constant d = float32[] {0.5}
      a = Mul(x, c)
      b = Mul(x, d)
      y = Add(a, b)
    }"""
    assert lines_of(after(text, "merge_common_nodes")) == ["a = Mul(x, c)", "y = Add(a, a)"]


@pytest.mark.parametrize(
    "body",
    [
        "a = LeakyRelu(x) {alpha=0.1} \n b = LeakyRelu(x) {alpha=0.2}",
        "a = Exp(x) \n b = Neg(x)",
        "n = Neg(x) \n a = Sub(x, n) \n b = Sub(n, x)",
    ],
    ids=["attributes", "operators", "order"],
)
def test_other_nodes_stay_apart(body: str) -> None:
    assert_keeps(f'graph "g" (x: float32[2]) -> (y) {{\n {body} \n y = Add(a, b)\n}}', "merge_common_nodes")


def test_sums_are_split() -> None:
    text = 'graph "g" (x: float32[2,3], z: float32[3], w: float32[2,1]) -> (y) {\n y = Sum(x, z, w)\n}'
    assert lines_of(after(text, "binarize_sum")) == ["y_1 = Add(x, z)", "y = Add(y_1, w)"]


def test_reshapes_in_a_row() -> None:
    text = """graph "g" (x: float32[2,3,4]) -> (y) {
      constant s = int64[2] {6, 4}
      constant t = int64[1] {24}
      a = Reshape(x, s)
      y = Reshape(a, t)
    }"""
    assert lines_of(after(text, "eliminate_reshapes")) == ["y = Reshape(x, t)"]


@pytest.mark.parametrize(("first", "joined"), [("0, 12", True), ("-1, 12", True), ("6, -1", False)])
def test_a_size_that_the_last_of_them_copies_must_be_that_of_the_first_input(first: str, joined: bool) -> None:
    text = f"""graph "g" (x: float32[N,3,4]) -> (y) {{
      constant s = int64[2] {{{first}}}
      constant t = int64[3] {{0, 2, -1}}
      a = Reshape(x, s)
      y = Reshape(a, t)
    }}"""
    assert ops_of(after(text, "eliminate_reshapes")) == ["Reshape"] * (1 if joined else 2)


def test_reshapes_to_the_same_shape() -> None:
    text = """graph "g" (x: float32[2,3]) -> (y) {
      constant s = int64[2] {2, -1}
      a = Reshape(x, s)
      y = Relu(a)
    }"""
    assert lines_of(after(text, "eliminate_reshapes")) == ["y = Relu(x)"]


FLAT_PRODUCT = """graph "g" (x: float32[N,7,8]) -> (y) {
  constant w = float32[8,5] splat 0.5
  constant s = int64[2] {-1, 8}
  constant t = int64[3] {-1, 7, 5}
  a = Reshape(x, s)
  b = MatMul(a, w)
  y = Reshape(b, t)
}"""


def test_reshapes_around_a_product_by_a_matrix() -> None:
    assert lines_of(after(FLAT_PRODUCT, "eliminate_reshapes")) == ["y = MatMul(x, w)"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{-1, 7, 5}", "{7, -1, 5}"),
        ("{-1, 7, 5}", "{-1, 35, 1}"),
        ("y = Reshape(b, t)", "c = Reshape(b, t) \n y = Add(c, c) \n z = Relu(b)"),
        ("x: float32[N,7,8]", "x: float32[N,14,4]"),
    ],
    ids=["rows-in-another-order", "columns-among-the-rows", "read-twice", "rows-cut"],
)
def test_reshapes_around_a_product_that_change_its_rows_stay(old: str, new: str) -> None:
    text = FLAT_PRODUCT.replace(old, new)
    if "z =" in text:
        text = text.replace("-> (y)", "-> (y, z)")
    assert_keeps(text, "eliminate_reshapes")


def test_an_axis_is_split_before_a_transpose() -> None:
    text = """graph "g" (x: float32[T,12,4]) -> (y) {
      constant t = int64[4] {2, 6, -1, 4}
      r = Transpose(x) {perm=[1, 0, 2]}
      y = Reshape(r, t)
    }"""
    assert lines_of(after(text, "eliminate_reshapes"))[-1] == "y = Transpose(x_1) {perm=[1, 2, 0, 3]}"
    assert ops_of(after(text, "eliminate_reshapes")) == ["Reshape", "Transpose"]


def test_heads_are_turned_where_they_are() -> None:
    text = """graph "g" (x: float32[2,3,T,4]) -> (y) {
      constant s = int64[3] {6, -1, 4}
      constant t = int64[4] {2, 3, 4, -1}
      r = Reshape(x, s)
      u = Transpose(r) {perm=[0, 2, 1]}
      y = Reshape(u, t)
    }"""
    assert lines_of(after(text, "eliminate_reshapes", "eliminate_reshapes")) == ["y = Transpose(x) {perm=[0, 1, 3, 2]}"]


@pytest.mark.parametrize("target", ["{12, 2, -1, 2}", "{12, -1, 4, 1}", "{3, 4, 2, -1}", "{-1, 2, 4, 6}"])
def test_other_splits_behind_a_transpose(target: str) -> None:
    """What is not one axis in two stays; what is computes the same."""
    after(
        f"""graph "g" (x: float32[T,12,4]) -> (y) {{
          constant t = int64[4] {target}
          r = Transpose(x) {{perm=[1, 0, 2]}}
          y = Reshape(r, t)
        }}""".replace("T,", "2,"),
        "eliminate_reshapes",
    )


def test_a_target_that_copies_a_size_stays() -> None:
    text = """graph "g" (x: float32[2,3,4]) -> (y) {
      constant s = int64[2] {6, 4}
      constant t = int64[3] {0, 2, 2}
      a = Reshape(x, s)
      y = Reshape(a, t)
    }"""
    assert_keeps(text, "eliminate_reshapes")


def test_a_target_that_copies_every_size_goes() -> None:
    text = """graph "g" (x: float32[2,3,4]) -> (y) {
      constant s = int64[2] {6, 4}
      constant t = int64[2] {0, 0}
      a = Reshape(x, s)
      b = Reshape(a, t)
      y = Relu(b)
    }"""
    assert lines_of(after(text, "eliminate_reshapes")) == ["a = Reshape(x, s)", "y = Relu(a)"]


def test_concats_of_everything_before() -> None:
    text = """graph "g" (x: float32[1,2], z: float32[1,3], w: float32[1,4]) -> (y) {
      a = Concat(x, z) {axis=1}
      b = Concat(x, z, w) {axis=1}
      c = Concat(a, w) {axis=1}
      y = Add(b, c)
    }"""
    assert lines_of(after(text, "accumulate_concats"))[1] == "b = Concat(a, w) {axis=1}"


def test_concats_on_another_axis_stay() -> None:
    text = """graph "g" (x: float32[2,2], z: float32[2,2], w: float32[2,4]) -> (a, b) {
      a = Concat(x, z) {axis=0}
      b = Concat(x, z, w) {axis=1}
    }"""
    assert_keeps(text, "accumulate_concats")


def test_a_long_chain_of_concats_takes_one_application() -> None:
    letters = "abcdefghijkl"
    inputs = ", ".join(f"{c}: float32[1,16]" for c in letters)
    outputs = ", ".join(f"y{n}" for n in range(2, 13))
    lines = [f"y{n} = Concat({', '.join(letters[:n])}) {{axis=1}}" for n in range(2, 13)]
    text = "\n".join([f'graph "g" ({inputs}) -> ({outputs}) {{', *lines, "}"])
    chained = [f"y{n} = Concat(y{n - 1}, {letters[n - 1]}) {{axis=1}}" for n in range(3, 13)]
    assert lines_of(after(text, "accumulate_concats"))[1:] == chained


def shuffle(parts: str = "x, z", groups: int = 2, perm: str = "0, 2, 1, 3, 4", axis: int = 1, also: str = "") -> str:
    """Return ShuffleNet's shuffle of a concatenation."""
    return f"""graph "g" (x: float32[N,6,4,4], z: float32[N,6,4,4], w: float32[N,3,4,4]) -> (y{", u" if also else ""}) {{
      constant split = int64[5] {{0, {groups}, -1, 4, 4}}
      constant join = int64[4] {{0, -1, 4, 4}}
      a = Concat({parts}) {{axis={axis}}}
      b = Reshape(a, split)
      c = Transpose(b) {{perm=[{perm}]}}
      y = Reshape(c, join)
      {also}
    }}"""


@pytest.mark.parametrize(("parts", "groups", "axis"), [("x, z", 2, 1), ("x, z, x", 3, 1), ("x, z", 2, -3)])
def test_a_shuffled_concat_is_one_behind_the_channels(parts: str, groups: int, axis: int) -> None:
    columns = ["x.column", "z.column", "x.column_1"][:groups]
    lines = lines_of(after(shuffle(parts, groups, axis=axis), "interleave_concats"))
    assert lines == [
        *(f"{c} = Unsqueeze({c[0]}, a.axes)" for c in columns),
        f"c = Concat({', '.join(columns)}) {{axis=2}}",
        "y = Reshape(c, join)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        shuffle(groups=3),  # groups that are not the parts
        shuffle("x, w, w"),
        shuffle(perm="0, 1, 2, 4, 3"),
        shuffle(perm="1, 0, 2, 3, 4"),
        shuffle(perm="0, 2, 1, 4, 3"),
        shuffle(also="u = Relu(a)"),
        shuffle(also="u = Relu(b)"),
        shuffle("x"),
    ],
)
def test_other_shuffles_stay(text: str) -> None:
    assert_keeps(text, "interleave_concats")


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("op", "last", "rest"),
    [
        ("ReduceSum", "ReduceSum", "ReduceSum"),
        ("ReduceMean", "ReduceMean", "ReduceMean"),
        ("ReduceMax", "ReduceMax", "ReduceMax"),
        ("ReduceL1", "ReduceL1", "ReduceSum"),
        ("ReduceL2", "ReduceL2", "ReduceL2"),
        ("ReduceSumSquare", "ReduceSumSquare", "ReduceSum"),
        ("ReduceLogSumExp", "ReduceLogSumExp", "ReduceLogSumExp"),
    ],
)
def test_reductions_over_axes_that_are_no_neighbours(op: str, last: str, rest: str, keepdims: int) -> None:
    text = f"""graph "g" (x: float32[2,3,4,5,6]) -> (y) {{
      constant axes = int64[4] {{-1, 0, 2, -2}}
      y = {op}(x, axes) {{keepdims={keepdims}}}
    }}"""
    lines = lines_of(after(text, "split_reductions"))
    assert [line.split(" = ")[1].split("(")[0] for line in lines] == [last, rest]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[-1, 0], [0, 2, 3], [3, 1]])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_means_of_integers_are_taken_at_once(dtype: str, axes: list[int], keepdims: int) -> None:
    """Over axes that are no neighbours: means of means would be rounded twice."""
    text = f"""graph "g" (x: {dtype}[2,3,4,5]) -> (y) {{
      constant axes = int64[{len(axes)}] {{{", ".join(map(str, axes))}}}
      y = ReduceMean(x, axes) {{keepdims={keepdims}}}
    }}"""
    lines = lines_of(after(text, "split_reductions"))
    expected = ["Transpose", "ReduceMean", *(["Unsqueeze"] if keepdims else [])]
    assert [line.split(" = ")[1].split("(")[0] for line in lines] == expected


def test_reductions_over_neighbours_stay() -> None:
    for axes in ("{0, 1}", "{-1, 1}", "{1}"):
        count = axes.count(",") + 1
        text = f"""graph "g" (x: float32[2,3,4]) -> (y) {{
          constant axes = int64[{count}] {axes}
          y = ReduceSum(x, axes)
        }}"""
        assert lines_of(after(text, "split_reductions")) == ["y = ReduceSum(x, axes)"]

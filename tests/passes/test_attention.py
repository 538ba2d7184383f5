"""expand_attention and fold_scales: attention in its parts, as exporters write it and as one operator."""

import numpy as np
import pytest
from neo import _native

from tests.passes.rewriting import after, assert_keeps, lines_of, ops_of

HEADS = {"rank-3": "[2,3,8]", "rank-4": "[2,2,3,4]"}
PLAIN = ["Mul", "Transpose", "MatMul", "Softmax", "MatMul"]


def attention(
    *, dims: str = "[2,2,3,4]", keys: str | None = None, mask: str = "", attrs: str = "", masks: str = ""
) -> str:
    """Return a graph of one Attention."""
    keys = keys or dims
    heads = "q_num_heads=2, kv_num_heads=2" if dims.count(",") == 2 else ""
    inputs = ", ".join(x for x in (f"q: float32{dims}, k: float32{keys}, v: float32{keys}", mask) if x)
    listed = ", ".join(x for x in (heads, attrs) if x)
    return f"""graph "g" ({inputs}) -> (y) {{
      {masks}
      y = Attention(q, k, v{", m" if mask or masks else ""}) {f"{{{listed}}}" if listed else ""}
    }}"""


@pytest.mark.parametrize("attrs", ["", "scale=0.25", "is_causal=1"])
@pytest.mark.parametrize("dims", HEADS.values(), ids=HEADS)
def test_an_operator_becomes_its_parts(dims: str, attrs: str) -> None:
    ops = ops_of(after(attention(dims=dims, attrs=attrs), "expand_attention"))
    assert "Attention" not in ops
    assert ops.count("MatMul") == 2
    assert ops.count("Softmax") == 1
    assert ops.count("Add") == (attrs == "is_causal=1")
    if dims == HEADS["rank-4"] and not attrs:
        assert ops == PLAIN


@pytest.mark.parametrize(
    "mask", ["float32[3,5]", "float32[2,1,1,5]", "float32[5]", "bool[2,2,3,5]", "bool[1,1,3,5]", "bool[2,1,1,5]"]
)
@pytest.mark.parametrize("attrs", ["", "is_causal=1"])
def test_masks(mask: str, attrs: str) -> None:
    text = attention(keys="[2,2,5,4]", mask=f"m: {mask}", attrs=attrs)
    assert "Attention" not in ops_of(after(text, "expand_attention"))


@pytest.mark.parametrize("mask", ["bool[2,3] {true, false, true, false, false, false}", "float32[1,3] splat -inf"])
def test_a_query_that_sees_nothing_gives_zeros(mask: str) -> None:
    text = attention(dims="[1,1,2,4]" if "2,3" in mask else "[1,1,1,4]", keys="[1,1,3,4]", masks=f"constant m = {mask}")
    result = after(text, "expand_attention")
    assert "Attention" not in ops_of(result)
    feeds = [np.ones(v.shape, np.float32) for v in result.inputs]
    np.testing.assert_array_equal(result.evaluate(feeds)[0][0, 0, -1], np.zeros(4, np.float32))


def test_symbolic_sizes() -> None:
    text = attention(dims="[N,2,L,4]", keys="[N,2,S,4]", mask="m: float32[N,1,1,S]")
    result = after(text, "expand_attention")
    assert "Attention" not in ops_of(result)
    assert result.outputs[0].type == "float32[N,2,L,4]"


@pytest.mark.parametrize(
    "text",
    [
        attention(attrs="softcap=2.0"),
        attention(attrs="left_window_size=1"),
        attention(attrs="softmax_precision=1"),
        attention(keys="[2,1,3,4]"),
        attention(keys="[2,2,5,4]", mask="m: float32[3,4]"),
        attention().replace("y = ", "y, p = ").replace("-> (y)", "-> (y, p)"),
        attention().replace("float32", "float64"),
    ],
    ids=["softcap", "window", "precision", "groups", "short-mask", "present", "float64"],
)
def test_what_has_no_parts_stays(text: str) -> None:
    assert_keeps(text, "expand_attention")


def test_sizes_that_only_a_call_knows_to_agree_stay() -> None:
    for text in (
        attention(dims="[N,2,3,4]", keys="[M,2,3,4]"),
        attention(dims="[2,2,L,4]", attrs="is_causal=1"),
        attention(mask="m: float32[M,1,3,3]"),
    ):
        graph = _native.parse_graph(text)
        graph.infer()
        assert ops_of(_native.run_passes(graph, ["expand_attention"])) == ["Attention"]


EXPORTED = """graph "g" (x: float32[2,3,8], m: float32[2,1,1,3]) -> (y) {{
  constant wq = float32[8,8] splat 0.25
  constant wk = float32[8,8] splat -0.125
  constant bq = float32[8] {{0.5, -1.0, 1.5, 2.0, 0.25, -0.5, 0.75, 1.0}}
  constant h = int64[4] {{0, 0, 2, 4}}
  constant c = float32{number}
  q = MatMul(x, wq)
  qb = Add(q, bq)
  qh = Reshape(qb, h)
  qt = Transpose(qh) {{perm=[0, 2, 1, 3]}}
  k = MatMul(x, wk)
  kh = Reshape(k, h)
  kt = Transpose(kh) {{perm=[0, 2, 3, 1]}}
  s = MatMul(qt, kt)
  d = {scale}
  a = Add(d, m)
  p = Softmax(a) {{axis=3}}
  xh = Reshape(x, h)
  xt = Transpose(xh) {{perm=[0, 2, 1, 3]}}
  y = MatMul(p, xt)
}}"""


@pytest.mark.parametrize("scale", ["Div(s, c)", "Mul(s, c)", "Mul(c, s)"])
@pytest.mark.parametrize("number", ["[] {2.0}", "[1,1,1,1] {0.5}"], ids=["scalar", "rank-4"])
def test_a_scale_goes_to_the_weights(scale: str, number: str) -> None:
    result = after(EXPORTED.format(scale=scale, number=number), "fold_biases", "fold_scales", "fold_biases")
    lines = lines_of(result)
    assert not {"Div", "Mul"} & set(ops_of(result))
    assert "d = MatMul(qt, kt.scaled)" in lines
    assert "a = Add(d, m)" in lines


def test_a_scale_goes_to_the_queries_where_the_keys_have_no_weights() -> None:
    text = EXPORTED.format(scale="Div(s, c)", number="[] {2.0}").replace("k = MatMul(x, wk)", "k = Relu(x)")
    lines = lines_of(after(text, "fold_scales", "fold_biases"))
    assert "qb.scaled = MatMul(x, wq, qb.bias)" in lines
    assert "d = MatMul(qt.scaled, kt)" in lines


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c = float32[] {2.0}", "c = float32[3] {2.0, 2.0, 2.0}"),
        ("c = float32[] {2.0}", "c = float32[] {0.0}"),
        ("a = Add(d, m)", "a = Add(d, s)"),
        ("xh = Reshape(x, h)", "xh = Add(qh, kh)"),
    ],
    ids=["vector", "zero", "read-twice", "weights-read-twice"],
)
def test_a_scale_stays(old: str, new: str) -> None:
    text = EXPORTED.format(scale="Mul(s, c)", number="[] {2.0}").replace(old, new)
    assert_keeps(text, "fold_scales")


def test_exported_attention_ends_like_the_operator() -> None:
    result = after(EXPORTED.format(scale="Div(s, c)", number="[] {2.0}"), *_native.pass_names())
    assert [op for op in ops_of(result) if op not in {"Reshape", "Transpose"}] == [
        "MatMul",
        "MatMul",
        "MatMul",
        "Add",
        "Softmax",
        "MatMul",
    ]

"""Loops that append to what they carry, as decoders do with their caches, beside the reference."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import pytest
from neo.frontend.onnx import import_model
from onnx import TensorProto, helper, parser

NUMPY = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "int64": np.int64,
    "int8": np.int8,
    "bool": np.bool_,
}


def loop(
    nodes: str,
    past: str = "[B,3,P,8]",
    *,
    whole: str = "[B,3,P2,8]",
    new: str = "[B,3,1,8]",
    collected: str = "",
    dtype: str = "float",
    condition: str = "more = Identity(cond)",
    final: bool = True,
) -> onnx.ModelProto:
    """A Loop that carries a cache `past`, whose body gives `whole` from it and from `x`, which is one of the model's
    inputs and shorter by a factor in every iteration; `collected` is the shape of `y`."""
    body = parser.parse_graph(
        f"body (int64 i, bool cond, {dtype}{past} past, {dtype}{new} x) => "
        f"(bool more, {dtype}{whole} whole, {dtype}{new} x2{f', float{collected} y' if collected else ''}) "
        f"{{ {condition} {nodes} }}"
    )
    names = ["c", "x_end", *(["ys"] if collected else [])]
    node = helper.make_node("Loop", ["trips", "", "past0", "x0"], names if final else ["", *names[1:]], body=body)
    sizes = lambda text: [int(s) if s.isdigit() else s for s in text.strip("[]").split(",")]  # noqa: E731
    kind = TensorProto.DataType.Value(dtype.upper())
    inputs = [
        helper.make_tensor_value_info("trips", TensorProto.INT64, []),
        helper.make_tensor_value_info("past0", kind, [f"{s}0" if s == "P" else s for s in sizes(past)]),
        helper.make_tensor_value_info("x0", kind, sizes(new)),
    ]
    outputs = [onnx.ValueInfoProto(name=n) for n in (names if final else names[1:])]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def feeds_of(model: onnx.ModelProto, trips: int, seed: int, **sizes: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    feeds: dict[str, np.ndarray] = {"trips": np.array(trips, np.int64)}
    for value in model.graph.input[1:]:
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else sizes[d.dim_param] for d in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        drawn = random.uniform(-1, 1, shape) if dtype.kind == "f" else random.integers(0, 2, shape)
        feeds[value.name] = drawn.astype(dtype)
    return feeds


def grown(module: neo.Module) -> list[list[int]]:
    """By loop of the plan, the carried values that grow in place."""
    return [item["grows_in_place"] for item in module._native.plan["items"] if item["op"] in ("Loop", "Scan")]


def check(
    model: onnx.ModelProto, calls: list[tuple[int, dict[str, int]]], *, in_place: bool, tolerance: float = 1e-5
) -> None:
    reference = import_model(model)
    for threads in (1, 2):
        module = neo.compile(model, threads=threads)
        assert grown(module) == [[0] if in_place else []]
        for seed, (trips, sizes) in enumerate(calls):
            feeds = feeds_of(model, trips, seed, **sizes)
            found = module.run(feeds)
            expected = reference.evaluate(list(feeds.values()))
            for left, right in zip(found.values(), expected, strict=True):
                if left.size == right.size == 0:  # what no iteration gave has sizes of its own
                    continue
                assert left.shape == right.shape
                np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


SIZES = [
    (0, {"B": 2, "P0": 3}),
    (1, {"B": 2, "P0": 0}),
    (2, {"B": 1, "P0": 0}),
    (40, {"B": 2, "P0": 0}),
    (7, {"B": 3, "P0": 5}),
    (3, {"B": 1, "P0": 70}),
    (3, {"B": 2, "P0": 1}),
    (5, {"B": 0, "P0": 4}),
]

APPEND = "half = Constant<value_float=0.5>() x2 = Mul(x, half) whole = Concat<axis=2>(past, x)"
ATTENTION = "kt = Transpose<perm=[0,1,3,2]>(whole) s = MatMul(x, kt) p = Softmax<axis=-1>(s) y = MatMul(p, whole)"


def test_attention_over_a_cache() -> None:
    check(loop(f"{APPEND} {ATTENTION}", collected="[B,3,1,8]"), SIZES, in_place=True)


def test_one_head_lies_densely() -> None:
    nodes = f"{APPEND} e = Exp(whole) ax = Constant<value_ints=[2]>() y = ReduceSum(e, ax)"
    model = loop(nodes, "[1,1,P,8]", whole="[1,1,P2,8]", new="[1,1,1,8]", collected="[1,1,1,8]")
    check(model, [(t, {"P0": s["P0"]}) for t, s in SIZES], in_place=True)


def test_heads_behind_tokens() -> None:
    nodes = (
        "half = Constant<value_float=0.5>() x2 = Mul(x, half) whole = Concat<axis=1>(past, x)"
        " k = Transpose<perm=[0,2,3,1]>(whole) q = Transpose<perm=[0,2,1,3]>(x) y = MatMul(q, k)"
        " v = Transpose<perm=[0,2,1,3]>(whole) z = MatMul(y, v) w = ReduceSum<keepdims=0>(z)"
    )
    model = loop(nodes.replace("y =", "s =").replace("(y, v)", "(s, v)").replace("w =", "y ="), "[B,P,3,8]",
                 whole="[B,P2,3,8]", new="[B,1,3,8]", collected="[]")  # fmt: skip
    check(model, SIZES, in_place=True, tolerance=1e-4)


def test_keys_shared_by_heads() -> None:
    nodes = (
        f"{APPEND} ax = Constant<value_ints=[2]>() u = Unsqueeze(whole, ax) many = Constant<value_ints=[1,1,2,1,1]>()"
        " e = Expand(u, many) w = ReduceSum<keepdims=0>(e) y = Identity(w)"
    )
    check(loop(nodes, collected="[]"), SIZES, in_place=True, tolerance=1e-4)


def test_heads_as_batches() -> None:
    """Axes before the tokens are joined, axes behind them parted."""
    nodes = (
        f"{APPEND} flat = Constant<value_ints=[6,-1,2,4]>() w = Reshape(whole, flat)"
        " last = Constant<value_ints=[6,-1,8]>() w3 = Reshape(w, last) t = Transpose<perm=[0,2,1]>(w3)"
        " q = Reshape(x, last) s = MatMul(q, t) z = MatMul(s, w3) y = ReduceSum<keepdims=0>(z)"
    )
    model = loop(nodes, "[2,3,P,8]", whole="[2,3,P2,8]", new="[2,3,1,8]", collected="[]")
    check(model, [(t, {"P0": s["P0"]}) for t, s in SIZES], in_place=True, tolerance=1e-4)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_rows_at_once(rows: int) -> None:
    model = loop(f"{APPEND} kt = Transpose<perm=[0,1,3,2]>(whole) s = MatMul(x, kt) y = ReduceSum<keepdims=0>(s)",
                 new=f"[B,3,{rows},8]", collected="[]")  # fmt: skip
    check(model, SIZES, in_place=rows > 0, tolerance=1e-4)


@pytest.mark.parametrize("dtype", [d for d in NUMPY if d != "float"])
def test_dtypes(dtype: str) -> None:
    nodes = "x2 = Identity(x) whole = Concat<axis=2>(past, x)"
    check(loop(nodes, dtype=dtype), SIZES, in_place=True)


def test_nobody_asks_for_the_cache() -> None:
    check(loop(f"{APPEND} {ATTENTION}", collected="[B,3,1,8]", final=False), SIZES, in_place=True)


def test_the_condition_ends_the_loop() -> None:
    condition = "most = Constant<value_int=4>() more = Less(i, most)"
    check(loop(f"{APPEND} {ATTENTION}", collected="[B,3,1,8]", condition=condition), SIZES, in_place=True)


@pytest.mark.parametrize(
    "nodes",
    [
        "whole = Concat<axis=2>(x, past)",  # the new comes first
        "whole = Concat<axis=2>(past, x, past)",
        "whole = Concat<axis=2>(past, past)",
        "t = Tanh(past) whole = Concat<axis=2>(t, x)",
        "whole = Concat<axis=2>(past, x) u = Tanh(past)",  # the past has another reader, which is removed or not
        "whole = Concat<axis=2>(past, x) u = Exp(whole)",
    ],
)
def test_what_cannot_grow_in_place(nodes: str) -> None:
    used = " y = ReduceMax<keepdims=0>(u)" if "u =" in nodes else " y = ReduceMax<keepdims=0>(whole)"
    model = loop(f"half = Constant<value_float=0.5>() x2 = Mul(x, half) {nodes}{used}", collected="[]")
    calls = [(t, s) for t, s in SIZES if t <= 7 and s["B"] > 0 and s["P0"] > 0]
    check(model, calls, in_place=False)


def test_a_loop_in_a_loop() -> None:
    """The inner loop starts anew with what the outer one has by then."""
    inner = parser.parse_graph(
        "inner (int64 j, bool c1, float[2,P1,4] p1) => (bool c2, float[2,P3,4] w1, float[] y1) "
        "{ c2 = Identity(c1) w1 = Concat<axis=1>(p1, x) s = MatMul(w1, turn) y1 = ReduceSum<keepdims=0>(s) }"
    )
    body = parser.parse_graph(
        "outer (int64 i, bool cond, float[2,P,4] past) => (bool more, float[2,P2,4] whole, float[N] ys) "
        "{ more = Identity(cond) }"
    )
    body.node.append(helper.make_node("Loop", ["i", "", "past"], ["whole", "ys0"], body=inner))
    body.node.append(helper.make_node("ReduceSum", ["ys0"], ["ys"], keepdims=1))
    node = helper.make_node("Loop", ["trips", "", "past0"], ["c", "ys_all"], body=body)
    inputs = [
        helper.make_tensor_value_info("trips", TensorProto.INT64, []),
        helper.make_tensor_value_info("past0", TensorProto.FLOAT, [2, "P0", 4]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 4]),
        helper.make_tensor_value_info("turn", TensorProto.FLOAT, [2, 4, 3]),
    ]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=n) for n in ("c", "ys_all")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    reference, module = import_model(model), neo.compile(model)
    assert [0] in grown(module)
    for trips, past in ((7, 0), (3, 5), (0, 2), (12, 1)):
        feeds = feeds_of(model, trips, trips, P0=past)
        for left, right in zip(module.run(feeds).values(), reference.evaluate(list(feeds.values())), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


# The next cache has, of each part of this one, that which the products with the first token order.
BEAMS = (
    "half = Constant<value_float=-0.9>() x2 = Mul(x, half) all = Concat<axis=2>(past, x)"
    " kt = Transpose<perm=[0,1,3,2]>(all) s = MatMul(x, kt) y = MatMul(s, all) axes = Constant<value_ints=[1,2,3]>()"
    " score = ReduceSum<keepdims=0>(x, axes) many = Shape<end=1>(past) v, order = TopK(score, many)"
)


@pytest.mark.parametrize(
    "choice",
    [
        "whole = Gather<axis=0>(all, order)",
        "zero = Constant<value_int=0>() first = Mul(order, zero) whole = Gather<axis=-4>(all, first)",
        "m = Neg(many) o = Add(order, m) whole = Gather(all, o)",  # from the end
        "o = Cast<to=6>(order) whole = Gather(all, o)",
        "w, o = TopK<largest=0>(order, many) w2 = Identity(w) whole = Gather(all, w2)",  # all in their order
    ],
)
def test_beams_choose_among_caches(choice: str) -> None:
    check(loop(f"{BEAMS} {choice}", collected="[B,3,1,8]"), SIZES, in_place=True, tolerance=1e-4)


def test_beams_along_another_axis() -> None:
    nodes = (
        f"{BEAMS} others = Constant<value_ints=[0,2,3]>() of_heads = ReduceSum<keepdims=0>(x, others)"
        " three = Constant<value_ints=[3]>() u, turn = TopK(of_heads, three) whole = Gather<axis=1>(all, turn)"
    )
    check(loop(nodes, collected="[B,3,1,8]"), SIZES, in_place=True, tolerance=1e-4)


def test_a_gathered_cache_has_another_reader() -> None:
    nodes = f"{BEAMS} whole = Gather<axis=0>(all, order) z = Exp(whole)"
    model = loop(nodes.replace("y = MatMul", "u = MatMul") + " y = Add(u, x)", collected="[B,3,1,8]")
    check(model, [(3, {"B": 2, "P0": 3})], in_place=True, tolerance=1e-4)  # nobody asks for z
    model = loop(nodes.replace("y = MatMul", "u = MatMul") + " y = ReduceMax(z)", collected="[1,1,1,1]")
    check(model, [(3, {"B": 2, "P0": 3})], in_place=False, tolerance=1e-4)


def test_a_beam_outside() -> None:
    model = loop(f"{BEAMS} o = Add(order, many) whole = Gather<axis=0>(all, o)", collected="[B,3,1,8]")
    module = neo.compile(model)
    assert grown(module) == [[0]]
    for _ in range(2):
        with pytest.raises(neo.Error, match=r"an index must lie inside its axis"):
            module.run(feeds_of(model, 4, 0, B=2, P0=3))


def test_a_saved_module(tmp_path: Path) -> None:
    """Loading finds again what grows in place."""
    model = loop(f"{APPEND} {ATTENTION}", collected="[B,3,1,8]")
    module = neo.compile(model)
    module.save(tmp_path / "grows.neo")
    loaded = neo.load(tmp_path / "grows.neo")
    assert grown(loaded) == [[0]]
    feeds = feeds_of(model, 9, 0, B=2, P0=3)
    for left, right in zip(module.run(feeds).values(), loaded.run(feeds).values(), strict=True):
        np.testing.assert_array_equal(left, right)


def test_results_are_the_callers() -> None:
    """What a call gave stays when the next one writes to the cache's memory."""
    model = loop(f"{APPEND} {ATTENTION}", collected="[B,3,1,8]")
    module = neo.compile(model)
    first = module.run(feeds_of(model, 5, 0, B=2, P0=1))
    kept = {name: value.copy() for name, value in first.items()}
    module.run(feeds_of(model, 50, 1, B=2, P0=1))
    for name, value in kept.items():
        np.testing.assert_array_equal(first[name], value)


def test_a_short_call_has_no_room_for_a_long_one() -> None:
    """Times the batch, the tokens of the call before would be 15 MB."""
    model = loop(f"{APPEND} {ATTENTION}", collected="[B,3,1,8]")
    module = neo.compile(model, threads=1, limits=neo.Limits(memory=6 << 20))
    plain = neo.compile(model, threads=1)
    module.run(feeds_of(model, 4, 0, B=1, P0=2000))
    feeds = feeds_of(model, 4, 1, B=80, P0=1)
    for left, right in zip(module.run(feeds).values(), plain.run(feeds).values(), strict=True):
        np.testing.assert_array_equal(left, right)

"""Convolutions and products with many zeros among their weights against the reference."""

import neo
import numpy as np
import pytest
from neo import _native
from onnx import TensorProto, helper, numpy_helper

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections
from tests.routines.test_conv import ACTIVATIONS, lanes
from tests.saved.parts import Parts

SPARSE, GEMM = "cpu:float32/sparse_nchw", "cpu:float32/gemm_sparse"
by_tier = pytest.mark.parametrize("tier", TIERS)


def forms(graph, tier, node, routine):
    """The routine by single outputs and by blocks of them, where the weights have zeros enough."""
    return [c["routine"] for c in candidates(graph, tier, node) if c["routine"].startswith(routine)]


def sparse_weight(random, oc, ic, zeros, kernel=(), *, blocks=False):
    """About so many zeros, of both signs; at least the least that the routine takes. ``blocks``: of four outputs."""
    weight = floats(random, [oc, ic, *kernel])
    if blocks:
        keeps = np.ones((-(-oc // 4), ic, *kernel), bool)
        keeps.ravel()[random.permutation(keeps.size)[: int(np.ceil(max(zeros, 0.65) * keeps.size))]] = False
        return np.where(np.repeat(keeps, 4, 0)[:oc], weight, np.float32(0))
    count = max(int(np.ceil(zeros * weight.size)), int(np.ceil(0.6 * weight.size)))
    at = random.permutation(weight.size)[:count]
    weight.ravel()[at] = 0.0
    weight.ravel()[at[::2]] = -0.0
    return weight


def graph_of(random, x_dims, weight, *, bias=False, tail="", symbols=False, attrs=None):
    """x -> Conv "conv" [-> Add "add"] [-> an activation "act"], and the inputs; the name of the last node."""
    graph = _native.Graph()
    dims = [d if i == 1 or not symbols else f"d{i}" for i, d in enumerate(x_dims)]
    x = graph.add_input("x", "float32", dims)
    inputs, ends = [floats(random, x_dims)], "conv"
    operands = [x, graph.add_constant("w", weight.reshape(*weight.shape, *[1] * (len(x_dims) - weight.ndim)))]
    if bias:
        operands.append(graph.add_constant("b", floats(random, [weight.shape[0]])))
    attrs = dict(attrs or {}) | ({"clamp_min": 0.0} if tail == "clamp" else {})
    value = graph.add_node("Conv", operands, ["conv"], attrs, "conv").outputs[0]
    if "add" in tail:
        residual = graph.add_input("residual", "float32", list(value.shape))
        inputs.append(floats(random, graph_of(random, x_dims, weight, attrs=attrs)[0].outputs[0].shape))
        value, ends = graph.add_node("Add", [value, residual], ["add"], {}, "add").outputs[0], "add"
    for op in tail.split():
        if op not in ("add", "clamp"):
            value, ends = graph.add_node(op, [value], ["act"], ACTIVATIONS.get(op, {}), "act").outputs[0], "act"
    graph.outputs = [value]
    return graph, inputs, ends


@by_tier
@pytest.mark.parametrize("seed", range(24))
def test_agrees_with_the_reference(tier, seed):
    random = np.random.default_rng(seed)
    oc, ic = (int(n) for n in random.integers(1, 50, 2))
    sizes = [int(n) for n in random.integers(1, pick(random, [3, 24]), pick(random, [1, 2, 2]))]
    weight = sparse_weight(random, oc, ic, float(random.uniform(0.6, 1)))
    tail = pick(random, ["", "clamp", "add", "add Relu", "HardSwish", "Sigmoid", "add Swish"])
    graph, inputs, ends = graph_of(
        random, [pick(random, [1, 1, 3]), ic, *sizes], weight, bias=bool(seed % 2), tail=tail, symbols=seed % 3 == 0
    )
    expected = graph.evaluate(inputs)[0]
    for form in forms(graph, tier, ends, SPARSE):
        pinned = compile_pinned(graph, tier, {ends: form})
        assert pinned.routines[ends] == form
        found = pinned(*inputs)
        assert_close(found, expected, ic, f"{form} {graph}")
        for threads in (2, 3):
            np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


@by_tier
@pytest.mark.parametrize("seed", range(40))
def test_kernels_of_any_size(tier, seed):
    """Strides, dilations and pads of both axes; images of a few rows and of several runs, down to no pixel."""
    random = np.random.default_rng(seed)
    axes = pick(random, [1, 2, 2, 2])
    kernel = [int(random.integers(1, 6)) for _ in range(axes)]
    dilations = [int(random.integers(1, 4)) for _ in range(axes)]
    attrs = {
        "strides": [int(random.integers(1, 4)) for _ in range(axes)],
        "dilations": dilations,
        "pads": [int(random.integers(0, k + 1)) for k in kernel * 2],
    }
    spans = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    sizes = [span + int(random.integers(1, pick(random, [4, 40]))) for span in spans]
    oc, ic = int(random.integers(1, 20)), int(random.integers(1, 12))
    weight = sparse_weight(random, oc, ic, float(random.uniform(0.6, 1)), kernel)
    tail = pick(random, ["", "clamp", "add", "add Relu", "HardSwish", "add Swish"])
    batch = pick(random, [1, 2, 0] if seed % 5 == 0 else [1, 2])
    graph, inputs, ends = graph_of(
        random, [batch, ic, *sizes], weight, bias=bool(seed % 2), tail=tail, symbols=seed % 3 == 0, attrs=attrs
    )
    expected = graph.evaluate(inputs)[0]
    for form in forms(graph, tier, ends, SPARSE):
        pinned = compile_pinned(graph, tier, {ends: form})
        found = pinned(*inputs)
        assert_close(found, expected, ic * int(np.prod(kernel)), f"{form} {graph}")
        for threads in (2, 3):
            np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


@by_tier
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 260])
def test_every_number_of_rows(tier, rows):
    random = np.random.default_rng(rows)
    k, n = int(random.integers(1, 40)), int(random.integers(1, 60))
    weight = sparse_weight(random, k, n, 0.95)
    graph, inputs, ends = product_of(random, [rows, k], weight, bias=bool(rows % 2))
    for form in forms(graph, tier, ends, GEMM):
        assert_close(compile_pinned(graph, tier, {ends: form})(*inputs), graph.evaluate(inputs)[0], k, form)


def product_of(random, a_dims, weight, *, bias=False, added=None, residual=False, tail="", attrs=None, symbols=False):
    """a -> MatMul, or Gemm where it adds [-> Add] [-> an activation], and the inputs; the name of the last node.

    A bias is constant; ``added`` are the sizes of a run-time tensor in its place, ``residual`` one like the result.
    """
    graph, attrs = _native.Graph(), dict(attrs or {})
    dims = [f"d{i}" if symbols and i + 1 < len(a_dims) else d for i, d in enumerate(a_dims)]
    operands, inputs = [graph.add_input("a", "float32", dims)], [floats(random, a_dims)]
    operands.append(graph.add_constant("w", weight))
    if bias:
        operands.append(graph.add_constant("b", floats(random, [weight.shape[0 if attrs.get("transB") else 1]])))
    if added:
        operands.append(graph.add_input("c", "float32", added))
        inputs.append(floats(random, added))
    is_gemm = len(operands) > 2 or not attrs.keys() <= {"clamp_min"}
    value, ends = graph.add_node("Gemm" if is_gemm else "MatMul", operands, ["y"], attrs, "y").outputs[0], "y"
    if residual:
        inputs.append(floats(random, [*a_dims[:-1], weight.shape[1]]))
        value = graph.add_node(
            "Add", [value, graph.add_input("r", "float32", list(value.shape))], ["s"], {}, "s"
        ).outputs[0]
        ends = "s"
    if tail:
        value, ends = graph.add_node(tail, [value], ["t"], {}, "t").outputs[0], "t"
    graph.outputs = [value]
    return graph, inputs, ends


@by_tier
@pytest.mark.parametrize("seed", range(40))
def test_products_agree_with_the_reference(tier, seed):
    """Batches, transposed operands, biases, what is added by rows, by columns or by elements, clamps, activations."""
    random = np.random.default_rng(seed)
    m, k, n = int(random.integers(8, 150)), int(random.integers(1, 90)), int(random.integers(1, 70))
    # A number of rows that only a call tells may be a small one.
    weight = sparse_weight(random, k, n, float(random.uniform(0.9 if seed % 4 == 1 else 0.6, 1)))
    tail = pick(random, ["", "Gelu", "Sigmoid"])
    attrs = {} if tail or seed % 3 else {"clamp_min": 0.0}
    options = {"tail": tail, "attrs": attrs}
    if seed % 2:
        a_dims = [*pick(random, [[], [2], [3, 2]]), m, k]
        options |= {"residual": not attrs and bool(random.integers(2)), "symbols": seed % 4 == 1}
    else:
        attrs |= {"transA": int(random.integers(2)), "transB": int(random.integers(2))}
        a_dims = [k, m] if attrs["transA"] else [m, k]
        weight = np.ascontiguousarray(weight.T) if attrs["transB"] else weight
        options["added"] = pick(random, [None, [m, n], [n], [m, 1], [1]])
        options["bias"] = not options["added"]
        if options["added"]:
            attrs["beta"] = 0.5
    graph, inputs, ends = product_of(random, a_dims, weight, **options)
    expected = graph.evaluate(inputs)[0]
    for form in forms(graph, tier, ends, GEMM):
        pinned = compile_pinned(graph, tier, {ends: form})
        assert pinned.routines[ends] == form
        found = pinned(*inputs)
        assert_close(found, expected, k, f"{form} {graph}")
        for threads in (2, 3):
            np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


@by_tier
@pytest.mark.parametrize("rest", [-1, 0, 1])
@pytest.mark.parametrize("vectors", range(1, 18))
def test_every_number_of_pixels(tier, vectors, rest):
    """No pixel is left out, and none behind the last is written."""
    random = np.random.default_rng(vectors)
    pixels = vectors * lanes(tier) + rest
    graph, inputs, ends = graph_of(random, [1, 9, pixels], sparse_weight(random, 5, 9, 0.7, blocks=True), bias=True)
    both = forms(graph, tier, ends, SPARSE)
    assert len(both) == 2
    for form in both:
        found = compile_pinned(graph, tier, {ends: form})(*inputs)
        assert_close(found, graph.evaluate(inputs)[0], 9, form)


@by_tier
def test_work_for_many_tasks_gives_the_same_bits(tier):
    random = np.random.default_rng(0)
    graph, inputs, ends = graph_of(random, [2, 160, 14, 14], sparse_weight(random, 224, 160, 0.85), bias=True)
    for form in forms(graph, tier, ends, SPARSE):
        pinned = compile_pinned(graph, tier, {ends: form})
        found = pinned(*inputs)
        assert_close(found, graph.evaluate(inputs)[0], 160)
        for threads in (2, 3, 5):
            np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


@by_tier
def test_weights_that_are_all_zeros_leave_the_bias(tier):
    random = np.random.default_rng(0)
    weight = np.zeros((7, 6), np.float32)
    weight[0, 0] = 1e-30
    graph, inputs, ends = graph_of(random, [1, 6, 5, 5], weight, bias=True)
    assert_close(compile_pinned(graph, tier, {ends: SPARSE})(*inputs), graph.evaluate(inputs)[0], 6)


@pytest.mark.parametrize(
    ("weight", "attrs", "reason"),
    [
        (lambda r: floats(r, [8, 8, 1, 1]), {}, "fewer than 60 % of the weights are zeros"),
        (lambda r: np.eye(8, 8 * 169, dtype=np.float32).reshape(8, 8, 13, 13), {"pads": [9] * 4}, "more than 128 taps"),
        (
            lambda r: np.eye(8, dtype=np.float32)[:, :4].reshape(8, 4, 1, 1).copy(),
            {"group": 2},
            "more than one group",
        ),
    ],
)
def test_rejects(weight, attrs, reason):
    random = np.random.default_rng(0)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 8, 6, 6])
    operands = [x, graph.add_constant("w", weight(random))]
    graph.outputs = [graph.add_node("Conv", operands, ["conv"], attrs, "conv").outputs[0]]
    assert reason in rejections(graph, TIERS[-1], "conv")[SPARSE]


@pytest.mark.parametrize(
    ("rows", "zeros", "op", "reason"),
    [
        (64, 0.3, "MatMul", "fewer than 60 % of the weights are zeros"),
        (2, 0.8, "MatMul", "fewer than 90 % of the weights are zeros, and there are few rows"),
        (64, 0.95, "Gemm", "the product is scaled"),
    ],
)
def test_rejects_products(rows, zeros, op, reason):
    random = np.random.default_rng(0)
    weight = np.where(random.uniform(size=(32, 40)) < zeros, 0, floats(random, [32, 40])).astype(np.float32)
    graph, _, ends = product_of(random, [rows, 32], weight, attrs={"alpha": 0.5} if op == "Gemm" else None)
    assert reason in rejections(graph, TIERS[-1], ends)[GEMM]


def test_half_of_the_blocks_are_zeros_enough():
    """Where half of the weights are zeros in blocks of four outputs, sums over blocks win; strewn ones stay dense."""
    random = np.random.default_rng(0)
    for zeros, taken in ((0.5, ["blocks"]), (0.3, [])):
        keeps = np.arange(512 * 128).reshape(128, 512) % 10 >= zeros * 10
        weight = np.where(np.repeat(keeps, 4, 0), floats(random, [512, 512]), np.float32(0))
        graph, _, ends = graph_of(random, [1, 512, 14, 14], weight)
        found = [name.split("{")[1].split("=")[0] for name in forms(graph, TIERS[-1], ends, SPARSE)]
        assert found == taken
        assert (SPARSE in compile_pinned(graph, TIERS[-1], {}).routines[ends]) == bool(taken)
    graph, _, ends = product_of(
        random, [64, 256], np.where(np.arange(256 * 64).reshape(256, 64) % 4 < 2, 1, 0.0).astype("f")
    )
    assert forms(graph, TIERS[-1], ends, GEMM) == []


def test_products_are_sparse_where_that_is_faster():
    random = np.random.default_rng(0)
    chosen = {}
    for zeros in (0.61, 0.95):
        graph, _, ends = product_of(random, [128, 512], sparse_weight(random, 512, 512, zeros))
        chosen[zeros] = GEMM in compile_pinned(graph, TIERS[-1], {}).routines[ends]
    assert chosen == {0.61: False, 0.95: True}


def test_chosen_where_it_is_faster():
    """Nine of ten zeros in a layer of MobileNet's size: chosen; two of three: the dense routine stays."""
    random = np.random.default_rng(0)
    chosen = {}
    for zeros in (0.61, 0.95):
        graph, _, ends = graph_of(random, [1, 512, 14, 14], sparse_weight(random, 512, 512, zeros))
        module = compile_pinned(graph, TIERS[-1], {})
        chosen[zeros] = SPARSE in module.routines[ends]
        (sparse,) = (c for c in candidates(graph, TIERS[-1], ends) if c["routine"].startswith(SPARSE + "{nonzeros"))
        assert sparse["packed_bytes"] == pytest.approx(8 * (1 - zeros) * 512 * 512, rel=0.03)
    assert chosen == {0.61: False, 0.95: True}


def pinned_module(op="Conv", form="nonzeros", **arguments):
    """A module whose one convolution or product is sparse, by single outputs or by blocks, and an input."""
    random = np.random.default_rng(0)
    routine, weight = SPARSE, sparse_weight(random, 40, 24, 0.9).reshape(40, 24, 1, 1)
    x_dims, y_dims = [1, 24, 9, 11], [1, 40, 9, 11]
    if op == "MatMul":
        routine, weight, x_dims, y_dims = GEMM, weight.reshape(40, 24), [50, 40], [50, 24]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w"], ["y"], "product")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x_dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y_dims)],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = neo.compile(model, threads=1, routines={"product": [routine + "{" + form + "=*"]}, **arguments)
    assert any(step.routine.startswith(routine) for step in module.steps)
    return module, floats(random, x_dims)


by_op = pytest.mark.parametrize("op", ["Conv", "MatMul"])
by_form = pytest.mark.parametrize("form", ["nonzeros", "blocks"])


@by_op
@by_form
def test_a_saved_module_gives_the_same_bits(op, form, tmp_path):
    module, x = pinned_module(op, form)
    module.save(tmp_path / "m.neo")
    np.testing.assert_array_equal(neo.load(tmp_path / "m.neo", threads=1)(x), module(x))


@by_op
@by_form
def test_indices_of_a_damaged_module_are_refused(op, form, tmp_path):
    """Any packed number may be another one: loading is refused, or gives an answer."""
    module, x = pinned_module(op, form)
    module.save(tmp_path / "m.neo")
    file = (tmp_path / "m.neo").read_bytes()
    parts = Parts.of(file)
    refused = 0
    for at in range(0, len(parts.data) - 3, 4):
        data = bytearray(parts.data)
        data[at : at + 4] = np.int32(2**30).tobytes()
        parts.data = bytes(data)
        try:
            neo.load(parts.join(), threads=1)(x)
        except neo.ModelError:
            refused += 1
        parts = Parts.of(file)
    # Where outputs or blocks begin, and which source a weight is for.
    assert refused >= {"nonzeros": 24 + 90, "blocks": 6 + 60}[form]


@by_op
@by_form
def test_it_is_timed_with_its_own_weights(op, form, tmp_path):
    module, x = pinned_module(op, form)
    tuned, _ = pinned_module(op, form, tune=5, database=tmp_path / "t.db")
    assert tuned.tuning.measured > 0
    np.testing.assert_array_equal(tuned(x), module(x))

"""What ONNX Runtime takes beyond the text of ONNX, by NumPy (docs/formats.md lists it)."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from .models import model_of, node_model, value_info

RANDOM = np.random.default_rng(11)


def run(op: str, inputs: list[Any], opset: int = 17, constants: tuple[int, ...] = (), **attrs: Any) -> Any:
    model, arrays = node_model(op, inputs, attrs, opset=opset, constants=constants)
    return neo.compile(model)(**arrays)


def close(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    want = np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape).astype(np.float32)


# Domains, names, constants


@pytest.mark.parametrize("imports", [[("", 12)], [("ai.onnx.ml", 2)], [("com.microsoft", 1)]])
def test_domains_that_are_not_imported_are_the_newest(imports: list[tuple[str, int]]) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Binarizer", ["r"], ["b"], domain="ai.onnx.ml", threshold=0.5),
        helper.make_node("BiasGelu", ["b", "c"], ["g"], domain="com.microsoft"),
    ]
    x, c = normal(2, 3), np.zeros(3, np.float32)
    model = model_of(nodes, [value_info("x", x)], ["b"], initializers=[numpy_helper.from_array(c, "c")])
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*pair) for pair in imports)
    close(neo.compile(model)(x), (x > 0.5).astype(np.float32))


def test_a_function_takes_the_opsets_of_its_model() -> None:
    body = [helper.make_node("Binarizer", ["a"], ["b"], domain="ai.onnx.ml", threshold=0.5)]
    function = helper.make_function("own", "Half", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    node = helper.make_node("Half", ["x"], ["y"], domain="own")
    x = normal(4)
    model = model_of(
        [node], [value_info("x", x)], ["y"], domains={"own": 1, "ai.onnx.ml": 1}, functions=[function], opset=17
    )
    close(neo.compile(model)(x), (x > 0.5).astype(np.float32))


def test_one_output_twice() -> None:
    x = normal(2, 3)
    node = helper.make_node("Relu", ["x"], ["y"])
    module = neo.compile(model_of([node], [value_info("x", x)], ["y", "y"]))
    assert [t.name for t in module.outputs] == ["y", "y"]
    first, second = module(x)
    close(first, np.maximum(x, 0))
    first[:] = 7
    close(second, np.maximum(x, 0))
    close(module.run({"x": x})["y"], np.maximum(x, 0))


def test_one_output_twice_in_a_saved_module(tmp_path: Any) -> None:
    x = normal(2, 3)
    node = helper.make_node("Relu", ["x"], ["y"])
    neo.compile(model_of([node], [value_info("x", x)], ["y", "y"])).save(tmp_path / "m.neo")
    first, second = neo.load(tmp_path / "m.neo")(x)
    close(first, np.maximum(x, 0))
    close(second, np.maximum(x, 0))


@pytest.mark.parametrize("index", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("form", ["initializer", "constant", "body"])
def test_sparse_constants(index: Any, flat: bool, form: str) -> None:
    places = np.array([1, 5] if flat else [[0, 1], [1, 2]], index)
    values = numpy_helper.from_array(np.array([3, -4], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(places, "places"), [2, 3])
    x = normal(2, 3)
    add = helper.make_node("Add", ["x", "w"], ["y"])
    if form == "constant":
        model = model_of(
            [helper.make_node("Constant", [], ["w"], sparse_value=sparse), add], [value_info("x", x)], ["y"]
        )
    else:
        model = model_of([add], [value_info("x", x)], ["y"])
        model.graph.sparse_initializer.append(sparse)
    if form == "body":
        branch = helper.make_graph([add], "branch", [], [onnx.ValueInfoProto(name="y")])
        branch.sparse_initializer.append(sparse)
        other = helper.make_graph([helper.make_node("Neg", ["x"], ["n"])], "other", [], [onnx.ValueInfoProto(name="n")])
        test = helper.make_node("If", ["go"], ["z"], then_branch=branch, else_branch=other)
        go = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
        got = neo.compile(model_of([test], [value_info("x", x), go], ["z"]))(x=x, go=np.array(True))
    else:
        got = neo.compile(model)(x)
    close(got, x + np.array([[0, 3, 0], [0, 0, -4]], np.float32))


def test_a_sparse_constant_as_attribute_value() -> None:
    values = numpy_helper.from_array(np.array([3, -4], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 5]), "places"), [2, 3])
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.append(onnx.AttributeProto(name="value", type="SPARSE_TENSOR", sparse_tensor=sparse))
    x = normal(2, 3)
    model = model_of([node, helper.make_node("Add", ["x", "w"], ["y"])], [value_info("x", x)], ["y"])
    close(neo.compile(model)(x), x + np.array([[0, 3, 0], [0, 0, -4]], np.float32))


def constant(value: float, name: str = "c") -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.float32(value)))


@pytest.mark.parametrize(
    ("before", "after", "initializers", "counts"),
    [
        ([], [], [1, 2, 3], 3),
        ([constant(1)], [constant(2)], [], 2),
        ([], [constant(1), constant(2)], [3], 2),
        ([constant(1)], [], [2, 3], 1),
    ],
)
@pytest.mark.parametrize("is_input", [False, True])
def test_of_constants_of_one_name_the_last_counts(
    before: list[onnx.NodeProto], after: list[onnx.NodeProto], initializers: list[float], counts: float, is_input: bool
) -> None:
    x = normal(2, 3)
    nodes = [*before, helper.make_node("Add", ["x", "c"], ["y"]), *after]
    inputs = [value_info("x", x), *([value_info("c", np.float32(0))] if is_input else [])]
    tensors = [numpy_helper.from_array(np.float32(value), "c") for value in initializers]
    module = neo.compile(model_of(nodes, inputs, ["y"], initializers=tensors))
    assert [value.name for value in module.inputs] == ["x"]
    close(module(x), x + np.float32(counts))


def test_control_flow_that_makes_nothing_is_left_out() -> None:
    x = normal(2, 3)
    nothing = helper.make_graph([], "nothing", [], [])
    nodes = [
        helper.make_node("If", [], [], then_branch=nothing, else_branch=nothing),
        helper.make_node("Neg", ["x"], ["y"]),
    ]
    close(neo.compile(model_of(nodes, [value_info("x", x)], ["y"]))(x), -x)


# Operators


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [True, False])
def test_stft_of_a_signal_without_its_last_axis(onesided: int, window: bool) -> None:
    x = normal(2, 32)
    shape = np.hanning(8).astype(np.float32)
    inputs = [x, np.array(4), shape if window else None, None if window else np.array(8)]
    got = run("STFT", inputs, constants=(1, 3) if not window else (1,), onesided=onesided)
    frames = np.stack([x[:, i : i + 8] for i in range(0, 25, 4)], 1) * (shape if window else 1)
    spectrum = np.fft.rfft(frames) if onesided else np.fft.fft(frames)
    close(got, np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32), 1e-4)
    close(run("STFT", [x[..., None], *inputs[1:]], onesided=onesided), got)


def test_stft_takes_no_other_rank() -> None:
    with pytest.raises(neo.Error, match=r"signal must be \[batch, length, 1 or 2\] or \[batch, length\]"):
        run("STFT", [normal(32), np.array(4), None, np.array(8)])


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bik", [(1, 2, 3), (4, 3, 5)]),
        ("bij,bjk->bik", [(4, 2, 3), (1, 3, 5)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("ij,jk", [(2, 3), (1, 4)]),
        ("bij,bjk->bik", [(4, 1, 3), (4, 3, 1)]),
        ("ij,ij,ij->ij", [(1, 3), (2, 1), (2, 3)]),
        ("i,i->", [(1,), (5,)]),
    ],
)
@pytest.mark.parametrize("dynamic", [True, False])
def test_letters_of_size_one_broadcast_in_einsum(equation: str, shapes: list[Any], dynamic: bool) -> None:
    arrays = [normal(*shape) for shape in shapes]
    sizes = {}
    for term, shape in zip(equation.split("->")[0].split(","), shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    full = [
        np.broadcast_to(a, [sizes[letter] for letter in term])
        for a, term in zip(arrays, equation.split("->")[0].split(","), strict=True)
    ]
    model, feeds = node_model("Einsum", arrays, {"equation": equation}, opset=17)
    if dynamic:
        for i, info in enumerate(model.graph.input):
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                dim.dim_param = f"d{i}_{axis}"
    close(neo.compile(model)(**feeds), np.einsum(equation, *full.copy()).astype(np.float32), 1e-4)


def test_letters_of_other_sizes_do_not() -> None:
    with pytest.raises(neo.ShapeError, match="broadcast"):
        run("Einsum", [normal(2, 3), normal(4, 5)], equation="ij,jk->ik")


@pytest.mark.parametrize("opset", [7, 11, 13, 21])
@pytest.mark.parametrize("fixed", [True, False])
def test_squeeze_of_no_axes_takes_all(opset: int, fixed: bool) -> None:
    x = normal(1, 3, 1, 2)
    if opset < 13:
        node = helper.make_node("Squeeze", ["x"], ["y"])
        node.attribute.append(helper.make_attribute("axes", [], attr_type=onnx.AttributeProto.INTS))
        got = neo.compile(model_of([node], [value_info("x", x)], ["y"], opset=opset))(x)
    else:
        got = run("Squeeze", [x, np.zeros(0, np.int64)], opset, constants=(1,) if fixed else ())
    close(got, x.reshape(3, 2))


def test_squeeze_of_no_axes_between_transposes() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[2, 1, 0]),
        helper.make_node("Squeeze", ["t", "none"], ["s"]),
        helper.make_node("Transpose", ["s"], ["y"], perm=[1, 0]),
    ]
    x = normal(2, 3, 1)
    none = numpy_helper.from_array(np.zeros(0, np.int64), "none")
    close(neo.compile(model_of(nodes, [value_info("x", x)], ["y"], initializers=[none]))(x), x[:, :, 0])


@pytest.mark.parametrize("opset", [11, 15, 17])
@pytest.mark.parametrize("kinds", [(np.float16, np.float32), (np.float32, np.float16), (np.float32, np.float32)])
def test_layer_normalization_has_the_dtype_of_its_scale(opset: int, kinds: tuple[Any, Any]) -> None:
    if opset == 17 and kinds[0] != kinds[1]:
        return
    x, scale, bias = normal(2, 4, 8).astype(kinds[0]), normal(8).astype(kinds[1]), normal(8).astype(kinds[1])
    wide = x.astype(np.float64)
    want = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * scale + bias
    tolerance = 1e-5 if kinds[1] == np.float32 else 2e-3
    close(run("LayerNormalization", [x, scale, bias], opset, axis=-1), want.astype(kinds[1]), tolerance)


@pytest.mark.parametrize("stash", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_statistics_without_a_type_are_float32(stash: int, dtype: Any) -> None:
    x, scale = normal(2, 8).astype(dtype), normal(8).astype(dtype)
    model, feeds = node_model("LayerNormalization", [x, scale], {"stash_type": stash}, opset=17, outputs=2)
    y, mean = neo.compile(model)(**feeds)
    wide = x.astype(np.float64)
    close(mean, wide.mean(-1, keepdims=True).astype(np.float32), 1e-3)
    want = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * scale
    close(y, want.astype(dtype), 1e-5 if dtype == np.float32 else 2e-3)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_mean_variance_normalization_over_the_axes_that_there_are(rank: int) -> None:
    x = normal(*(2, 3, 4, 5, 2)[:rank])
    axes = tuple(axis for axis in (0, 2, 3) if axis < rank)
    wide = x.astype(np.float64)
    want = (wide - wide.mean(axes, keepdims=True)) / wide.std(axes, keepdims=True)
    close(run("MeanVarianceNormalization", [x], 13), want.astype(np.float32))


@pytest.mark.parametrize(
    ("shapes", "widths"),
    [([(2, 3), (2, 2)], [3, 2]), ([(3,), (1, 2)], [3, 2]), ([(2, 2, 3), (2, 2)], [6, 2]), ([(2, 2, 3)], [3])],
)
def test_feature_vectorizer_of_any_rank(shapes: list[Any], widths: list[int]) -> None:
    arrays = [normal(*shape) for shape in shapes]
    model, feeds = node_model("FeatureVectorizer", arrays, {"inputdimensions": widths}, opset=17, domain="ai.onnx.ml")
    rows = [a.reshape(1 if a.ndim == 1 else a.shape[0], -1)[:, :w] for a, w in zip(arrays, widths, strict=True)]
    close(neo.compile(model)(**feeds), np.concatenate(rows, 1))


@pytest.mark.parametrize("opset", [11, 13, 19])
@pytest.mark.parametrize("scale", [0.5, 2.0, 1.7])
@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_resize_by_tensorflow_positions(opset: int, scale: float, rounding: str) -> None:
    x = normal(1, 1, 1, 10)
    inputs = [x, np.zeros(0, np.float32), np.array([1, 1, 1, scale], np.float32)]
    attrs = {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    got = run("Resize", inputs, opset, constants=(1, 2), mode="nearest", nearest_mode=rounding, **attrs)
    places = (np.arange(got.shape[3]) + 0.5) / np.float32(scale)
    half = {"round_prefer_floor": -1e-9, "round_prefer_ceil": 1e-9}
    nearest = np.floor(places + 0.5 + half[rounding]) if rounding in half else getattr(np, rounding)(places)
    close(got, x[..., np.clip(nearest, 0, 9).astype(int)])
    linear = run("Resize", inputs, opset, constants=(1, 2), mode="linear", **attrs)
    close(linear, np.interp(places, np.arange(10), x.ravel()).astype(np.float32).reshape(linear.shape))


def test_prelu_of_a_larger_slope() -> None:
    x, slope = normal(1, 3), normal(2, 3)
    close(run("PRelu", [x, slope]), np.where(x < 0, x * slope, x))
    close(run("PRelu", [x, slope], constants=(1,)), np.where(x < 0, x * slope, x))


@pytest.mark.parametrize("condition", [[0, 1, 1], [1, 0, 0, 1, 0], [1], [0, 0, 1]])
def test_compress_with_a_condition_of_another_length(condition: list[int]) -> None:
    x = normal(2, 2)
    chosen = np.array(condition, bool)
    close(run("Compress", [x, chosen], axis=0), x[np.flatnonzero(chosen[:2])])


@pytest.mark.parametrize("opset", [18, 20])
def test_group_normalization_with_one_scale(opset: int) -> None:
    x = normal(2, 4, 3)
    groups = x.reshape(2, 2, -1).astype(np.float64)
    want = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    got = run("GroupNormalization", [x, np.array([2], np.float32), np.array([1, -1], np.float32)], opset, num_groups=2)
    close(got, (want * 2 + np.array([[1], [-1]])).reshape(x.shape).astype(np.float32))


@pytest.mark.parametrize("dims", [(2, "c", 3), None], ids=["size", "rank"])
@pytest.mark.parametrize("scales", [1, 2])
def test_group_normalization_of_channels_that_are_not_known(dims: tuple[int | str, ...] | None, scales: int) -> None:
    x, scale, bias = normal(2, 6, 3), normal(scales), normal(scales)
    nodes = [helper.make_node("GroupNormalization", ["x", "scale", "bias"], ["y"], num_groups=2)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims), value_info("scale", scale)]
    module = neo.compile(model_of(nodes, [*inputs, value_info("bias", bias)], ["y"], opset=18))
    groups = x.reshape(2, 2, -1).astype(np.float64)
    want = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    want = want * scale[:, None] + bias[:, None]
    close(module(x, scale, bias), want.reshape(x.shape).astype(np.float32))


@pytest.mark.parametrize("constants", [(1, 2, 3, 4), (3, 4), ()], ids=["fixed", "ends given", "given"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_slice_backwards_to_the_largest_integer_ends_at_the_first_element(
    dtype: type[np.integer[Any]], constants: tuple[int, ...]
) -> None:
    x = normal(7, 5)
    for step in (-1, -2):
        parts = [np.array(numbers, dtype) for numbers in ([5, 0], [np.iinfo(dtype).max] * 2, [0, 1], [step, 1])]
        got = run("Slice", [x, *parts], constants=constants)
        close(got, x[5::step])


def test_squeeze_of_an_axis_twice() -> None:
    x = normal(1, 3, 1)
    close(run("Squeeze", [x, np.array([0, -3])], constants=(1,)), x[0])
    close(run("Squeeze", [x[:, :, 0], np.array([0, 0])], constants=(1,)), x[0, :, 0])


# The table of ONNX counts a window less, its shape inference and ONNX Runtime do not.
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_valid_pools_whose_sizes_are_rounded_up(op: str) -> None:
    x = normal(1, 2, 6, 7)
    attrs = {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1}
    got = run(op, [x], opset=22, auto_pad="VALID", **attrs)
    assert got.shape == (1, 2, 3, 3)
    close(got, run(op, [x], opset=22, pads=[0, 0, 0, 0], **attrs))


# GridSample


def _cubic(t: float) -> list[float]:
    a = -0.75
    near = lambda s: (a + 2) * s**3 - (a + 3) * s**2 + 1  # noqa: E731
    far = lambda s: a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a  # noqa: E731
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("opset", [16, 22])
def test_cubic_samples_clamp_each_tap_to_the_border(align: int, opset: int) -> None:
    x = normal(1, 1, 4, 5)
    grid = RANDOM.uniform(-2.5, 2.5, (1, 6, 7, 2)).astype(np.float32)
    want = np.zeros((1, 1, 6, 7))
    for place in np.ndindex(6, 7):
        taps = []
        for value, size in zip(grid[0][place][::-1].astype(float), (4, 5), strict=True):
            at = (value + 1) / 2 * (size - 1) if align else ((value + 1) * size - 1) / 2
            first = int(np.floor(at))
            taps.append((np.clip(np.arange(first - 1, first + 3), 0, size - 1), _cubic(at - first)))
        (rows, by_row), (columns, by_column) = taps
        want[0, 0][place] = by_row @ x[0, 0].astype(float)[np.ix_(rows, columns)] @ by_column
    attrs = {"mode": "bicubic" if opset == 16 else "cubic", "padding_mode": "border", "align_corners": align}
    close(run("GridSample", [x, grid], opset, **attrs), want.astype(np.float32), 1e-4)


# Loops without a bound


def _loop(condition: str, *, count: np.ndarray[Any, Any] | None = None, start: bool | None = None) -> onnx.ModelProto:
    """Add 1 to x until it is 5 or more, or as often as `condition` says."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "one"], ["w"]),
            helper.make_node("Less", ["w", "five"], ["small"]),
            helper.make_node("Identity", [condition], ["go"]),
            helper.make_node("Identity", ["w"], ["each"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, []),
        ],
        [onnx.ValueInfoProto(name=name) for name in ("go", "w", "each")],
    )
    constants = {"one": np.float32(1), "five": np.float32(5), "yes": np.array(True)}
    if count is not None:
        constants["count"] = count
    if start is not None:
        constants["start"] = np.array(start)
    inputs = ["" if count is None else "count", "" if start is None else "start", "x"]
    node = helper.make_node("Loop", inputs, ["y", "all"], body=body)
    return model_of(
        [node],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [])],
        ["y", "all"],
        initializers=[numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )


@pytest.mark.parametrize("count", [None, np.array(2**63 - 1)])
def test_a_loop_without_a_bound_obeys_its_body(count: Any, tmp_path: Any) -> None:
    module = neo.compile(_loop("small", count=count))
    module.save(tmp_path / "loop.neo")
    for made in (module, neo.load(tmp_path / "loop.neo")):
        y, every = made(np.float32(0.5))
        assert y == 5.5
        close(every, np.arange(1.5, 6, dtype=np.float32))


def test_a_loop_with_a_bound_and_no_condition_runs_to_its_end() -> None:
    y, every = neo.compile(_loop("small", count=np.array(9)))(np.float32(0.5))
    assert y == 9.5
    assert every.shape == (9,)


@pytest.mark.parametrize("condition", ["yes", "c"])
@pytest.mark.parametrize(("count", "start"), [(None, None), (None, True), (np.array(2**63 - 1), True)])
def test_a_loop_must_end(condition: str, count: Any, start: bool | None) -> None:
    with pytest.raises(neo.ModelError, match=r"\[Loop\] a loop must end: by a trip count, or by a condition"):
        neo.compile(_loop(condition, count=count, start=start))
    y, every = neo.compile(_loop(condition, count=count, start=False))(np.float32(0.5))
    assert y == 0.5
    assert every.shape[0] == 0


@pytest.mark.parametrize("flag", [2, -1, 2**62])
def test_only_one_sets_a_flag(flag: int) -> None:
    x = normal(2, 3)
    axes = np.array([1], np.int64)
    close(run("ReduceSum", [x, axes], constants=(1,), keepdims=flag), x.sum(1))
    close(run("ReduceMax", [x], opset=17, axes=[0], keepdims=flag), x.max(0))
    close(run("ArgMin", [x], axis=1, keepdims=flag), x.argmin(1))
    close(run("ReduceSum", [x, axes[:0]], constants=(1,), noop_with_empty_axes=flag), x.sum(keepdims=True))
    close(run("Unique", [np.float32([3, 1, 3])], sorted=flag), np.float32([3, 1]))
    q = normal(1, 2, 4, 8)
    close(run("Attention", [q, q, q], opset=23, is_causal=flag), run("Attention", [q, q, q], opset=23, is_causal=0))

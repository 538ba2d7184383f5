"""What operators of older opsets compute, by NumPy and by their text."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import onnx
import pytest
from onnx import helper

from .models import close, model_of, node_model, value_info

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((2, 3, 4, 5)).astype(np.float32)


def run(
    op: str, inputs: list[Any], opset: int, *, outputs: int = 1, constants: tuple[int, ...] = (), **attrs: Any
) -> Any:
    model, arrays = node_model(op, inputs, attrs, opset=opset, outputs=outputs, constants=constants)
    results = list(neo.compile(model).run(arrays).values())
    return results[0] if outputs == 1 else results


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1).astype(np.float64)
    e = np.exp(rows - rows.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).reshape(x.shape).astype(np.float32)


@pytest.mark.parametrize("opset", [1, 7, 11, 12])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_softmax_flattens_the_axes_from_its_axis_on(opset: int, axis: int) -> None:
    want = softmax(X, axis)
    close(run("Softmax", [X], opset, axis=axis), want)
    close(run("LogSoftmax", [X], opset, axis=axis), np.log(want))
    hard = run("Hardmax", [X], opset, axis=axis)
    rows = X.reshape(int(np.prod(X.shape[:axis])), -1)
    close(hard, np.eye(rows.shape[1], dtype=np.float32)[rows.argmax(1)].reshape(X.shape))


def test_softmax_default_axes() -> None:
    close(run("Softmax", [X], 12), softmax(X, 1))
    close(run("Softmax", [X], 13), softmax(X, 3))
    close(run("Softmax", [X], 11, axis=-2), softmax(X, 2))


def test_softmax_of_unknown_rank() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=2)
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    close(neo.compile(model_of([node], [info], ["y"], opset=9))(X), softmax(X, 2))


@pytest.mark.parametrize("opset", [1, 6, 10])
def test_clip_by_attributes(opset: int) -> None:
    close(run("Clip", [X], opset, min=-0.5, max=0.25), np.clip(X, -0.5, 0.25))
    close(run("Clip", [X], opset, max=0.25), np.minimum(X, np.float32(0.25)))
    close(run("Clip", [X], opset, min=0.0), np.maximum(X, 0))


def test_clip_of_version_6_keeps_within_float32() -> None:
    x = np.array([np.inf, -np.inf, 1], np.float32)
    largest = np.finfo(np.float32).max
    close(run("Clip", [x], 6), np.array([largest, -largest, 1], np.float32))


@pytest.mark.parametrize(("opset", "alpha"), [(5, 1.6732), (6, 1.67326319217681884765625)])
def test_selu_defaults(opset: int, alpha: float) -> None:
    gamma = 1.0507 if opset < 6 else 1.05070102214813232421875
    got = run("Selu", [X * 10], opset)
    want = np.where(X > 0, gamma * X * 10, gamma * alpha * np.expm1(X.astype(np.float64) * 10))
    np.testing.assert_allclose(got, want, rtol=2e-7, atol=2e-7)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_arithmetic_broadcasts_from_an_axis(op: str) -> None:
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}[op]
    b = RANDOM.uniform(1, 2, (3, 4)).astype(np.float32)
    close(run(op, [X, b], 6, broadcast=1, axis=1), function(X, b[:, :, None]))
    close(run(op, [X, b[:, 0]], 6, broadcast=1, axis=-3), function(X, b[:, :1, None]))
    last = RANDOM.uniform(1, 2, (4, 5)).astype(np.float32)
    close(run(op, [X, last], 1, broadcast=1), function(X, last))
    close(run(op, [X, X + 4], 6), function(X, X + 4))


@pytest.mark.parametrize("op", ["Greater", "Less", "Equal", "And", "Or", "Xor", "Pow"])
def test_other_operators_broadcast_from_an_axis(op: str) -> None:
    a, b = np.array([[1, 2, 3], [3, 2, 1]]), np.array([2, 3])
    dtype = {"And": bool, "Or": bool, "Xor": bool, "Equal": np.int32}.get(op, np.float32)
    function = {"Greater": np.greater, "Less": np.less, "Equal": np.equal, "Pow": np.power}.get(op)
    function = function or {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[op]
    a, b = (
        (a > 1).astype(dtype) if dtype is bool else a.astype(dtype),
        (b > 2).astype(dtype) if dtype is bool else b.astype(dtype),
    )
    close(run(op, [a, b], 6, broadcast=1, axis=0), function(a, b[:, None]))


def test_an_operand_that_does_not_fit_its_axis() -> None:
    with pytest.raises(neo.ModelError, match="must fit behind axis 1"):
        run("Add", [X[0, 0], X], 6, broadcast=1, axis=1)


def test_prelu_slope_per_channel() -> None:
    slope = np.array([0.1, 0.2, 0.3], np.float32)
    close(run("PRelu", [X, slope], 6), np.where(X < 0, slope[:, None, None] * X, X))
    close(run("PRelu", [X, slope[:1]], 6), np.where(X < 0, slope[0] * X, X))


def test_gemm_ignores_broadcast() -> None:
    a, b, c = X[0, 0], X[0, 1].T, np.float32([1, 2, 3, 4])
    close(run("Gemm", [a, b, c], 6, broadcast=1, alpha=2.0), 2 * (a @ b) + c)


def test_cast_by_name() -> None:
    close(run("Cast", [X], 1, to="INT32"), X.astype(np.int32))
    close(run("Cast", [X], 5, to="double"), X.astype(np.float64))
    with pytest.raises(neo.ModelError, match="must name a type"):
        run("Cast", [X], 5, to="quarter")


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 13])
def test_batch_normalization(opset: int) -> None:
    scale, bias, mean = (RANDOM.standard_normal(3).astype(np.float32) for _ in range(3))
    variance = RANDOM.uniform(0.5, 2, 3).astype(np.float32)
    attrs: dict[str, Any] = {"epsilon": 1e-3}
    if opset < 7:
        attrs["is_test"] = 1
    if opset == 1:
        attrs["consumed_inputs"] = [0, 0, 0, 1, 1]
    column = (slice(None), None, None)
    want = (X - mean[column]) / np.sqrt(variance[column] + 1e-3) * scale[column] + bias[column]
    close(run("BatchNormalization", [X, scale, bias, mean, variance], opset, **attrs), want)


def test_batch_normalization_of_every_element_apart() -> None:
    scale, bias, mean = (RANDOM.standard_normal((3, 4, 5)).astype(np.float32) for _ in range(3))
    variance = RANDOM.uniform(0.5, 2, (3, 4, 5)).astype(np.float32)
    want = (X - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + bias
    close(run("BatchNormalization", [X, scale, bias, mean, variance], 8, spatial=0), want)


@pytest.mark.parametrize(("opset", "outputs"), [(1, 1), (6, 1), (6, 5), (7, 5), (8, 3), (9, 5)])
def test_batch_normalization_that_trains(opset: int, outputs: int) -> None:
    scale, bias, mean = (RANDOM.standard_normal(3).astype(np.float32) for _ in range(3))
    variance = RANDOM.uniform(0.5, 2, 3).astype(np.float32)
    attrs: dict[str, Any] = {"momentum": 0.8, "epsilon": 1e-3}
    if opset == 1:
        attrs["consumed_inputs"] = [0, 0, 0, 1, 1]
    got = run("BatchNormalization", [X, scale, bias, mean, variance], opset, outputs=outputs, **attrs)
    axes, column = (0, 2, 3), (slice(None), None, None)
    now, spread = X.astype(np.float64).mean(axes), X.astype(np.float64).var(axes)
    y = (X - now[column]) / np.sqrt(spread[column] + 1e-3) * scale[column] + bias[column]
    want = [y, 0.8 * mean + 0.2 * now, 0.8 * variance + 0.2 * spread, now, 1 / np.sqrt(spread + 1e-3)]
    for g, w in zip([got] if outputs == 1 else got, want, strict=False):
        close(g, w.astype(np.float32))


def test_batch_normalization_that_trains_is_spatial() -> None:
    vector = np.ones((3, 4, 5), np.float32)
    with pytest.raises(neo.UnsupportedError, match="BatchNormalization that trains must be spatial"):
        run("BatchNormalization", [X, *[vector] * 4], 7, outputs=5, spatial=0)


def test_group_normalization_by_group() -> None:
    x = RANDOM.standard_normal((2, 6, 5)).astype(np.float32)
    scale, bias = np.array([2, 3], np.float32), np.array([0.5, -1], np.float32)
    groups = x.reshape(2, 2, -1).astype(np.float64)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    want = (normal * scale[:, None] + bias[:, None]).reshape(x.shape).astype(np.float32)
    close(run("GroupNormalization", [x, scale, bias], 18, num_groups=2), want)


def test_layer_normalization_before_onnx_had_it() -> None:
    scale, bias = np.ones(5, np.float32) * 2, np.ones(5, np.float32)
    want = (X - X.mean(3, keepdims=True)) / np.sqrt(X.var(3, keepdims=True) + 1e-5) * 2 + 1
    close(run("LayerNormalization", [X, scale, bias], 11, axis=-1), want)


@pytest.mark.parametrize("opset", [1, 6, 7, 10])
def test_dropout_passes_its_input_on(opset: int) -> None:
    attrs: dict[str, Any] = {"is_test": 1} if opset < 7 else {}
    close(run("Dropout", [X], opset, ratio=0.3, **attrs), X)
    y, mask = run("Dropout", [X], opset, outputs=2, ratio=0.3, **attrs)
    close(y, X)
    close(mask, np.ones(X.shape, bool if opset >= 10 else np.float32))


@pytest.mark.parametrize("opset", [1, 6])
def test_dropout_that_trains(opset: int) -> None:
    ones = np.ones((100, 100), np.float32)
    y, mask = run("Dropout", [ones], opset, outputs=2, ratio=0.25)
    assert set(np.unique(y)) == {np.float32(0), np.float32(4 / 3)}
    assert 0.7 < mask.mean() < 0.8
    np.testing.assert_array_equal(mask, y != 0)


def test_movement_by_attributes() -> None:
    close(run("Reshape", [X], 1, shape=[0, -1, 10]), X.reshape(2, -1, 10))
    close(run("Concat", [X, X], 3), np.concatenate([X, X], 1))
    close(run("Slice", [X], 9, starts=[1, -2], ends=[3, 100], axes=[1, 3]), X[:, 1:3, :, -2:])
    close(run("Slice", [X], 1, starts=[1], ends=[2]), X[1:2])
    close(
        run("Pad", [X[0, 0]], 10, pads=[1, 0, 0, 2], value=2.5), np.pad(X[0, 0], ((1, 0), (0, 2)), constant_values=2.5)
    )
    close(run("Pad", [X[0, 0]], 1, paddings=[1, 0, 0, 2], mode="edge"), np.pad(X[0, 0], ((1, 0), (0, 2)), mode="edge"))
    close(run("Unsqueeze", [X], 11, axes=[0, -1]), X[None, ..., None])
    close(run("Squeeze", [X[:1, :, :1]], 12, axes=[0, -2]), X[0, :, 0])
    close(run("Squeeze", [X[:1, :, :1]], 7), X[0, :, 0])
    tile = [X, np.float32(3), np.float32(1)]
    close(run("Tile", tile, 1, constants=(1, 2)), np.tile(X, (1, 3, 1, 1)))


def test_split_by_attribute_and_into_equal_parts() -> None:
    for part, want in zip(run("Split", [X], 2, outputs=2, axis=3, split=[2, 3]), np.split(X, [2], 3), strict=True):
        close(part, want)
    for opset in (2, 12, 13):
        for part, want in zip(run("Split", [X], opset, outputs=2, axis=2), np.split(X, 2, 2), strict=True):
            close(part, want)
    sizes = np.array([1, 2])
    for part, want in zip(
        run("Split", [X, sizes], 13, outputs=2, axis=1, constants=(1,)), np.split(X, [1], 1), strict=True
    ):
        close(part, want)


@pytest.mark.parametrize("opset", [1, 11, 13, 17])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_by_attribute(opset: int, keepdims: int) -> None:
    functions = {
        "ReduceL1": lambda x, **k: np.abs(x).sum(**k),
        "ReduceL2": lambda x, **k: np.sqrt((x * x).sum(**k)),
        "ReduceLogSum": lambda x, **k: np.log(x.sum(**k)),
        "ReduceLogSumExp": lambda x, **k: np.log(np.exp(x).sum(**k)),
        "ReduceMax": np.max,
        "ReduceMean": np.mean,
        "ReduceMin": np.min,
        "ReduceProd": np.prod,
        "ReduceSum": np.sum,
        "ReduceSumSquare": lambda x, **k: (x * x).sum(**k),
    }
    x = np.abs(X) + 0.5
    for op, function in functions.items():
        if op == "ReduceSum" and opset >= 13:
            continue
        want = function(x, axis=(1, 3), keepdims=bool(keepdims))
        np.testing.assert_allclose(run(op, [x], opset, axes=[1, 3], keepdims=keepdims), want, rtol=1e-5)
        want = function(x, axis=(0, 1, 2, 3), keepdims=True)
        np.testing.assert_allclose(run(op, [x], opset), want, rtol=1e-4)


@pytest.mark.parametrize("opset", [1, 9])
def test_top_k_by_attribute(opset: int) -> None:
    values, indices = run("TopK", [X], opset, outputs=2, k=2, axis=3)
    order = np.argsort(-X, 3, kind="stable")[..., :2]
    close(values, np.take_along_axis(X, order, 3))
    close(indices, order.astype(np.int64))


def test_one_hot_of_version_9_has_no_negative_indices() -> None:
    indices, depth, values = np.array([0, -1, 2, 3], np.int64), np.int64(3), np.array([2, 5], np.float32)
    rows = np.full((4, 3), 2, np.float32)
    rows[0, 0] = rows[2, 2] = 5
    close(run("OneHot", [indices, depth, values], 9), rows)
    rows[1, 2] = 5
    close(run("OneHot", [indices, depth, values], 11), rows)


@pytest.mark.parametrize("opset", [1, 7, 9, 10])
def test_upsample(opset: int) -> None:
    if opset == 1:
        got = run("Upsample", [X], opset, height_scale=2.0, width_scale=3.0)
    elif opset == 7:
        got = run("Upsample", [X], opset, scales=[1.0, 1.0, 2.0, 3.0])
    else:
        op = "Upsample" if opset == 9 else "Resize"
        got = run(op, [X, np.array([1, 1, 2, 3], np.float32)], opset, constants=(1,))
    close(got, X.repeat(2, 2).repeat(3, 3))


@pytest.mark.parametrize("opset", [9, 10])
def test_upsample_linear_from_the_corner(opset: int) -> None:
    x = np.array([[[[1, 3]]]], np.float32)
    op = "Upsample" if opset == 9 else "Resize"
    got = run(op, [x, np.array([1, 1, 1, 2], np.float32)], opset, constants=(1,), mode="linear")
    close(got, np.array([[[[1, 2, 3, 3]]]], np.float32))


def test_resize_for_tensorflow() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    attrs = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "mode": "nearest", "nearest_mode": "floor"}
    inputs = [x, np.zeros(0, np.float32), np.array([1, 1, 1, 0.5], np.float32)]
    close(run("Resize", inputs, 11, constants=(1, 2), **attrs), np.array([[[[1, 3]]]], np.float32))
    got = run("Resize", inputs, 11, constants=(1, 2), **{**attrs, "mode": "linear"})
    close(got, np.array([[[[1, 3]]]], np.float32))


def test_grid_sample_modes_by_their_old_names() -> None:
    grid = RANDOM.uniform(-1, 1, (2, 3, 3, 2)).astype(np.float32)
    for old, new in (("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")):
        close(run("GridSample", [X, grid], 16, mode=old), run("GridSample", [X, grid], 20, mode=new))


def test_roi_align_without_the_half_pixel() -> None:
    rois, batch = np.array([[0, 0, 3, 3]], np.float32), np.array([0])
    attrs = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    old = run("RoiAlign", [X, rois, batch], 10, **attrs)
    new = run("RoiAlign", [X, rois, batch], 16, coordinate_transformation_mode="output_half_pixel", **attrs)
    close(old, new)
    assert not np.allclose(old, run("RoiAlign", [X, rois, batch], 16, **attrs))


def test_dft_axis_by_attribute() -> None:
    x = RANDOM.standard_normal((1, 4, 6, 1)).astype(np.float32)
    got = run("DFT", [x], 17, axis=2)
    want = np.fft.fft(x[..., 0], axis=2)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, atol=1e-5)


def test_lp_pool_exponent_as_a_float() -> None:
    close(run("GlobalLpPool", [X], 1, p=1.0), np.abs(X).sum((2, 3), keepdims=True))
    got = run("LpPool", [X], 1, p=2.0, kernel_shape=[4, 5])
    close(got, np.sqrt((X.astype(np.float64) ** 2).sum((2, 3), keepdims=True)).astype(np.float32))
    with pytest.raises(neo.UnsupportedError, match="exponent must be whole"):
        run("GlobalLpPool", [X], 1, p=1.5)


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers_of_opset_6(op: str, gates: int) -> None:
    x = RANDOM.standard_normal((3, 2, 4)).astype(np.float32)
    w = RANDOM.standard_normal((1, gates * 5, 4)).astype(np.float32)
    r = RANDOM.standard_normal((1, gates * 5, 5)).astype(np.float32)
    for old, new in zip(
        run(op, [x, w, r], 6, outputs=2, hidden_size=5, output_sequence=1),
        run(op, [x, w, r], 7, outputs=2, hidden_size=5),
        strict=True,
    ):
        close(old, new)


def test_label_encoder_by_one_list() -> None:
    names = ["ant", "bee", "cat"]

    def encode(x: Any, **attrs: Any) -> Any:
        node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", classes_strings=names, **attrs)
        model = model_of([node], [value_info("x", x)], ["y"], opset=9, domains={"ai.onnx.ml": 1})
        return neo.compile(model)(x)

    assert list(encode(np.array(["cat", "ant", "dog"], object))) == [2, 0, -1]
    assert list(encode(np.array([1, 2, 7]), default_string="none")) == ["bee", "cat", "none"]


@pytest.mark.parametrize("directions", [None, [1]])
def test_scan_over_a_batch(directions: list[int] | None) -> None:
    total = helper.make_node("Add", ["state", "x"], ["next"])
    copy = helper.make_node("Identity", ["next"], ["each"])
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in ("state", "x", "next", "each")]
    body = helper.make_graph([total, copy], "body", infos[:2], infos[2:])
    attrs: dict[str, Any] = {} if directions is None else {"directions": directions}
    node = helper.make_node("Scan", ["", "start", "xs"], ["last", "sums"], body=body, num_scan_inputs=1, **attrs)
    start = RANDOM.standard_normal((3, 2)).astype(np.float32)
    xs = RANDOM.standard_normal((3, 4, 2)).astype(np.float32)
    model = model_of([node], [value_info("start", start), value_info("xs", xs)], ["last", "sums"], opset=8)
    last, sums = neo.compile(model)(start, xs)
    order = xs if directions is None else xs[:, ::-1]
    want = start[:, None] + np.cumsum(order, 1)
    close(sums, want)
    close(last, want[:, -1])


def test_a_version_without_a_converter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from neo.frontend.onnx import versions

    monkeypatch.setitem(versions.VERSIONS, ("", "Relu"), versions.Version(14, 14))
    close(run("Relu", [X], 14), np.maximum(X, 0))
    with pytest.raises(neo.UnsupportedError, match="version 13 of the operator is not supported"):
        run("Relu", [X], 13)

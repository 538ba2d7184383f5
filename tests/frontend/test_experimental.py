"""Operators that ONNX had on trial before opset 10, by NumPy."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import pytest
from onnx import helper

from .models import close, model_of, node_model

X = np.random.default_rng(5).standard_normal((2, 3, 6, 5)).astype(np.float32)


def run(op: str, inputs: list[Any], opset: int = 7, constants: tuple[int, ...] = (), **attrs: Any) -> Any:
    model, arrays = node_model(op, inputs, attrs, opset=opset, constants=constants)
    return neo.compile(model)(**arrays)


@pytest.mark.parametrize("opset", [1, 6, 7, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_and_biases(opset: int, dtype: Any) -> None:
    x = X.astype(dtype)
    close(run("Affine", [x], opset, alpha=2.0, beta=3.0), (2 * x + 3).astype(dtype))
    close(run("Affine", [x], opset), x)
    close(run("Scale", [x], opset, scale=0.5), x / 2)
    bias = np.array([1, -2, 3], dtype)
    close(run("ImageScaler", [x], opset, scale=2.0, bias=bias.tolist()), 2 * x + bias[:, None, None])
    close(run("ScaledTanh", [x], opset, alpha=2.0, beta=0.5), 2 * np.tanh(x / 2))
    close(run("ParametricSoftplus", [x], opset, alpha=2.0, beta=3.0), (2 * np.log1p(np.exp(3 * x))).astype(dtype))


def test_crop() -> None:
    close(run("Crop", [X], border=[1, 2, 1, 1]), X[:, :, 2:-1, 1:-1])
    close(run("Crop", [X], border=[1, 0, 0, 2]), X[:, :, :-2, 1:])
    close(run("Crop", [X], border=[1, 2, 9, 9], scale=[3, 2]), X[:, :, 2:5, 1:3])


def test_dynamic_slice() -> None:
    starts, ends, axes = np.array([1, -2]), np.array([3, 1000]), np.array([1, 3])
    for constants in ((), (1, 2, 3)):
        close(run("DynamicSlice", [X, starts, ends, axes], constants=constants), X[:, 1:3, :, -2:])
    close(run("DynamicSlice", [X, np.array([1]), np.array([2])], constants=(1, 2)), X[1:2])


def test_fills() -> None:
    want = np.arange(4, dtype=np.float32).reshape(2, 2)
    values = [0.0, 1.0, 2.0, 3.0]
    close(run("GivenTensorFill", [], values=values, shape=[2], extra_shape=[2]), want)
    close(run("GivenTensorFill", [np.ones((2, 2), np.float32)], values=values), want)
    close(run("GivenTensorFill", [np.array([2, 2])], constants=(0,), values=values, input_as_shape=1), want)
    close(run("ConstantFill", [], value=3.0, shape=[2, 1]), np.full((2, 1), 3, np.float32))
    filled = run("ConstantFill", [np.array([2, 1], np.float32)], value=3.0, dtype=6, input_as_shape=1)
    close(filled, np.full((2, 1), 3, np.int32))


@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("normalize", [0, 1])
def test_mean_variance_normalization_by_channels(across: int, normalize: int) -> None:
    axes = (0, 1, 2, 3) if across else (0, 2, 3)
    wide = X.astype(np.float64)
    distance = wide - wide.mean(axes, keepdims=True)
    deviation = wide.std(axes, keepdims=True) if normalize else 1.0
    got = run("MeanVarianceNormalization", [X], 8, across_channels=across, normalize_variance=normalize)
    close(got, (distance / deviation).astype(np.float32))


def test_thresholded_relu_before_it_had_a_version() -> None:
    close(run("ThresholdedRelu", [X], 7, alpha=0.3), np.where(np.float32(0.3) < X, X, 0))


@pytest.mark.parametrize(
    ("op", "attrs", "rule"),
    [
        ("ScaledTanh", {"alpha": 1.0}, "attribute 'beta' must be given"),
        ("ParametricSoftplus", {"beta": 1.0}, "attribute 'alpha' must be given"),
        ("ImageScaler", {}, "attribute 'bias' must be given"),
        ("Crop", {}, "attribute 'border' must be given"),
        ("Crop", {"border": [1, 2]}, "border must have four sizes and scale none or two. Got 2 and 0"),
        ("Crop", {"border": [0] * 4, "scale": [1]}, "border must have four sizes and scale none or two. Got 4 and 1"),
    ],
)
def test_what_must_be_given(op: str, attrs: dict[str, Any], rule: str) -> None:
    with pytest.raises(neo.ModelError, match=rule):
        run(op, [X], **attrs)


def test_crop_takes_images() -> None:
    with pytest.raises(neo.ModelError, match=r"\[Crop\] the input must have rank 4. Got 2"):
        run("Crop", [X[0, 0]], border=[0] * 4)


def test_a_chain_as_image_models_begin() -> None:
    nodes = [
        helper.make_node("Crop", ["x"], ["cropped"], border=[0, 0, 0, 0], scale=[4, 4]),
        helper.make_node("ImageScaler", ["cropped"], ["scaled"], scale=1 / 255, bias=[-0.5, -0.25, 0.0]),
        helper.make_node("ScaledTanh", ["scaled"], ["y"], alpha=1.7, beta=2 / 3),
    ]
    info = helper.make_tensor_value_info("x", 1, ["N", 3, "H", "W"])
    module = neo.compile(model_of(nodes, [info], ["y"], opset=7))
    want = 1.7 * np.tanh(2 / 3 * (X[:, :, :4, :4] / 255 + np.array([-0.5, -0.25, 0])[:, None, None]))
    close(module(X), want.astype(np.float32))

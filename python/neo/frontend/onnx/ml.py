"""Operators of ai.onnx.ml that are taken over in another form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__: list[str] = []

_DOMAIN = "ai.onnx.ml"


@register("LabelEncoder", until=2, domain=_DOMAIN)
def _label_encoder(call: Call) -> Results:
    """One list of names: from a number to its name, or back."""
    names = list(call.attrs.get("classes_strings", []))
    numbers = list(range(len(names)))
    if call.need(0).dtype == "string":
        attrs = {
            "keys_strings": names,
            "values_int64s": numbers,
            "default_int64": int(call.attrs.get("default_int64", -1)),
        }
    else:
        attrs = {
            "keys_int64s": numbers,
            "values_strings": names,
            "default_string": call.attrs.get("default_string", "_Unused"),
        }
    return call.finish(f"{_DOMAIN}.LabelEncoder", [call.need(0)], attrs)


def _in_float32(call: Call) -> _native.Value:
    """The features, which routines of models take as float32."""
    x = call.need(0)
    return x if x.dtype == "float32" else call.add("Cast", [x], {"to": 1})


def _classify(call: Call, x: _native.Value, key: str) -> Results:
    """Labels that are strings are gathered by their places, so that routines see numbers alone."""
    op, names = f"{_DOMAIN}.{call.op}", list(call.attrs.get("classlabels_strings", []))
    if len(names) < 2 or not call.wants(0):
        return call.finish(op, [x], call.attrs)
    attrs = {name: value for name, value in call.attrs.items() if name != "classlabels_strings"}
    attrs[key] = list(range(len(names)))
    places, scores = call.add(op, [x], attrs, outputs=2)
    return [call.add("Gather", [call.strings(names), places], {"axis": 0}), scores]


@register("TreeEnsembleClassifier", domain=_DOMAIN)
def _tree_classifier(call: Call) -> Results:
    """Compare features as they are."""
    return _classify(call, call.need(0), "classlabels_int64s")


@register("LinearClassifier", "SVMClassifier", domain=_DOMAIN)
def _classifier(call: Call) -> Results:
    """Of a linear model or a support vector machine."""
    return _classify(call, _in_float32(call), "classlabels_ints")


@register("LinearRegressor", "SVMRegressor", domain=_DOMAIN)
def _regressor(call: Call) -> Results:
    """Of a linear model or a support vector machine."""
    return call.finish(f"{_DOMAIN}.{call.op}", [_in_float32(call)], call.attrs)


def _per_feature(call: Call, values: Sequence[float | int]) -> _native.Value | None:
    """One number, or one for each feature, as an operand beside the input; None where that does not fit."""
    x = call.need(0)
    width = x.shape[-1] if x.shape else None
    fits = len(values) == 1 or (len(values) > 0 and len(values) == width)
    return call.array(list(values), x.dtype) if fits else None


@register("Scaler", domain=_DOMAIN)
def _scaler(call: Call) -> Results:
    """A difference and a product, which fuse with what is around them."""
    x = call.need(0)
    if x.dtype == "float32" and x.shape and len(x.shape) <= 2:
        offset = _per_feature(call, call.attrs.get("offset", [0.0]))
        scale = _per_feature(call, call.attrs.get("scale", [1.0]))
        if offset is not None and scale is not None:
            return call.finish("Mul", [call.add("Sub", [x, offset]), scale])
    return call.finish(f"{_DOMAIN}.Scaler", [x], call.attrs)


@register("Imputer", domain=_DOMAIN)
def _imputer(call: Call) -> Results:
    """A choice by element."""
    x = call.need(0)
    kind = {"float32": "float", "int64": "int64"}.get(x.dtype)
    if kind is not None and x.shape:
        missing = call.attrs.get(f"replaced_value_{kind}", 0)
        imputed = _per_feature(call, call.attrs.get(f"imputed_value_{kind}s", []))
        if imputed is not None:
            is_nan = missing != missing
            test = call.add("IsNaN", [x]) if is_nan else call.add("Equal", [x, call.array(missing, x.dtype)])
            return call.finish("Where", [test, imputed, x])
    return call.finish(f"{_DOMAIN}.Imputer", [x], call.attrs)


@register("Binarizer", domain=_DOMAIN)
def _binarizer(call: Call) -> Results:
    """A comparison."""
    x = call.need(0)
    if x.dtype != "float32":
        return call.finish(f"{_DOMAIN}.Binarizer", [x], call.attrs)
    above = call.add("Greater", [x, call.array(call.attrs.get("threshold", 0.0), "float32")])
    return call.finish("Cast", [above], {"to": 1})


@register("ArrayFeatureExtractor", domain=_DOMAIN)
def _array_feature_extractor(call: Call) -> Results:
    """A Gather along the last axis."""
    x, indices = call.need(0), call.constant(1)
    if indices is None or x.shape is None or len(x.shape) < 2:
        return call.finish(f"{_DOMAIN}.ArrayFeatureExtractor", call.inputs, call.attrs)
    return call.finish("Gather", [x, call.array(indices.reshape(-1))], {"axis": len(x.shape) - 1})


@register("FeatureVectorizer", domain=_DOMAIN)
def _feature_vectorizer(call: Call) -> Results:
    """Tables side by side."""
    inputs = [call.need(i) for i in range(len(call.inputs))]
    widths = call.attrs.get("inputdimensions") or [None] * len(inputs)
    are_tables = len(widths) == len(inputs) and all(
        x.shape is not None and len(x.shape) == 2 and isinstance(x.shape[1], int) and width in (None, x.shape[1])
        for x, width in zip(inputs, widths, strict=True)
    )
    if not are_tables:
        return call.finish(f"{_DOMAIN}.FeatureVectorizer", inputs, call.attrs)
    parts = [x if x.dtype == "float32" else call.add("Cast", [x], {"to": 1}) for x in inputs]
    return call.finish("Concat", parts, {"axis": 1})

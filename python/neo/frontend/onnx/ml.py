"""Operators of ai.onnx.ml that are taken over in another form."""

from __future__ import annotations

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

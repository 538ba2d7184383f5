"""Operators of ai.onnx.ml that are taken over in another form."""

from __future__ import annotations

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

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


@register("TreeEnsembleClassifier", domain=_DOMAIN)
def _tree_classifier(call: Call) -> Results:
    """Labels that are strings are gathered by their places, so that routines see numbers alone."""
    op, names = f"{_DOMAIN}.TreeEnsembleClassifier", list(call.attrs.get("classlabels_strings", []))
    if len(names) < 2 or not call.wants(0):
        return call.finish(op, [call.need(0)], call.attrs)
    attrs = {key: value for key, value in call.attrs.items() if key != "classlabels_strings"}
    attrs["classlabels_int64s"] = list(range(len(names)))
    places, scores = call.add(op, [call.need(0)], attrs, outputs=2)
    labels = call.strings(names)
    return [call.add("Gather", [labels, places], {"axis": 0}), scores]

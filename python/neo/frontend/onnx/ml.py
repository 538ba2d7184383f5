"""Operators of ai.onnx.ml whose older versions wrote their tables differently."""

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

"""Constants that are nodes become constants of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []

_FORMS = {
    "value": None,
    "sparse_value": None,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


@register("Constant")
def _constant(call: Call) -> Results:
    given = [name for name in _FORMS if name in call.attrs]
    if len(given) != 1:
        msg = f"[Constant] a constant must have one value. Got {', '.join(given) or 'none'}"
        raise ModelError(msg)
    dtype: Any = _FORMS[given[0]]
    array = call.attrs[given[0]]
    return [call.scope.graph.add_constant(call.outputs[0], array if dtype is None else np.asarray(array, dtype))]

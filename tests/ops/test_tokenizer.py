"""com.microsoft.Tokenizer against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper


def model_of(dims: list[Any], attrs: dict[str, Any]) -> onnx.ModelProto:
    given = {"mark": 0, "mincharnum": 1, "pad_value": "#", **attrs}
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **given)
    x = helper.make_tensor_value_info("x", TensorProto.STRING, dims)
    y = helper.make_tensor_value_info("y", TensorProto.STRING, None)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports, ir_version=9)


TEXTS = [
    ["Hello World", "I love computer science !", "", " ", "  two  spaces "],
    ["a,b;;c", ",;", "a,;b", "été,déjà;ça"],
    ["ab12cd345", "xyz", "q ab 1 cde", "aXXb\n\tc"],
]


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize("fewest", [1, 2])
@pytest.mark.parametrize(
    "rules",
    [
        {"separators": [" "]},
        {"separators": [",", ";"]},
        {"separators": [";", ",;"]},
        {"separators": ["X", "XX"]},
        {"separators": ["[0-9]+", "\\s"]},
        {"separators": ["a|ab"]},
        {"tokenexp": "[a-z]+|[0-9]+"},
        {"tokenexp": "[a-z]|[a-z][a-z]"},
        {"tokenexp": "x*"},
        {"tokenexp": "."},
    ],
)
def test_tokens(texts: list[str], mark: int, fewest: int, rules: dict[str, Any]) -> None:
    if rules.get("tokenexp") == "." and fewest > 1:
        fewest = 1
    attrs = {**rules, "mark": mark, "mincharnum": fewest}
    rows = np.array(texts, dtype=object)
    for x in (rows, rows[: len(rows) // 2 * 2].reshape(2, -1)):
        model = model_of(["N"] if x.ndim == 1 else ["N", "C"], attrs)
        [want] = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        got = neo.compile(model)(x)
        assert got.shape == want.shape
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("mark", [0, 1])
def test_characters(mark: int) -> None:
    x = np.array(["abc", "é☃", ""], dtype=object)
    model = model_of([3], {"separators": [""], "mark": mark})
    [want] = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert neo.compile(model)(x).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({}, "either separators or tokenexp must be given"),
        ({"separators": ["a"], "tokenexp": "b"}, "either separators or tokenexp must be given"),
        ({"separators": ["a", ""]}, "a separator among others must not be empty"),
        ({"separators": [""], "mincharnum": 2}, "mincharnum must be 1"),
        ({"separators": ["("]}, "parentheses must balance"),
    ],
)
def test_bad_rules_are_one_line(attrs: dict[str, Any], reason: str) -> None:
    with pytest.raises(neo.ModelError, match=reason):
        neo.compile(model_of([3], attrs))

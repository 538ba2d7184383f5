"""The elementwise operators of the registry: which dtypes each takes, and numbers that show where kernels go wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DTYPES", "FLOATS", "INTEGERS", "OPERATORS", "Operator", "array", "numpy_dtype"]

INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NUMBERS = INTEGERS + FLOATS
DTYPES = [*NUMBERS, "bool"]
#: ONNX's numbers of dtypes in attributes.
CODES = {
    **{"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9},
    **{"float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16},
}
WIDTH = {"float16": "uint16", "float32": "int32", "float64": "int64", "bfloat16": "int16"}


@dataclass
class Operator:
    """What a node needs: dtypes, the number of operands of that dtype, and attributes of which each is tried."""

    dtypes: Sequence[str]
    operands: int = 1
    attrs: Sequence[dict[str, Any]] = field(default_factory=lambda: [{}])
    kind: str = "function"  # "exact": equal bits are asked for; "function": of numbers, up to rounding


def _functions(names: str) -> dict[str, Operator]:
    return {name: Operator(FLOATS) for name in names.split()}


OPERATORS = {
    **_functions(
        "Acos Acosh Asin Asinh Atan Atanh Cos Cosh Exp Log Reciprocal Sin Sinh Sqrt Tan Celu Elu HardSigmoid HardSwish "
        "LeakyRelu Mish Selu Sigmoid Softplus Softsign Swish Tanh ThresholdedRelu com.microsoft.QuickGelu com.microsoft.Gelu"
    ),
    "Gelu": Operator(FLOATS, attrs=[{}, {"approximate": "tanh"}]),
    "Erf": Operator(NUMBERS),
    "Shrink": Operator(NUMBERS, attrs=[{"lambd": 1.5, "bias": 0.5}]),
    "com.microsoft.BiasGelu": Operator(FLOATS, 2),
    "com.microsoft.FastGelu": Operator(FLOATS, 2),
    "SwiGLU": Operator(FLOATS, 2, [{}, {"alpha": 1.25}]),
    **{op: Operator(FLOATS, kind="exact") for op in ("Ceil", "Floor", "Round")},
    **{op: Operator(NUMBERS, kind="exact") for op in ("Abs", "Neg", "Relu", "Sign")},
    **{op: Operator(NUMBERS, 2) for op in ("Add", "Sub", "Mul", "Div", "PRelu")},
    "Pow": Operator(NUMBERS, 2),
    "Mod": Operator(NUMBERS, 2, [{}, {"fmod": 1}]),
    **{op: Operator(NUMBERS, 2, kind="exact") for op in ("Max", "Min")},
    **{op: Operator(FLOATS, 3) for op in ("Sum", "Mean")},
    "Clip": Operator(NUMBERS, 3, kind="exact"),
    "Equal": Operator(DTYPES, 2, kind="exact"),
    **{op: Operator(NUMBERS, 2, kind="exact") for op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")},
    **{op: Operator(["bool"], 2, kind="exact") for op in ("And", "Or", "Xor")},
    "Not": Operator(["bool"], kind="exact"),
    **{op: Operator(INTEGERS, 2, kind="exact") for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitwiseNot": Operator(INTEGERS, kind="exact"),
    "BitShift": Operator(INTEGERS, 2, [{"direction": "LEFT"}, {"direction": "RIGHT"}], kind="exact"),
    "IsNaN": Operator(FLOATS, kind="exact"),
    "IsInf": Operator(
        FLOATS,
        attrs=[{}, {"detect_negative": 0}, {"detect_positive": 0}, {"detect_negative": 0, "detect_positive": 0}],
        kind="exact",
    ),
    "Where": Operator(DTYPES, 3, kind="exact"),
    "Cast": Operator(DTYPES, attrs=[{"to": code} for code in CODES.values()], kind="exact"),
    "CastLike": Operator(DTYPES, 2, kind="exact"),
    "BitCast": Operator(list(WIDTH), kind="exact"),
}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a name of ours."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def attrs_of(op: str, dtype: str) -> Sequence[dict[str, Any]]:
    """The attributes to try; some depend on the dtype."""
    if op == "BitCast":
        return [{"to": CODES[WIDTH[dtype]]}]
    return OPERATORS[op].attrs


def operand_dtype(op: str, dtype: str, operand: int) -> str:
    """The dtype of one operand of a node of that dtype."""
    return "bool" if op == "Where" and operand == 0 else dtype


def array(random: np.random.Generator, op: str, dtype: str, operand: int, dims: Sequence[int]) -> np.ndarray:
    """Small numbers, among them the ends of the dtype and what is no number, where the operator has an exact answer."""
    dims = tuple(dims)
    if dtype == "bool":
        return random.random(dims) < 0.5
    exact = OPERATORS[op].kind == "exact"
    to = numpy_dtype(dtype)
    if dtype in INTEGERS:
        info = np.iinfo(to)
        small = random.integers(max(info.min, -9), 10, dims)
        ends = random.choice(np.array([info.min, info.max, info.min + 1], to), dims)
        return np.where(random.random(dims) < 0.2, ends, small.astype(to))
    x = random.uniform(-4, 4, dims)
    if op == "Pow" and operand == 0:
        x = np.abs(x)
    if op in ("Equal", "Round", "Max", "Min"):
        x = np.round(x * 2) / 2
    if op in ("Sin", "Cos") and random.random() < 0.5:
        x *= 1e6  # where fewer digits do not do
    if op == "Cast":
        # Halves between two numbers of the narrow types, numbers beyond the integers, denormal halves.
        scale = 2.0 ** random.integers(-28, 70, dims)
        x = np.where(random.random(dims) < 0.6, x * scale, np.round(x * 1000) / 8)
    if exact:
        special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 65504.0, -3e38], dims)
        x = np.where(random.random(dims) < 0.2, special, x)
    with np.errstate(over="ignore"):
        return x.astype(to)

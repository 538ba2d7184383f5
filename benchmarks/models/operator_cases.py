"""What a case of the atlas of operators is made of: operands, and a model of one node."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["DTYPES", "FLOATS", "Case", "Operand", "dtypes_of", "ints"]

_OPSET = 20
DTYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float64": TensorProto.DOUBLE,
    "bool": TensorProto.BOOL,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}
FLOATS = ("float32", "float16", "bfloat16", "float64")
_SCHEMA_NAMES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class Operand:
    """An input (run-time) or an initializer: an array to be made."""

    dims: tuple[int, ...]
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0
    values: Any = None  # in place of random numbers
    constant: bool = False
    symbols: tuple[str, ...] = ()  # names of axes whose sizes only a call tells, the first ones

    def array(self, random: np.random.Generator) -> np.ndarray:
        """Return the values."""
        dtype = _numpy(self.dtype)
        if self.values is not None:
            return np.asarray(self.values, dtype)
        if self.dtype == "bool":
            return random.integers(0, 2, self.dims).astype(dtype)
        if self.dtype in FLOATS:
            return random.uniform(self.low, self.high, self.dims).astype(np.float32).astype(dtype)
        low = 0 if self.dtype.startswith("u") and self.low < 0 else int(self.low)
        return random.integers(low, max(int(self.high), low + 1), self.dims).astype(dtype)


@dataclass(frozen=True)
class Case:
    """One operator with its operands."""

    family: str
    op: str
    form: str
    operands: tuple[Operand | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    opset: int = _OPSET

    @property
    def name(self) -> str:
        """Operator, dtypes and form."""
        kinds = [o.dtype for o in self.operands if o]
        op = f"{self.domain}.{self.op}" if self.domain else self.op
        return f"{op} {'x'.join(dict.fromkeys(kinds))} {self.form}"

    @property
    def dtype(self) -> str:
        """Of the first operand."""
        return next(o.dtype for o in self.operands if o)

    def build(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """Return the model and its inputs."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        names, inputs, constants, feeds = [], [], [], {}
        for i, operand in enumerate(self.operands):
            if operand is None:
                names.append("")
                continue
            names.append(f"x{i}")
            value = operand.array(random)
            if operand.constant:
                constants.append(_tensor(value, names[-1], operand.dtype))
                continue
            dims = [*operand.symbols, *value.shape[len(operand.symbols) :]]
            inputs.append(helper.make_tensor_value_info(names[-1], DTYPES[operand.dtype], dims))
            feeds[names[-1]] = value
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, name="node", domain=self.domain, **self.attributes)
        graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=r) for r in results], constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9 if self.opset == _OPSET else 11), feeds


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _tensor(value: np.ndarray, name: str, dtype: str) -> onnx.TensorProto:
    if dtype == "bfloat16":
        return helper.make_tensor(name, TensorProto.BFLOAT16, value.shape, value.view(np.uint16).tobytes(), raw=True)
    return numpy_helper.from_array(value, name)


def dtypes_of(op: str, operand: int = 0, only: Sequence[str] | None = None) -> list[str]:
    """The dtypes of the table that an operand may have."""
    schema = onnx.defs.get_schema(op, _OPSET)
    formal = schema.inputs[min(operand, len(schema.inputs) - 1)]
    allowed = {t[len("tensor(") : -1] for t in formal.types if t.startswith("tensor(")}
    return [d for d in only or DTYPES if _SCHEMA_NAMES.get(d, d) in allowed]


def ints(values: Sequence[int]) -> Operand:
    return Operand((len(values),), "int64", values=np.asarray(values, np.int64), constant=True)

"""A saved module taken apart and put together again, and small models that have every part."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["MODELS", "Parts", "Variants", "feeds_of"]


@dataclass
class Parts:
    """The header of a safetensors file as objects, and the bytes of its blobs."""

    header: dict[str, Any]
    plan: dict[str, Any]
    data: bytes

    @classmethod
    def of(cls, file: bytes) -> Parts:
        (length,) = struct.unpack("<Q", file[:8])
        header = json.loads(file[8 : 8 + length])
        return cls(header, json.loads(header["__metadata__"]["neo.plan"]), file[8 + length :])

    def join(self) -> bytes:
        metadata = {**self.header["__metadata__"], "neo.plan": json.dumps(self.plan)}
        return join({**self.header, "__metadata__": metadata}, self.data)


@dataclass
class Variants:
    """The same of a file that may hold several variants."""

    metadata: dict[str, str]
    header: dict[str, Any]
    data: bytes

    @classmethod
    def of(cls, file: bytes) -> Variants:
        (length,) = struct.unpack("<Q", file[:8])
        header = json.loads(file[8 : 8 + length])
        return cls(header.pop("__metadata__"), header, file[8 + length :])

    @property
    def isas(self) -> list[Any]:
        return list(json.loads(self.metadata["neo.variants"]))

    def set_isas(self, isas: list[Any]) -> None:
        self.metadata["neo.variants"] = json.dumps(isas)

    def change_plan(self, number: int, change: Callable[[dict[str, Any]], object]) -> None:
        self.change(f"neo.plan.{number}", change)

    def change_union(self, change: Callable[[dict[str, Any]], object]) -> None:
        self.change("neo.union", change)

    def change(self, key: str, change: Callable[[dict[str, Any]], object]) -> None:
        found = json.loads(self.metadata[key])
        change(found)
        self.metadata[key] = json.dumps(found)

    def join(self) -> bytes:
        return join({"__metadata__": self.metadata, **self.header}, self.data)


def join(header: dict[str, Any], data: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return struct.pack("<Q", len(text)) + text + data


def _network() -> onnx.ModelProto:
    """Convolutions of several routines with a skip, over a batch of any size."""
    random = np.random.default_rng(1)
    weights = {
        "w0": random.standard_normal((16, 3, 3, 3)),
        "w1": random.standard_normal((16, 1, 3, 3)),
        "w2": random.standard_normal((16, 16, 3, 3)),
        "b2": random.standard_normal(16),
        "fc": random.standard_normal((16, 10)),
        "scale": random.standard_normal((1, 16, 1, 1)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("Relu", ["a"], ["ra"]),
        helper.make_node("Conv", ["ra", "w1"], ["d"], pads=[1, 1, 1, 1], group=16, name="depthwise"),
        helper.make_node("Mul", ["d", "scale"], ["m"], name="scale"),
        helper.make_node("Conv", ["m", "w2", "b2"], ["c"], pads=[1, 1, 1, 1], name="plain"),
        helper.make_node("Add", ["c", "ra"], ["s"], name="skip"),
        helper.make_node("Concat", ["s", "d"], ["cat"], axis=1),
        helper.make_node("Split", ["cat"], ["left", "right"], axis=1, num_outputs=2),
        helper.make_node("Sub", ["left", "right"], ["t"]),
        helper.make_node("GlobalAveragePool", ["t"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "fc"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    return _model(graph)


_CONTROL = """
<ir_version: 8, opset_import: ["" : 18]>
control (float[N, 4] x, int64[M] index, bool flag) => (y, found, last, all)
<int64[6] order = {5, 0, 3, 1, 4, 2}, int64 trips = {3}, bool go = {1}, int64[1] k = {2}, float[4] row = {1, 2, 3, 4}>
{
  picked = Gather <axis = 0> (x, index)
  best, places = TopK <axis = 1> (picked, k)
  at = NonZero (picked)
  found = Transpose (at)
  branch = If (flag) <
    then_branch = positive () => (float[N, 4] p) { p = Add (x, row) },
    else_branch = negative () => (float[N, 4] q) { q = Sub (x, row) }
  >
  last, all = Loop (trips, go, branch) <
    body = step (int64 i, bool c, float[N, 4] v) => (bool d, float[N, 4] w, float[N, 4] each) {
      d = Identity (c)
      w = Add (v, row)
      each = Mul (w, row)
    }
  >
  sums = ReduceSum <keepdims = 0> (best)
  y = Add (picked, sums)
}
"""

_WORDS = """
<ir_version: 8, opset_import: ["" : 18]>
words (string[N] s, seq(float[K]) q) => (t, n, first)
<string[6] more = {"a", "bb", "", "ccc", "d", "e"}, int64 zero = {0}>
{
  t = Concat <axis = 0> (s, more)
  n = SequenceLength (q)
  first = SequenceAt (q, zero)
}
"""


def _maps() -> onnx.ModelProto:
    """Maps as inputs and outputs, alone and in a sequence."""
    counts = onnx.TypeProto()
    counts.map_type.key_type = onnx.TensorProto.STRING
    counts.map_type.value_type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    many = onnx.TypeProto()
    many.sequence_type.elem_type.CopyFrom(counts)
    nodes = [
        helper.make_node("DictVectorizer", ["counts"], ["row"], domain="ai.onnx.ml", string_vocabulary=["a", "c", "b"]),
        helper.make_node("Identity", ["counts"], ["same"]),
        helper.make_node("Neg", ["scores"], ["negative"]),
        helper.make_node("ZipMap", ["negative"], ["rows"], domain="ai.onnx.ml", classlabels_int64s=[3, 1, 2]),
        helper.make_node("ZipMap", ["row"], ["named"], domain="ai.onnx.ml", classlabels_strings=["x", "y", "z"]),
        helper.make_node("Identity", ["many"], ["many_again"]),
    ]
    inputs = [
        onnx.ValueInfoProto(name="counts", type=counts),
        helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["N", 3]),
        onnx.ValueInfoProto(name="many", type=many),
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("row", "same", "rows", "named", "many_again")]
    graph = helper.make_graph(nodes, "maps", inputs, outputs)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


MODELS = {
    "network": _network(),
    "control": onnx.parser.parse_model(_CONTROL),
    "words": onnx.parser.parse_model(_WORDS),
    "maps": _maps(),
}


def feeds_of(name: str) -> dict[str, Any]:
    """Inputs of one of the models."""
    random = np.random.default_rng(2)
    if name == "network":
        return {"x": random.standard_normal((2, 3, 12, 12)).astype(np.float32)}
    if name == "control":
        x = random.standard_normal((3, 4)).astype(np.float32)
        return {"x": x, "index": np.array([2, 0, 1, 1]), "flag": np.array(True)}
    if name == "maps":
        scores = random.standard_normal((2, 3)).astype(np.float32)
        return {"counts": {"b": 2.0, "a": 0.5, "q": 1.0}, "scores": scores, "many": [{"k": 1.0}, {"m": -1.5, "k": 3.0}]}
    return {"s": np.array(["x", "yy"], object), "q": [np.arange(3, dtype=np.float32), np.ones(3, np.float32)]}

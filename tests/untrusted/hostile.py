"""What hostile models are made of: numbers, names and texts, and the parts of a model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

__all__ = [
    "EQUATIONS",
    "EXTERNAL_FILE",
    "EXTERNAL_FILE_BYTES",
    "FLOATS",
    "LOCATIONS",
    "NEWEST",
    "PATTERNS",
    "STRINGS",
    "Damage",
    "add_constant",
    "fresh_name",
    "graphs_of",
    "hostile_int",
    "hostile_name",
    "nodes_of",
    "random_array",
    "tensors_of",
    "values_of",
]


#: A file of this name and size lies beside every damaged model.
EXTERNAL_FILE = "weights.bin"
EXTERNAL_FILE_BYTES = 4096

_SMALL = (0, 1, 2, 3, -1, -2, 4, 5, 7, 8, 16, 31, 64, 100)
_LARGE = (255, 1000, 65536, 1 << 20, 1 << 24, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40)
_HUGE = ((1 << 46) - 1, 1 << 46, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 31), -(1 << 31) - 1, -(1 << 62))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan"), 1e-45)
STRINGS = ("", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "linear", "cubic", "nearest", "constant", "edge", "wrap")
STRINGS += ("reflect", "floor", "ceil", "DCR", "CRD", "LR", "RL", "TB", "none", "add", "mul", "max", "min", "tanh")
STRINGS += ("asymmetric", "align_corners", "tf_crop_and_resize", "bidirectional", "reverse", "mean", "sum", "border")
EQUATIONS = (
    "ij,jk->ik",
    "...ii->...i",
    "i,j,k,l,m,n,o,p->",
    "ij->ji->",
    "->",
    ",",
    "a" * 60 + "->a",
    "...,...->...",
    "ii",
)
EQUATIONS += ("i.j->k", "ab,bc,cd,de,ef->af", "A,a->Aa", "..->", "ij,,->", "i->ii", "ab...->...ba", "\0,\xff")
PATTERNS = (
    "(a+)+$",
    "(a|a)*b",
    "((((((((a{1000}){1000}){1000}))))))",
    "[",
    "(",
    "a{99999999}",
    "\\",
    "(?=a)",
    ".*.*.*.*x",
)
_NAMES = (
    "",
    "x",
    "é",
    "名",
    "a\nb",
    "a\0b",
    "../x",
    "x" * 300,
    "%s%n",
    "[]",
    "n,m",
    "N*M+1",
    "\u202e",
    "floordiv",
    "'\"",
)
LOCATIONS = (
    EXTERNAL_FILE,
    EXTERNAL_FILE,
    EXTERNAL_FILE,
    "../" + EXTERNAL_FILE,
    "/etc/passwd",
    "/dev/zero",
    "..\\x",
    "",
)
LOCATIONS += (
    ".",
    "a\0b",
    "./" + EXTERNAL_FILE,
    "sub/../" + EXTERNAL_FILE,
    "file:///etc/passwd",
    "x" * 5000,
    "/proc/self/mem",
)
NEWEST = max(version for version in range(1, 100) if version <= onnx.defs.onnx_opset_version())


def hostile_int(rng: random.Random) -> int:
    """A number, most often one that a small model can bear."""
    kind = rng.random()
    if kind < 0.65:
        return rng.choice(_SMALL)
    return rng.choice(_LARGE) if kind < 0.85 else rng.choice(_HUGE)


def hostile_name(rng: random.Random) -> str:
    """A name, most of them odd."""
    return rng.choice(_NAMES)


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)


def nodes_of(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    nodes = [node for graph in graphs_of(model.graph) for node in graph.node]
    return nodes + [node for function in model.functions for node in function.node]


def tensors_of(model: onnx.ModelProto) -> list[TensorProto]:
    tensors = [tensor for graph in graphs_of(model.graph) for tensor in graph.initializer]
    return tensors + [a.t for node in nodes_of(model) for a in node.attribute if a.type == AttributeProto.TENSOR]


def values_of(graph: onnx.GraphProto) -> list[str]:
    names = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    return names + [name for node in graph.node for name in node.output if name]


def fresh_name(model: onnx.ModelProto, stem: str) -> str:
    return f"{stem}_{len(model.graph.node)}_{len(model.graph.initializer)}"


def random_array(rng: random.Random, dims: Sequence[int], kind: int) -> np.ndarray:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    count = int(np.prod(dims))
    if kind == TensorProto.STRING:
        return np.array(
            [rng.choice(("a", "b c", "", "é", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")) for _ in range(count)], object
        ).reshape(dims)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([min(max(hostile_int(rng), info.min), info.max) for _ in range(count)], dtype).reshape(dims)
    if dtype.kind == "b":
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(dims)
    with np.errstate(all="ignore"):
        return (
            np.array([rng.choice(FLOATS) if rng.random() < 0.3 else rng.gauss(0, 1) for _ in range(count)])
            .astype(dtype)
            .reshape(dims)
        )


def add_constant(model: onnx.ModelProto, array: np.ndarray, rng: random.Random) -> str:
    name = fresh_name(model, "constant")
    model.graph.initializer.append(numpy_helper.from_array(array, name))
    return name


#: Changes a model, and says whether it did; the last argument are models that parts may be taken from.
Damage = Callable[[random.Random, onnx.ModelProto, Sequence[onnx.ModelProto]], bool]

"""What a model says of itself: its inputs, outputs and where it comes from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from neo.frontend.onnx.types import dims_of, dtype_name
from neo.onnxruntime.ort_value import tensor_type
from neo.signature import Tensor

__all__ = ["ModelMetadata", "NodeArg", "arguments", "metadata_of"]


@dataclass(frozen=True)
class NodeArg:
    """An input or output.

    Attributes
    ----------
    name : str
    type : str
        ``tensor(float)``, ``seq(tensor(int64))``, ``map(string,tensor(float))``, ...
    shape : list of (int, str or None)
        A size, a symbol, or None for a size without a name; empty where the rank is open or the value is no tensor.
    """

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


@dataclass(frozen=True)
class ModelMetadata:
    """Where a model comes from, as its file says."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def metadata_of(model: onnx.ModelProto) -> ModelMetadata:
    """Read a model's metadata."""
    return ModelMetadata(
        model.producer_name,
        model.graph.name,
        model.domain,
        model.doc_string,
        model.graph.doc_string,
        model.model_version,
        {p.key: p.value for p in model.metadata_props},
    )


def arguments(
    declared: Sequence[onnx.ValueInfoProto],
    found: Sequence[Tensor],
    sizes: Mapping[str, int],
    symbols: Collection[str] = (),
) -> list[NodeArg]:
    """The arguments as the file declares them, and where it is silent as neo finds them.

    Parameters
    ----------
    declared : sequence of onnx.ValueInfoProto
    found : sequence of Tensor
        Of a module of the model.
    sizes : mapping of str to int
        Of symbols that are overridden.
    symbols : collection of str
        Those of the inputs, which an output that declares no size may have.
    """
    by_name = {t.name: t for t in found}
    return [_argument(value, by_name.get(value.name), sizes, symbols) for value in declared]


def _argument(
    value: onnx.ValueInfoProto, found: Tensor | None, sizes: Mapping[str, int], symbols: Collection[str]
) -> NodeArg:
    if not value.type.WhichOneof("value") and found is not None:
        return of_tensor(found)
    shape: list[int | str | None] = []
    if value.type.WhichOneof("value") == "tensor_type":
        dims = dims_of(value.type.tensor_type, value.name)
        if dims is None:
            shape = list(of_tensor(found).shape) if found is not None else []
        else:
            shape = [sizes.get(d, d) if isinstance(d, str) else d for d in dims]
            known: Sequence[int | str] = () if found is None or found.shape is None else found.shape
            if len(known) == len(shape):
                shape = [
                    k if isinstance(k, int) or (d is None and k in symbols) else d
                    for d, k in zip(shape, known, strict=True)
                ]
    return NodeArg(value.name, _type_text(value.type), shape)


def of_tensor(found: Tensor) -> NodeArg:
    """An argument of a module of which there is no file."""
    if "(" in found.dtype:
        return NodeArg(found.name, _converted(found.dtype), [])
    return NodeArg(found.name, tensor_type(found.dtype), list(found.shape or ()))


def _converted(text: str) -> str:
    """Neo's notation of a type, ``seq(map(string,float32[]))``, as ONNX Runtime writes it."""
    wrapper, paren, rest = text.partition("(")
    if not paren:
        return tensor_type(text.partition("[")[0])
    if wrapper == "map":
        key, _, element = rest[:-1].partition(",")
        return f"map({key},{_converted(element)})"
    return f"{wrapper}({_converted(rest[:-1])})"


def _type_text(proto: onnx.TypeProto) -> str:
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({_type_text(proto.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_type_text(proto.optional_type.elem_type)})"
    if kind == "map_type":
        return f"map({dtype_name(proto.map_type.key_type, '')},{_type_text(proto.map_type.value_type)})"
    return tensor_type(dtype_name(proto.tensor_type.elem_type, ""))

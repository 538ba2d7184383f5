"""Twins of float32 models in float16."""

from __future__ import annotations

import onnx

__all__ = ["half_twin"]


def half_twin(source: str | bytes) -> bytes:
    """Return a model with float16 in the place of float32, its inputs and outputs included, between casts where ONNX has no other."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(source)
    twin: bytes = convert_float_to_float16(model).SerializeToString()
    return twin

"""A float model as one of 8-bit codes (docs/quantize.md)."""

from neo.quantize.face import quantize

__all__ = ["quantize"]

"""A float model as one of 8-bit codes (docs/quantize.md)."""

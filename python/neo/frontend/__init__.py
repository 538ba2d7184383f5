"""Readers of model files. Other formats go through their own converters to ONNX (docs/formats.md)."""

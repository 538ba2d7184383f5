"""ONNX's own backend suite."""

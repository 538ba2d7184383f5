"""The place from which programs for ONNX Runtime import its errors."""

from neo.onnxruntime.capi import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]

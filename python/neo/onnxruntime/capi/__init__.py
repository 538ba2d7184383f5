"""The places from which programs for ONNX Runtime import its errors and what else they know there."""

from neo.onnxruntime.capi import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state

__all__ = ["_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state"]

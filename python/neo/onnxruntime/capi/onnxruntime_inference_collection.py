"""Sessions and values, as programs look for them in the module in which ONNX Runtime defines them."""

from neo.onnxruntime.binding import IOBinding
from neo.onnxruntime.ort_value import OrtDevice, OrtValue
from neo.onnxruntime.session import InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue"]

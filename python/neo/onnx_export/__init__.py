"""neo's graph written back as ONNX: the passes as an offline optimizer for any runtime (docs/optimize.md)."""

from neo.onnx_export.write import Written, optimize

__all__ = ["Written", "optimize"]

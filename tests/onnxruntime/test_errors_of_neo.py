"""Errors of neo as programs for ONNX Runtime see them, where ONNX Runtime has none to compare with."""

import neo
import neo.onnxruntime as door
import pytest
from neo.onnxruntime.errors import NotImplemented, of_run  # noqa: A004


def test_what_neo_does_not_run_has_the_class_of_the_engine():
    with pytest.raises(NotImplemented, match="no kernel") as caught, of_run():
        raise neo.UnsupportedError("no kernel")
    assert isinstance(caught.value, neo.Error)
    assert door.capi.onnxruntime_pybind11_state.NotImplemented is NotImplemented

"""What only neo's door does: its module, saved modules, options of compiling, notes on what has no effect."""

import logging
import subprocess
import sys
import textwrap

import neo
import neo.onnxruntime as ort
import numpy as np
import pytest
from neo.onnxruntime.capi import onnxruntime_pybind11_state as errors

from tests.onnxruntime.conftest import PROVIDERS, A, B, W, sums


def test_the_module_behind_a_session():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(sums(), options, providers=PROVIDERS)
    assert isinstance(session.module, neo.Module)
    assert session.module.threads == 1


def test_a_saved_module_is_a_model(tmp_path):
    neo.compile(sums()).save(tmp_path / "model.neo")
    session = ort.InferenceSession(tmp_path / "model.neo")
    assert [(a.name, a.type, a.shape) for a in session.get_inputs()] == [
        ("a", "tensor(float)", ["N", 3]),
        ("b", "tensor(float)", ["N", 3]),
    ]
    np.testing.assert_array_equal(session.run(["s"], {"a": A, "b": B})[0], A + W)


def test_options_of_the_provider_are_those_of_compiling():
    session = ort.InferenceSession(sums(), providers=[("CPUExecutionProvider", {"target": "cpu:scalar"})])
    assert session.module.target == "cpu:scalar"
    assert session.get_provider_options() == {"CPUExecutionProvider": {"target": "cpu:scalar"}}


def test_what_has_no_effect_is_logged(caplog):
    options = ort.SessionOptions()
    options.enable_mem_pattern = False
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 1)
    with caplog.at_level(logging.INFO, "neo.onnxruntime"):
        ort.InferenceSession(sums(), options, providers=[("CPUExecutionProvider", {"arena": "1"})])
    assert "SessionOptions.enable_mem_pattern=False has no effect in neo" in caplog.text
    assert "DATA_BATCH=1 has no effect in neo" in caplog.text
    assert "the option arena='1' of CPUExecutionProvider has no effect in neo" in caplog.text


def test_a_library_of_operators_is_refused():
    with pytest.raises(errors.Fail, match="operators"):
        ort.SessionOptions().register_custom_ops_library("ops.so")


def test_errors_are_neos_too():
    session = ort.InferenceSession(sums(), providers=PROVIDERS)
    with pytest.raises(neo.Error, match=r"\[run\] dtype must be the input's"):
        session.run(None, {"a": A.astype(np.float64), "b": B})


def test_a_library_that_imports_onnxruntime_gets_neo():
    code = """
        import sys
        import neo.onnxruntime

        sys.modules["onnxruntime"] = neo.onnxruntime

        import onnxruntime
        from onnxruntime import InferenceSession
        from onnxruntime.capi import _pybind_state as C
        from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

        assert InferenceSession is C.InferenceSession is neo.onnxruntime.InferenceSession
        assert InvalidArgument is neo.onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument
        assert C.get_available_providers() == onnxruntime.get_available_providers()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_options_of_a_provider_that_are_no_dict():
    with pytest.raises(TypeError, match=r"options of a provider must be a dict\. Got 3 for 'CPUExecutionProvider'"):
        ort.InferenceSession(sums(), providers=[("CPUExecutionProvider", 3)])


def test_a_name_that_neo_lacks_is_told_in_one_line():
    assert not hasattr(ort, "LoraAdapter")
    with pytest.raises(
        AttributeError, match=r"^\[onnxruntime\] a name must be one that neo has\. Got 'LoraAdapter'[^\n]*$"
    ):
        _ = ort.LoraAdapter

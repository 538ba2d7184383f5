"""Making a session, and what it says of its model: ONNX Runtime's documented behaviour of both engines."""

import importlib
import json
import logging
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.onnxruntime.conftest import PROVIDERS, A, B, W, kinds, model, sums, value


def told(arguments):
    return [(arg.name, arg.type, arg.shape) for arg in arguments]


def test_inputs_have_names_types_and_shapes_and_initializers_are_none(session):
    assert told(session.get_inputs()) == [("a", "tensor(float)", ["N", 3]), ("b", "tensor(float)", ["N", 3])]


def test_outputs_have_names_types_and_shapes(session):
    assert told(session.get_outputs()) == [("s", "tensor(float)", ["N", 3]), ("p", "tensor(float)", ["N", 3])]


def test_overridable_initializers_are_those_that_are_inputs(session):
    assert told(session.get_overridable_initializers()) == [("w", "tensor(float)", [3])]


def test_an_argument_prints_itself(session):
    assert str(session.get_inputs()[0]) == "NodeArg(name='a', type='tensor(float)', shape=['N', 3])"


def test_types_of_every_kind_of_output(ort):
    outputs = ort.InferenceSession(kinds(), providers=PROVIDERS).get_outputs()
    assert [arg.type for arg in outputs] == [
        "seq(tensor(float))",
        "tensor(float)",
        "tensor(string)",
        "tensor(bool)",
    ]
    assert [arg.shape for arg in outputs[1:]] == [[], ["A", "B"], ["A", "B"]]


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (TensorProto.DOUBLE, "tensor(double)"),
        (TensorProto.FLOAT16, "tensor(float16)"),
        (TensorProto.BFLOAT16, "tensor(bfloat16)"),
        (TensorProto.INT8, "tensor(int8)"),
        (TensorProto.UINT8, "tensor(uint8)"),
        (TensorProto.INT32, "tensor(int32)"),
        (TensorProto.INT64, "tensor(int64)"),
        (TensorProto.UINT64, "tensor(uint64)"),
    ],
)
def test_types_of_tensors(ort, dtype, text):
    made = model([helper.make_node("Identity", ["x"], ["y"])], [value("x", [2], dtype)], [value("y", [2], dtype)])
    session = ort.InferenceSession(made, providers=PROVIDERS)
    assert (session.get_inputs()[0].type, session.get_outputs()[0].type) == (text, text)


def test_an_input_without_a_shape_and_a_size_without_a_name(ort):
    made = model(
        [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["u"], ["v"])],
        [value("x", None), value("u", [None, 2])],
        [value("y", None), value("v", [None, 2])],
    )
    session = ort.InferenceSession(made, providers=PROVIDERS)
    assert [arg.shape for arg in session.get_inputs()] == [[], [None, 2]]


def test_metadata_is_the_files(session):
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.domain) == ("a test", "graph's name", "a.domain")
    assert (meta.description, meta.graph_description, meta.version) == ("model's text", "graph's text", 7)
    assert meta.custom_metadata_map == {"labels": "cat,dog"}


def test_a_session_of_a_path_a_path_object_and_bytes(ort, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(sums())
    for given in (str(path), path, sums()):
        session = ort.InferenceSession(given, providers=PROVIDERS)
        np.testing.assert_array_equal(session.run(["s"], {"a": A, "b": B})[0], A + W)


@pytest.mark.parametrize("given", [None, 3, bytearray(b""), onnx.ModelProto()])
def test_a_model_of_another_type_is_a_type_error(ort, given):
    with pytest.raises(TypeError):
        ort.InferenceSession(given, providers=PROVIDERS)


def test_a_file_that_is_not_there(ort, errors, tmp_path):
    with pytest.raises(errors.NoSuchFile, match="none.onnx"):
        ort.InferenceSession(str(tmp_path / "none.onnx"), providers=PROVIDERS)


def test_bytes_that_are_no_model(ort, errors):
    with pytest.raises(errors.InvalidProtobuf):
        ort.InferenceSession(b"no model", providers=PROVIDERS)


@pytest.mark.parametrize("domain", ["", "nobody.knows"])
def test_an_operator_that_nobody_knows(ort, errors, domain):
    made = model([helper.make_node("Nonsense", ["x"], ["y"], domain=domain)], [value("x", [1])], [value("y", [1])])
    with pytest.raises(errors.InvalidGraph, match=domain or "Nonsense"):
        ort.InferenceSession(made, providers=PROVIDERS)


def test_a_graph_with_an_input_that_no_node_makes(ort, errors):
    made = model([helper.make_node("Add", ["x", "nothing"], ["y"])], [value("x", [1])], [value("y", [1])])
    with pytest.raises((errors.InvalidGraph, errors.InvalidArgument, errors.Fail), match="nothing"):
        ort.InferenceSession(made, providers=PROVIDERS)


def test_operands_of_two_types(ort, errors):
    nodes = [helper.make_node("Add", ["x", "i"], ["y"])]
    made = model(nodes, [value("x", [1]), value("i", [1], TensorProto.INT64)], [value("y", [1])])
    with pytest.raises((errors.InvalidGraph, errors.Fail)):
        ort.InferenceSession(made, providers=PROVIDERS)


def test_errors_are_exceptions_with_a_text(ort, errors):
    for name in ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile", "NotImplemented"):
        assert issubclass(getattr(errors, name), Exception)
    assert issubclass(errors.RuntimeException, Exception)
    assert ort.capi.onnxruntime_pybind11_state.Fail is errors.Fail


def test_the_provider_of_processors_is_there_and_in_use(ort, session):
    assert "CPUExecutionProvider" in ort.get_available_providers()
    assert "CPUExecutionProvider" in ort.get_all_providers()
    assert session.get_providers() == PROVIDERS
    assert list(session.get_provider_options()) == PROVIDERS
    assert ort.get_device() == "CPU"


def test_a_provider_that_is_not_there_is_warned_of_and_left_out(ort):
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available provider names"):
        session = ort.InferenceSession(sums(), providers=["CUDAExecutionProvider", *PROVIDERS])
    assert session.get_providers() == PROVIDERS


def test_a_provider_given_twice_is_warned_of(ort):
    with pytest.warns(UserWarning, match="Duplicate provider 'CPUExecutionProvider'"):
        assert ort.InferenceSession(sums(), providers=PROVIDERS * 2).get_providers() == PROVIDERS


def test_providers_with_options(ort):
    for arguments in (
        {"providers": [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]},
        {"providers": PROVIDERS, "provider_options": [{"arena_extend_strategy": "kSameAsRequested"}]},
        {},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ort.InferenceSession(sums(), **arguments).get_providers() == PROVIDERS


@pytest.mark.since("1.24")
def test_providers_that_are_no_sequence(ort):
    with pytest.raises(TypeError):
        ort.InferenceSession(sums(), providers=3)


def test_providers_are_set_again(ort):
    session = ort.InferenceSession(sums(), providers=PROVIDERS)
    session.set_providers(PROVIDERS)
    session.disable_fallback()
    session.enable_fallback()
    np.testing.assert_array_equal(session.run(["s"], {"a": A, "b": B})[0], A + W)


def test_options_have_onnx_runtimes_defaults(ort):
    options = ort.SessionOptions()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (0, 0)
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    assert options.enable_mem_pattern
    assert options.enable_cpu_mem_arena
    assert not options.enable_profiling
    assert (options.logid, options.log_severity_level, options.optimized_model_filepath) == ("", -1, "")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("intra_op_num_threads", "two"),
        ("intra_op_num_threads", 1.5),
        ("execution_mode", 1),
        ("enable_mem_pattern", "yes"),
        ("logid", 3),
    ],
)
def test_an_option_of_another_type_is_a_type_error(ort, name, given):
    with pytest.raises(TypeError):
        setattr(ort.SessionOptions(), name, given)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("intra_op_num_threads", np.int64(2), 2),
        ("log_severity_level", np.int32(3), 3),
        ("enable_mem_pattern", 0, False),
        ("enable_profiling", np.bool_(False), False),
        ("enable_cpu_mem_arena", None, False),
    ],
)
def test_an_option_takes_numbers_of_every_kind(ort, name, given, kept):
    options = ort.SessionOptions()
    setattr(options, name, given)
    assert getattr(options, name) == kept
    assert type(getattr(options, name)) is type(kept)


def test_choices_print_their_names(ort):
    assert str(ort.GraphOptimizationLevel.ORT_ENABLE_ALL) == "GraphOptimizationLevel.ORT_ENABLE_ALL"
    assert str(ort.ExecutionMode.ORT_PARALLEL) == "ExecutionMode.ORT_PARALLEL"
    assert ort.SessionOptions().execution_mode.name == "ORT_SEQUENTIAL"


def test_a_folder_is_no_model(ort, errors, tmp_path):
    with pytest.raises((errors.InvalidProtobuf, errors.Fail)):
        ort.InferenceSession(str(tmp_path), providers=PROVIDERS)


def test_a_value_of_a_negative_size(ort):
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_shape_and_type([-2, 3], np.float32)


def test_an_option_that_does_not_exist_is_an_attribute_error(ort):
    with pytest.raises(AttributeError):
        ort.SessionOptions().nonsense = 1


def test_every_option_is_taken(ort):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    options.enable_mem_pattern = options.enable_cpu_mem_arena = options.enable_mem_reuse = False
    options.log_severity_level, options.log_verbosity_level, options.logid = 3, 0, "log"
    options.use_deterministic_compute = True
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(sums(), sess_options=options, providers=PROVIDERS)
    np.testing.assert_array_equal(session.run(["p"], {"a": A, "b": B})[0], (A + W) * B)
    assert session.get_session_options().intra_op_num_threads == 1


def test_enumerations_have_their_numbers_and_names(ort):
    assert int(ort.GraphOptimizationLevel.ORT_ENABLE_ALL) == 99
    assert ort.GraphOptimizationLevel(1).name == "ORT_ENABLE_BASIC"
    assert ort.ExecutionMode.ORT_PARALLEL.name == "ORT_PARALLEL"


def test_entries_of_the_configuration(ort):
    options = ort.SessionOptions()
    options.add_session_config_entry("key", "text")
    assert options.get_session_config_entry("key") == "text"
    with pytest.raises(RuntimeError, match="other"):
        options.get_session_config_entry("other")


def test_options_of_another_class(ort):
    with pytest.raises((TypeError, AttributeError)):
        ort.InferenceSession(sums(), 3, providers=PROVIDERS)


def test_a_free_dimension_is_fixed_by_name(ort, errors):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    options.add_free_dimension_override_by_name("unused", 5)
    session = ort.InferenceSession(sums(), options, providers=PROVIDERS)
    assert [arg.shape for arg in (*session.get_inputs(), *session.get_outputs())] == [[2, 3]] * 4
    with pytest.raises(errors.InvalidArgument):
        session.run(None, {"a": A[:1], "b": B[:1]})


def test_an_initializer_is_replaced_by_the_options(ort):
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [2, 3])], [value("y", [2, 3])], {"w": W})
    options = ort.SessionOptions()
    replacement = ort.OrtValue.ortvalue_from_numpy(W * 10)
    options.add_initializer("w", replacement)
    session = ort.InferenceSession(made, options, providers=PROVIDERS)
    np.testing.assert_array_equal(session.run(None, {"x": A})[0], A + W * 10)


def test_the_optimized_model_is_written(ort, tmp_path):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    ort.InferenceSession(sums(), options, providers=PROVIDERS)
    again = ort.InferenceSession(options.optimized_model_filepath, providers=PROVIDERS)
    np.testing.assert_array_equal(again.run(["s"], {"a": A, "b": B})[0], A + W)


def test_a_profile_is_a_trace_of_nodes(ort, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(sums(), options, providers=PROVIDERS)
    np.testing.assert_array_equal(session.run(["s"], {"a": A, "b": B})[0], A + W)
    path = session.end_profiling()
    assert Path(path).parent == tmp_path
    events = json.loads(Path(path).read_text(encoding="utf-8"))
    nodes = [event for event in events if event["cat"] == "Node"]
    assert nodes
    assert all(event["dur"] >= 0 and event["args"]["op_name"] for event in nodes)
    assert session.get_profiling_start_time_ns() > 0


def test_no_profile_without_the_option(session):
    assert session.end_profiling() == ""


def test_process_wide_settings(ort):
    assert isinstance(ort.__version__, str)
    assert isinstance(ort.get_version_string(), str)
    assert isinstance(ort.get_build_info(), str)
    before = logging.getLogger("neo").level
    try:
        ort.set_default_logger_severity(2)
        ort.set_default_logger_verbosity(0)
        with pytest.raises(RuntimeError):
            ort.set_default_logger_severity(9)
    finally:
        logging.getLogger("neo").setLevel(before)
    ort.set_seed(1)
    ort.disable_telemetry_events()
    ort.enable_telemetry_events()


def test_a_device_by_name(ort):
    assert ort.OrtDevice.make("cpu", 0).device_type() == 0
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_numpy(A, "cuda", 0)


def test_external_data_beside_the_file(ort, tmp_path):
    made = onnx.load_from_string(sums())
    path = tmp_path / "model.onnx"
    onnx.save(made, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").is_file()
    session = ort.InferenceSession(str(path), providers=PROVIDERS)
    np.testing.assert_array_equal(session.run(["s"], {"a": A, "b": B})[0], A + W)


@pytest.mark.parametrize(
    ("place", "names"),
    [
        (
            "capi._pybind_state",
            ["get_available_providers", "SessionOptions", "RunOptions", "OrtValue", "InvalidArgument"],
        ),
        ("capi.onnxruntime_inference_collection", ["InferenceSession", "IOBinding", "OrtValue"]),
        ("capi.onnxruntime_pybind11_state", ["Fail", "NoSuchFile", "InvalidGraph", "RuntimeException"]),
    ],
)
def test_names_are_where_programs_import_them_from(ort, place, names):
    module = importlib.import_module(f"{ort.__name__}.{place}")
    for name in names:
        assert callable(getattr(module, name)), name


@pytest.mark.since("1.22")
def test_what_is_loaded_and_linked(ort):
    ort.preload_dlls()
    assert ort.has_collective_ops() is False


@pytest.mark.since("1.32")
def test_a_callback_gets_log_lines(ort):
    seen = []
    before = logging.getLogger("neo").level
    options = ort.SessionOptions()
    options.log_severity_level = 0
    try:
        with pytest.raises(RuntimeError):
            ort.set_default_logger_callback(print, 9)
        with pytest.raises(RuntimeError):
            ort.set_default_logger_callback(3)
        ort.set_default_logger_callback(lambda *line: seen.append(line), 0)
        options.add_session_config_entry("session.some_entry", "1")
        ort.InferenceSession(sums(), options, providers=PROVIDERS)
        assert seen
        for severity, category, logid, place, message in seen:
            assert 0 <= severity <= 4
            assert all(isinstance(text, str) for text in (category, logid, place, message))
        seen.clear()
        ort.set_default_logger_callback(None)
        ort.InferenceSession(sums(), options, providers=PROVIDERS)
        assert not seen
    finally:
        ort.set_default_logger_callback(None)
        ort.set_default_logger_severity(2)
        logging.getLogger("neo").setLevel(before)

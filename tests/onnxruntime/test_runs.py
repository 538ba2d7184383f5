"""Runs: arrays by name, OrtValues, bindings, threads, ends; ONNX Runtime's documented behaviour of both engines."""

import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.onnxruntime.conftest import PROVIDERS, A, B, W, endless, kinds, model, value

FEED = {"a": A, "b": B}
S, P = A + W, (A + W) * B


def test_no_names_ask_for_all_outputs_in_the_models_order(session):
    for names in (None, []):
        results = session.run(names, FEED)
        assert isinstance(results, list)
        for got, expected in zip(results, (S, P), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_names_choose_and_order_outputs(session):
    for names in (["p", "s"], ("p", "s"), ["p", "s", "p"]):
        results = session.run(names, FEED)
        assert len(results) == len(names)
        np.testing.assert_array_equal(results[0], P)
        np.testing.assert_array_equal(results[1], S)


def test_names_that_are_text_are_a_type_error(session):
    with pytest.raises(TypeError):
        session.run("p", FEED)


def test_an_output_that_is_not_there(session, errors):
    with pytest.raises(errors.InvalidArgument, match="nothing"):
        session.run(["nothing"], FEED)


def test_an_input_that_is_missing_is_a_value_error(session):
    with pytest.raises(ValueError, match=r"Required inputs \(\['b'\]\) are missing from input feed \(\['a'\]\)"):
        session.run(None, {"a": A})


def test_an_input_that_is_not_there(session, errors):
    with pytest.raises(errors.InvalidArgument, match="nothing"):
        session.run(None, {**FEED, "nothing": A})


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.uint8])
def test_an_array_of_another_dtype(session, errors, dtype):
    with pytest.raises(errors.InvalidArgument):
        session.run(None, {"a": A.astype(dtype), "b": B})


def test_an_array_of_another_rank(session, errors):
    with pytest.raises(errors.InvalidArgument):
        session.run(None, {"a": A[0], "b": B})


def test_an_array_of_another_size(session, errors):
    with pytest.raises(errors.InvalidArgument):
        session.run(None, {"a": A[:, :2], "b": B})


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_symbolic_size_is_any(session, count):
    a = np.ones((count, 3), np.float32)
    np.testing.assert_array_equal(session.run(["p"], {"a": a, "b": a})[0], a + W)


def test_equal_symbols_are_not_held_to_one_size(session):
    np.testing.assert_array_equal(session.run(["p"], {"a": A, "b": B[:1]})[0], S * B[:1])
    np.testing.assert_array_equal(session.run(["p"], FEED)[0], P)


@pytest.mark.since("1.27")
def test_sizes_that_do_not_broadcast(session, errors):
    with pytest.raises((errors.Fail, errors.InvalidArgument)):
        session.run(None, {"a": np.ones((4, 3), np.float32), "b": B})


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: x.tolist(), np.flipud]
)
def test_arrays_of_any_layout_and_lists(session, change):
    changed = change(A)
    np.testing.assert_array_equal(session.run(["s"], {"a": changed, "b": B})[0], np.asarray(changed) + W)


def test_results_are_the_callers_to_write_to(session):
    first = session.run(["s"], FEED)[0]
    first[...] = 0
    np.testing.assert_array_equal(session.run(["s"], FEED)[0], S)


def test_inputs_are_left_as_they_are(session):
    a, b = A.copy(), B.copy()
    session.run(None, {"a": a, "b": b})
    np.testing.assert_array_equal(a, A)
    np.testing.assert_array_equal(b, B)


def test_an_overridable_initializer_is_fed(session, errors):
    other = np.zeros(3, np.float32)
    np.testing.assert_array_equal(session.run(["s"], {**FEED, "w": other})[0], A)
    np.testing.assert_array_equal(session.run(["s"], FEED)[0], S)
    with pytest.raises(errors.InvalidArgument):
        session.run(["s"], {**FEED, "w": np.zeros(2, np.float32)})


def test_every_kind_of_result(ort):
    session = ort.InferenceSession(kinds(), providers=PROVIDERS)
    x = np.array([[0, 1], [2, 3]], np.float32)
    sequence, total, text, truth = session.run(None, {"x": x})
    assert isinstance(sequence, list)
    np.testing.assert_array_equal(sequence[1], x)
    assert isinstance(total, np.ndarray)
    assert (total.shape, total.dtype, total[()]) == ((), np.float32, 6)
    assert text.dtype == object
    assert [float(t) for t in text.ravel()] == [0, 1, 2, 3]
    assert truth.tolist() == [[False, True], [True, True]]


def test_a_sequence_is_fed_as_a_list(ort, errors):
    made = model(
        [helper.make_node("SequenceAt", ["s", "i"], ["y"])],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None), value("i", [], TensorProto.INT64)],
        [value("y", None)],
    )
    session = ort.InferenceSession(made, providers=PROVIDERS)
    assert [arg.type for arg in session.get_inputs()] == ["seq(tensor(float))", "tensor(int64)"]
    np.testing.assert_array_equal(session.run(None, {"s": [A, B], "i": np.array(1)})[0], B)
    with pytest.raises(errors.InvalidArgument):
        session.run(None, {"s": [A, B], "i": np.array(7)})
    with pytest.raises(errors.InvalidArgument):
        session.run(None, {"s": A, "i": np.array(0)})


def test_strings_are_fed_as_arrays_of_text(ort):
    texts = [value("x", ["N"], TensorProto.STRING)]
    made = model([helper.make_node("Identity", ["x"], ["y"])], texts, [value("y", ["N"], TensorProto.STRING)])
    session = ort.InferenceSession(made, providers=PROVIDERS)
    for given in (np.array(["a", "bc"]), np.array(["a", "bc"], object)):
        assert session.run(None, {"x": given})[0].tolist() == ["a", "bc"]


def test_run_options_have_defaults_and_entries(ort, session):
    options = ort.RunOptions()
    assert not options.terminate
    assert not options.only_execute_path_to_fetches
    options.logid, options.log_severity_level, options.log_verbosity_level = "run", 3, 0
    options.only_execute_path_to_fetches = True
    options.add_run_config_entry("key", "text")
    assert options.get_run_config_entry("key") == "text"
    with pytest.raises(RuntimeError, match="other"):
        options.get_run_config_entry("other")
    np.testing.assert_array_equal(session.run(["p"], FEED, options)[0], P)


def test_run_options_of_another_class(session):
    with pytest.raises(TypeError):
        session.run(None, FEED, 3)


def test_a_run_that_is_to_end_before_it_begins(ort, session, errors):
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(errors.Fail, match="terminate"):
        session.run(None, FEED, options)
    options.terminate = False
    assert len(session.run(None, FEED, options)) == 2


def test_a_run_is_ended_from_another_thread(ort, errors):
    session = ort.InferenceSession(endless(), providers=PROVIDERS)
    options = ort.RunOptions()
    timer = threading.Timer(0.3, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(errors.Fail):
        session.run(None, {"x": np.zeros(4, np.float32)}, options)
    timer.join()


def test_runs_of_many_threads(session):
    results = {}

    def work(i):
        results[i] = session.run(["s"], {"a": A + i, "b": B})[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        np.testing.assert_array_equal(results[i], A + i + W)


def started(session, names, feed):
    done, got = threading.Event(), []

    def callback(results, user_data, error):
        got.extend((results, user_data, error))
        done.set()

    session.run_async(names, feed, callback, "mine")
    assert done.wait(60)
    return got


def test_a_callback_gets_results_and_the_users_data(session):
    results, user_data, error = started(session, ["p"], FEED)
    np.testing.assert_array_equal(results[0], P)
    assert (user_data, error) == ("mine", "")


def test_a_callback_gets_the_text_of_an_error(session):
    results, user_data, error = started(session, ["p"], {"a": A, "b": B[:, :1]})
    assert results == []
    assert user_data == "mine"
    assert "b" in error


def test_an_input_that_is_missing_is_told_before_the_thread_starts(session):
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_async(None, {"a": A}, lambda *_: None, None)


@pytest.mark.since("1.23")
def test_an_ort_value_says_what_it_is(ort):
    held = ort.OrtValue.ortvalue_from_numpy(A)
    assert (held.shape(), held.data_type(), held.element_type()) == ([2, 3], "tensor(float)", 1)
    assert (held.device_name(), held.tensor_size_in_bytes()) == ("cpu", A.nbytes)
    assert held.has_value()
    assert held.is_tensor()
    assert not held.is_sparse_tensor()
    assert not held.is_tensor_sequence()


@pytest.mark.since("1.27")
def test_an_ort_value_shares_the_arrays_memory(ort):
    array = A.copy()
    held = ort.OrtValue.ortvalue_from_numpy(array)
    assert held.data_ptr() == array.ctypes.data
    assert np.shares_memory(held.numpy(), array)
    assert np.shares_memory(np.asarray(held), array)
    assert not np.shares_memory(np.array(held, copy=True), array)
    assert np.asarray(held, dtype=np.float64).dtype == np.float64


def test_an_ort_value_of_an_array_that_is_not_dense(ort):
    np.testing.assert_array_equal(ort.OrtValue.ortvalue_from_numpy(A.T).numpy(), A.T)


@pytest.mark.parametrize("given", [[1.0, 2.0], np.array(["a", "b"])])
def test_an_ort_value_of_no_array_of_numbers(ort, given):
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_numpy(given)


def test_an_ort_value_of_a_shape_and_a_type(ort):
    held = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.int64)
    assert (held.shape(), held.data_type()) == ([2, 3], "tensor(int64)")
    held = ort.OrtValue.ortvalue_from_shape_and_type([2], TensorProto.BFLOAT16)
    assert (held.data_type(), held.element_type()) == ("tensor(bfloat16)", TensorProto.BFLOAT16)


def test_an_ort_value_of_the_bytes_of_another_type(ort):
    held = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(3, np.uint16), TensorProto.BFLOAT16)
    assert (held.shape(), held.data_type()) == ([3], "tensor(bfloat16)")
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(3, np.float32), TensorProto.BFLOAT16)


def test_an_ort_value_is_updated_in_place(ort):
    array = A.copy()
    held = ort.OrtValue.ortvalue_from_numpy(array)
    held.update_inplace(B)
    np.testing.assert_array_equal(array, B)
    with pytest.raises(RuntimeError):
        held.update_inplace(B[:1])


@pytest.mark.since("1.27")
def test_ort_values_speak_dlpack(ort):
    array = A.copy()
    held = ort.OrtValue.ortvalue_from_numpy(array)
    assert held.__dlpack_device__() == (1, 0)
    assert np.shares_memory(np.from_dlpack(held), array)
    assert ort.OrtValue.from_dlpack(array).data_ptr() == array.ctypes.data


def test_runs_on_ort_values(ort, session):
    feed = {name: ort.OrtValue.ortvalue_from_numpy(x) for name, x in FEED.items()}
    results = session.run_with_ort_values(["p", "s"], feed)
    assert all(isinstance(held, ort.OrtValue) for held in results)
    np.testing.assert_array_equal(results[0].numpy(), P)
    np.testing.assert_array_equal(session.run(["s"], feed)[0], S)
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_with_ort_values(None, {"a": feed["a"]})


def bound(session, *outputs):
    binding = session.io_binding()
    binding.bind_cpu_input("a", A)
    binding.bind_cpu_input("b", B)
    for name in outputs:
        binding.bind_output(name)
    return binding


def test_a_binding_gives_outputs_in_the_order_in_which_they_were_bound(ort, session):
    binding = bound(session, "p", "s")
    session.run_with_iobinding(binding)
    for got, expected in zip(binding.copy_outputs_to_cpu(), (P, S), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert all(isinstance(held, ort.OrtValue) for held in binding.get_outputs())
    binding.synchronize_inputs()
    binding.synchronize_outputs()


def test_a_binding_reads_its_inputs_at_each_run(session):
    a = A.copy()
    binding = bound(session, "s")
    binding.bind_cpu_input("a", a)
    session.run_with_iobinding(binding)
    a += 1
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], S + 1)


def test_outputs_are_written_to_bound_memory(ort, session):
    y, held = np.zeros((2, 3), np.float32), ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding = bound(session)
    binding.bind_output("p", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    binding.bind_ortvalue_output("s", held)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, P)
    np.testing.assert_array_equal(held.numpy(), S)


def test_inputs_are_read_from_bound_memory(ort, session):
    binding = session.io_binding()
    binding.bind_input("a", "cpu", 0, np.float32, A.shape, A.ctypes.data)
    binding.bind_ortvalue_input("b", ort.OrtValue.ortvalue_from_numpy(B))
    binding.bind_output("p")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], P)


@pytest.mark.parametrize(("shape", "dtype"), [((1, 3), np.float32), ((3, 2), np.float32), ((2, 3), np.float64)])
def test_bound_memory_that_does_not_fit(session, shape, dtype):
    y = np.zeros(shape, dtype)
    binding = bound(session)
    binding.bind_output("s", "cpu", 0, dtype, y.shape, y.ctypes.data)
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(binding)


def test_bound_memory_needs_a_type_and_a_shape(session):
    with pytest.raises(ValueError, match="element_type"):
        bound(session).bind_output("s", "cpu", 0, None, None, A.ctypes.data)


def test_a_binding_without_outputs_or_inputs(session):
    binding = bound(session, "s")
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(binding)
    binding.bind_output("s")
    binding.clear_binding_inputs()
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(binding)


def test_names_that_are_not_the_models_are_not_bound(session):
    with pytest.raises(RuntimeError, match="nothing"):
        bound(session).bind_cpu_input("nothing", A)
    with pytest.raises(RuntimeError):
        bound(session).bind_cpu_input("a", [1.0])
    with pytest.raises(RuntimeError, match="nothing"):
        session.run_with_iobinding(bound(session, "nothing"))


@pytest.mark.since("1.32")
def test_a_binding_belongs_to_its_session(ort, session):
    other = ort.InferenceSession(kinds(), providers=PROVIDERS)
    with pytest.raises(ValueError, match="session"):
        other.run_with_iobinding(bound(session, "s"))

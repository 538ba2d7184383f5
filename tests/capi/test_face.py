"""Every function of neo.h: what it gives, and the line that it leaves when it refuses."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import ml_dtypes
import neo
import numpy as np
import onnx
import pytest
from neo import _native

from tests.capi import face
from tests.capi.face import Buffer, Limits, NeoError, Tensor, call, info_of, load, run, tensor
from tests.capi.libneo import ROOT, answers_of, compile_program, prefix, tool
from tests.capi.libneo import run as run_program
from tests.capi.values import DTYPES
from tests.models.conftest import tiers_of_this_machine
from tests.saved.parts import MODELS, feeds_of
from tests.saved.same_bits import assert_same

MODEL, SHAPE, DTYPE, UNSUPPORTED, RESOURCE, MEMORY, CANCELLED, TIME = 1, 2, 3, 4, 5, 6, 7, 9

_PAIR = """
<ir_version: 8, opset_import: ["" : 18]>
pair (float[N, 3] a, float[3, N] b) => (sum, product, size)
{
  turned = Transpose (b)
  sum = Add (a, turned)
  product = Mul (a, turned)
  size = Shape (a)
}
"""

_ENDLESS = """
<ir_version: 8, opset_import: ["" : 18]>
endless (int64 trips, float[4] x) => (y)
<bool go = {1}, float[1] one = {1}>
{
  y = Loop (trips, go, x) <
    body = step (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
      d = Identity (c)
      w = Add (v, one)
    }
  >
}
"""


def save(model: onnx.ModelProto | str, path: Path, **options: Any) -> neo.Module:
    module = neo.compile(onnx.parser.parse_model(model) if isinstance(model, str) else model, **options)
    module.save(path)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("capi")


@pytest.fixture(scope="module")
def pair_path(folder: Path) -> Path:
    save(_PAIR, folder / "pair.neo", threads=1)
    return folder / "pair.neo"


@pytest.fixture(scope="module")
def pair(pair_path: Path) -> c_void_p:
    return load(pair_path)


@pytest.fixture(scope="module")
def endless(folder: Path) -> c_void_p:
    save(_ENDLESS, folder / "endless.neo", threads=1)
    return load(folder / "endless.neo")


def arrays(n: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    return random.standard_normal((n, 3), np.float32), random.standard_normal((3, n), np.float32)


def outputs(n: int = 2) -> list[np.ndarray]:
    return [np.empty((n, 3), np.float32), np.empty((n, 3), np.float32), np.empty(2, np.int64)]


def refused(kind: int, text: str, function: Callable[..., Any], *args: Any, **given: Any) -> None:
    with pytest.raises(NeoError, match=text) as error:
        function(*args, **given)
    assert error.value.kind == kind
    assert "\n" not in str(error.value)


# ---- What it gives ----


def test_versions_are_the_projects() -> None:
    header = (prefix() / "include" / "neo.h").read_text()
    version = re.search(r"^project\(neo VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert version is not None
    numbers = re.findall(r"#define NEO_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    assert ".".join(numbers) == version[1] == face.library().neo_version().decode()
    assert f"#define NEO_ABI_VERSION {face.library().neo_abi_version()}\n" in header


def test_dtypes_have_their_names_and_sizes() -> None:
    lib = face.library()
    assert [lib.neo_dtype_name(i).decode() for i in range(len(DTYPES))] == DTYPES
    for number, name in enumerate(DTYPES):
        bytes_of = {"undefined": 0, "string": 16}.get(name)
        if bytes_of is None:
            bytes_of = np.dtype(getattr(ml_dtypes, name, name)).itemsize
        assert lib.neo_dtype_bytes(number) == bytes_of, name
    for number in (-1, len(DTYPES), 1 << 30):
        assert (lib.neo_dtype_name(number), lib.neo_dtype_bytes(number)) == (b"undefined", 0)


def described(info: face.Info) -> tuple[Any, ...]:
    shape = hints = None
    if info.rank >= 0:
        texts = [info.symbols[i] for i in range(info.rank)]
        shape = tuple(info.dims[i] if text is None else text.decode() for i, text in enumerate(texts))
        assert all((info.dims[i] == -1) == (text is not None) for i, text in enumerate(texts))
        hints = tuple(info.hints[i] for i in range(info.rank))
    dtype = DTYPES[info.dtype] if info.kind == 0 else info.type.decode()
    return info.name.decode(), dtype, shape, hints


@pytest.mark.parametrize("name", MODELS)
def test_inputs_and_outputs_are_described(name: str, tmp_path: Path) -> None:
    module = save(MODELS[name], tmp_path / "m.neo")
    loaded = load(tmp_path / "m.neo")
    for side, tensors in (("input", module.inputs), ("output", module.outputs)):
        count = c_size_t()
        call(f"neo_{side}_count", loaded, byref(count))
        assert count.value == len(tensors)
        for index, t in enumerate(tensors):
            assert described(info_of(loaded, side, index))[:3] == (t.name, t.dtype, t.shape)
            if t.hints is not None:
                assert described(info_of(loaded, side, index))[3] == t.hints
            call(f"neo_find_{side}", loaded, t.name.encode(), byref(count))
            assert count.value == index
    call("neo_release", loaded)


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_value_goes_in_and_out(name: str, tmp_path: Path) -> None:
    module = save(MODELS[name], tmp_path / "m.neo")
    feeds = feeds_of(name)
    ((answer,),) = answers_of([(tmp_path / "m.neo", [[feeds[t.name] for t in module.inputs]])], tmp_path)
    for (label, value), got in zip(module.run(feeds).items(), answer, strict=True):
        assert_same(got, value, label)


def test_notes_are_those_of_the_saver(pair: c_void_p) -> None:
    text = c_char_p()
    call("neo_note", pair, b"neo.version", byref(text))
    assert text.value == neo.__version__.encode()
    call("neo_note", pair, b"no such key", byref(text))
    assert text.value is None


def test_bytes_are_copied(pair_path: Path) -> None:
    data = ctypes.create_string_buffer(pair_path.read_bytes())
    module = c_void_p()
    call("neo_load_bytes", data, c_size_t(len(data) - 1), 1, byref(module))
    ctypes.memset(data, 0, len(data))
    a, b = arrays()
    found = outputs()
    run(module, [tensor(a), tensor(b)], found)
    np.testing.assert_array_equal(found[0], a + b.T)
    call("neo_release", module)


def test_a_result_outlives_module_and_inputs(pair_path: Path) -> None:
    module = load(pair_path)
    a, b = arrays(5)
    expected = a * b.T
    results, shown = c_void_p(), POINTER(Tensor)()
    call("neo_call", module, (Tensor * 2)(tensor(a), tensor(b)), c_size_t(2), None, byref(results))
    call("neo_release", module)
    a[:] = b[:] = 0
    call("neo_result", results, c_size_t(1), byref(shown))
    got = shown.contents
    assert (got.kind, DTYPES[got.dtype], got.rank, got.dims[0], got.dims[1], got.bytes) == (0, "float32", 2, 5, 3, 60)
    assert not got.strides
    assert ctypes.string_at(got.data, got.bytes) == expected.tobytes()
    call("neo_release_results", results)


def test_a_result_that_is_an_input_has_memory_of_its_own(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> same (float[4] x) => (y, s) { y = Identity (x) s = SequenceConstruct (x) }'
    save(text, tmp_path / "m.neo")
    module = load(tmp_path / "m.neo")
    x = np.arange(4, dtype=np.float32)
    results, shown = c_void_p(), POINTER(Tensor)()
    call("neo_call", module, byref(tensor(x)), c_size_t(1), None, byref(results))
    x[:] = -1
    call("neo_result", results, c_size_t(0), byref(shown))
    assert ctypes.string_at(shown.contents.data, 16) == np.arange(4, dtype=np.float32).tobytes()
    call("neo_result", results, c_size_t(1), byref(shown))
    assert (shown.contents.kind, shown.contents.item_count) == (1, 1)
    assert ctypes.string_at(shown.contents.items[0].data, 16) == np.arange(4, dtype=np.float32).tobytes()
    call("neo_release_results", results)
    call("neo_release", module)


def test_strides_are_followed(pair: c_void_p) -> None:
    wide = np.random.default_rng(1).standard_normal((8, 7), np.float32)
    packed = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)  # aligned to no element
    packed[:] = wide[:2, :3]
    b = arrays()[1]
    apart = wide[2:4, 1:4]  # rows are contiguous and lie apart
    for a in (wide[4::-3, 1:6:2], wide.T[:2, :3], np.broadcast_to(wide[0, :3], (2, 3)), apart, packed):
        found = outputs()
        assert run(pair, [tensor(a, strided=True), tensor(b)], found) == [24, 24, 16]
        np.testing.assert_array_equal(found[0], a + b.T)
        np.testing.assert_array_equal(found[2], [2, 3])


def test_any_number_of_threads_has_the_same_bits(pair: c_void_p) -> None:
    a, b = arrays(500)
    answers = []
    for threads in (1, 2, 3):
        other, count = c_void_p(), ctypes.c_int()
        call("neo_with_threads", pair, threads, byref(other))
        call("neo_threads", other, byref(count))
        assert count.value == threads
        answers.append(outputs(500))
        run(other, [tensor(a), tensor(b)], answers[-1])
        call("neo_release", other)
    for found in answers:
        assert [x.tobytes() for x in found] == [x.tobytes() for x in answers[0]]


def test_any_number_of_executors_has_the_same_bits(pair: c_void_p) -> None:
    a, b = arrays(500)
    answers = []
    for executors, each in ((1, 1), (2, 1), (2, 2), (3, 1)):
        other, count = c_void_p(), ctypes.c_int()
        call("neo_with_executors", pair, executors, each, byref(other))
        call("neo_executors", other, byref(count))
        assert count.value == executors
        call("neo_threads", other, byref(count))
        assert count.value == executors * each
        answers.append(outputs(500))
        run(other, [tensor(a), tensor(b)], answers[-1])
        call("neo_release", other)
    for found in answers:
        assert [x.tobytes() for x in found] == [x.tobytes() for x in answers[0]]
    for executors, each in ((0, 1), (1, 0), (-1, 2)):
        refused(
            MODEL,
            "executors and threads must be positive",
            call,
            "neo_with_executors",
            pair,
            executors,
            each,
            byref(other),
        )


def test_zero_threads_are_the_default(pair_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO_NUM_THREADS", "3")
    module, count = load(pair_path, threads=0), ctypes.c_int()
    call("neo_threads", module, byref(count))
    assert count.value == 3
    call("neo_release", module)


def test_a_call_is_cancelled_from_another_thread(endless: c_void_p) -> None:
    trips, x, y = np.array(1 << 62), np.zeros(4, np.float32), np.empty(4, np.float32)
    token = c_void_p()
    call("neo_new_token", byref(token))
    timer = threading.Timer(0.1, call, ("neo_cancel", token))
    timer.start()
    refused(CANCELLED, "the call was cancelled", run, endless, [tensor(trips), tensor(x)], [y], token)
    timer.join()
    refused(CANCELLED, "the call was cancelled", run, endless, [tensor(np.array(1)), tensor(x)], [y], token)
    call("neo_release_token", token)
    run(endless, [tensor(np.array(7)), tensor(x)], [y])
    np.testing.assert_array_equal(y, 7)


def test_many_threads(folder: Path) -> None:
    save(onnx.load(Path(neo.__file__).parent / "demo" / "digits.onnx"), folder / "digits.neo")
    program = compile_program(ROOT / "tests" / "capi" / "threads.c", "-pthread")
    assert run_program([program, folder / "digits.neo"]) == "1600 the same\n"


# ---- Limits ----


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_file_stays_within_limits(pair_path: Path, as_bytes: bool) -> None:
    source = pair_path.read_bytes() if as_bytes else pair_path
    size = pair_path.stat().st_size
    call("neo_release", load(source, limits=Limits(bytes=size)))
    refused(MODEL, rf"at most {size - 1} bytes. Got {size}$", load, source, limits=Limits(bytes=size - 1))
    refused(MEMORY, "memory must stay within its limit", load, source, limits=Limits(memory=100))
    refused(MODEL, "must not be negative. Got -1", load, source, limits=Limits(seconds=-1))


def test_calls_stay_within_limits(tmp_path: Path) -> None:
    path = tmp_path / "endless.neo"
    save(_ENDLESS, path)
    module = load(path, limits=Limits(seconds=0.1))
    trips, x = np.array(2**60), np.ones(4, np.float32)
    given = [tensor(trips), tensor(x)]
    refused(TIME, "must end in time. Got longer, expected at most 0.1 s", run, module, given, [np.empty(4, np.float32)])
    other = c_void_p()
    call("neo_with_threads", module, 2, byref(other))
    refused(TIME, "must end in time", run, other, given, [np.empty(4, np.float32)])
    for m in (module, other):
        call("neo_release", m)


# ---- What it refuses ----


def null(function: str, *args: Any) -> pytest.param:
    return pytest.param(function, args, id=f"{function}-{sum(a is None for a in args)}")


@pytest.mark.parametrize(
    ("function", "args"),
    [
        null("neo_load", None, 0, None),
        null("neo_load", b"x", 0, None),
        null("neo_load_bytes", None, c_size_t(8), 0, None),
        null("neo_load_within", None, 0, None, None),
        null("neo_load_bytes_within", None, c_size_t(8), 0, None, None),
        null("neo_with_threads", None, 1, None),
        null("neo_with_executors", None, 1, 1, None),
        null("neo_threads", None, None),
        null("neo_executors", None, None),
        null("neo_input_count", None, None),
        null("neo_output_count", None, None),
        null("neo_input", None, c_size_t(0), None),
        null("neo_output", None, c_size_t(0), None),
        null("neo_find_input", None, None, None),
        null("neo_find_output", None, b"x", None),
        null("neo_note", None, None, None),
        null("neo_new_token", None),
        null("neo_cancel", None),
        null("neo_run", None, None, c_size_t(0), None, c_size_t(0), None),
        null("neo_call", None, None, c_size_t(0), None, None),
        null("neo_result_count", None, None),
        null("neo_result", None, c_size_t(0), None),
    ],
)
def test_null_is_refused(function: str, args: tuple[Any, ...]) -> None:
    refused(MODEL, rf"^\[{function}\] .* must .*\. Got NULL$", call, function, *args)


def test_null_is_refused_beside_a_module(pair: c_void_p) -> None:
    for function, args in {
        "neo_with_threads": (1, None),
        "neo_with_executors": (1, 1, None),
        "neo_threads": (None,),
        "neo_executors": (None,),
        "neo_input": (c_size_t(0), None),
        "neo_find_output": (None, None),
        "neo_note": (b"x", None),
        "neo_call": (None, c_size_t(2), None, byref(c_void_p())),
        "neo_run": (None, c_size_t(2), (Buffer * 3)(), c_size_t(3), None),
    }.items():
        refused(MODEL, rf"^\[{function}\] .* must not be NULL\. Got NULL$", call, function, pair, *args)


def test_only_live_handles_of_their_type_are_taken(pair_path: Path) -> None:
    module, token, count = load(pair_path), c_void_p(), c_size_t()
    call("neo_new_token", byref(token))
    for wrong in (c_void_p(0x7FFF12345678), c_void_p(1), token):
        refused(MODEL, "must be a handle that was given out", call, "neo_input_count", wrong, byref(count))
        refused(MODEL, "must be a handle that was given out", call, "neo_release", wrong)
    refused(MODEL, "a token must be a handle", call, "neo_cancel", module)
    a, b = arrays()
    refused(MODEL, "a token must be a handle", run, module, [tensor(a), tensor(b)], outputs(), module)
    refused(MODEL, "results must be a handle", call, "neo_result_count", module, byref(count))
    call("neo_release", module)
    refused(MODEL, "must be a handle that was given out and not released. Got another", call, "neo_release", module)
    refused(
        MODEL, "must be a handle that was given out and not released", call, "neo_input_count", module, byref(count)
    )
    call("neo_release_token", token)
    for function in ("neo_release", "neo_release_token", "neo_release_results"):
        call(function, None)


def test_files_that_are_no_module(pair_path: Path, tmp_path: Path) -> None:
    whole = pair_path.read_bytes()
    refused(RESOURCE, r"No such file or directory - at \".*none.neo\"$", load, tmp_path / "none.neo")
    refused(RESOURCE, "must be a regular file", load, tmp_path)
    for name, data in {
        "empty": b"",
        "cut": whole[:-64],
        "text": b"hello, world" * 9,
        "long": whole + bytes(64),
    }.items():
        (tmp_path / name).write_bytes(data)
        refused(MODEL, rf"^\[load\] .*- at {tmp_path / name}$", load, tmp_path / name)
        refused(MODEL, r"^\[load\] .*- at bytes$", load, data)
    (tmp_path / "old").write_bytes(
        whole.replace(b'"neo.format":"4"', b'"neo.format":"0"').replace(b'"neo.format": "4"', b'"neo.format": "0"')
    )
    refused(
        UNSUPPORTED,
        r"of a format that this neo reads\. Got 0, expected 1 to 6 - at .*old Hint: compile the model again\.$",
        load,
        tmp_path / "old",
    )
    refused(MODEL, "threads must be positive, or 0 for the default. Got -1", load, pair_path, -1)


def test_an_instruction_set_that_does_not_run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiers = tiers_of_this_machine()
    save(_PAIR, tmp_path / "m.neo", target=f"cpu:{tiers[-1]}")
    monkeypatch.setenv("NEO_MAX_ISA", tiers[-2])
    refused(
        UNSUPPORTED,
        rf"^\[load\] a saved module must be for an instruction set that runs here\. Got {tiers[-1]}, expected {tiers[-2]} "
        rf'or weaker - at .*m.neo Hint: compile the model for target "cpu:{tiers[-2]}"\.$',
        load,
        tmp_path / "m.neo",
    )


def test_names_and_numbers(pair: c_void_p) -> None:
    index = c_size_t()
    refused(
        MODEL,
        "a name must be the model's. Got 'c', expected 'a', 'b'$",
        call,
        "neo_find_input",
        pair,
        b"c",
        byref(index),
    )
    refused(MODEL, "Got 2, expected below 2$", info_of, pair, "input", 2)
    refused(MODEL, "Got 3, expected below 3$", info_of, pair, "output", 3)
    a, b = arrays()
    refused(MODEL, "every input must be given. Got 1 inputs, expected 2$", run, pair, [tensor(a)], outputs())
    refused(
        MODEL, "every output must have a buffer. Got 1 buffers, expected 3$", run, pair, [tensor(a), tensor(b)], [a]
    )


def wrong(**fields: Any) -> Tensor:
    a = arrays()[0]
    made = tensor(a)
    made.keep = a
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("kind", "text", "fields"),
    [
        (DTYPE, r"dtype must be the input's. Got float64, expected float32 - at input 'a'", {"dtype": 1, "bytes": 48}),
        (DTYPE, r"must be one of neo_dtype. Got 0 - at input 'a'", {"dtype": 0}),
        (DTYPE, r"must be one of neo_dtype. Got 99 - at input 'a'", {"dtype": 99}),
        (DTYPE, r"must be a tensor, a sequence, a map or none. Got kind 7 - at input 'a'", {"kind": 7}),
        (DTYPE, r"must be a tensor, a sequence, a map or none. Got kind 2 - at input 'a'", {"kind": 2}),
        (MODEL, r"a map must have two items, the tensors of its keys and of its values. Got 0 - at", {"kind": 4}),
        (DTYPE, r"an input of type float32\[N,3\] must be an array. Got a list - at input 'a'", {"kind": 1}),
        (DTYPE, r"an input of type float32\[N,3\] must be an array. Got None - at input 'a'", {"kind": 3}),
        (MODEL, r"items must not be NULL. Got NULL, expected 3 - at input 'a'", {"kind": 1, "item_count": 3}),
        (MODEL, r"data must not be NULL. Got NULL, expected 24 bytes - at input 'a'", {"data": None}),
        (MODEL, r"dims must not be NULL. Got NULL, expected 2 sizes - at input 'a'", {"dims": None}),
        (SHAPE, r"a rank must be at least 0 and at most 1024. Got -1 - at input 'a'", {"rank": -1}),
        (SHAPE, r"a rank must be at least 0 and at most 1024. Got 2147483647", {"rank": 2147483647}),
        (SHAPE, r"shape must be the input's. Got \[2\], expected \[N,3\] - at input 'a'", {"rank": 1, "bytes": 8}),
        (SHAPE, r"Got 20, expected 24 for float32\[2,3\] - at input 'a'", {"bytes": 20}),
        (SHAPE, r".", {"dims": (ctypes.c_int64 * 2)(-2, 3)}),
        (SHAPE, r".", {"dims": (ctypes.c_int64 * 2)(1 << 62, 1 << 62)}),
        (SHAPE, r"one size has one value", {"dims": (ctypes.c_int64 * 2)(1, 3), "bytes": 12}),
    ],
)
def test_inputs_that_do_not_fit(pair: c_void_p, kind: int, text: str, fields: dict[str, Any]) -> None:
    b = arrays()[1]
    refused(kind, text, run, pair, [wrong(**fields), tensor(b)], outputs())


def test_buffers_that_do_not_fit(pair: c_void_p) -> None:
    a, b = arrays()
    found = outputs()
    found[1] = np.full((1, 3), 9, np.float32)
    inputs = [tensor(a), tensor(b)]
    refused(SHAPE, r"Got 12 bytes, expected 24 for \[2,3\] - at output 'product'", run, pair, inputs, found)
    assert (found[1] == 9).all()
    found[1] = np.empty((2, 3), np.int32)
    refused(
        DTYPE, "dtype must be the output's. Got int32, expected float32 - at output 'product'", run, pair, inputs, found
    )
    buffers = (Buffer * 3)(Buffer(dtype=2, bytes=24), Buffer(dtype=2, bytes=24), Buffer(dtype=11, bytes=16))
    args = ((Tensor * 2)(*inputs), c_size_t(2), buffers, c_size_t(3), None)
    refused(MODEL, "must not be NULL. Got NULL, expected 24 bytes - at output 'sum'", call, "neo_run", pair, *args)


def test_strings_and_sequences_do_not_go_into_buffers(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> one (string[1] x) => (y) { y = Identity (x) }'
    save(text, tmp_path / "m.neo")
    module = load(tmp_path / "m.neo")
    word = ctypes.create_string_buffer(b"word")
    element = (c_size_t * 2)(ctypes.addressof(word), 4)
    x = Tensor(dtype=DTYPES.index("string"), rank=1, dims=(ctypes.c_int64 * 1)(1), data=ctypes.addressof(element))
    refused(UNSUPPORTED, r"Got string\[1\] - at output 'y' Hint: neo_call", run, module, [x], [np.empty(2)])
    element[0] = 0
    refused(
        MODEL, "a string must not be NULL. Got NULL, expected 4 bytes - at input 'x'", run, module, [x], [np.empty(2)]
    )
    call("neo_release", module)


def test_an_error_is_the_threads_own(pair: c_void_p) -> None:
    refused(MODEL, "handle", call, "neo_release", c_void_p(1))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(face.library().neo_last_error()))
    thread.start()
    thread.join()
    assert seen == [b""]


# ---- The library as a file ----


def exported_symbols(library: Path) -> set[str]:
    listed = run_program([tool("nm"), "-D", "--defined-only", library])
    return {line.split()[-1] for line in listed.splitlines() if not re.search(r"__(a|t|l)san|_asan", line)}


def test_only_the_face_is_exported() -> None:
    header = (prefix() / "include" / "neo.h").read_text()
    declared = set(re.findall(r"^NEO_API [^(]*?(neo_\w+)\(", header, re.MULTILINE))
    assert len(declared) > 20
    exported = exported_symbols(prefix() / "lib" / "libneo.so.0")
    assert exported == {"NEO_0", *(f"{name}@@NEO_0" for name in declared)}


def test_the_extension_exports_its_one_function() -> None:
    assert exported_symbols(_native.library_path()) == {"PyInit__neo"}


def test_it_needs_the_system_only() -> None:
    needed = re.findall(
        r"\(NEEDED\).*\[(.*?)\]", run_program([tool("readelf"), "-d", prefix() / "lib" / "libneo.so.0"])
    )
    assert {re.split(r"[.-]", name)[0] for name in needed} - {"libasan", "libubsan", "libtsan"} <= {
        *("libc", "libm", "libgcc_s", "libstdc++", "libpthread", "libdl", "ld")
    }
    undefined = run_program([tool("nm"), "-D", "--undefined-only", prefix() / "lib" / "libneo.so.0"])
    assert not re.search(r"\b_?Py[A-Z]", undefined)
    assert not re.search(r"\b(signal|sigaction|fopen|system|execve?|popen)\b", undefined)

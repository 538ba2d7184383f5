"""One case per message that a call or a compilation with wrong arguments gives."""

import io

import neo
import numpy as np
import pytest
from neo import _native, demo
from neo.serve import Application
from onnx import TensorProto, helper

from tests.api.conftest import build, two_by_two, value

A = np.zeros((2, 3), np.float32)


@pytest.fixture(scope="module")
def pair():
    return neo.compile(two_by_two(), threads=1)


def fails(error, message, call, *arguments, **keywords):
    with pytest.raises(error) as caught:
        call(*arguments, **keywords)
    assert message in str(caught.value)
    assert isinstance(caught.value, neo.Error)
    return caught.value


# --- names ---


def test_a_name_that_the_model_lacks(pair):
    fails(
        neo.ModelError,
        "[run] input names must be the model's. Got 'c', expected 'a', 'b'",
        pair.run,
        {"a": A, "b": A, "c": A},
    )


def test_an_input_left_out(pair):
    fails(neo.ModelError, "[run] every input must be given. Got none for 'b', expected 'a', 'b'", pair.run, {"a": A})
    fails(neo.ModelError, "[run] every input must be given. Got none for 'b', expected 'a', 'b'", pair, A)


def test_more_arrays_than_inputs(pair):
    fails(neo.ModelError, "[run] every array must have an input. Got 3 arrays, expected at most 2", pair, A, A, A)


def test_an_input_given_twice(pair):
    fails(neo.ModelError, "[run] an input must be given once. Got 'a' by position and by name", pair, A, a=A)


def test_run_without_names(pair):
    error = fails(
        neo.DTypeError, "[run] inputs must be a mapping of names to arrays. Got ndarray, expected a dict", pair.run, A
    )
    assert isinstance(error, TypeError)


# --- arrays ---


@pytest.mark.parametrize("dtype", ["float64", "int32", "float16", "bool", "complex64", "<U1"])
def test_an_array_of_another_dtype(pair, dtype):
    x = A.astype(dtype)
    error = fails(
        neo.DTypeError, f"[run] dtype must be the input's. Got {x.dtype}, expected float32 - at input 'b'", pair, A, x
    )
    assert isinstance(error, TypeError)


@pytest.mark.parametrize("shape", [(2, 4), (3,), (1, 2, 3), ()])
def test_an_array_of_another_shape(pair, shape):
    text = ",".join(map(str, shape))
    error = fails(
        neo.ShapeError,
        f"[run] shape must be the input's. Got [{text}], expected [N,3] - at input 'a'",
        pair,
        np.zeros(shape, np.float32),
        A,
    )
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((1, 8, 8), "image[None] is a batch of one"),
        ((3, 8, 8, 1), "image.transpose(0, 3, 1, 2)"),
        ((3, 2, 8, 8), None),
        ((8, 8), None),
        ((3, 8, 8, 2), None),
    ],
)
def test_a_photograph_alone_or_with_channels_last(shape, hint):
    module = neo.compile(demo.model_bytes(), threads=1)
    with pytest.raises(neo.ShapeError, match="at input 'image'") as caught:
        module(np.zeros(shape, np.float32))
    assert str(caught.value).partition("\nHint: ")[2] == (hint or "")


def test_two_sizes_for_one_symbol(pair):
    fails(
        neo.ShapeError,
        '[run] one size has one value. Got N=2 before and N=4 at axis 0 of "b"',
        pair,
        A,
        np.zeros((4, 3), np.float32),
    )


def test_a_size_outside_its_range():
    module = neo.compile(two_by_two(), shapes={"N": (2, 4)})
    module(A, A)
    fails(
        neo.ShapeError,
        '[run] a size must lie in its range. Got N=5, expected 2 to 4 - at axis 0 of "a"',
        module,
        np.zeros((5, 3), np.float32),
        np.zeros((5, 3), np.float32),
    )


@pytest.mark.parametrize(
    ("x", "kind"), [([[1, 2, 3], [4]], "list"), (object(), "object"), (None, "NoneType"), ("text", "str")]
)
def test_something_that_is_no_array_of_numbers(pair, x, kind):
    with pytest.raises(
        neo.DTypeError,
        match=r"\[run\] (an input must give an array. Got "
        + kind
        + r"|dtype must be the input's. Got ).* - at input 'b'",
    ):
        pair(A, x)


class OnAnotherDevice:
    def __dlpack__(self, **options):
        raise BufferError("the memory lies on a GPU")

    def __dlpack_device__(self):
        return (2, 0)


def test_an_array_that_cannot_be_read_here(pair):
    with pytest.raises(neo.DTypeError, match=r"\[run\] an input must give an array. Got OnAnotherDevice \(.*\)"):
        pair(A, OnAnotherDevice())


@pytest.mark.parametrize(
    ("dtype", "number"), [(TensorProto.INT32, 1.5), (TensorProto.UINT8, 256), (TensorProto.UINT8, -1)]
)
def test_a_plain_number_that_the_dtype_cannot_hold(dtype, number):
    module = neo.compile(
        build([helper.make_node("Identity", ["x"], ["y"])], [value("x", [], dtype)], [value("y", [], dtype)])
    )
    fails(neo.DTypeError, "[run] values must fit the dtype. Got ", module, number)


def test_numbers_where_strings_are_wanted():
    module = neo.compile(
        build(
            [helper.make_node("Identity", ["x"], ["y"])],
            [value("x", [2], TensorProto.STRING)],
            [value("y", [2], TensorProto.STRING)],
        )
    )
    assert module(["a", "b"]).tolist() == ["a", "b"]
    fails(
        neo.DTypeError,
        "[run] dtype must be the input's. Got float32, expected string - at input 'x'",
        module,
        np.zeros(2, np.float32),
    )


def sequence_module():
    return neo.compile(
        build(
            [helper.make_node("SequenceAt", ["x", "first"], ["y"])],
            [helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, ["N"])],
            [value("y", ["N"])],
            {"first": np.array(0, np.int64)},
        )
    )


def test_a_sequence_takes_a_list_of_its_dtype_and_rank():
    module = sequence_module()
    np.testing.assert_array_equal(module([np.ones(2, np.float32)]), [1, 1])
    fails(neo.DTypeError, "must be a list. Got an array - at input 'x'", module, np.ones(2, np.float32))
    fails(neo.DTypeError, "must be a list. Got None - at input 'x'", module, None)
    fails(neo.DTypeError, "must be an array. Got a list - at input 'x'", module, [[np.ones(2, np.float32)]])
    fails(
        neo.DTypeError,
        "[run] dtype must be the input's. Got float64, expected float32 - at input 'x'",
        module,
        [np.ones(2)],
    )


def test_an_optional_may_be_left_out():
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    module = neo.compile(
        build(
            [helper.make_node("OptionalHasElement", ["x"], ["y"])],
            [helper.make_value_info("x", optional)],
            [value("y", [], TensorProto.BOOL)],
        )
    )
    assert module.run({})["y"] == np.False_
    assert module.run({"x": None})["y"] == np.False_
    assert module.run({"x": np.ones(2, np.float32)})["y"] == np.True_
    fails(neo.DTypeError, "[run] dtype must be the input's. Got int64", module, np.ones(2, np.int64))


# --- compile's arguments ---


def compiles(**options):
    return neo.compile(demo.model_bytes(), **options)


@pytest.mark.parametrize("target", ["tpu", "", "CPU"])
def test_an_unknown_target(target):
    fails(
        neo.ModelError,
        f'[compile] target must be known. Got "{target}", expected "cpu", "cpu:<instruction set>", "opencl", "mali", "intel_graphics"',
        compiles,
        target=target,
    )


def test_a_target_with_an_unknown_instruction_set():
    fails(
        neo.ModelError,
        "[compile] instruction set must be a known one. Got 'sse9', expected one of scalar, avx2, ",
        compiles,
        target="cpu:sse9",
    )


def test_a_target_of_another_machine():
    absent = next(t["name"] for t in _native.targets() if not t["runs_here"])
    message = f"[compile] target must run on this machine. Got '{absent}', expected one of cpu, cpu:scalar"
    fails(neo.UnsupportedError, message, compiles, target=absent)


def test_shapes_that_are_no_mapping():
    message = "[import] shapes must be a mapping of symbols to sizes. Got list, expected a dict"
    fails(neo.DTypeError, message, compiles, shapes=["N"])


def test_a_target_that_is_no_name():
    fails(
        neo.DTypeError,
        "[compile] target must be a name or a list of names. Got None, expected a str",
        compiles,
        target=None,
    )


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, 1025, 10**9])
def test_threads_that_are_no_count(threads):
    message = f"threads must be a positive int. Got {threads!r}, expected 1 to 1024"
    fails(neo.ModelError, f"[compile] {message}", compiles, threads=threads)
    fails(neo.ModelError, f"[with_threads] {message}", compiles(threads=1).with_threads, threads)


@pytest.mark.parametrize("executors", [0, -1, "4x2", "", (0, 1), (2, 0), (2,), (1, 2, 3), 1025, (2, 1.5)])
def test_executors_that_are_no_counts(executors):
    message = "[compile] executors must be 'auto', their number, or that and the threads of each, 1 to 1024"
    fails(neo.ModelError, message, compiles, executors=executors)


@pytest.mark.parametrize("executors", [True, 1.5, {}])
def test_executors_of_another_type(executors):
    name = type(executors).__name__
    message = f"[compile] executors must be a number or two. Got {name}, expected an int or (int, int)"
    fails(neo.DTypeError, message, compiles, executors=executors)


def test_executors_that_are_not_the_threads():
    message = "[compile] threads must be those of all executors. Got 4 and 3 executors of 2, expected 6"
    fails(neo.ModelError, message, compiles, executors=(3, 2), threads=4)
    message = "[compile] executors must have a thread each. Got 3 executors of 2 threads"
    fails(neo.ModelError, message, compiles, executors=3, threads=2)
    message = "[with_executors] executors must be 'auto', their number, or that and the threads of each, 1 to 1024"
    fails(neo.ModelError, message, compiles(threads=1).with_executors, 0, 1)


def test_an_unknown_accuracy():
    fails(
        neo.ModelError,
        "[compile] accuracy must be known. Got 'high', expected 'default', 'strict', 'reduced' or a number from 0 to 1",
        compiles,
        accuracy="high",
    )
    assert compiles(accuracy="strict").target == "cpu"


@pytest.mark.parametrize("memory", [-1, "1 GB", 1.5, True])
def test_memory_that_is_no_number_of_bytes(memory):
    fails(
        neo.ModelError,
        f"[compile] memory must be a number of bytes. Got {memory!r}, expected an int of 0 or more",
        compiles,
        memory=memory,
    )


def test_a_pin_that_matches_no_node():
    error = fails(
        neo.ModelError,
        "[compile] a pin must match a node of the compiled graph. Got 'conv9', expected one of 'stem.conv', ",
        compiles,
        routines={"conv9": "cpu/reference"},
    )
    assert isinstance(error, ValueError)


def test_a_pin_that_matches_no_routine():
    fails(
        neo.ModelError,
        "[compile] a pin must match a routine. Got 'cpu:float32/magic' for 'block.conv', expected one of ",
        compiles,
        routines={"block.conv": ["cpu/reference", "cpu:float32/magic"]},
    )


def test_a_pin_to_an_expansion_that_the_node_has_not():
    with pytest.raises(
        neo.ModelError, match="a pin must leave the node a routine. Got none for 'block.conv'"
    ) as raised:
        compiles(routines={"block.conv": "expansion/split_groups"})
    assert "expansion/" not in str(raised.value)


def test_a_pin_that_leaves_a_node_without_a_routine():
    fails(
        neo.ModelError,
        "[compile] a pin must leave the node a routine. Got none for 'block.conv', expected one of cpu",
        compiles,
        routines={"block.conv": "cpu:float32/softmax"},
    )


def test_pins_that_are_no_mapping():
    fails(
        neo.DTypeError,
        "[compile] routines must be a mapping of nodes to routines. Got str, expected a dict",
        compiles,
        routines="cpu/reference",
    )


@pytest.mark.parametrize("model", [None, 5, ["model.onnx"]])
def test_a_model_of_another_kind(model):
    fails(
        neo.DTypeError,
        f"[import] model must be a path, bytes or an onnx.ModelProto. Got {type(model).__name__}",
        neo.compile,
        model,
    )


def test_a_node_to_explain_that_is_not_there(pair):
    fails(
        neo.ModelError,
        "[explain] node must be in the compiled graph. Got 'nowhere', expected one of 'adds', 'subtracts'",
        pair.explain,
        "nowhere",
    )


@pytest.mark.parametrize("threads", [np.int64(2), np.int8(2), np.uint16(2)])
def test_numbers_of_numpy_are_numbers(threads):
    made = demo.model_bytes()
    assert neo.compile(made, threads=threads).threads == 2
    module = neo.compile(made, shapes={"N": np.int64(3)}, threads=1)
    assert module.inputs[0].shape == (3, 1, 8, 8)
    assert neo.compile(made, shapes={"N": (np.int64(1), 4)}, memory=np.int64(1 << 40), threads=1).threads == 1


@pytest.mark.parametrize(
    "size", [np.float32(3), np.bool_(True), True, np.array([3, 4]), "3", None, (1, 2, 3), (), (1, "2")]
)
def test_sizes_that_are_none(size):
    with pytest.raises(neo.ModelError, match=r"^\[import\] shapes must be sizes or \(least, most\)\. Got [^\n]*$"):
        neo.compile(demo.model_bytes(), shapes={"N": size})


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.map([], in_flight=0), neo.ModelError, "in_flight must be positive. Got 0"),
        (lambda m: m.map([], in_flight="2"), neo.ModelError, "in_flight must be positive. Got '2'"),
        (lambda m: m.map(3), neo.DTypeError, "calls must be an iterable of inputs. Got int"),
        (lambda m: m.profile({}, repeat=0), neo.ModelError, "repeat must be positive. Got 0"),
        (lambda m: m.profile({}, repeat="x"), neo.ModelError, "repeat must be positive. Got 'x'"),
        (lambda m: m.save(io.StringIO()), neo.DTypeError, "target must be a path or a binary file. Got StringIO"),
        (lambda m: m.stream(3), neo.DTypeError, "states must be a mapping of inputs to outputs. Got int"),
        (
            lambda m: neo.check_accuracy(demo.model_bytes(), inputs=3),
            neo.DTypeError,
            "inputs must be a mapping of arrays",
        ),
        (lambda m: Application(3), neo.DTypeError, "modules must be a mapping of names to modules. Got 3"),
        (lambda m: Application({"a": 3}), neo.DTypeError, "modules must be a mapping of names to modules"),
        (lambda m: Application({3: m}), neo.DTypeError, "modules must be a mapping of names to modules"),
        (lambda m: Application({"a": m}, max_bytes="x"), neo.ModelError, "max_bytes must be positive. Got 'x'"),
        (lambda m: Application({"a": m}, timeout="x"), neo.ModelError, "times must be positive"),
        (lambda m: Application({"a": m}, batch_delay=float("inf")), neo.ModelError, "times must be positive"),
    ],
)
def test_arguments_that_make_no_sense(call, error, text):
    module = neo.compile(demo.model_bytes(), threads=1)
    with pytest.raises(error) as raised:
        call(module)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)

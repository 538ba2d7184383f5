"""Operators that a program computes by functions of its own."""

import concurrent.futures
import pickle
import subprocess
import sys
import textwrap

import neo
import numpy as np
import onnx
import pytest
from neo.cli import main
from onnx import TensorProto, helper, numpy_helper

from tests.api.conftest import build, value

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def model_of(*nodes, outputs=("y",), inputs=None, constants=None, dtype=TensorProto.FLOAT):
    made = build(
        list(nodes), inputs or [value("x", ["N", 3])], [value(name, None, dtype) for name in outputs], constants
    )
    made.opset_import.append(helper.make_opsetid("tests", 1))
    return made


def node(op, inputs, outputs, name="mine", **attributes):
    return helper.make_node(op, inputs, outputs, name, domain="tests", **attributes)


def flip(x, *, axis=0):
    return np.flip(x, axis)


@pytest.fixture
def flipping():
    """Relu, the operator of this file, and a sum."""
    neo.register_op("tests.Flip", flip)
    return model_of(
        helper.make_node("Relu", ["x"], ["r"]),
        node("Flip", ["r"], ["f"], axis=1),
        helper.make_node("Add", ["f", "x"], ["y"]),
    )


def flipped(x):
    return np.flip(np.maximum(x, 0), 1) + x


def test_a_node_is_computed_by_the_function(flipping):
    module = neo.compile(flipping)
    for rows in (0, 1, 2, 7):
        x = np.random.default_rng(rows).standard_normal((rows, 3), np.float32)
        np.testing.assert_array_equal(module(x), flipped(x))


def test_a_decorator_gives_the_function_back():
    @neo.register_op("tests.Twice")
    def twice(x):
        return x * 2

    np.testing.assert_array_equal(twice(X), X * 2)
    np.testing.assert_array_equal(neo.compile(model_of(node("Twice", ["x"], ["y"])))(X), X * 2)


def test_inputs_that_are_left_out_and_outputs_of_other_shapes():
    def function(x, left_out, scale):
        assert left_out is None
        return x * scale, np.concatenate([x, x]), x[x > 0]

    def infer(x, left_out, scale):
        assert left_out is None
        assert (scale.dtype, scale.shape) == ("float32", ())
        rows, columns = x.shape
        return x, (np.float32, (f"2*{rows}", columns)), neo.Tensor("", x.dtype, (None,))

    neo.register_op("tests.Three", function, infer=infer)
    module = neo.compile(
        model_of(
            node("Three", ["x", "", "scale"], ["a", "b", "c"]),
            outputs=("a", "b", "c"),
            constants={"scale": np.float32(3)},
        )
    )
    assert [t.shape for t in module.outputs[:2]] == [("N", 3), ("2*N", 3)]
    for got, expected in zip(module(X), (X * 3, np.concatenate([X, X]), X[X > 0]), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_outputs_that_the_node_does_not_ask_for():
    neo.register_op("tests.Halves", lambda x: (x / 2, x / 4), infer=lambda x: (x, x))
    first = neo.compile(model_of(node("Halves", ["x"], ["y"])))
    second = neo.compile(model_of(node("Halves", ["x"], ["", "y"])))
    np.testing.assert_array_equal(first(X), X / 2)
    np.testing.assert_array_equal(second(X), X / 4)


@pytest.mark.parametrize(
    "given",
    [
        {"i": 3, "f": 0.5, "s": "text", "l": [1, 2], "g": [0.5], "t": ["a"]},
        {"a": np.arange(3, dtype=np.int64)},
    ],
)
def test_attributes_are_keywords(given):
    seen = []

    def function(x, **attributes):
        seen.append(attributes)
        return x

    neo.register_op("tests.Attributes", function, infer=lambda x, **_: x)
    made = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    neo.compile(model_of(node("Attributes", ["x"], ["y"], **made)))(X)
    assert set(seen[-1]) == set(given)
    for name, attribute in given.items():
        np.testing.assert_array_equal(seen[-1][name], attribute)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "int64", "uint8", "bool", "string"])
def test_dtypes(dtype):
    neo.register_op("tests.Reverse", lambda x: x[::-1])
    element = TensorProto.STRING if dtype == "string" else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    module = neo.compile(model_of(node("Reverse", ["x"], ["y"]), inputs=[value("x", ["N"], element)], dtype=element))
    x = np.array(["a", "", "äb"], object) if dtype == "string" else np.array([1, 0, 1]).astype(dtype)
    np.testing.assert_array_equal(module(x), x[::-1])
    assert module(x).dtype == x.dtype


def test_sequences_go_in_and_out():
    neo.register_op("tests.Rows", lambda x: list(x), infer=lambda x: ("seq(float32[*])", None))
    neo.register_op("tests.Count", lambda rows: np.int64(len(rows)), infer=lambda rows: ("int64", ()))
    module = neo.compile(
        model_of(node("Rows", ["x"], ["rows"]), node("Count", ["rows"], ["y"], "counts"), dtype=TensorProto.INT64)
    )
    assert module(X) == 2


def test_the_functions_arrays_are_its_own():
    kept = []

    def function(x):
        kept.append(x)
        x += 1
        return x

    neo.register_op("tests.Keeps", function)
    module = neo.compile(model_of(node("Keeps", ["x"], ["y"])))
    x = X.copy()
    np.testing.assert_array_equal(module(x), X + 1)
    np.testing.assert_array_equal(x, X)
    module(np.zeros((500, 3), np.float32))
    np.testing.assert_array_equal(kept[-2], X + 1)


def test_calls_from_many_threads(flipping):
    module = neo.compile(flipping)
    expected = flipped(X)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all((y == expected).all() for y in pool.map(module, [X] * 40))
    futures = [module.run_async({"x": X}) for _ in range(20)]
    assert all((f.result()["y"] == expected).all() for f in futures)


def test_a_pure_operator_of_constants_is_computed_once():
    calls = []

    def function(x):
        calls.append(x)
        return x + 1

    constant = model_of(
        node("Counted", ["k"], ["s"]),
        helper.make_node("Add", ["s", "x"], ["y"]),
        constants={"k": np.ones(3, np.float32)},
    )
    neo.register_op("tests.Counted", function)
    module = neo.compile(constant)
    assert len(calls) == 1
    np.testing.assert_array_equal(module(X), X + 2)
    assert len(calls) == 1
    neo.register_op("tests.Counted", function, pure=False)
    calls.clear()
    module = neo.compile(constant)
    assert not calls
    module(X)
    module(X)
    assert len(calls) == 2


def test_registering_again_replaces_the_function():
    neo.register_op("tests.Again", lambda x: x + 1)
    module = neo.compile(model_of(node("Again", ["x"], ["y"])))
    np.testing.assert_array_equal(module(X), X + 1)
    neo.register_op("tests.Again", lambda x: x + 2)
    np.testing.assert_array_equal(module(X), X + 2)


def test_in_bodies_of_control_flow(flipping):
    del flipping
    then = helper.make_graph([node("Flip", ["x"], ["t"], axis=1)], "then", [], [value("t", None)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value("e", None)])
    module = neo.compile(
        model_of(
            helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
            inputs=[value("c", [], TensorProto.BOOL), value("x", [2, 3])],
        )
    )
    np.testing.assert_array_equal(module(np.array(True), X), X[:, ::-1])
    np.testing.assert_array_equal(module(np.array(False), X), -X)


def test_a_check_of_accuracy_gives_the_function_its_own_dtypes():
    seen = set()

    def function(x):
        seen.add(x.dtype.name)
        return x

    neo.register_op("tests.Seen", function)
    report = neo.check_accuracy(
        model_of(
            helper.make_node("Exp", ["x"], ["e"]), node("Seen", ["e"], ["s"]), helper.make_node("Neg", ["s"], ["y"])
        )
    )
    assert "no wrong node" in str(report)
    assert seen == {"float32"}


def test_saved_pickled_optimized(flipping, tmp_path):
    module = neo.compile(flipping)
    module.save(tmp_path / "m.neo")
    neo.optimize(flipping, tmp_path / "small.onnx")
    onnx.checker.check_model(str(tmp_path / "small.onnx"))
    for again in (
        neo.load(tmp_path / "m.neo"),
        pickle.loads(pickle.dumps(module)),
        neo.compile(tmp_path / "small.onnx"),
    ):
        np.testing.assert_array_equal(again(X), flipped(X))


def test_a_process_that_has_not_registered_it(flipping, tmp_path):
    neo.compile(flipping).save(tmp_path / "m.neo")
    onnx.save(flipping, tmp_path / "m.onnx")
    code = f"""
        import neo
        for call, path in ((neo.load, "m.neo"), (neo.compile, "m.onnx")):
            try:
                call({str(tmp_path)!r} + "/" + path)
            except neo.UnsupportedError as error:
                print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "[tests.Flip] the operator is not supported" in done.stdout
    assert "Hint: neo.register_op has a function of yours compute an operator." in done.stdout


def test_sources_are_not_exported(flipping, tmp_path, capsys):
    neo.compile(flipping).save(tmp_path / "m.neo")
    assert main(["export", str(tmp_path / "m.neo"), "--out", str(tmp_path / "out")]) == 1
    assert 'an exported operator must be neo\'s own. Got "tests.Flip"' in capsys.readouterr().err


def test_the_command_line_imports_what_registers(tmp_path, monkeypatch, capsys):
    onnx.save(model_of(node("FromAModule", ["x"], ["y"])), tmp_path / "m.onnx")
    (tmp_path / "registers_an_op.py").write_text(
        "import neo\n\n\n@neo.register_op('tests.FromAModule')\ndef function(x):\n    return -x\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["run", "m.onnx", "--import", "registers_an_op"]) == 0
    assert main(["run", "m.onnx", "--import", "is_not_there"]) == 1
    assert "[cli] --import must name a module. Got 'is_not_there'" in capsys.readouterr().err
    for name in ("", ".", ".registers_an_op"):
        assert main(["run", "m.onnx", f"--import={name}"]) == 1
        assert f"[cli] --import must give a module's whole name. Got {name!r}" in capsys.readouterr().err


def fails(function, infer=None, outputs=1, **attributes):
    neo.register_op("tests.Fails", function, infer=infer)
    names = [f"y{i}" for i in range(outputs)]
    with pytest.raises(neo.ModelError) as caught:
        neo.compile(model_of(node("Fails", ["x"], names, **attributes), outputs=names))(X)
    assert 'at node "mine"' in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("function", "infer", "outputs", "text"),
    [
        (lambda x: 1 / 0, None, 1, "the function must not raise. Got ZeroDivisionError: division by zero"),
        (lambda: None, None, 1, "the function must not raise. Got TypeError"),
        (lambda x: x.astype(np.float64), None, 1, "output 0 must be of dtype float32. Got float64"),
        (lambda x: x[:, :2], None, 1, "output 0 must have the shape that is known of it. Got [2,2], expected [2,3]"),
        (lambda x: None, None, 1, "output 0 must be an array. Got NoneType"),
        (lambda x: (x,), None, 2, "the function must give every output. Got 1, expected 2"),
        (lambda x: x, lambda x: 1 / 0, 1, "the inference must not raise. Got ZeroDivisionError"),
        (lambda x: x, lambda x: None, 1, "the inference must give dtypes and shapes. Got None"),
        (lambda x: x, lambda x: ("float32", (-1, 3)), 1, "the inference must give dtypes and shapes"),
        (lambda x: x, lambda x: ("float32", (1.5, 3)), 1, "the inference must give dtypes and shapes"),
        (lambda x: x, lambda x: ("float32", ("Q", 3)), 1, 'a size must be made of the inputs\' sizes. Got "Q"'),
        (lambda x: x, lambda x: ("float32", ("2*", 3)), 1, "a size is written like"),
        (lambda x: x, lambda x: ("flot", (2, 3)), 1, "a type is written like"),
        (lambda x: x, lambda x: [x], 2, "the inference must give every output. Got 1, expected 2"),
    ],
)
def test_functions_that_are_wrong(function, infer, outputs, text):
    assert text in str(fails(function, infer, outputs))


def test_the_functions_error_is_the_cause():
    assert isinstance(fails(lambda x: 1 / 0).__cause__, ZeroDivisionError)


@pytest.mark.parametrize("name", ["Flip", "", ".", "tests.", ".Flip", "ai.onnx.Flip", 3, None])
def test_names_without_a_domain_of_their_own(name):
    with pytest.raises(neo.ModelError, match="the name must have a domain of its own"):
        neo.register_op(name, flip)


def test_operators_of_neo_are_not_replaced():
    with pytest.raises(neo.ModelError, match="the name must not be an operator of neo"):
        neo.register_op("com.microsoft.Gelu", flip)


def test_functions_that_cannot_be_called():
    with pytest.raises(neo.DTypeError, match="`function` must be callable. Got int"):
        neo.register_op("tests.Number", 3)
    with pytest.raises(neo.DTypeError, match="`infer` must be callable. Got str"):
        neo.register_op("tests.Text", flip, infer="x")

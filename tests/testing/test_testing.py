"""The accuracy checks themselves: what they accept, what they refuse, and what their messages say."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from neo import testing
from onnx import TensorProto, helper, numpy_helper

EPS = float(np.finfo(np.float32).eps)


@dataclass
class Tensor:
    """What a module tells about an input."""

    name: str
    dtype: str
    shape: list[Any]


@dataclass
class FakeModule:
    """A module whose answers are given by a function; it keeps what it was fed."""

    answer: Callable[[Mapping[str, Any]], dict[str, Any]]
    inputs: list[Tensor] = field(default_factory=lambda: [Tensor("x", "float32", [2, 8])])
    fed: list[Mapping[str, Any]] = field(default_factory=list)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Answer and remember."""
        self.fed.append(inputs)
        return self.answer(inputs)


def make_model(
    nodes: list[Any], shapes: Mapping[str, Any], weights: Mapping[str, Any], *, opset: int = 17
) -> onnx.ModelProto:
    """Return a model with float inputs of the given shapes and one output ``y``."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


WEIGHT = np.random.default_rng(3).standard_normal((8, 4)).astype(np.float32)
PRODUCT = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [2, 8]}, {"w": WEIGHT})


def multiply(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute ``PRODUCT``."""
    return {"y": inputs["x"] @ WEIGHT}


# --- the float rule ---


@pytest.mark.parametrize("depth", [1, 100, 10000])
def test_float_limit_grows_with_the_root_of_depth(depth: int) -> None:
    limit = testing.FLOAT_FACTOR * EPS * depth**0.5
    expected = np.array([1.0, 0.25], dtype=np.float32)
    testing.assert_arrays_close(expected + np.float32([0, 0.9 * limit]), expected, depth=depth)
    with pytest.raises(AssertionError, match="max"):
        testing.assert_arrays_close(expected + np.float32([0, 1.1 * limit]), expected, depth=depth)


def test_float_limit_follows_the_coarser_dtype() -> None:
    expected = np.ones(4, dtype=np.float16)
    off = np.array([1, 1, 1, 1.05], dtype=np.float16)
    testing.assert_arrays_close(off, expected, depth=1)
    with pytest.raises(AssertionError):
        testing.assert_arrays_close(off.astype(np.float32), expected.astype(np.float32), depth=1)


def test_bfloat16_has_its_own_epsilon() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    expected = np.ones(3, dtype=ml_dtypes.bfloat16)
    testing.assert_arrays_close(expected * ml_dtypes.bfloat16(1.25), expected, depth=1)
    with pytest.raises(AssertionError):
        testing.assert_arrays_close(expected * ml_dtypes.bfloat16(2), expected, depth=1)


def test_message_names_the_worst_position_and_both_values() -> None:
    actual = np.zeros((2, 3, 4), dtype=np.float32)
    expected = np.zeros((2, 3, 4), dtype=np.float32)
    expected[0, 0, 0], actual[0, 0, 0] = 1.0, 1.25
    expected[1, 2, 3], actual[1, 2, 3] = -2.0, -3.5
    with pytest.raises(AssertionError) as caught:
        testing.assert_arrays_close(actual, expected, depth=4, name="scores")
    text = str(caught.value)
    assert text.startswith("[scores] max |neo - ref| is 1.5, ")
    assert "Got -3.5, expected -2.0 - at [1, 2, 3] of shape [2, 3, 4] (2 of 24 beyond the limit)" in text


def test_all_zeros_are_met_by_zeros_alone() -> None:
    zeros = np.zeros(3, dtype=np.float32)
    testing.assert_arrays_close(zeros, zeros)
    with pytest.raises(AssertionError):
        testing.assert_arrays_close(zeros + np.float32(1e-30), zeros)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_specials_must_be_at_the_same_positions(special: float) -> None:
    expected = np.array([1.0, special, 2.0], dtype=np.float32)
    testing.assert_arrays_close(expected.copy(), expected)
    for wrong in ([1.0, 3.0, 2.0], [special, special, 2.0]):
        with pytest.raises(AssertionError, match=r"same positions.* - at \[[01]\]"):
            testing.assert_arrays_close(np.array(wrong, dtype=np.float32), expected)


def test_an_infinity_of_the_other_sign_is_refused() -> None:
    with pytest.raises(AssertionError, match="same positions"):
        testing.assert_arrays_close(np.float32([np.inf]), np.float32([-np.inf]))


@pytest.mark.parametrize("shape", [(3,), (1, 4), (4, 1), ()])
def test_shapes_must_agree_and_do_not_broadcast(shape: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError, match="shapes must agree"):
        testing.assert_arrays_close(np.ones(shape, dtype=np.float32), np.ones(4, dtype=np.float32))


def test_kinds_of_dtype_must_agree() -> None:
    with pytest.raises(AssertionError, match=r"dtypes must agree. Got float32, expected int64"):
        testing.assert_arrays_close(np.ones(2, dtype=np.float32), np.ones(2, dtype=np.int64))


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([True, False]), np.array([True, True])),
        (np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object)),
    ],
    ids=["integers", "booleans", "strings"],
)
def test_what_is_no_float_must_be_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    testing.assert_arrays_close(expected, expected)
    with pytest.raises(AssertionError, match=r"values must be equal.* - at \[1\]"):
        testing.assert_arrays_close(actual, expected)


def test_empty_arrays_agree_when_their_shapes_do() -> None:
    testing.assert_arrays_close(np.empty((0, 4), np.float32), np.empty((0, 4), np.float32))
    with pytest.raises(AssertionError):
        testing.assert_arrays_close(np.empty((0, 4), np.float32), np.empty((1, 4), np.float32))


def test_the_limit_is_the_one_of_the_rule() -> None:
    expected = np.float32([0.5, -4.0, np.inf, np.nan])
    assert testing.float_limit(expected, depth=9) == pytest.approx(testing.FLOAT_FACTOR * EPS * 3 * 4)
    assert testing.float_limit(expected, depth=9, factor=1) == pytest.approx(EPS * 3 * 4)
    assert testing.float_limit(np.empty(0, np.float32)) == 0


def test_complex_numbers_are_compared_by_the_float_rule() -> None:
    expected = np.array([3 + 4j, 1j], np.complex64)
    limit = testing.FLOAT_FACTOR * EPS * 2 * 5
    testing.assert_arrays_close(expected + np.complex64(0.9j * limit), expected, depth=4)
    with pytest.raises(AssertionError, match=r"max \|neo - ref\|.* at \[0\]"):
        testing.assert_arrays_close(expected + np.complex64([1.2 * limit, 0]), expected, depth=4)
    with pytest.raises(AssertionError, match="dtypes must agree. Got float32, expected complex64"):
        testing.assert_arrays_close(np.ones(2, np.float32), expected)


def test_strings_agree_whatever_numpy_keeps_them_in() -> None:
    testing.assert_arrays_close(np.array(["a", "bc"], dtype=object), np.array(["a", "bc"]))
    with pytest.raises(AssertionError, match=r"\[words\] values must be equal. Got b, expected bc - at \[1\]"):
        testing.assert_arrays_close(np.array(["a", "b"], dtype=object), np.array(["a", "bc"]), name="words")


def test_lists_and_numbers_are_arrays() -> None:
    testing.assert_arrays_close([1.0, 2.0], np.float64([1, 2]))
    with pytest.raises(AssertionError, match=r"shapes must agree. Got \[\], expected \[1\]"):
        testing.assert_arrays_close(1.0, [1.0])


def test_a_finite_value_may_not_overflow() -> None:
    with pytest.raises(AssertionError, match=r"same positions. Got inf, expected 60000\.0 - at \[1\]"):
        testing.assert_arrays_close(np.float16([1, np.inf]), np.float16([1, 60000]))


# --- the quantized rule ---


def test_one_step_is_allowed_and_two_are_not() -> None:
    expected = np.array([[0.1, 0.2, 0.9]], dtype=np.float32)
    testing.assert_quantized_close(expected + np.float32([[0.1, 0, 0]]), expected, step=0.1)
    with pytest.raises(AssertionError, match=r"within 1 step of 0\.1, the worst is off by 2\.00.*at \[0, 1\]"):
        testing.assert_quantized_close(expected + np.float32([[0, 0.2, 0]]), expected, step=0.1)


def test_the_largest_value_must_stay_the_largest() -> None:
    expected = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.2]], dtype=np.float32)
    swapped = np.array([[0.5, 0.4, 0.1], [0.1, 0.2, 0.3]], dtype=np.float32)
    with pytest.raises(AssertionError, match=r"Got index 2 \(0\.3\), expected 1 \(0\.3\) - at row 1 of 2"):
        testing.assert_quantized_close(swapped, expected, step=0.1)


def test_equal_largest_values_may_change_places() -> None:
    expected = np.array([0.5, 0.5, 0.1], dtype=np.float32)
    testing.assert_quantized_close(np.array([0.4, 0.5, 0.1], dtype=np.float32), expected, step=0.1)


def test_integers_are_compared_on_their_grid() -> None:
    expected = np.array([[0, 255, 7]], np.uint8)
    testing.assert_quantized_close(np.array([[1, 254, 7]], np.uint8), expected, step=1)
    with pytest.raises(AssertionError, match=r"the worst is off by 255.00. Got 0, expected 255 - at \[0, 1\]"):
        testing.assert_quantized_close(np.array([[0, 0, 7]], np.uint8), expected, step=1)


def test_a_margin_makes_near_values_ties() -> None:
    expected = np.array([0.5, 0.4, 0.1], dtype=np.float32)
    actual = np.array([0.4, 0.5, 0.1], dtype=np.float32)
    testing.assert_quantized_close(actual, expected, step=0.1, margin=0.11)
    with pytest.raises(AssertionError, match=r"Got index 1 \(0\.5\), expected 0 \(0\.5\) - at row 0 of 1"):
        testing.assert_quantized_close(actual, expected, step=0.1, margin=0.09)


def test_more_steps_can_be_allowed() -> None:
    expected = np.array([[0.0, 9.0]], dtype=np.float32)
    testing.assert_quantized_close(expected + np.float32([[3, 0]]), expected, step=1, steps=3)
    with pytest.raises(AssertionError, match=r"within 3 steps of 1, .* off by 4\.00.*\(1 of 2 beyond the limit\)"):
        testing.assert_quantized_close(expected + np.float32([[4, 1]]), expected, step=1, steps=3)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_nothing_is_within_a_step_of_nothing(shape: tuple[int, ...]) -> None:
    testing.assert_quantized_close(np.empty(shape, np.float32), np.empty(shape, np.float32), step=0.1)


# --- what the graph tells ---


@pytest.mark.parametrize(
    ("node", "weights", "depth"),
    [
        (helper.make_node("Conv", ["x", "w"], ["y"]), {"w": np.zeros((8, 6, 3, 5), np.float32)}, 90),
        (helper.make_node("Conv", ["x", "w"], ["y"], group=3), {"w": np.zeros((9, 2, 3, 3), np.float32)}, 18),
        (helper.make_node("ConvTranspose", ["x", "w"], ["y"], group=2), {"w": np.zeros((6, 4, 2, 2), np.float32)}, 12),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": np.zeros((10, 7), np.float32)}, 10),
        (helper.make_node("GlobalAveragePool", ["x"], ["y"]), {}, 100),
        (helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 3]), {}, 6),
        (helper.make_node("ReduceMean", ["x"], ["y"], axes=[1, -1]), {}, 60),
        (helper.make_node("ReduceSum", ["x", "a"], ["y"]), {"a": np.array([2], np.int64)}, 10),
        (helper.make_node("Softmax", ["x"], ["y"], axis=1), {}, 6),
        (helper.make_node("LayerNormalization", ["x", "s"], ["y"], axis=2), {"s": np.ones((10, 10), np.float32)}, 100),
        (helper.make_node("Relu", ["x"], ["y"]), {}, 1),
    ],
    ids=lambda value: value.op_type if isinstance(value, onnx.NodeProto) else None,
)
def test_depth_is_the_longest_reduction(node: onnx.NodeProto, weights: Mapping[str, Any], depth: int) -> None:
    assert testing.longest_reduction(make_model([node], {"x": [1, 6, 10, 10]}, weights)) == depth


def test_depth_of_products_and_recurrent_layers() -> None:
    gemm = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
    assert testing.longest_reduction(make_model([gemm], {"x": [1, 12]}, {"w": np.zeros((5, 12), np.float32)})) == 12
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)
    weights = {"w": np.zeros((1, 16, 7), np.float32), "r": np.zeros((1, 16, 4), np.float32)}
    assert testing.longest_reduction(make_model([lstm], {"x": [5, 1, 7]}, weights)) == 11


def test_softmax_before_opset_13_reduces_all_axes_behind() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    assert testing.longest_reduction(make_model([node], {"x": [1, 6, 10, 10]}, {}, opset=11)) == 600


def test_depth_sees_into_bodies_and_symbols_need_a_shape() -> None:
    inner = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["z"])], "body", [], [helper.make_empty_tensor_value_info("z")]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    weights = {"c": np.array(True), "w": np.zeros((33, 2), np.float32)}
    assert testing.longest_reduction(make_model([node], {"x": [1, 33]}, weights)) == 33
    pool = make_model([helper.make_node("GlobalAveragePool", ["x"], ["y"])], {"x": [1, 3, "h", "w"]}, {})
    assert testing.longest_reduction(pool) == 1
    assert testing.longest_reduction(pool, {"x": (1, 3, 20, 30)}) == 600


def test_depth_does_not_need_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "product.onnx"
    onnx.save(PRODUCT, path)
    assert testing.longest_reduction(path) == testing.longest_reduction(PRODUCT) == 8
    assert testing.longest_reduction(PRODUCT.SerializeToString()) == 8


def quantized_tail(*tail: onnx.NodeProto) -> onnx.ModelProto:
    """Return a model that quantizes ``x`` to a grid of 0.5 and goes on with ``tail`` from ``d``."""
    head = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
    ]
    weights = {"s": np.float32(0.5), "t": np.float32(0.25), "c": np.ones(8, np.float32), "shape": np.array([16])}
    return make_model([*head, *tail], {"x": [2, 8]}, weights)


def test_steps_are_those_of_the_last_grid() -> None:
    reshape = helper.make_node("Reshape", ["d", "shape"], ["y"])
    assert testing.output_steps(quantized_tail(reshape)) == {"y": 0.5}
    assert testing.output_steps(quantized_tail(helper.make_node("Add", ["d", "c"], ["y"]))) == {"y": 0.5}
    assert testing.output_steps(quantized_tail(helper.make_node("Mul", ["d", "c"], ["y"]))) == {}
    assert testing.output_steps(PRODUCT) == {}


def test_steps_behind_a_softmax_hold_half_a_step_of_the_logits() -> None:
    tail = [
        helper.make_node("Softmax", ["d"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "t"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "t"], ["y"]),
    ]
    assert testing.output_steps(quantized_tail(*tail)) == {"y": 0.5}


def test_a_quantized_output_has_the_step_one() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("Identity", ["q"], ["y"]),
    ]
    model = make_model(nodes, {"x": [2, 8]}, {"s": np.float32(0.5)})
    assert testing.output_steps(model) == {"y": 1.0}


# --- modules ---


def test_seeded_inputs_have_the_dtypes_and_shapes_of_the_module() -> None:
    tensors = [Tensor("a", "float16", [2, "n"]), Tensor("b", "int64", [3]), Tensor("c", "bool", [])]
    module = FakeModule(multiply, tensors)
    feeds = testing.seeded_inputs(module, sizes={"n": 5})
    assert {name: (value.dtype.name, value.shape) for name, value in feeds.items()} == {
        "a": ("float16", (2, 5)),
        "b": ("int64", (3,)),
        "c": ("bool", ()),
    }
    again = testing.seeded_inputs(module, sizes={"n": 5})
    np.testing.assert_array_equal(feeds["a"], again["a"])
    assert (feeds["a"] != testing.seeded_inputs(module, 1, {"n": 5})["a"]).any()


def test_a_symbol_without_a_size_is_named() -> None:
    with pytest.raises(ValueError, match=r"Got shape \[2, 'n'\] of input 'a', expected sizes={'n': \.\.\.}"):
        testing.seeded_inputs(FakeModule(multiply, [Tensor("a", "float32", [2, "n"])]))


def test_expected_arrays_are_compared() -> None:
    x = np.ones((2, 8), np.float32)
    module = FakeModule(multiply)
    testing.assert_close(module, multiply({"x": x}), {"x": x})
    with pytest.raises(AssertionError, match=r"^\[y\] max"):
        testing.assert_close(module, {"y": multiply({"x": x})["y"] + np.float32(0.1)}, {"x": x})


def test_one_expected_array_is_that_of_the_only_output() -> None:
    x = np.ones((2, 8), np.float32)
    testing.assert_close(FakeModule(multiply), x @ WEIGHT, {"x": x})
    with pytest.raises(AssertionError, match=r"^\[y\] shapes must agree"):
        testing.assert_close(FakeModule(multiply), x, {"x": x})
    two = FakeModule(lambda inputs: {"a": x, "b": x})
    with pytest.raises(ValueError, match=r"Got 2 outputs \('a', 'b'\), expected a mapping"):
        testing.assert_close(two, x, {"x": x})


def test_outputs_that_are_there_already_are_compared() -> None:
    x = np.ones((2, 8), np.float32)
    testing.assert_close({"y": x, "z": x}, {"y": x})
    testing.assert_close(x, x.copy())
    with pytest.raises(AssertionError, match=r"^\[z\] output is missing"):
        testing.assert_close({"y": x}, {"z": x})
    with pytest.raises(AssertionError, match=r"^\[array\] max"):
        testing.assert_close(x, 2 * x)
    with pytest.raises(AssertionError, match=r"^\[y\] outputs must be within 1 step of 0.1"):
        testing.assert_close({"y": 2 * x}, {"y": x}, steps={"y": 0.1})
    with pytest.raises(ValueError, match="Got ndarray, expected a mapping of arrays"):
        testing.assert_close(x, {"y": x})


def test_the_module_tells_its_depth_where_the_reference_cannot() -> None:
    x = np.ones((2, 8), np.float32)
    module = FakeModule(multiply)
    module.reduction_length = 36  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match=r"sqrt\(36\)"):
        testing.assert_close(module, {"y": 2 * multiply({"x": x})["y"]}, {"x": x})


def test_a_model_as_reference_fixes_the_dtypes() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    module = FakeModule(lambda inputs: {"y": multiply(inputs)["y"].astype(np.float64)})
    with pytest.raises(AssertionError, match=r"^\[y, round 0\] dtypes must agree. Got float64, expected float32"):
        testing.assert_close(module, PRODUCT)


def test_expected_arrays_need_inputs() -> None:
    with pytest.raises(ValueError, match="expected one mapping of arrays"):
        testing.assert_close(FakeModule(multiply), {"y": np.zeros(1)})


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        testing.assert_close(FakeModule(multiply), PRODUCT, rounds=0)


def test_a_missing_output_is_named() -> None:
    module = FakeModule(lambda inputs: {"z": inputs["x"]})
    x = np.ones((2, 8), np.float32)
    with pytest.raises(AssertionError, match=r"\[y\] output is missing. Got \['z'\], expected \['y'\]"):
        testing.assert_close(module, {"y": x}, {"x": x})


def test_sequences_and_optionals_are_compared_by_item() -> None:
    x = np.ones((2, 8), np.float32)
    module = FakeModule(lambda inputs: {"y": [x, 2 * x], "o": None})
    testing.assert_close(module, {"y": [x, 2 * x], "o": None}, {"x": x})
    with pytest.raises(AssertionError, match=r"\[y\[1\]\]"):
        testing.assert_close(module, {"y": [x, 3 * x]}, {"x": x})
    with pytest.raises(AssertionError, match="agree in length"):
        testing.assert_close(module, {"y": [x]}, {"x": x})
    with pytest.raises(AssertionError, match="optional must agree"):
        testing.assert_close(module, {"o": x}, {"x": x})


def test_model_bytes_path_and_session_are_references(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    path = tmp_path / "product.onnx"
    onnx.save(PRODUCT, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for reference in (PRODUCT, PRODUCT.SerializeToString(), path, str(path), session):
        module = FakeModule(multiply)
        testing.assert_close(module, reference, rounds=4)
        assert len(module.fed) == 4
        wrong = FakeModule(lambda inputs: {"y": multiply(inputs)["y"] * np.float32(1.001)})
        with pytest.raises(AssertionError, match=r"\[y, round 0\].*sqrt\(8\)"):
            testing.assert_close(wrong, reference)


def test_a_quantized_model_is_compared_by_its_own_grid() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = quantized_tail(helper.make_node("Identity", ["d"], ["y"]))

    def rounded(inputs: Mapping[str, Any], off: float) -> dict[str, Any]:
        grid = np.clip(np.rint(inputs["x"] / 0.5) * 0.5, 0, 127.5).astype(np.float32)
        grid[0, 0] += np.float32(off)
        return {"y": grid}

    feeds = {"x": np.tile(np.float32([1, 2, 3, 4, 5, 6, 7, 20]), (2, 1))}
    testing.assert_close(FakeModule(lambda inputs: rounded(inputs, 0.5)), model, feeds)
    with pytest.raises(AssertionError, match=r"within 1 step of 0\.5"):
        testing.assert_close(FakeModule(lambda inputs: rounded(inputs, 1.0)), model, feeds)
    with pytest.raises(AssertionError, match="max"):
        testing.assert_close(FakeModule(lambda inputs: rounded(inputs, 0.5)), model, feeds, steps={})


def test_a_quantized_model_without_a_grid_asks_for_steps() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = quantized_tail(helper.make_node("Mul", ["d", "c"], ["y"]))
    with pytest.raises(ValueError, match="expected steps="):
        testing.assert_close(FakeModule(multiply), model)


def test_without_onnxruntime_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install onnxruntime"):
        testing.assert_close(FakeModule(multiply), PRODUCT)

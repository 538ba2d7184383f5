"""What a user sees of inner graphs: explanations, pages, profiles, pins, saved modules."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

PIN = {"patches": "expansion/multiply_patches"}


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """Patches as a vision transformer reads them."""
    rng = np.random.default_rng(7)
    weight = numpy_helper.from_array(rng.standard_normal((24, 3, 7, 7)).astype(np.float32), "w")
    bias = numpy_helper.from_array(rng.standard_normal(24).astype(np.float32), "b")
    shape = numpy_helper.from_array(np.array([0, 24, -1]), "shape")
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="patches", strides=[7, 7]),
        helper.make_node("Reshape", ["c", "shape"], ["r"], name="flat"),
        helper.make_node("Softmax", ["r"], ["y"], name="soft", axis=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 21, 35])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "patches", [x], [y], [weight, bias, shape])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    """Two images."""
    return np.random.default_rng(8).standard_normal((2, 3, 21, 35)).astype(np.float32)


def test_a_pinned_expansion_gives_onnxruntimes_result(model: onnx.ModelProto, image: np.ndarray) -> None:
    module = neo.compile(model, routines=PIN, threads=1)
    expected = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": image}
    )
    np.testing.assert_allclose(module(image), expected[0], rtol=1e-4, atol=1e-5)


def test_an_explanation_has_the_inner_nodes_behind_their_node(model: onnx.ModelProto) -> None:
    explanation = neo.compile(model, routines=PIN, threads=1).explain()
    rows = [n.node for n in explanation.nodes]
    assert rows[0] == "patches"
    assert "patches/Gemm" in rows[1:-1]
    assert rows[-1] == "soft"
    chosen = explanation.nodes[0].options[0]
    assert (chosen.routine, chosen.status) == ("expansion/multiply_patches", "chosen")
    assert "Gemm by cpu:float32/gemm" in chosen.reason
    inner = [n.options[0].time_us or 0.0 for n in explanation.nodes if n.node.startswith("patches/")]
    assert chosen.time_us == pytest.approx(sum(inner))


def test_both_forms_say_what_the_other_would_change(model: onnx.ModelProto) -> None:
    module = neo.compile(model, threads=1)
    options = module.explain("patches").nodes[0].options
    (form,) = (o for o in options if o.routine == "expansion/multiply_patches")
    other = next(o for o in options if o.routine == "cpu:float32/im2col")
    assert form.time_us is not None
    if form.status == "chosen":
        assert form.change_us == 0
        assert other.change_us is not None
        assert other.change_us >= 0
    else:
        assert form.change_us is not None
        assert form.change_us >= 0
        assert "patches/Gemm" not in {n.node for n in module.explain().nodes}


def test_a_page_draws_the_inner_nodes(model: onnx.ModelProto) -> None:
    data = neo.compile(model, routines=PIN, threads=1).explain().data
    drawn = {n["name"]: n for n in data["graph"]["nodes"]}
    assert drawn["patches/Gemm"]["steps"]
    assert "patches" not in drawn


def test_a_profile_times_inner_steps(model: onnx.ModelProto, image: np.ndarray) -> None:
    profile = neo.compile(model, routines=PIN, threads=1).profile({"x": image})
    assert "patches/Gemm" in {step.node for step in profile.steps}


def test_a_saved_module_computes_the_same_bits(model: onnx.ModelProto, image: np.ndarray, tmp_path) -> None:
    module = neo.compile(model, routines=PIN, threads=1)
    module.save(tmp_path / "patches.neo")
    loaded = neo.load(tmp_path / "patches.neo", threads=1)
    np.testing.assert_array_equal(loaded(image), module(image))


def test_a_pin_of_a_routine_leaves_no_inner_graph(model: onnx.ModelProto) -> None:
    module = neo.compile(model, routines={"patches": "cpu:float32/im2col"}, threads=1)
    assert not any(n.node.startswith("patches/") for n in module.explain().nodes)


def test_tuning_measures_inner_steps(model: onnx.ModelProto, image: np.ndarray, tmp_path) -> None:
    module = neo.compile(model, routines=PIN, threads=1, tune="3s", database=tmp_path / "times.db")
    gemm = next(n for n in module.explain().nodes if n.node == "patches/Gemm")
    assert gemm.options[0].measured
    expected = neo.compile(model, routines=PIN, threads=1)(image)
    np.testing.assert_allclose(module(image), expected, rtol=1e-4, atol=1e-5)

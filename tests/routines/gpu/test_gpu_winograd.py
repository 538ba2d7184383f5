"""Winograd's algorithm on devices: its programs against NumPy, its routines as modules choose, run and save them."""

import functools

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from neo.candidates import selection_arrays
from neo.frontend.onnx import read_model
from neo.select import solve

from tests.kernel_ir.compilers import NVCC
from tests.routines.gpu.convs import blocked, conv, pack_winograd, plain
from tests.routines.gpu.programs import ON, Program, need_device

# Block of channels, kernel, strides, and schedules: in one launch and in three.
FORMS = [
    (16, (3, 3), (1, 1), {"tile": 4, "width": 16, "lanes": 16, "vectors": 2, "columns": 3, "steps": 2, "workers": 2}),
    (8, (3, 3), (1, 1), {"tile": 2, "width": 8, "lanes": 4, "vectors": 2, "columns": 2, "inner": 4, "load": 4, "steps": 3, "parts": 2}),
    (4, (3, 3), (1, 1), {"tile": 6, "width": 4, "lanes": 4, "vectors": 3, "columns": 1, "steps": 1, "workers": 4}),
    (8, (3, 3), (2, 2), {"tile": 4, "width": 8, "lanes": 8, "vectors": 1, "columns": 4, "steps": 2}),
    (4, (3, 3), (1, 1), {"tile": 4, "width": 1, "lanes": 4, "vectors": 1, "columns": 4, "inner": 4, "load": 4, "tx": 4, "tz": 4, "threads": 16}),
    (16, (3, 3), (1, 1), {"tile": 2, "width": 4, "lanes": 8, "vectors": 1, "columns": 5, "order": 1, "threads": 1}),
    (8, (3, 3), (1, 1), {"tile": 6, "width": 8, "lanes": 8, "vectors": 2, "columns": 2, "threads": 4}),
    (4, (5, 1), (1, 1), {"tile": 2, "width": 4, "lanes": 8, "vectors": 1, "columns": 2, "threads": 2}),
    (4, (3, 3), (1, 2), {"tile": 2, "width": 2, "lanes": 4, "vectors": 2, "columns": 3, "threads": 8}),
    (8, (4, 4), (1, 1), {"tile": 4, "width": 8, "lanes": 8, "vectors": 1, "columns": 2, "steps": 2}),
    (4, (2, 6), (1, 1), {"tile": 4, "width": 4, "lanes": 4, "vectors": 2, "columns": 3, "threads": 4}),
]  # fmt: skip
# Batch, channels, outputs, height, width, pads.
SHAPES = [
    (1, 16, 32, 7, 7, (1, 1, 1, 1)),
    (2, 5, 19, 13, 11, (0, 2, 1, 0)),
    (1, 17, 3, 5, 23, (2, 1, 0, 3)),
    (3, 8, 8, 1, 1, (4, 2, 3, 1)),
    (1, 4, 7, 6, 12, (0, 1, 0, 1)),
]
# Of each tile, the root of the mean square error in units of the direct sum's is at most so much.
ERRORS = {2: 1.0, 4: 2.5, 6: 10.0}
LAYER = (1, 32, 48, 17, 19, (1, 1, 1, 1))


def tolerance(expected, depth, tile):
    return 12 * np.finfo("f4").eps * np.sqrt(depth) * ERRORS[tile] * max(1.0, float(np.abs(expected).max()))


def numbers_of(form, shape):
    (kh, kw), (sh, sw) = form[1:3]
    _, ic, oc, _, _, pads = shape
    numbers = {"block": form[0], "ic": ic, "oc": oc, "kh": kh, "kw": kw, "sh": sh, "sw": sw}
    return numbers | dict(zip(("phb", "pwb", "phe", "pwe"), pads, strict=True))


def run(form, shape, on, **result):
    block, kernel, strides, schedule = form
    n, ic, oc, h, w, pads = shape
    rng = np.random.default_rng(5)
    x, weight = rng.standard_normal((n, ic, h, w), dtype="f4"), rng.standard_normal((oc, ic, *kernel), dtype="f4")
    bias = rng.standard_normal(oc, dtype="f4")
    expected = conv(x, weight, 1, strides, (1, 1), pads)
    residual = rng.standard_normal(expected.shape, dtype="f4")
    operands = [(x.shape, blocked(x, block))]
    packed = [pack_winograd(weight, strides, schedule["tile"], block, schedule["lanes"] * schedule["vectors"])]
    if result.get("bias"):
        expected = expected + bias.reshape(1, -1, 1, 1)
        packed.append(blocked(bias.reshape(1, -1, 1), block))
    if result.get("residual"):
        expected = expected + residual
        operands.append((residual.shape, blocked(residual, block)))
    if result.get("relu"):
        expected = np.maximum(expected, 0)
    program = Program("conv_winograd", **numbers_of(form, shape), **schedule, **result)
    memory = blocked(np.zeros(expected.shape, "f4"), block).shape
    (y,), _ = program.run(operands, [(expected.shape, "f4", memory)], packed, on)
    limit = tolerance(expected, ic * kernel[0] * kernel[1], schedule["tile"])
    np.testing.assert_allclose(plain(y, block, oc), expected, rtol=0, atol=limit)
    assert not y.reshape(n, -1, *y.shape[2:])[:, oc // block :, ..., oc % block or block :].any()


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("case", range(len(FORMS)))
def test_agrees_with_the_direct_sum(case, on):
    for i in range(3):
        run(FORMS[case], SHAPES[(case + i) % len(SHAPES)], on, bias=1, residual=case % 2, relu=1)


def test_without_anything_behind_the_sum():
    run(FORMS[0], SHAPES[1], "c")
    run(FORMS[4], SHAPES[1], "c")


@pytest.mark.skipif(NVCC is None, reason="nvcc is needed to compile for CUDA")
@pytest.mark.parametrize("capability", [87, 90])
@pytest.mark.parametrize("case", [4, 6])
def test_compiles_for_cuda(case, capability):
    form = FORMS[case]
    program = Program("conv_winograd", **numbers_of(form, SHAPES[0]), **form[3], bias=1, residual=1, relu=1)
    program.compile_cuda(capability)


def layer(shape=LAYER, kernel=(3, 3), relu=True, **attributes):
    n, ic, oc, h, w, pads = shape
    rng = np.random.default_rng(2)
    made = {"w": rng.standard_normal((oc, ic, *kernel), dtype="f4"), "b": rng.standard_normal(oc, dtype="f4")}
    nodes = [onnx.helper.make_node("Conv", ["x", "w", "b"], ["s"], name="conv", pads=pads, **attributes)]
    nodes.append(onnx.helper.make_node("Relu" if relu else "Exp", ["s"], ["y"]))
    graph = onnx.helper.make_graph(
        nodes,
        "layer",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [n, ic, h, w])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in made.items()],
    )
    opset = onnx.helper.make_opsetid("", 17)
    x = rng.standard_normal((n, ic, h, w), dtype="f4")
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), made, x


@functools.cache
def offered(target, threads=1):
    graph, _ = read_model(layer()[0].SerializeToString())
    problem = _native.build_problem(_native.run_passes(graph), target, threads)
    found = [c for node in problem.nodes for c in node["choices"] if "conv_winograd" in c.get("routine", "")]
    return problem, {c["routine"]: c for c in found}


@pytest.mark.parametrize("target", ["opencl", "cuda", "null", "mali", "intel_graphics"])
def test_every_device_is_offered_the_tiles_of_the_cpu(target):
    _, choices = offered(target)
    tiles = {routine.split("tile=")[1].split(" ")[0].rstrip("}"): c["error"] for routine, c in choices.items()}
    cpu = _native.build_problem(_native.run_passes(read_model(layer()[0].SerializeToString())[0]), "cpu", 1)
    routines = [c for node in cpu.nodes for c in node["choices"] if "float32/winograd" in c.get("routine", "")]
    assert tiles == {c["routine"].split("tile=")[1].split(" ")[0].rstrip("}"): c["error"] for c in routines}


def test_only_threads_of_their_own_take_blocks_of_tiles():
    assert any("fused" in name for name in offered("opencl")[1])
    assert not any("fused" in name for name in offered("cuda")[1])


@pytest.mark.parametrize("target", ["opencl", "cuda", "mali"])
def test_strict_accuracy_takes_the_direct_sum(target):
    problem, _ = offered(target)
    choice = solve(selection_arrays(problem, accuracy="strict")).choice
    chosen = [node["choices"][i].get("routine", "") for node, i in zip(problem.nodes, choice, strict=False)]
    assert not any("winograd" in routine for routine in chosen)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"dilations": [2, 2]}, "the dilation is not 1"),
        ({"strides": [3, 3]}, "the stride is not 1, nor 2 of three taps"),
        ({"shape": (1, 3, 32, 9, 9, (1, 1, 1, 1))}, "fewer channels than a block"),
        ({"kernel": (1, 1)}, "the kernel is 1x1"),
        ({"kernel": (8, 8)}, "a side of the kernel is not 1 to 7"),
    ],
)
def test_says_why_not(more, reason):
    graph, _ = read_model(layer(**more)[0].SerializeToString())
    problem = _native.build_problem(graph, "opencl", 1)
    reasons = {}
    for node in problem.nodes:
        reasons.update(dict(node.get("rejections", {})))
    assert reasons["gpu:float32/conv_winograd_nchw16c"] == reason
    assert reasons["gpu:float32/conv_winograd_fused_nchw16c"] == reason


@pytest.mark.parametrize(
    "routine", ["conv_winograd_nchw16c", "conv_winograd_fused_nchw16c", "conv_winograd_fused_nchw8c"]
)
def test_a_module_runs_it_and_comes_back_from_a_file(routine, tmp_path):
    need_device("opencl")
    model, constants, x = layer()
    module = neo.compile(model, target="opencl", routines={"conv*": f"gpu:float32/{routine}"})
    assert any(routine in step.routine for step in module.profile({"x": x}, repeat=1).steps)
    expected = conv(x, constants["w"], 1, (1, 1), (1, 1), LAYER[-1]) + constants["b"].reshape(1, -1, 1, 1)
    y = module.run({"x": x})["y"]
    np.testing.assert_allclose(y, np.maximum(expected, 0), rtol=0, atol=tolerance(expected, 9 * LAYER[1], 6))
    module.save(tmp_path / "layer.neo")
    np.testing.assert_array_equal(neo.load(tmp_path / "layer.neo").run({"x": x})["y"], y)

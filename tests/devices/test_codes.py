"""Quantized networks on devices: products on codes, and the CPU's codes."""

from typing import Any

import neo
import numpy as np
import onnx
import pytest

from tests.kernel_ir.compilers import CAPABILITIES, CLANG, compile_cuda, compile_opencl
from tests.models.inputs import models_folder

# Networks of QDQ and QOperator, and how many products each has.
MODELS = {
    "resnet8-cifar10/resnet8-qdq-derived.onnx": 10,
    "micro-kws/micro_kws_m_static_qdq.onnx": 6,
    "micro-kws/micro_kws_m_static_qoperator.onnx": 6,
    "kws-dscnn/kws_dscnn-qdq-derived.onnx": 10,
    "mobilenetv1-050-imagenet/mobilenet_v1_0.5_160-qdq-derived.onnx": 28,
    "mobilenetv2-imagenet/mobilenetv2-12-qdq.onnx": 52,
}
PRODUCTS = {"gpu:int8/conv_tiled", "gpu:int8/conv_depthwise", "gpu:int8/gemm"}


def path_of(name: str) -> Any:
    path = models_folder() / name
    if not path.exists():
        pytest.skip("the folder of the shared models is absent (set NEO_TEST_MODELS)")
    return path


def products(module: Any) -> int:
    """How many products of codes a module has; it may have no others on the CPU."""
    chosen = [n.options[0].routine.split("{")[0] for n in module.explain().nodes]
    assert not [r for r in chosen if r.startswith("cpu:int8/") or ("/conv" in r and r not in PRODUCTS)]
    return sum(r in PRODUCTS for r in chosen)


@pytest.mark.parametrize("name", MODELS)
def test_products_are_those_of_codes(name: str) -> None:
    assert products(neo.compile(path_of(name), target="cuda")) >= MODELS[name]


def test_a_trained_network_has_the_outputs_of_the_cpu() -> None:
    path = path_of("micro-kws/micro_kws_m_static_qdq.onnx")
    (x,) = onnx.load(path).graph.input
    shape = [d.dim_value or 1 for d in x.type.tensor_type.shape.dim]
    feeds = {x.name: np.random.default_rng(4).standard_normal(shape).astype(np.float32)}
    expected = neo.compile(path).run(feeds)
    for name, result in neo.compile(path, target="opencl").run(feeds).items():
        np.testing.assert_allclose(result, expected[name], rtol=1e-6, atol=1e-7)


def kernels_of(target: str) -> list[str]:
    """The kernels of a small network of QDQ and of one of QOperator."""
    names = ("resnet8-cifar10/resnet8-qdq-derived.onnx", "micro-kws/micro_kws_m_static_qoperator.onnx")
    modules = [neo.compile(path_of(name), target=target) for name in names]
    return [*dict.fromkeys(entry["text"] for module in modules for entry in module.kernels)]


@pytest.mark.skipif(CLANG is None, reason="clang is needed to compile OpenCL C")
@pytest.mark.parametrize("target", ["mali", "intel_graphics"])
def test_kernels_are_opencl_c_1_2(target: str) -> None:
    compile_opencl(kernels_of(target))


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_kernels_compile_for_cuda(capability: int) -> None:
    compile_cuda(kernels_of("cuda"), capability)

"""Routines of codes on devices: the codes of the operators' references, on PoCL and in plain C, in every layout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import neo
import numpy as np
import pytest
from neo import _native
from neo.kernels import write_kernels

from tests.compiled import compiled
from tests.kernel_ir.compilers import NVCC
from tests.routines.codes import Codes
from tests.routines.gpu import codes_cases
from tests.routines.gpu.codes_cases import GEMM, LINEAR, TILED, cases, check
from tests.routines.pinning import compile_pinned, rejections

ROOT = Path(__file__).resolve().parents[3]
CASES = list(cases(1))


@pytest.fixture(scope="module")
def opencl() -> str:
    if not any(k["kind"] == "opencl" and k["devices"] for k in _native.devices()):
        pytest.skip("a device of kind opencl is needed")
    return "opencl"


@pytest.mark.parametrize("case", CASES, ids=[name for name, *_ in CASES])
def test_a_group_gives_the_codes_of_its_operators(case: tuple[str, Codes, str, str], opencl: str) -> None:
    check(*case[1:], opencl)


def test_plain_c_gives_the_codes_of_the_operators(tmp_path: Path) -> None:
    """In a process of its own: a kind of device stays."""
    library = tmp_path / "libfake.so"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT / 'csrc'}"]
    subprocess.run(["c++", *flags, "-o", library, ROOT / "tests/devices/fake/fake_device.cpp"], check=True)
    path = os.pathsep.join([str(ROOT), *(p for p in sys.path if p)])
    done = subprocess.run(
        [sys.executable, codes_cases.__file__, "fake", library, "3"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) > 100


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("scale", [0.037, 1 / 3, 1e-20, 1e20])
def test_numbers_become_codes_as_on_the_cpu(scale: float, dtype: str, opencl: str) -> None:
    """Halfway between two codes and next to that, beyond the last codes, no numbers."""
    case = Codes(7)
    graph, grid = case.float, case.grid(dtype, scale)
    step = np.float32(scale)
    middles = (np.arange(-300, 300) + np.float32(0.5)) * step
    odd = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e-45, 3e38, -3e38], np.float32)
    feed = np.concatenate([f(middles) for f in (np.float32, lambda m: np.nextafter(m, np.float32(0)))] + [odd])
    feed = np.concatenate([feed, np.nextafter(middles, np.float32(np.inf))]).astype(np.float32)
    x = graph.add_input("f", "float32", list(feed.shape))
    codes = case.add(graph, "QuantizeLinear", [x, *(g[0] for g in grid)], "q")
    graph.outputs = [codes, case.add(graph, "DequantizeLinear", [codes, *(g[0] for g in grid)], "dq")]
    graph.infer()
    for routine in (LINEAR, "gpu/eltwise"):
        pinned = compile_pinned(graph, opencl, {"q": routine, "dq": LINEAR})
        for result, expected in zip(pinned.module.call([feed]), graph.evaluate([feed]), strict=True):
            np.testing.assert_array_equal(result, expected, err_msg=routine)


@pytest.mark.parametrize("code", [0, 1, 128, 254, 255])
@pytest.mark.parametrize("weight", [-128, 127, 255])
def test_extremes_of_codes(weight: int, code: int, opencl: str) -> None:
    """Sums of the largest products, and a zero point of the weights far from the middle of their range."""
    depth, columns, dtype = 4096, 19, "uint8" if weight > 127 else "int8"
    graph = _native.Graph()
    x, w = (
        graph.add_input("x", "uint8", ["N", depth]),
        graph.add_constant("w", np.full([depth, columns], weight, dtype)),
    )
    point = 0 if dtype == "uint8" else -100
    zeros = [graph.add_constant("z", np.uint8(255)), graph.add_constant("wz", np.array(point, dtype))]
    graph.outputs = graph.add_node("MatMulInteger", [x, w, *zeros], ["y"], {}, "q").outputs
    graph.infer()
    pinned = compile_pinned(graph, opencl, {"q": GEMM})
    for rows in (0, 1, 5):
        result = pinned(np.full([rows, depth], code, np.uint8))
        np.testing.assert_array_equal(result, np.full([rows, columns], depth * (code - 255) * (weight - point)))


def test_says_why_not() -> None:
    graph = _native.Graph()
    x, z = graph.add_input("x", "uint8", [1, 4, 5, 5]), graph.add_input("z", "uint8", [])
    w = graph.add_constant("w", np.ones([3, 4, 3, 3], np.int8))
    graph.outputs = graph.add_node("ConvInteger", [x, w, z], ["y"], {}, "q").outputs
    graph.infer()
    assert rejections(graph, "opencl", "q")[TILED] == "the scale or zero point of the input is known to the call alone"


@pytest.fixture(scope="module")
def network() -> Any:
    """A convolution, a depthwise one, a residual, pools, a concatenation and a product."""
    return codes_cases.network()


def test_a_network_of_codes_is_whole_on_a_device(network: Any, opencl: str) -> None:
    module = neo.compile(network, target=opencl)
    assert module.explain().devices.get("cpu", 0) == 0
    feeds = {"x": np.random.default_rng(3).standard_normal((2, 3, 21, 17)).astype(np.float32)}
    expected = neo.compile(network).run(feeds)
    for name, result in module.run(feeds).items():
        np.testing.assert_array_equal(result, expected[name])


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", [87, 90])
def test_cuda_compiles_a_network_of_codes(network: Any, capability: int, tmp_path: Path) -> None:
    write_kernels(neo.compile(network, target="cuda"), tmp_path)
    texts = {path.name: path.read_text() for path in tmp_path.glob("*codes_*.cu")}
    assert any("codes_product" in name for name in texts)
    assert "dp4a.s32.s32" in "".join(texts.values())
    every = "".join(f'namespace k{i} {{\n#include "{name}"\n}}\n' for i, name in enumerate(texts))
    command = [str(NVCC), "-cubin", "-std=c++17", "--fmad=false", f"-arch=sm_{capability}", "-o", "all.cubin", "all.cu"]
    assert compiled(command, {**texts, "all.cu": every}, "all.cubin").read_bytes()[:4] == b"\x7fELF"

"""The machine, a first network, and the tests of kernels, operators and models on the device."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx
from neo import _native

from benchmarks.gpu_check.context import Context, Found

ROOT = Path(__file__).resolve().parents[2]
QUERY = "name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu"
PROCESSES = max(1, min(12, (os.cpu_count() or 2) - 2))

NETWORK = """
<ir_version: 8, opset_import: ["" : 18]>
network (float[1, 3, 32, 32] x) => (float[1, 10] y)
<float[16, 3, 3, 3] w0, float[16] b0, float[16, 1, 3, 3] w1, float[32, 16, 1, 1] w2, float[32, 10] w3> {
  a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w0, b0)
  b = Relu (a)
  c = Conv <group = 16, pads = [1, 1, 1, 1]> (b, w1)
  d = Clip (c)
  e = Conv (d, w2)
  f = Relu (e)
  g = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (f)
  h = GlobalAveragePool (g)
  i = Flatten (h)
  j = MatMul (i, w3)
  y = Softmax <axis = 1> (j)
}
"""


def said(*command: str) -> str:
    """Return what a command prints, or why it does not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"n/a: {error}"
    return (done.stdout or done.stderr).strip()


def clocks() -> str:
    """Return the card's clocks and temperature at this moment."""
    return said("nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader")


def version(package: str) -> str:
    """Return the version of a Python package."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "n/a"


def environment(context: Context) -> Found:
    """Describe the card, the driver, the tools and the commit."""
    found: Found = {
        "target": context.target,
        "device": context.device(),
        "devices": [kind for kind in _native.devices() if kind["kind"] == context.target],
        "neo": neo.__version__,
        "commit": said("git", "rev-parse", "HEAD"),
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "nvidia-smi": clocks() if context.target == "cuda" else "",
        "nvcc": said("nvcc", "--version").splitlines()[-1:] if shutil.which("nvcc") else "n/a",
    }
    for package in ("torch", "triton", "onnxruntime", "onnxruntime-gpu", "tensorrt", "numpy", "onnx"):
        found[package] = version(package)
    if importlib.util.find_spec("torch") and not context.few:
        import torch

        found["torch's CUDA"] = torch.version.cuda
        found["cuDNN"] = torch.backends.cudnn.version() if torch.cuda.is_available() else "n/a"
    return found


def filled(text: str, seed: int = 0) -> onnx.ModelProto:
    """Return a model of ONNX's text form with random weights."""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(seed)
    for declared in model.graph.value_info:  # what is declared and has no value
        shape = [d.dim_value for d in declared.type.tensor_type.shape.dim]
        values = rng.standard_normal(shape).astype(np.float32) / 4
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, declared.name))
    del model.graph.value_info[:]
    return model


def timed(call: Any, seconds: float, least: int = 3) -> float:
    """Return the median time of calls, ms."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def smoke(context: Context) -> Found:
    """Run one kernel, then a small network a few times: the first call, the second that records, those that replay."""
    found: Found = {"started": time.time()}
    one = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> n (float[N] x) => (float[N] y) { y = Relu (x) }'
    )
    start = time.perf_counter()
    module = neo.compile(one, target=context.target)
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    y = module(x)
    found["first kernel, s"] = time.perf_counter() - start
    if context.computes:
        np.testing.assert_array_equal(y, np.maximum(x, 0))
    context.save("smoke", found)
    model = filled(NETWORK)
    image = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
    expected = neo.compile(model)(image)
    start = time.perf_counter()
    module = neo.compile(model, target=context.target)
    found["compile a network, s"] = time.perf_counter() - start
    found["steps"] = module.explain().devices
    differences = [float(np.abs(module(image) - expected).max()) for _ in range(4)]
    found["differences of four calls"] = differences
    found["call, ms"] = timed(lambda: module(image), 0.2)
    if context.computes and max(differences) > 1e-4:
        msg = f"the network differs from the CPU's by {max(differences):.1e}"
        raise AssertionError(msg)
    return found


def kernels(context: Context) -> Found:
    """Run the tests of kernels and of the GPU's routines with the device in OpenCL's place: each against its reference."""
    if not context.computes:
        return {"not run": "the device computes nothing"}
    if importlib.util.find_spec("pytest") is None:
        return {"not run": "pytest is not installed"}
    report = context.folder / "kernels.xml"
    tests = ["tests/kernel_ir/test_kernels.py", "tests/routines/gpu"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
    command += ["-m", "not slow and not bench and not nvcc", "-o", "addopts=--import-mode=importlib"]
    # What runs as plain C on the host says nothing of the device.
    command += ["-k", "(gemm_6x2x8 or histogram) and not plain" if context.few else "not plain"]
    if not context.few and importlib.util.find_spec("xdist"):
        command += ["-n", str(PROCESSES)]
    variables = {**os.environ, "NEO_TEST_DEVICE": context.target}
    with (context.folder / "kernels.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, env=variables)
        try:
            process.wait(timeout=max(1.0, context.left_s - 3))
        except subprocess.TimeoutExpired:
            process.terminate()
            return {"not done": (context.folder / "kernels.log").read_text()[-2000:]}
    if not report.exists():
        raise AssertionError((context.folder / "kernels.log").read_text()[-3000:])
    cases = ElementTree.parse(report).getroot().iter("testcase")
    outcomes: dict[str, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}"
        problem = next((child for kind in ("failure", "error") for child in case.iter(kind)), None)
        if problem is not None:
            outcomes["failed"].append(f"{name}: {(problem.get('message') or '').splitlines()[0:1]}")
        else:
            outcomes["skipped" if case.find("skipped") is not None else "passed"].append(name)
    return {"passed": len(outcomes["passed"]), "skipped": len(outcomes["skipped"]), "failed": outcomes["failed"]}


def _run_case(name: str, target: str) -> tuple[str, str, int, int]:
    from tests.conformance.on_device import run_on

    outcome = run_on(name, target)
    return name, outcome.failure, sum(outcome.on_device.values()), sum(outcome.on_cpu.values())


def conformance(context: Context) -> Found:
    """Run ONNX's backend suite on the device; a case that was done before is not run again."""
    if not context.computes:
        return {"not run": "the device computes nothing"}
    from tests.conformance.on_device import cases

    found = context.resume("conformance", {"cases": {}})
    done: dict[str, Any] = found["cases"]
    names = [name for name in sorted(cases()) if name not in done]
    if context.few:
        names = [name for name in ("test_relu", "test_softmax_axis_1", "test_add") if name not in done]
    method = multiprocessing.get_context("spawn")
    last = time.time()
    with ProcessPoolExecutor(max_workers=1 if context.few else PROCESSES, mp_context=method) as pool:
        futures = [pool.submit(_run_case, name, context.target) for name in names]
        try:
            for future in as_completed(futures, timeout=max(1.0, context.left_s - 3)):
                name, failure, on_device, on_cpu = future.result()
                done[name] = [failure, on_device, on_cpu]
                if time.time() - last > 2:
                    last = time.time()
                    context.save("conformance", {**found, "status": "partial"})
        except TimeoutError:
            pool.shutdown(wait=False, cancel_futures=True)
            found["not done"] = sum(name not in done for name in names)
    failed = {name: outcome[0] for name, outcome in done.items() if outcome[0]}
    # A case that fails on the CPU as well is no failure of the device.
    found["failed"] = {name: why for name, why in failed.items() if not _run_case(name, "cpu")[1]}
    found["passed"] = sum(not outcome[0] for outcome in done.values())
    found["with a step on the device"] = sum(outcome[1] > 0 for outcome in done.values())
    return found


def _run_model(name: str, target: str) -> dict[str, Any]:
    from dataclasses import asdict

    from tests.models.on_device import run_on

    start = time.perf_counter()
    return {**asdict(run_on(name, target)), "seconds": time.perf_counter() - start}


def models(context: Context) -> Found:
    """Hold every float model of the models folder to ONNX Runtime's answers; a model that is not there is a line."""
    if not context.computes:
        return {"not run": "the device computes nothing"}
    if importlib.util.find_spec("onnxruntime") is None:
        return {"not run": "onnxruntime, whose answers are expected, is not installed"}
    from tests.models import inputs, zoo

    if not inputs.models_folder().is_dir():
        return {"not run": f"there is no folder of models at {inputs.models_folder()}"}
    found = context.resume("models", {"models": {}})
    wanted = [m for m in zoo.MODELS if not m.quantized and (m.onnxruntime or m.references)]
    found["not here"] = [m.name for m in wanted if not m.path.exists()]
    there = sorted((m for m in wanted if m.path.exists()), key=lambda m: m.path.stat().st_size)
    names = [m.name for m in there if m.name not in found["models"]]
    if context.few:
        names = [name for name in names if name == "micro-kws"]
    method = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1 if context.few else max(1, PROCESSES // 2), mp_context=method) as pool:
        futures = [pool.submit(_run_model, name, context.target) for name in names]
        try:
            for future in as_completed(futures, timeout=max(1.0, context.left_s - 3)):
                outcome = future.result()
                found["models"][outcome.pop("model")] = outcome
                context.save("models", {**found, "status": "partial"})
        except TimeoutError:
            pool.shutdown(wait=False, cancel_futures=True)
            found["not done"] = [name for name in names if name not in found["models"]]
    found["failed"] = {name: m["failure"] for name, m in found["models"].items() if m["failure"]}
    found["agree"] = sum(not m["failure"] for m in found["models"].values())
    return found


DTYPES = {
    "float16": '<ir_version: 8, opset_import: ["" : 18]> n (float16[1, 8, 16, 16] x) => (float16[1, 16, 16, 16] y) '
    "{ c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Relu (c) }",
    "bfloat16": '<ir_version: 8, opset_import: ["" : 18]> n (bfloat16[64, 64] x) => (bfloat16[64, 64] y) { y = MatMul (x, w) }',
    "int8": '<ir_version: 8, opset_import: ["" : 18]> n (float[1, 8, 16, 16] x) => (float[1, 16, 16, 16] y) '
    "{ q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) v = DequantizeLinear (w, t) "
    "c = Conv <pads = [1, 1, 1, 1]> (d, v) r = QuantizeLinear (c, u, z) y = DequantizeLinear (r, u, z) }",
}


def dtypes(context: Context) -> Found:
    """Say which dtypes the device computes in: where steps run, and how far the results are from the CPU's."""
    rng = np.random.default_rng(0)
    tensor = onnx.numpy_helper.from_array
    scalar = {name: tensor(np.float32(value), name) for name, value in (("s", 0.05), ("t", 0.02), ("u", 0.1))}
    weights = {
        "float16": [tensor(rng.standard_normal((16, 8, 3, 3)).astype(np.float16), "w")],
        "bfloat16": [onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [64, 64], rng.standard_normal(64 * 64))],
        "int8": [
            tensor(rng.integers(-127, 127, (16, 8, 3, 3)).astype(np.int8), "w"),
            tensor(np.int8(0), "z"),
            *scalar.values(),
        ],
    }
    found: Found = {}
    for name, text in DTYPES.items():
        try:
            model = onnx.parser.parse_model(text)
            model.graph.initializer.extend(weights[name])
            module = neo.compile(model, target=context.target)
            devices = module.explain().devices
            on_device = [f"{s.op} by {s.routine}" for s in module.steps if s.device != "cpu" and s.op != "neo.Adapt"]
            entry: Found = {"steps": devices, "on the device": on_device}
            texts = [kernel["text"] for kernel in module.kernels]
            held = any(f"_{name}" in text or (name == "float16" and "vload_half" in text) for text in texts)
            computed = any(f"gpu:{name}" in text for text in on_device)
            entry["verdict"] = (
                "computed there" if computed else "held there, computed in float32" if held else "unsupported there"
            )
            if context.computes and on_device and name != "bfloat16":
                shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
                x = rng.standard_normal(shape).astype(np.float16 if name == "float16" else np.float32)
                y, expected = module(x).astype(np.float64), neo.compile(model)(x).astype(np.float64)
                entry["difference"] = float(np.abs(y - expected).max() / np.abs(expected).max())
        except neo.Error as error:
            entry = {"verdict": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
        found[name] = entry
    return found

"""Tuning from nothing; measured times of steps beside their estimates, the slowest steps' kernels, and the card's figures."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx

from benchmarks.gpu_check.basics import NETWORK, clocks, filled, timed
from benchmarks.gpu_check.context import Context, Found

#: Networks that are profiled, where their export is there, and tuned.
PROFILED = ("resnet50", "mobilenet_v2", "inception_v3", "densenet201", "vgg19", "ssd_mobilenet_v1_512", "yolov3_416")
TUNED = ("mobilenet_v2", "resnet50", "ssd_mobilenet_v1_512")
SLOWEST = 10


def models_of(context: Context, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the exported networks of these names; the smoke test's network where there are none."""
    there = {name: context.cache / f"{name}-1.onnx" for name in names}
    found: dict[str, Any] = {name: path for name, path in there.items() if path.exists() and not context.few}
    return found or {"small": filled(NETWORK)}


def feeds_of(module: neo.Module) -> dict[str, np.ndarray]:
    """Return normal numbers for every input."""
    rng = np.random.default_rng(0)
    return {i.name: rng.standard_normal([int(d) for d in i.shape]).astype(np.float32) for i in module.inputs}


def tuning(context: Context) -> Found:
    """Tune networks from an empty database and time them beside the untuned ones."""
    if not context.computes:
        return {"not run": "the device computes nothing"}
    found = context.resume("tuning", {"networks": {}})
    models = models_of(context, TUNED)
    for name, model in models.items():
        if name in found["networks"] or context.left_s < 3:
            continue
        seconds = max(1.0, min(30.0, context.left_s / len(models) - 5)) if not context.few else 1.0
        untuned = neo.compile(model, target=context.target, threads=2)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            tuned = neo.compile(
                model, target=context.target, threads=2, tune=f"{seconds:.0f}s", database=Path(folder) / "tuning.db"
            )
            took = time.perf_counter() - start
        feeds = feeds_of(untuned)
        times: dict[str, list[float]] = {"untuned": [], "tuned": []}
        with context.alone():
            for _ in range(5):
                for key, module in (("untuned", untuned), ("tuned", tuned)):
                    times[key].append(timed(partial(module.run, feeds), 0.05))
        entry = {key: float(np.median(taken)) for key, taken in times.items()}
        said = {"budget, s": seconds, "compile, s": took, "tuning": str(tuned.tuning), "steps": tuned.explain().devices}
        found["networks"][name] = {**entry, "untuned / tuned": entry["untuned"] / entry["tuned"], **said}
        context.save("tuning", {**found, "status": "partial"})
    return found


def ranks(values: list[float]) -> np.ndarray:
    """Return the rank of each value, equal ones their mean rank."""
    array = np.asarray(values)
    _, group, counts = np.unique(array, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[group]


def rank_correlation(a: list[float], b: list[float]) -> float | None:
    """Return Spearman's rank correlation; None where there are too few values or all are equal."""
    if len(a) < 3 or len(set(a)) == 1 or len(set(b)) == 1:
        return None
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def families(steps: list[Found]) -> list[Found]:
    """Return a row per family of kernels: ratios of measured to estimated time, ranks, and the constants to refit.

    ``scale`` and ``offset_us`` are those of measured = scale x estimate + offset that has the least squares of relative
    errors.
    """
    grouped: dict[str, list[Found]] = defaultdict(list)
    for step in steps:
        grouped[step["family"]].append(step)
    rows = []
    for family, members in sorted(grouped.items(), key=lambda pair: -sum(s["us"] for s in pair[1])):
        measured, estimated = [s["us"] for s in members], [s["estimate_us"] for s in members]
        ratio = np.asarray(measured) / np.maximum(estimated, 1e-3)
        low, middle, high = np.percentile(ratio, (10, 50, 90))
        row: Found = {"family": family, "steps": len(members), "median": middle, "10 %": low, "90 %": high}
        row |= {"measured, us": sum(measured), "estimated, us": sum(estimated)}
        row["rank correlation"] = rank_correlation(measured, estimated)
        if len(members) >= 3:
            weight = 1 / np.maximum(measured, 1e-3)
            a = np.stack([estimated, np.ones(len(members))], axis=1) * weight[:, None]
            scale, offset = np.linalg.lstsq(a, np.ones(len(members)), rcond=None)[0]
            row |= {"scale": float(scale), "offset_us": float(offset)}
        rows.append(row)
    return rows


def _ptx(text: str, folder: Path, name: str) -> str:
    """Write a kernel's PTX and return what ptxas says of registers and spills."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(nvcc).exists():
        return "n/a: no nvcc"
    source = folder / f"{name}.cu"
    source.write_text(text, encoding="utf-8")
    common = [nvcc, "-std=c++17", "-arch=sm_90", "-fmad=false"]
    subprocess.run([*common, "-ptx", "-o", str(folder / f"{name}.ptx"), str(source)], check=False, timeout=20)
    done = subprocess.run(
        [*common, "-cubin", "-Xptxas", "-v", "-o", os.devnull, str(source)],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    return " ".join(
        line.split("info")[-1].strip(" :") for line in done.stderr.splitlines() if "Used" in line or "spill" in line
    )


def profiles(context: Context) -> Found:
    """Profile networks by events: every step's time and estimate, a table per family, the slowest steps' kernels."""
    found = context.resume("profiles", {"steps": [], "networks": {}})
    folder = context.folder / "kernels"
    texts: dict[tuple[str, int], list[str]] = {}
    for name, model in models_of(context, PROFILED).items():
        if name in found["networks"] or context.left_s < 5:
            continue
        module = neo.compile(model, target=context.target, threads=2)
        for entry in module.kernels:
            texts.setdefault((name, entry["item"]), []).append(entry["text"])
        feeds = feeds_of(module)
        with context.alone():
            before = clocks() if context.target == "cuda" else ""
            profile = module.profile(feeds, repeat=2 if context.few else 15)
        total = 0.0
        for step in profile.steps:
            if module.steps[step.item].device == "cpu":
                continue
            total += step.time_us
            row = {"network": name, "item": step.item, "node": step.node, "op": step.op, "routine": step.routine}
            row["family"] = step.op if step.op == "neo.Adapt" else step.routine.split("{")[0]
            found["steps"].append({**row, "us": step.time_us, "estimate_us": step.estimate_us})
        call = timed(partial(module.run, feeds), 0.1)
        found["networks"][name] = {"steps, us": total, "call, ms": call, "clocks": before}
        context.save("profiles", {**found, "status": "partial"})
    steps = [s for s in found["steps"] if s["us"] > 0]
    if not steps:
        return found
    found["families"] = families(steps)
    found["rank correlation"] = rank_correlation([s["us"] for s in steps], [s["estimate_us"] for s in steps])
    slowest = sorted((s for s in steps if s["op"] != "neo.Adapt"), key=lambda s: -s["us"])[:SLOWEST]
    folder.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(slowest):
        step["files"], step["ptxas"] = [], []
        for i, text in enumerate(texts.get((step["network"], step["item"]), [])[:3]):
            if context.left_s < 3:
                break
            file = f"{number:02}-{i}"
            is_cuda = "__global__" in text
            step["files"].append(file)
            step["ptxas"].append(_ptx(text, folder, file) if is_cuda else "")
            if not is_cuda:
                (folder / f"{file}.cl").write_text(text, encoding="utf-8")
    found["slowest"] = slowest
    return found


def figures(context: Context) -> Found:
    """Measure the figures that estimates are made of: csrc/routines/cost/target.cpp has those that are assumed."""
    found: Found = {}

    def step_us(text: str, feeds: dict[str, np.ndarray], accuracy: str | None = None) -> tuple[float, float]:
        options: dict[str, Any] = {"accuracy": accuracy} if accuracy else {}
        module = neo.compile(onnx.parser.parse_model(text), target=context.target, **options)
        with context.alone():
            profile = module.profile(feeds, repeat=3 if context.few else 10)
        steps = [s for s in profile.steps if s.op != "neo.Adapt"]
        copies = [s.time_us for s in profile.steps if s.op == "neo.Adapt"]
        return max((s.time_us for s in steps), default=0.0), max(copies, default=0.0)

    head = '<ir_version: 8, opset_import: ["" : 18]> n '
    rng = np.random.default_rng(0)
    small = rng.standard_normal(1).astype(np.float32)
    found["launch_us"], found["copy_us"] = step_us(head + "(float[1] x) => (float[1] y) { y = Relu (x) }", {"x": small})
    context.save("figures", found)
    n = 1 << (16 if context.few else 26)
    large = np.ones(n, np.float32)
    us, copy = step_us(head + f"(float[{n}] x) => (float[{n}] y) {{ y = Relu (x) }}", {"x": large})
    found["gbps"] = 8e-3 * n / us if us else None
    found["copy_gbps"] = 4e-3 * n / copy if copy else None
    context.save("figures", found)
    m = 128 if context.few else 4096
    a = rng.standard_normal((m, m)).astype(np.float32)
    text = head + f"(float[{m}, {m}] x, float[{m}, {m}] w) => (float[{m}, {m}] y) {{ y = MatMul (x, w) }}"
    for key, accuracy in (("gflops", None), ("matrix_gflops", "reduced")):
        us, _ = step_us(text, {"x": a, "w": a}, accuracy)
        found[key] = 2e-3 * m**3 / us if us else None
    return found


def vision(context: Context) -> Found:
    """Measure how sorting and vision operators grow, and detectors with their post-processing there and on the CPU."""
    if not context.computes:
        return {"not run": "the device computes nothing"}
    from benchmarks.gpu_vision import growth, networks

    found: Found = {"growth": growth(12 if context.few else 20, 2 if context.few else 5, context.target)}
    context.save("vision", {**found, "status": "partial"})
    if not context.few:
        found["detectors"] = networks(5, "8s", context.target)
    return found

"""Networks beside what else runs them there: PyTorch eager, compiled and as a CUDA graph, ONNX Runtime's providers.

``python -m benchmarks.gpu_check.network NAME BATCH`` measures one network in a process of its own.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import neo
import numpy as np

from benchmarks.gpu_check.basics import ROOT, clocks
from benchmarks.gpu_check.context import Context, Found

#: The most telling ones first; each with the batches it is measured with.
NETWORKS = [
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v1",
    "inception_v3",
    "ssd_mobilenet_v1_512",
    "densenet201",
    "vgg19",
    "yolov3_416",
    "ssd_resnet50_512",
    "lstm_512x3_t100",
    "efficientnet_b0",
]
FEW = ("lstm_128x2_t17",)
BATCHES = (1, 8)
WORKERS = 4
#: Largest difference from PyTorch on the CPU, relative to the largest value, in float32 and with tf32.
LARGEST = {"fp32": 1e-3, "tf32": 2e-2}
ROUNDS = 7
SLICE_S = 0.08

Call = Callable[[], list[np.ndarray]]


def listed(context: Context) -> list[tuple[str, int]]:
    """Return the networks and batches, in order of what they tell."""
    if context.few:
        return [(name, 1) for name in FEW]
    ones = [(name, 1) for name in NETWORKS]
    return [*ones[:3], ("resnet50", 8), *ones[3:], *((n, 8) for n in NETWORKS[1:] if not n.startswith("lstm"))]


def export(name: str, batch: int, cache: Path) -> tuple[Path, Any, Any]:
    """Return the exported file, the module it came from and its input."""
    import torch

    from benchmarks.models import networks

    module = networks.build(name)
    shape = networks.NETWORKS[name].shape
    if batch > 1:
        shape = (batch, *shape[1:])
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    path = cache / f"{name}-{batch}.onnx"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, (x,), str(partial), opset_version=17, dynamo=False, input_names=["x"])
        partial.replace(path)
    return path, module, x


def _torch_calls(module: Any, x: Any) -> dict[str, Callable[[], Call]]:
    """Return PyTorch's forms, each with what makes it: from the host's array to the host's arrays."""
    import torch

    from benchmarks.peers.torch import capture

    has_gpu = torch.cuda.is_available()
    device = "cuda" if has_gpu else "cpu"
    torch.backends.cudnn.benchmark = True
    module = module.to(device)

    def caller(run: Callable[[Any], Any], tf32: bool) -> Call:
        def call() -> list[np.ndarray]:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            with torch.inference_mode():
                answer = run(x.to(device))
                return [item.cpu().numpy() for item in (answer if isinstance(answer, tuple) else (answer,))]

        return call

    def graph(tf32: bool) -> Call:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        return caller(capture(module, [x.to(device)]), tf32)

    def compiled() -> Call:
        return caller(torch.compile(module, mode="reduce-overhead"), False)

    forms = {"torch eager, fp32": lambda: caller(module, False)}
    if has_gpu:
        forms |= {
            "torch graph, fp32": lambda: graph(False),
            "torch eager, tf32": lambda: caller(module, True),
            "torch graph, tf32": lambda: graph(True),
            "torch compiled, fp32": compiled,
        }
    return forms


def _onnxruntime_calls(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, Callable[[], Call]]:
    """Return ONNX Runtime's providers that run on a GPU."""
    if importlib.util.find_spec("onnxruntime") is None:
        return {}
    import onnxruntime

    there = onnxruntime.get_available_providers()

    def provider(chosen: list[Any]) -> Call:
        session = onnxruntime.InferenceSession(str(path), providers=chosen)
        return lambda: session.run(None, feeds)

    forms: dict[str, Callable[[], Call]] = {}
    exact = ("CUDAExecutionProvider", {"use_tf32": "0"})
    if "CUDAExecutionProvider" in there:
        forms["ort CUDA, fp32"] = lambda: provider([exact])
    if "TensorrtExecutionProvider" in there:
        forms["ort TensorRT, fp32"] = lambda: provider([("TensorrtExecutionProvider", {}), exact])
    return forms


def difference(given: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """Return the largest difference relative to the largest value."""
    worst = 0.0
    for a, b in zip(given, expected, strict=True):
        largest = float(np.abs(b).max()) or 1.0
        worst = max(worst, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) / largest)
    return worst


def measure(context: Context, name: str, batch: int) -> Found:
    """Measure one network: every engine's median, in rounds that go through all of them."""
    import torch

    torch.set_num_threads(2)
    started = time.time()
    path, module, x = export(name, batch, context.cache)
    with torch.inference_mode():
        answer = module(x)
    expected = [item.numpy() for item in (answer if isinstance(answer, tuple) else (answer,))]
    feeds = {"x": x.numpy()}
    found: Found = {"network": name, "batch": batch, "ms": {}, "difference": {}, "error": {}}
    found["export, s"] = time.time() - started

    def ours(accuracy: str | None) -> Call:
        start = time.perf_counter()
        options: dict[str, Any] = {"accuracy": accuracy} if accuracy else {}
        compiled = neo.compile(path, target=context.target, threads=2, **options)
        found.setdefault("neo's compile, s", time.perf_counter() - start)
        found.setdefault("steps", compiled.explain().devices)
        return lambda: [np.asarray(value) for value in compiled.run(feeds).values()]

    makers: dict[str, Callable[[], Call]] = {"neo, fp32": lambda: ours(None)}
    if context.target == "cuda":
        makers["neo, tf32"] = lambda: ours("reduced")
    makers |= _torch_calls(module, x) | _onnxruntime_calls(path, feeds)
    calls: dict[str, Call] = {}
    for engine, make in makers.items():
        try:
            call = make()
            for _ in range(3):
                given = call()
            if context.computes or not engine.startswith("neo"):
                found["difference"][engine] = difference(given, expected)
            calls[engine] = call
        except Exception as error:
            found["error"][engine] = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
    times: dict[str, list[float]] = {engine: [] for engine in calls}
    with context.alone():
        found["clocks before"] = clocks() if context.target == "cuda" else ""
        for _ in range(2 if context.few else ROUNDS):
            for engine, call in calls.items():
                taken = []
                end = time.perf_counter() + SLICE_S
                while time.perf_counter() < end or len(taken) < 3:
                    start = time.perf_counter()
                    call()
                    taken.append(1e3 * (time.perf_counter() - start))
                times[engine].append(statistics.median(taken))
        found["clocks after"] = clocks() if context.target == "cuda" else ""
    found["ms"] = {engine: statistics.median(taken) for engine, taken in times.items()}
    found["rounds, ms"] = times
    found["seconds"] = time.time() - started
    return found


def ratios(found: Found, kind: str) -> float | None:
    """Return by how much neo is ahead of the best of the others in a precision."""
    ours = found["ms"].get(f"neo, {kind}")
    others = [ms for engine, ms in found["ms"].items() if engine.endswith(kind) and not engine.startswith("neo")]
    return min(others) / ours if ours and others else None


def networks(context: Context, part: str = "networks") -> Found:
    """Measure the networks that were not measured before; several are made ready at a time, one is measured."""
    if importlib.util.find_spec("torch") is None or (
        importlib.util.find_spec("torchvision") is None and not context.few
    ):
        return {"not run": "torch and torchvision, which the networks are exported from, are not installed"}
    found = context.resume(part, {"networks": {}})
    done = found["networks"]

    def run(name: str, batch: int) -> None:
        key = f"{name} x {batch}"
        if key in done or context.left_s < (1 if context.few else 20):
            return
        command = [sys.executable, "-m", "benchmarks.gpu_check.network", name, str(batch), context.target]
        command += [str(context.folder), str(int(context.few)), str(context.deadline)]
        try:
            limit = max(1.0, min(context.left_s - 2, 120.0))
            ended = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=ROOT, check=False)
            why = (ended.stderr.strip().splitlines() or ["no output"])[-1] if ended.returncode else ""
        except subprocess.TimeoutExpired:
            why = "not done in its time"
        result = context.load(f"network-{name}-{batch}")
        done[key] = result if result else {"error": {"all": why}, "ms": {}, "difference": {}}
        if result:
            context.save(part, {**found, "status": "partial"})

    with ThreadPoolExecutor(1 if context.few else WORKERS) as pool:
        list(pool.map(lambda pair: run(*pair), listed(context)))
    for kind in LARGEST:
        known = [r for f in done.values() if (r := ratios(f, kind)) is not None]
        if known:
            found[f"geometric mean of speed-ups, {kind}"] = math.exp(sum(map(math.log, known)) / len(known))
    found["wrong"] = {
        f"{key}, {engine}": far
        for key, f in done.items()
        for engine, far in f["difference"].items()
        if engine.startswith("neo") and not far <= LARGEST[engine[-4:]]
    }
    return found


def main() -> None:
    """Measure the network of the command line."""
    name, batch, target, folder, few, deadline = sys.argv[1:]
    context = Context(target, Path(folder), Path(folder), few == "1", float(deadline))
    context.save(f"network-{name}-{batch}", measure(context, name, int(batch)))


if __name__ == "__main__":
    main()

"""The papers' networks and real models on a GPU beside what is installed there: ``python -m benchmarks.gpu_networks``.

neo compiles for ``--target`` (cuda by default) and runs beside PyTorch with cuDNN (eager, its calls captured in a CUDA
graph, compiled) and ONNX Runtime's CUDA and TensorRT providers, all in float32 without TF32, from arrays of the host to
arrays of the host. An engine that is not installed is a cell that says so. The networks are exported on the machine,
real models of the shared folder are held to ONNX Runtime's answers first, and no network is begun after ``--seconds``.
``--record`` writes the table into benchmarks/results/local; where there is no such device, the page says that.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

from neo import _native
from neo.bench import ENGINES as INSTALLED
from neo.bench import Engine, Job, Measured, measure, ratio_interval
from rich.console import Console

from benchmarks import environment
from benchmarks.models import networks
from benchmarks.results import Section, record_section
from benchmarks.suites import find_entries
from tests.models import inputs, on_device

NETWORKS = (
    "resnet50,mobilenet_v1,mobilenet_v2,inception_v3,densenet201,vgg19,ssd_mobilenet_v1_512,ssd_resnet50_512,yolov3_416"
)
MODELS = "[kmrsy]*"
TORCH = Path(__file__).parent / "peers" / "torch.py"
TITLE = "The papers' networks on a GPU"


def engines(target: str) -> dict[str, Engine]:
    """Return neo for the target and its peers there; ONNX Runtime on the CPU is what outputs are compared with."""
    ort, ours = INSTALLED["ort"].adapter, {"neo": Engine(INSTALLED["neo"].adapter, {"target": target})}
    if target != "cuda":
        return {**ours, "ort": INSTALLED["ort"], "torch": Engine(TORCH)}
    exact = {"use_tf32": "0"}
    return {
        **ours,
        "ort": INSTALLED["ort"],
        "torch": Engine(TORCH, {"device": "cuda"}),
        "torch, CUDA graph": Engine(TORCH, {"device": "cuda", "form": "graph"}),
        "torch, compiled": Engine(TORCH, {"device": "cuda", "form": "compiled"}),
        "ort, CUDA": Engine(ort, {"providers": [["CUDAExecutionProvider", exact]]}),
        "ort, TensorRT": Engine(
            ort, {"providers": [["TensorrtExecutionProvider", {}], ["CUDAExecutionProvider", exact]]}
        ),
    }


def device_of(target: str) -> str | None:
    """Return the name of the first device of a kind, nothing where there is none."""
    for kind in _native.devices():
        if kind["kind"] == target and kind["devices"]:
            return str(kind["devices"][0]["name"])
    return None


def cell(found: Measured) -> str:
    """Return what the table says of an engine."""
    return (
        f"{found.median_ms:.3f}" if found.median_ms is not None else f"n/a: {(found.error or '').splitlines()[0][:60]}"
    )


def row_of(name: str, found: dict[str, Measured]) -> tuple[list[str], float | None]:
    """Return the row of a network, and by how much neo is ahead of the best peer on the device."""
    ours = found["neo"]
    peers = {k: m for k, m in found.items() if k not in ("neo", "ort") and m.median_ms is not None}
    difference = f"{ours.difference:.1e}" if ours.difference is not None else ""
    cells = [cell(m) for m in found.values()]
    if ours.median_ms is None or not peers:
        return [name, *cells, difference, ""], None
    best = min(peers, key=lambda k: peers[k].median_ms or math.inf)
    ratio = ratio_interval(peers[best].rounds_ms, ours.rounds_ms)
    return [name, *cells, difference, f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] of {best}"], ratio.median


def main() -> int:
    """Print the table; 1 where there is no device or a model differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_networks", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--target", default="cuda", choices=["cuda", "opencl"])
    parser.add_argument("--networks", default=NETWORKS, help="names, separated by commas")
    parser.add_argument("--models", default=MODELS, help="pattern of the real models (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="per network (default: %(default)s)")
    parser.add_argument("--slice", type=float, default=0.2, help="seconds per engine and round (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=480, help="no network is begun after these (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=2, help="of the host (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--record", action="store_true", help="write the table into benchmarks/results/local")
    options = parser.parse_args()
    start = time.monotonic()
    device = device_of(options.target)
    if device is None:
        print(f"neo: there is no {options.target} device here; `neo targets` says what is missing", file=sys.stderr)
        if options.record:
            text = "No NVIDIA GPU was at hand: nothing is claimed of the speed there."
            record_section("gpu-networks", Section(TITLE, text, [], []))
        return 1
    status = 0
    if inputs.models_folder().is_dir():
        status = on_device.main(
            [
                "--target",
                options.target,
                "--kinds",
                "float32",
                "--match",
                options.models,
                "--until",
                str(options.seconds / 3),
            ]
        )
    head = ["network", *(f"{name}, ms" for name in engines(options.target)), "difference", "speed-up [95 %]"]
    rows, ratios, late = [], [], []
    for entry in find_entries("networks", options.networks.split(",")):
        if time.monotonic() - start > options.seconds:
            late.append(entry.name)
            continue
        path, feeds = entry.prepare(options.cache)
        job = Job(
            entry.name,
            path,
            feeds,
            options.threads,
            options.cache,
            rounds=options.rounds,
            slice_s=options.slice,
            network=entry.network if entry.network in networks.NETWORKS else None,
        )
        row, ratio = row_of(entry.name, measure(engines(options.target), job))
        rows.append(row)
        ratios += [ratio] if ratio is not None else []
        print(*row, sep=" | ", flush=True)
    mean = f" Geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}." if ratios else ""
    text = (
        f"On {device}, batch 1, float32 without TF32, from the host's arrays to the host's arrays. ONNX Runtime on the CPU is "
        f"the reference of the outputs. The speed-up is over the best peer on the device.{mean}"
    )
    Console().print(text, highlight=False)
    if late:
        print(f"not begun after {options.seconds:.0f} s: {', '.join(late)}")
    if options.record:
        place = environment.place()
        notes = [f"Measured by `python -m benchmarks.gpu_networks` on {place}; commit {environment.commit()}."]
        record_section("gpu-networks", Section(TITLE, text, head, rows, notes))
    return status


if __name__ == "__main__":
    sys.exit(main())

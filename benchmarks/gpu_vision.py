"""Sorting and vision operators on a device: ``python -m benchmarks.gpu_vision``.

For every size the device's time, the time divided by the work that the operator should take (n, n log n, n times kept),
and that quotient against the smallest size's. With ``--networks``, detectors whose post-processing is in the graph, with
their vision operators on the device and on the CPU, and with tuning. It runs the programs of the tests, so it needs a checkout that is
built, and times of its own on the machine. ``--record`` writes the tables into benchmarks/results/local.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import neo
import numpy as np
import onnx
from neo import _native

from benchmarks import environment
from benchmarks.results import Section, record_section
from tests.routines.gpu.detectors import ssd, yolo
from tests.routines.gpu.programs import Program


def scan(rng: np.random.Generator, n: int, rounds: int, on: str) -> tuple[float, float]:
    program = Program("cum_sum", dtype="float32", axis=0)
    _, times = program.run([rng.standard_normal(n).astype("f4")], [((n,), "f4")], on=on, repeats=rounds)
    return min(times), n


def sort(rng: np.random.Generator, n: int, rounds: int, on: str) -> tuple[float, float]:
    program = Program("top_k", dtype="float32", axis=1, values=0)
    _, times = program.run([rng.standard_normal((1, n)).astype("f4")], [((1, n), "i8")], on=on, repeats=rounds)
    return min(times), n * math.log2(n)


def top_100(rng: np.random.Generator, n: int, rounds: int, on: str) -> tuple[float, float]:
    program = Program("top_k", dtype="float32", axis=1)
    outputs = [((1, 100), "f4"), ((1, 100), "i8")]
    _, times = program.run([rng.standard_normal((1, n)).astype("f4")], outputs, on=on, repeats=rounds)
    return min(times), n * math.log2(n)


def suppression(rng: np.random.Generator, n: int, rounds: int, on: str) -> tuple[float, float]:
    corner = rng.random((1, n, 2)) * 150
    boxes = np.concatenate([corner, corner + 10 + rng.random((1, n, 2))], axis=2).astype("f4")
    scores = rng.random((1, 1, n)).astype("f4")
    program = Program("non_max_suppression", limit=1000, iou_threshold="0.2", counts=1)
    (count,), times = program.run([boxes, scores], [((1,), "i4")], on=on, repeats=rounds)
    return min(times), n * float(count[0])


CASES: dict[str, tuple[str, Callable[[np.random.Generator, int, int, str], tuple[float, float]]]] = {
    "prefix sum": ("n", scan),
    "argsort": ("n log n", sort),
    "top 100": ("n log n", top_100),
    "non-max suppression": ("n kept", suppression),
}


BACKBONE = {"Conv", "Resize"}


def growth(most: int, rounds: int, on: str) -> list[list[str]]:
    """Return a row for each operator and size."""
    rows = []
    for name, (work, run) in CASES.items():
        first = None
        for power in range(12, most + 1, 2):
            ns, amount = run(np.random.default_rng(power), 1 << power, rounds, on)
            first = first or ns / amount
            rows.append(
                [name, str(1 << power), f"{ns / 1e6:.3f}", work, f"{ns / amount:.3f}", f"{ns / amount / first:.2f}"]
            )
            print(*rows[-1], flush=True)
    return rows


def placed(
    model: onnx.ModelProto, database: Path, target: str, *, on_device: bool | None, tune: str | bool
) -> neo.Module:
    """Return the model with all on the device, with its backbone there and the rest on the CPU, or (None) placed freely."""
    backbone = {f"{op} *": "gpu*" for op in BACKBONE & {node.op_type for node in model.graph.node}}
    pins = None if on_device is None else {"*": "gpu*"} if on_device else {**backbone, "*": "cpu*"}
    return neo.compile(model.SerializeToString(), target=target, routines=pins, tune=tune, database=database)


def networks(rounds: int, budget: str, target: str) -> list[list[str]]:
    """Return a row for each detector: its forms in turn, the median of each."""
    rows = []
    for name, model in (("SSD head", ssd()), ("YOLO head", yolo())):
        size = model.graph.input[0].type.tensor_type.shape
        feed = np.random.default_rng(2).standard_normal([d.dim_value for d in size.dim]).astype("f4")
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "tuning.db"
            forms: list[tuple[bool | None, str | bool]] = [
                (False, False),
                (True, False),
                (True, budget),
                (None, budget),
            ]
            modules = [placed(model, database, target, on_device=on, tune=tune) for on, tune in forms]
        times: list[list[float]] = [[] for _ in modules]
        for _ in range(rounds + 2):
            for module, taken in zip(modules, times, strict=True):
                start = time.perf_counter()
                module(feed)
                taken.append(1e3 * (time.perf_counter() - start))
        off, on, tuned, free = (statistics.median(taken[2:]) for taken in times)
        row = [name, f"{off:.2f}", f"{on:.2f}", f"{off / on:.2f}", f"{tuned:.2f}", f"{on / tuned:.2f}", f"{free:.2f}"]
        rows.append(row)
        print(*rows[-1], flush=True)
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_vision", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--most", type=int, default=20, help="the largest size is 2 to this power")
    parser.add_argument("--target", default="opencl", choices=["opencl", "cuda"], help="the kind of device")
    parser.add_argument("--rounds", type=int, default=5, help="the fastest of so many, or the median of a network's")
    parser.add_argument("--networks", action="store_true", help="time the detectors instead")
    parser.add_argument("--tune", default="60s", help="a network's budget (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="write the table into benchmarks/results/local")
    options = parser.parse_args()
    if options.networks:
        rows = networks(options.rounds, options.tune, options.target)
    else:
        rows = growth(options.most, options.rounds, options.target)
    if not options.record:
        return
    kinds = {kind["kind"]: kind["devices"] for kind in _native.devices()}
    device = kinds[options.target][0]["name"]
    place = environment.place()
    notes = [f"Measured by `python -m benchmarks.gpu_vision` on {place}; commit {environment.commit()}."]
    if options.networks:
        text = (
            f"Detectors whose post-processing is in the graph, on the device {device}, ms: all operators of the "
            f"post-processing on the CPU (off), everything on the device (on), and that tuned from an empty database within "
            f"{options.tune}; last where tuning may also choose the places. Medians of {options.rounds} calls in turn."
        )
        head = ["network", "off", "on", "off / on", "tuned", "on / tuned", "tuned, placed freely"]
        record_section(
            "gpu-vision",
            Section("Vision operators and tuning on a device: off and on", text, head, rows, notes),
        )
        return
    text = (
        f"Time on the device {device}, the least of {options.rounds} runs; per unit of the work that the operator "
        "should take, and that against the smallest size's. The suppression keeps 1,000 boxes at most."
    )
    head = ["operator", "n", "ms", "work", "ns / work", "growth"]
    record_section("gpu-growth", Section("Growth of sorting and vision operators", text, head, rows, notes))


if __name__ == "__main__":
    main()

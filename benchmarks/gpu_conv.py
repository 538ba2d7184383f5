"""ResNet-50's convolutions on an OpenCL device beside neo's CPU routines: ``python -m benchmarks.gpu_conv``.

For every layer the schedule that the estimate chooses and the best of a sample of schedules of the spatial-packing
kernels, timed by the device's own events, and the convolution's step of a compiled module of that layer alone, all in
10^9 operations per second of the direct algorithm. Everything is compiled first; then device and CPU are timed in turn,
and the least time of each counts. It runs the programs of the tests, so it needs a checkout that is built, and times of
its own on the machine. ``--record`` writes the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from math import exp, log
from pathlib import Path

import neo
import numpy as np
import onnx
from neo import _native
from neo.frontend.onnx import read_model
from rich.console import Console
from rich.table import Table

from benchmarks import environment
from benchmarks.results import Section, record_section
from tests.routines.gpu.convs import blocked, pack_direct
from tests.routines.gpu.programs import Program

#: Input channels, output channels, height and width of the input, kernel, stride.
LAYERS = [
    (3, 64, 224, 7, 2),
    (64, 64, 56, 1, 1),
    (64, 64, 56, 3, 1),
    (64, 256, 56, 1, 1),
    (256, 64, 56, 1, 1),
    (256, 128, 56, 1, 1),
    (128, 128, 56, 3, 2),
    (256, 512, 56, 1, 2),
    (128, 512, 28, 1, 1),
    (512, 128, 28, 1, 1),
    (128, 128, 28, 3, 1),
    (512, 256, 28, 1, 1),
    (256, 256, 28, 3, 2),
    (512, 1024, 28, 1, 2),
    (256, 1024, 14, 1, 1),
    (1024, 256, 14, 1, 1),
    (256, 256, 14, 3, 1),
    (1024, 512, 14, 1, 1),
    (512, 512, 14, 3, 2),
    (1024, 2048, 14, 1, 2),
    (512, 2048, 7, 1, 1),
    (2048, 512, 7, 1, 1),
    (512, 512, 7, 3, 1),
]
BLOCK = 16


def operations(layer: tuple[int, ...]) -> int:
    """Return what the direct algorithm computes, two operations a product."""
    ic, oc, size, kernel, stride = layer
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    return 2 * ic * oc * kernel * kernel * out * out


def model_of(layer: tuple[int, ...]) -> onnx.ModelProto:
    """Return a model of one layer."""
    ic, oc, size, kernel, stride = layer
    weight = np.random.default_rng(0).standard_normal((oc, ic, kernel, kernel), dtype="f4")
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[kernel // 2] * 4)
    graph = onnx.helper.make_graph(
        [node],
        "layer",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, ic, size, size])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def estimated(layer: tuple[int, ...]) -> dict[str, int]:
    """Return the schedule that the estimate chooses among all, for tensors in blocks of channels."""
    graph = _native.run_passes(read_model(model_of(layer))[0])
    problem = _native.build_problem(graph, "opencl", 1, lambda _, name: name.startswith("gpu:float32/conv_direct"))
    for node in problem.nodes:
        for choice in node["choices"]:
            if choice["routine"].startswith("gpu:") and f"{BLOCK}c" in choice["routine"]:
                return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", choice["routine"])}
    msg = f"[gpu_conv] the device must have a routine in blocks of {BLOCK} channels. Got none for {layer}"
    raise RuntimeError(msg)


def schedules(layer: tuple[int, ...], count: int) -> list[dict[str, int]]:
    """Return the estimate's choice, schedules that fill the registers of a CPU, and others drawn at random."""
    kernel = layer[3]
    unroll = int(kernel > 1)
    fixed = [{"vectors": 4, "columns": 7, "order": 1}, {"vectors": 4, "columns": 7}, {"vectors": 4, "columns": 6}]
    generator = random.Random(0)
    while len(fixed) < count:
        columns = generator.choice([4, 5, 6, 7, 8, 14])
        fixed.append({"vectors": generator.choice([2, 3, 4]), "columns": columns, "order": generator.choice([0, 1])})
    plain = [{"lanes": 16, "inner": 1, "load": 1, "unroll": unroll} | s for s in fixed[: max(0, count - 1)]]
    return [estimated(layer), *plain]


class OnDevice:
    """One schedule of a layer, compiled."""

    def __init__(self, layer: tuple[int, ...], schedule: dict[str, int]) -> None:
        ic, oc, size, kernel, stride = layer
        pad = kernel // 2
        out = (size + 2 * pad - kernel) // stride + 1
        block = BLOCK if ic >= BLOCK else 1
        generator = np.random.default_rng(0)
        x = generator.standard_normal((1, ic, size, size), dtype="f4")
        weight = generator.standard_normal((oc, ic, kernel, kernel), dtype="f4")
        numbers = {f"p{axis}{end}": pad for axis in "hw" for end in "be"}
        numbers |= {"kh": kernel, "kw": kernel, "sh": stride, "sw": stride, "flat": int(kernel == 1 and stride == 1)}
        self.program = Program("conv_direct", ic=ic, oc=oc, in_block=block, out_block=BLOCK, **numbers, **schedule)
        self.packed = [pack_direct(weight, 1, block, schedule["lanes"] * schedule["vectors"])]
        self.memory = (1, -(-oc // BLOCK), out, out, BLOCK)
        self.operand = (x.shape, blocked(x, block))
        self.shape = (1, oc, out, out)
        self.schedule = schedule

    def time(self, repeats: int) -> float:
        """Return the shortest time in ns."""
        outputs = [(self.shape, "f4", self.memory)]
        _, times = self.program.run([self.operand], outputs, self.packed, "opencl", repeats)
        return float(min(times))


class OnCpu:
    """The module of a layer on the CPU."""

    def __init__(self, layer: tuple[int, ...], threads: int) -> None:
        ic, _, size, _, _ = layer
        self.feeds = {"x": np.zeros((1, ic, size, size), "f4")}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "layer.onnx"
            onnx.save(model_of(layer), path)
            self.module = neo.compile(str(path), threads=threads)

    def time(self, repeats: int) -> float:
        """Return the shortest time in ns of the convolution's step."""
        times = []
        for _ in range(repeats):
            profile = self.module.profile(self.feeds, repeat=1)
            times.append(1e3 * max(step.time_us for step in profile.steps if "adapt" not in step.routine))
        return min(times)


def measure(layer: tuple[int, ...], threads: int, count: int, repeats: int) -> tuple[list[float], list[dict[str, int]]]:
    """Return the times in ns of the CPU and of every schedule, and the schedules."""
    cpu = OnCpu(layer, threads)
    programs = [OnDevice(layer, schedule) for schedule in schedules(layer, count)]
    runs = [cpu, *programs]
    for run in runs:
        run.time(1)
    least = [run.time(repeats) for run in runs]
    for _ in range(2):
        least = [min(best, run.time(repeats)) for best, run in zip(least, runs, strict=True)]
    return least, [program.schedule for program in programs]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_conv", description=__doc__)
    parser.add_argument("--threads", type=int, default=2, help="of the CPU routines (default: %(default)s)")
    parser.add_argument("--schedules", type=int, default=5, help="tried per layer (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=20, help="runs of each (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=len(LAYERS), help="the first so many (default: all)")
    parser.add_argument("--record", action="store_true", help="write the table into RESULTS.md")
    arguments = parser.parse_args()
    head = ["layer", "CPU", "estimate's choice", "best", "best / CPU", "its schedule"]
    rows, shares, untuned = [], [], []
    for layer in LAYERS[: arguments.layers]:
        (cpu, *device), tried = measure(layer, arguments.threads, arguments.schedules, arguments.repeat)
        best = device.index(min(device))
        shares.append(cpu / device[best])
        untuned.append(device[0] / device[best])
        speeds = [f"{operations(layer) / ns:.0f}" for ns in (cpu, device[0], device[best])]
        schedule = " ".join(f"{key}={value}" for key, value in tried[best].items())
        rows.append(["x".join(map(str, layer)), *speeds, f"{shares[-1]:.2f}", schedule])
        print(*rows[-1], flush=True)
    mean = exp(sum(map(log, shares)) / len(shares))
    gain = exp(sum(map(log, untuned)) / len(untuned))
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    print(f"geometric means: best / CPU {mean:.2f}, best / estimate's choice {gain:.2f}")
    if not arguments.record:
        return
    device_name = _native.devices()[0]["devices"][0]["name"]
    text = (
        f"ResNet-50's layers (input channels x output channels x size x kernel x stride) on the OpenCL device "
        f"{device_name} and by neo's CPU routines with {arguments.threads} threads, 10^9 operations of the direct algorithm "
        f"per second; the CPU may run Winograd's. Tuning off is the schedule that the estimate chooses, tuning on the "
        f"best of {arguments.schedules} schedules. Geometric means: best / CPU {mean:.2f}, best / estimate's choice "
        f"{gain:.2f}."
    )
    place = "; ".join(f"{key}: {value}" for key, value in environment.describe().items())
    notes = [f"Measured by `python -m benchmarks.gpu_conv --record` on {place}; commit {environment.commit()}."]
    record_section("gpu-conv", Section("Convolutions on an OpenCL device: tuning off and on", text, head, rows, notes))


if __name__ == "__main__":
    main()

"""ResNet-50's convolutions on an OpenCL device beside neo's CPU routines: ``python -m benchmarks.gpu_conv``.

For every layer the step that the estimate chooses among the device's routines for tensors in blocks of channels, the
best of a sample of schedules of all of those routines, and the fastest of what the estimate chooses for each of the CPU's
routines: steps of compiled modules, timed as tuning times them, in 10^9 operations per second of the direct algorithm. All of them are
timed in turn, and the least time of each counts. Times are those of an idle machine. ``--record`` writes the table into
RESULTS.md.
"""

from __future__ import annotations

import argparse
import re
from math import exp, log

import numpy as np
import onnx
from neo import _native
from neo.frontend.onnx import read_model
from rich.console import Console
from rich.table import Table

from benchmarks import environment
from benchmarks.results import Section, record_section

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


class Steps:
    """The steps of one layer: the CPU's, the device's choice without tuning, and a sample of the device's schedules."""

    def __init__(self, layer: tuple[int, ...], threads: int, count: int) -> None:
        graph = _native.run_passes(read_model(model_of(layer))[0])
        self.bench = _native.make_bench(_native.build_problem(graph, "opencl", threads), threads)
        trials = [(t["estimate_us"], i, t) for i, t in enumerate(self.bench.trials) if "Conv" in t["workload"]]
        cpu: dict[str, tuple[float, int]] = {}
        for us, i, t in trials:
            if t["device"] == "cpu":
                cpu[t["routine"]] = min(cpu.get(t["routine"], (us, i)), (us, i))
        self.cpu = [i for _, i in cpu.values()]
        blocked = [(us, i) for us, i, t in trials if t["device"] != "cpu" and f"nchw{BLOCK}c" in t["routine"]]
        self.device = [min(blocked)[1]]
        for number, space in enumerate(self.bench.spaces):
            if f"nchw{BLOCK}c" in space["routine"]:
                self.device += self.sample(number, [i for _, i in blocked if i in space["trials"]], count)
        self.device = list(dict.fromkeys(self.device))

    def sample(self, space: int, chosen: list[int], count: int) -> list[int]:
        """Return the trials of the schedules that the estimate chooses in a space, and of others not far from them."""
        texts = [self.bench.trial(i)["candidate"] for i in chosen]
        points = [p for p in (self.bench.find(space, text) for text in texts) if p is not None]
        near = points
        for seed in range(count):
            near = self.bench.mutate(space, points if seed % 2 == 0 else near, seed)
            points = list(dict.fromkeys([*points, *near]))
        return [*chosen, *self.bench.extend(space, points[: max(count, 1)])]

    def time(self, rounds: int) -> dict[int, float]:
        """Return the least time of every step that runs, in ns."""
        least: dict[int, float] = {}
        for _ in range(3):
            for index in [*self.cpu, *self.device]:
                ((us, *_),) = self.bench.measure([index], "shared", rounds=rounds)
                if us is not None:
                    least[index] = min(least.get(index, us * 1e3), us * 1e3)
        return least

    def text(self, index: int) -> str:
        """Return the routine of a step and its schedule."""
        routine = re.match(r"[^\s{]+(?:\{[^}]*\})?", str(self.bench.trial(index)["candidate"]))
        assert routine is not None
        return routine[0].rpartition("/")[2]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_conv", description=__doc__)
    parser.add_argument("--threads", type=int, default=2, help="of the CPU routines (default: %(default)s)")
    parser.add_argument("--schedules", type=int, default=12, help="tried per layer and routine (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=20, help="runs of each (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=len(LAYERS), help="the first so many (default: all)")
    parser.add_argument("--record", action="store_true", help="write the table into benchmarks/results/local")
    arguments = parser.parse_args()
    head = ["layer", "CPU", "estimate's choice", "best", "best / CPU", "its schedule", "the CPU's"]
    rows, shares, untuned = [], [], []
    for layer in LAYERS[: arguments.layers]:
        steps = Steps(layer, arguments.threads, arguments.schedules)
        times = steps.time(arguments.repeat)
        cpu = min((i for i in steps.cpu if i in times), key=times.__getitem__)
        untuned_ns = times[steps.device[0]]
        best = min((i for i in steps.device if i in times), key=times.__getitem__)
        shares.append(times[cpu] / times[best])
        untuned.append(untuned_ns / times[best])
        speeds = [f"{operations(layer) / ns:.0f}" for ns in (times[cpu], untuned_ns, times[best])]
        name = "x".join(map(str, layer))
        rows.append([name, *speeds, f"{shares[-1]:.2f}", steps.text(best), steps.text(cpu)])
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
        f"per second; both may run Winograd's. The CPU's is the fastest of its routines. Tuning off is the step that the estimate chooses, tuning on the best of "
        f"{arguments.schedules} schedules of every routine. Geometric means: best / CPU {mean:.2f}, best / estimate's choice "
        f"{gain:.2f}."
    )
    place = environment.place()
    notes = [f"Measured by `python -m benchmarks.gpu_conv --record` on {place}; commit {environment.commit()}."]
    record_section("gpu-conv", Section("Convolutions on an OpenCL device: tuning off and on", text, head, rows, notes))


if __name__ == "__main__":
    main()

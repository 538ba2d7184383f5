"""Generated workloads: convolutions and matrix products that no network needs to have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from neo import _native
from neo.frontend.onnx import read_model
from neo.tune.features import ROUTINES
from onnx import TensorProto, helper, numpy_helper

_SIDES = (7, 9, 10, 12, 13, 15, 18, 20, 24, 26, 30, 34, 40, 44, 52, 60, 68, 76, 88, 104, 120, 144)
_CHANNELS = (8, 16, 24, 32, 40, 48, 64, 72, 88, 96, 128, 144, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024)
_MOST_FLOPS = 4e8
_LEAST_FLOPS = 3e6
_MOST_BYTES = 40e6


@dataclass(frozen=True)
class Workload:
    """One convolution (``taps`` by ``stride`` over a square) or product; ``text`` reads back."""

    kind: str
    sizes: tuple[int, ...]

    @property
    def text(self) -> str:
        """``conv 64 56 64 3x3 1 1``: channels, side, channels, window, stride, groups; ``gemm m k n``."""
        if self.kind == "gemm":
            return " ".join(["gemm", *map(str, self.sizes)])
        c, side, k, kh, kw, stride, groups = self.sizes
        return f"conv {c} {side} {k} {kh}x{kw} {stride} {groups}"

    @classmethod
    def parse(cls, text: str) -> Workload:
        """What ``text`` says."""
        kind, *rest = text.split()
        return cls(kind, tuple(int(part) for word in rest for part in word.split("x")))

    @cached_property
    def flops(self) -> float:
        """Operations."""
        if self.kind == "gemm":
            return 2.0 * np.prod([float(s) for s in self.sizes])
        c, side, k, kh, kw, stride, groups = self.sizes
        return 2.0 * c * k * kh * kw / groups * (side / stride) ** 2

    def model(self) -> onnx.ModelProto:
        """The node with a clamp, as a model."""
        random = np.random.default_rng(0)
        if self.kind == "gemm":
            m, k, n = self.sizes
            weight, x = random.standard_normal((k, n)), [m, k]
            nodes = [helper.make_node("MatMul", ["x", "w"], ["t"])]
        else:
            c, side, k, kh, kw, stride, groups = self.sizes
            weight, x = random.standard_normal((k, c // groups, kh, kw)), [1, c, side, side]
            pads = [kh // 2, kw // 2] * 2
            nodes = [
                helper.make_node(
                    "Conv", ["x", "w"], ["t"], kernel_shape=[kh, kw], strides=[stride] * 2, pads=pads, group=groups
                )
            ]
        nodes.append(helper.make_node("Relu", ["t"], ["y"]))
        graph = helper.make_graph(
            nodes,
            "one",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(weight.astype(np.float32), "w")],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

    def bench(self, threads: int, caches: tuple[int, int] = (0, 0)) -> Bench:
        """The bench of the model, for a core's caches of so many bytes; the default are this machine's."""
        return Bench.of(self.model(), threads, caches)


class Bench:
    """A model's bench, and those of its spaces that cover all of its nodes."""

    def __init__(self, native: _native.Bench) -> None:
        self.native = native
        entries = [(i, s) for i, s in enumerate(native.spaces) if s["routine"] in ROUTINES]
        longest = max((len(s["workload"]) for _, s in entries), default=0)
        self.spaces = {i: s["routine"] for i, s in entries if len(s["workload"]) == longest}
        self.trials = {i: s["trials"] for i, s in entries if i in self.spaces}

    @classmethod
    def of(cls, model: onnx.ModelProto, threads: int, caches: tuple[int, int]) -> Bench:
        """The bench of a model."""
        graph, _ = read_model(model.SerializeToString())
        problem = _native.build_problem(_native.run_passes(graph), "cpu", threads, caches=caches)
        return cls(_native.make_bench(problem, threads))


def generate(random: np.random.Generator) -> Iterator[Workload]:
    """Workloads without end: mostly convolutions of one and three taps, as networks have them."""
    kinds = ("1x1", "3x3", "strided", "long", "wide", "depthwise", "grouped", "first", "gemm")
    shares = (0.26, 0.3, 0.1, 0.06, 0.04, 0.07, 0.03, 0.05, 0.09)
    while True:
        kind = str(random.choice(kinds, p=shares))
        c, k = (int(v) for v in random.choice(_CHANNELS, 2))
        side = int(random.choice(_SIDES))
        if kind == "gemm":
            m = int(random.choice((1, 3, 9, 17, 40, 75, 150, 333)))
            made = Workload("gemm", (m, c * int(random.choice((1, 2, 3))), k * int(random.choice((1, 2, 4)))))
        elif kind == "depthwise":
            taps = int(random.choice((3, 5)))
            made = Workload("conv", (c, side, c, taps, taps, int(random.choice((1, 2))), c))
        elif kind == "grouped":
            groups = int(random.choice((2, 4)))
            made = Workload("conv", (64 * groups, side, 32 * groups, 3, 3, 1, groups))
        elif kind == "first":
            taps = int(random.choice((3, 5, 7)))
            made = Workload("conv", (int(random.choice((1, 3, 4))), side * 3 - 1, k, taps, taps, 2, 1))
        else:
            window = {
                "1x1": (1, 1),
                "3x3": (3, 3),
                "wide": (5, 5),
                "strided": [(1, 1), (3, 3)][int(random.integers(2))],
                "long": [(1, 7), (7, 1), (1, 3), (3, 1)][int(random.integers(4))],
            }[kind]
            made = Workload("conv", (c, side, k, *window, 2 if kind == "strided" else 1, 1))
        weights = made.sizes[1] * made.sizes[2] if kind == "gemm" else np.prod([float(v) for v in made.sizes[2:5]]) * c
        small = kind in ("gemm", "depthwise")
        if weights * 4 <= _MOST_BYTES and _LEAST_FLOPS / (10 if small else 1) <= made.flops <= _MOST_FLOPS:
            yield made


_OPERANDS = re.compile(r"(?:Conv|MatMul|Gemm|com\.microsoft\.FusedMatMul)\((.*?)\) \{(.*?)\}.*? <- (.*)")


def fingerprint(workload: str) -> tuple[str, ...] | None:
    """What a workload's text says of its first product: sizes, window, strides; None where it has none."""
    match = _OPERANDS.search(workload)
    if match is None:
        return None
    operands = [name.strip() for name in match[1].split(",")][:2]
    shapes = [m[1] for name in operands for m in re.finditer(rf"\b{re.escape(name)}: float32\[([\d,]*)\]", match[3])]
    attributes = []
    for name, default in (("group", "1"), ("strides", "[1, 1]"), ("pads", None), ("dilations", "[1, 1]")):
        found = re.search(rf"\b{name}=(\[.*?\]|\d+)", match[2])
        value = found[1] if found else default
        attributes.append(str(value))
    return (*shapes, *attributes) if len(shapes) == 2 else None


def fingerprints(folder: Path) -> set[tuple[str, ...]]:
    """Those of every workload of the models in a folder."""
    found: set[tuple[str, ...]] = set()
    for path in sorted(folder.rglob("*.onnx")):
        try:
            graph, _ = read_model(path)
            problem = _native.build_problem(_native.run_passes(graph), "cpu", 1)
        except Exception:
            continue
        texts = {trial["workload"] for trial in _native.make_bench(problem, 1).trials}
        found |= {f for text in texts if (f := fingerprint(text)) is not None}
    return found

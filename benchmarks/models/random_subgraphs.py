"""Operators with what usually surrounds them in exported models: for each seed one such group, with random sizes.

Each kind is a function that appends the nodes that exporters write and returns their results. Values are float32, float16
or float64; some sizes are told by a call only.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from benchmarks.models.random_draw import RandomCase
from benchmarks.models.random_group import Group
from benchmarks.models.sequence_groups import SEQUENCE
from benchmarks.models.vision_groups import VISION

__all__ = ["KINDS", "random_subgraph"]

_OPSET = 20
KINDS = {make.__name__.strip("_"): make for make in (*SEQUENCE, *VISION)}


def random_subgraph(seed: int) -> RandomCase:
    """Return the group of a seed: the kinds take turns.

    Parameters
    ----------
    seed : int
        Any number that is not negative; equal ones give equal groups.
    """
    kind = sorted(KINDS)[seed % len(KINDS)]
    g = Group(seed, kind)
    results = KINDS[kind](g)

    def build() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        graph = helper.make_graph(g.nodes, kind, g.inputs, outputs, g.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
        return model, g.feeds

    sizes = " ".join("x".join(map(str, v.shape)) for v in g.feeds.values())
    name = f"@{seed} {kind} {g.dtype}{' open' if g.is_open else ''} {sizes}"
    return RandomCase(name, kind, g.dtype, build)

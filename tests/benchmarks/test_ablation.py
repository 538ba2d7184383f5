"""The variants of the ablation: each is a selection with fewer candidates that computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks import ablation


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write three convolutions with a residual around the second."""
    rng = np.random.default_rng(0)
    sizes = {"w0": (32, 3, 3, 3), "w1": (32, 32, 3, 3), "w2": (32, 32, 1, 1)}
    weights = {name: rng.standard_normal(size, np.float32) / np.sqrt(np.prod(size[1:])) for name, size in sizes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "first", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Conv", ["b", "w1"], ["c"], "second", pads=[1] * 4),
        helper.make_node("Add", ["b", "c"], ["d"], "sum"),
        helper.make_node("Conv", ["d", "w2"], ["y"], "third"),
    ]
    graph = helper.make_graph(
        nodes,
        "residual",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 20, 20])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 20, 20])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    path = tmp_path_factory.mktemp("ablation") / "residual.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def routines(network: Path) -> dict[str, list[str]]:
    compiler = ablation.Compiler(network, 1)
    return {
        variant.name: [step["routine"] for step in compiler.compile(variant).steps]
        for variant in ablation.VARIANTS_OF_TABLE
    }


def _conversions(names: list[str]) -> int:
    return sum(name.startswith("cpu:adapt/") for name in names)


def test_plain_routines_need_no_conversion(routines: dict[str, list[str]]) -> None:
    plain = routines["plain NCHW"]
    assert _conversions(plain) == 0
    assert not any("nchwc" in name or "winograd" in name for name in plain)


def test_transforms_stand_around_each_blocked_convolution(routines: dict[str, list[str]]) -> None:
    around = routines["+ blocked convolution, transforms around each"]
    blocked = [name for name in around if "/direct_nchwc" in name]
    assert len(blocked) == 3
    assert len(set(blocked)) == 1
    # Behind each, and before each but the first, which reads the image as it is or converted.
    assert _conversions(around) in (5, 6)
    assert sum("/eltwise" in name for name in around) == 1


def test_transforms_are_eliminated_then_fast_algorithms_and_fusion_come(routines: dict[str, list[str]]) -> None:
    names = list(routines)
    conversions = [_conversions(routines[name]) for name in names]
    assert conversions[2] < conversions[1]
    assert not any("winograd" in step for name in names[:4] for step in routines[name])
    assert len(routines["+ fusion"]) <= len(routines["+ Winograd"])


def test_every_variant_computes_the_same_and_fills_its_row(network: Path) -> None:
    found = ablation.measure_variants(network, 1, 2, 0.001)
    assert all(len(times) == 2 for times in found.values())
    section = ablation.section({"residual": found}, 1, 2)
    assert section.head == ["", "residual"]
    assert [row[0] for row in section.rows] == [variant.name for variant in ablation.VARIANTS_OF_TABLE]
    assert section.rows[0][1].startswith("1.00 [1.00, 1.00], ")

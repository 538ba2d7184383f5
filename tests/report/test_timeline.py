"""The timeline of a profile: what it shows, and what it says that it leaves out."""

import neo
import numpy as np
import pytest
from onnx import helper

from tests.api.conftest import build, value

pytest.importorskip("matplotlib")


def axes_of(names):
    """The timeline of a chain of steps with these names."""
    ends = ["x", *(f"v{i}" for i in range(1, len(names))), "y"]
    nodes = [
        helper.make_node("CumSum", [ends[i], "axis"], [ends[i + 1]], name, reverse=i % 2)
        for i, name in enumerate(names)
    ]
    model = build(nodes, [value("x", [1, 8])], [value("y", [1, 8])], {"axis": np.array(1)})
    profile = neo.compile(model).profile({"x": np.ones((1, 8), np.float32)}, repeat=1)
    assert len(profile.steps) == len(names)
    return profile.timeline().axes[0]


def test_steps_beyond_the_sixtieth_are_told_of():
    axes = axes_of([f"n{i}" for i in range(70)])
    assert len(axes.get_yticklabels()) == 60
    assert axes.get_title().endswith(", the slowest 60 of 70 steps")


def test_all_steps_are_shown_without_a_word():
    axes = axes_of([f"n{i}" for i in range(60)])
    assert len(axes.get_yticklabels()) == 60
    assert "slowest" not in axes.get_title()


def test_a_long_name_is_cut_before_a_whole_part():
    short, long = "encoder/layer/conv", "/model/encoder/layers.11/attention/self/query/MatMul_with_its_bias"
    labels = [label.get_text() for label in axes_of([short, long, "x" * 60]).get_yticklabels()]
    assert labels[0] == short
    assert labels[1] == "...self/query/MatMul_with_its_bias"
    assert labels[2] == "..." + "x" * 40

"""Every point of a routine's space computes the same; sizes, neighbours and names of points."""

import numpy as np
import pytest
from neo import _native

from .spaces import Points, conv_model, gemm_model

POINTS = 24
MODELS = {
    "3x3": lambda: conv_model((1, 40, 13, 21), (72, 40, 3, 3), pads=[1] * 4, residual=True),
    "3x3 of two images": lambda: conv_model((2, 33, 9, 9), (20, 33, 3, 3), pads=[1] * 4),
    "1x1": lambda: conv_model((1, 100, 7, 7), (96, 100, 1, 1), residual=True),
    "1x1 strided": lambda: conv_model((1, 36, 14, 14), (64, 36, 1, 1), strides=[2, 2]),
    "first layer": lambda: conv_model((1, 3, 35, 47), (40, 3, 7, 7), pads=[3] * 4, strides=[2, 2]),
    "grouped": lambda: conv_model((1, 64, 12, 12), (64, 16, 3, 3), pads=[1] * 4, group=4),
    "depthwise": lambda: conv_model((1, 40, 23, 19), (40, 1, 3, 3), pads=[1] * 4, group=40),
    "long window": lambda: conv_model((1, 24, 17, 17), (40, 24, 1, 7), pads=[0, 3, 0, 3], activation="Sigmoid"),
    "transposed": lambda: conv_model(
        (1, 24, 9, 11), (24, 16, 4, 4), op="ConvTranspose", strides=[2, 2], pads=[1] * 4, activation=None
    ),
    "gemm": lambda: gemm_model(37, 300, 130),
    "gemm of one row": lambda: gemm_model(1, 500, 96),
    "gemm of two inputs": lambda: gemm_model(45, 150, 70, constant=False),
}


@pytest.mark.parametrize("target", ["cpu", "cpu:avx2"])
@pytest.mark.parametrize("name", MODELS)
def test_points_compute_what_the_reference_does(name, target):
    if target != "cpu" and not any(t["name"] == target and t["runs_here"] for t in _native.targets()):
        pytest.skip("this machine cannot run it")
    points = Points(MODELS[name](), target=target)
    expected, _ = points.reference()
    random = np.random.default_rng(sum(map(ord, name)))
    assert points.spaces
    for space, entry in points.spaces:
        size = points.bench.space_size(space)
        # Every value of every parameter, and some combinations.
        chosen = {int(p) for p in random.integers(0, size, POINTS)} | {0, size - 1}
        start = [points.bench.find(space, points.bench.trial(t)["candidate"]) for t in entry["trials"]]
        assert None not in start, "what the estimate chose is a point"
        for seed in range(POINTS):
            chosen.update(points.bench.mutate(space, [start[0]], seed))
        for point in sorted(chosen):
            y, used = points.run(space, point)
            text = points.bench.trial(points.bench.extend(space, [point])[0])["candidate"]
            assert any(u and text.startswith(f"{u} ") for u in used), "the point was run"
            error = np.abs(y - expected).max() / np.abs(expected).max()
            assert error < (2e-3 if "winograd" in text else 2e-5), text


def test_a_typical_convolution_has_many_points():
    points = Points(conv_model((1, 64, 56, 56), (64, 64, 3, 3), pads=[1] * 4))
    sizes = {entry["routine"]: points.bench.space_size(i) for i, entry in points.spaces}
    assert sum(sizes.values()) >= 500
    assert {"cpu:float32/direct_nchwc", "cpu:float32/winograd", "cpu:float32/im2col"} <= set(sizes)
    assert min(sizes.values()) >= 50


def test_points_are_distinct_and_their_text_leads_back():
    points = Points(MODELS["3x3"]())
    for space, _ in points.spaces:
        size = points.bench.space_size(space)
        some = list(range(0, size, max(1, size // 50)))
        texts = [points.bench.trial(t)["candidate"] for t in points.bench.extend(space, some)]
        assert len(set(texts)) == len(some)
        assert [points.bench.find(space, text) for text in texts] == some


def test_a_neighbour_differs_in_one_parameter():
    points = Points(MODELS["3x3"]())
    for space, _ in points.spaces:
        names = {name for name, _ in points.bench.parameters(space)}
        size = points.bench.space_size(space)
        here = list(range(0, size, max(1, size // 20)))
        there = points.bench.mutate(space, here, 7)

        def schedule(point, space=space):
            text = points.bench.trial(points.bench.extend(space, [point])[0])["candidate"]
            inside = text[text.index("{") + 1 : text.index("}")].split() if "{" in text else []
            return {key: int(value) for key, _, value in (pair.partition("=") for pair in inside)}

        for a, b in zip(here, there, strict=True):
            before, after = schedule(a), schedule(b)
            assert sum(before.get(n, 0) != after.get(n, 0) for n in names) == 1


@pytest.mark.parametrize(
    "text",
    [
        "cpu:float32/im2col{rows=1000} x",
        "cpu:float32/im2col{nonsense=1} x",
        "cpu:float32/im2col{rows} x",
        "other{} x",
        "",
    ],
)
def test_what_is_no_point_is_not_found(text):
    points = Points(MODELS["3x3"]())
    space = next(i for i, entry in points.spaces if entry["routine"] == "cpu:float32/im2col")
    assert points.bench.find(space, text) is None


def test_features_are_finite_and_tell_points_apart():
    points = Points(MODELS["3x3"]())
    names = _native.loop_feature_names()
    for space, entry in points.spaces:
        size = points.bench.space_size(space)
        rows = points.bench.features(space, list(range(min(size, 200))), "shared")
        assert rows.shape == (min(size, 200), len(names))
        assert np.isfinite(rows).all()
        assert len(np.unique(rows, axis=0)) > rows.shape[0] // 3, entry["routine"]

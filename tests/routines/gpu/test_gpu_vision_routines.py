"""Sorting and vision in modules for an OpenCL device: on the device, with the CPU's answers."""

import numpy as np
import pytest
from neo import _native
from neo.select import Flat, Problem, solve

from tests.routines.gpu.programs import need_device
from tests.routines.gpu.vision_models import with_equal_overlaps, with_ties

RNG = np.random.default_rng(8)
X = with_ties(RNG, (3, 700, 2))
WHOLE = RNG.integers(-9, 9, (3, 700, 2))
IMAGES = np.array([0, 1, 1])
BOXES = with_equal_overlaps(RNG, 2, 300, 40)
SCORES = with_ties(RNG, (2, 3, 300))
ROWS = np.concatenate([RNG.integers(0, 2, (2, 90, 1)), RNG.random((2, 90, 1)), BOXES[:, -90:]], axis=2).astype("f4")
ANCHORS = np.concatenate([RNG.random((1, 50, 2)) / 2, RNG.random((1, 50, 2)) / 2 + 0.5], axis=2).astype("f4")
CLASSES, OFFSETS = RNG.random((2, 4, 50)).astype("f4"), RNG.standard_normal((2, 200)).astype("f4")
MAPS = RNG.standard_normal((2, 3, 16, 16)).astype("f4")
REGIONS = np.array([[0, 0, 8, 8], [2, 2, 15, 9], [1, 4, 4, 12]], "f4")

# operator, inputs, constants, attributes, outputs, routine
CASES = [
    ("TopK", [X], [np.array([33])], {"axis": 1}, 2, "gpu/top_k"),
    ("TopK", [WHOLE], [np.array([33])], {"axis": 1, "largest": 0}, 2, "gpu/top_k"),
    ("CumSum", [WHOLE[..., 0]], [np.array(-1)], {"reverse": 1, "exclusive": 1}, 1, "gpu/cum_sum"),
    ("NonZero", [X], [], {}, 1, "gpu/non_zero"),
    ("NonZero", [X > 3], [], {}, 1, "gpu/non_zero"),
    ("NonZero", [np.zeros((4, 5), "f4")], [], {}, 1, "gpu/non_zero"),
    ("Compress", [X, X[0, :, 0] > 0], [], {"axis": 1}, 1, "gpu/compress"),
    ("Compress", [X > 0, X.reshape(-1) > 0], [], {}, 1, "gpu/compress"),
    (
        "NonMaxSuppression",
        [BOXES, SCORES],
        [np.array([20]), np.array([0.25], "f4"), np.array([0.5], "f4")],
        {},
        1,
        "gpu:float32/non_max_suppression",
    ),
    ("RoiAlign", [MAPS, REGIONS, IMAGES], [], {"output_height": 3, "output_width": 2}, 1, "gpu:float32/roi_align"),
    ("neo.BoxNms", [ROWS], [], {"id_index": 0, "overlap_thresh": 0.25}, 1, "gpu:float32/box_nms"),
    ("neo.MultiboxPrior", [MAPS], [], {"sizes": [0.5, 0.25], "ratios": [1.0, 2.0]}, 1, "gpu:float32/multibox_prior"),
    ("neo.MultiboxDetection", [CLASSES, OFFSETS, ANCHORS], [], {}, 1, "gpu:float32/multibox_detection"),
]


def build(op, inputs, constants, attributes, outputs):
    graph = _native.Graph()
    values = [graph.add_input(f"x{i}", x.dtype.name, list(x.shape)) for i, x in enumerate(inputs)]
    values += [graph.add_constant(f"c{i}", c) for i, c in enumerate(constants)]
    graph.outputs = graph.add_node(op, values, [f"y{i}" for i in range(outputs)], attributes, "node").outputs
    return graph


@pytest.mark.parametrize(
    ("op", "inputs", "constants", "attributes", "outputs", "routine"),
    CASES,
    ids=[f"{c[0]}{i}" for i, c in enumerate(CASES)],
)
def test_runs_on_the_device_as_on_the_cpu(op, inputs, constants, attributes, outputs, routine):
    need_device("opencl")
    graph = build(op, inputs, constants, attributes, outputs)
    problem = _native.build_problem(graph, "opencl", 1, lambda _, name: name.startswith(routine))
    solution = solve(Problem.from_flat(Flat(*problem.flat)))
    module = problem.lower(list(solution.choice), float(solution.total), 1)
    assert any(step["routine"].startswith(routine) for step in module.steps)
    for _ in range(2):
        made = module.call(list(inputs))
    right = build(op, inputs, constants, attributes, outputs).evaluate(list(inputs))
    for y, expected in zip(made, right, strict=True):
        assert np.asarray(y).dtype == expected.dtype
        if expected.dtype.kind == "f" and op not in ("TopK", "neo.BoxNms"):
            np.testing.assert_allclose(y, expected, atol=1e-5)
        else:
            np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("op", "inputs", "constants", "reason"),
    [
        ("TopK", [X.astype("f8")], [np.array([2])], "no sort keys"),
        ("NonMaxSuppression", [BOXES, SCORES, np.array([3])], [], "not constants"),
        ("CumSum", [X, np.array([0])], [], "the axis is not a constant"),
    ],
)
def test_what_it_cannot_do_is_left_to_the_cpu_with_a_reason(op, inputs, constants, reason):
    graph = build(op, inputs, constants, {}, 2 if op == "TopK" else 1)
    entry = next(n for n in _native.build_problem(graph, "opencl", 1).nodes if n["name"] == "node")
    assert any(reason in text for text in dict(entry["rejections"]).values())
    assert entry["choices"]

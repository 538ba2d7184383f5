"""Operators of the domain neo: heads of single-shot detectors, against their definitions."""

import neo
import numpy as np
import pytest
from neo.errors import Error
from neo.vision import Anchors, add_ssd_head
from onnx import TensorProto, helper

from tests.routines.gpu.vision_models import on_cpu


def test_box_nms_gives_mxnets_example():
    rows = np.array(
        [
            [0, 0.5, 0.1, 0.1, 0.2, 0.2],
            [1, 0.4, 0.1, 0.1, 0.2, 0.2],
            [0, 0.3, 0.1, 0.1, 0.14, 0.14],
            [2, 0.6, 0.5, 0.5, 0.7, 0.8],
        ],
        "f4",
    )
    (y,) = on_cpu("BoxNms", [rows[None]], domain="neo", overlap_thresh=0.1, id_index=0, force_suppress=1)
    np.testing.assert_array_equal(y[0], [rows[3], rows[0], [-1] * 6, [-1] * 6])
    (y,) = on_cpu("BoxNms", [rows[None]], domain="neo", overlap_thresh=0.1, id_index=0)
    np.testing.assert_array_equal(y[0], [rows[3], rows[0], rows[1], [-1] * 6])
    (y,) = on_cpu("BoxNms", [rows[None]], domain="neo", overlap_thresh=0.1, id_index=0, background_id=2, topk=1)
    np.testing.assert_array_equal(y[0], [rows[0], [-1] * 6, [-1] * 6, [-1] * 6])


def test_box_nms_of_centres_is_that_of_corners():
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 64, (2, 60, 6)).astype("f4")
    corners = rows.copy()
    corners[..., 2:4], corners[..., 4:] = rows[..., 2:4] - rows[..., 4:] / 2, rows[..., 2:4] + rows[..., 4:] / 2
    (of_centres,) = on_cpu("BoxNms", [rows], domain="neo", in_format="center", overlap_thresh=0.25)
    (of_corners,) = on_cpu("BoxNms", [corners], domain="neo", overlap_thresh=0.25)
    kept = of_centres[..., 1] >= 0
    assert kept.any()
    assert not kept.all()
    np.testing.assert_array_equal(of_centres[..., :2], of_corners[..., :2])


def test_prior_boxes_lie_around_their_places():
    (y,) = on_cpu("MultiboxPrior", [np.zeros((1, 3, 2, 4), "f4")], domain="neo", sizes=[0.5, 0.25], ratios=[1.0, 4.0])
    assert y.shape == (1, 24, 4)
    boxes = y[0].reshape(2, 4, 3, 4)
    centres = (boxes[..., :2] + boxes[..., 2:]) / 2
    np.testing.assert_allclose(
        centres[..., 0], np.broadcast_to([[[0.125]], [[0.375]], [[0.625]], [[0.875]]], (2, 4, 3, 1))[..., 0]
    )
    np.testing.assert_allclose(centres[..., 1], np.broadcast_to(np.array([0.25, 0.75])[:, None, None], (2, 4, 3)))
    sizes = boxes[..., 2:] - boxes[..., :2]  # a square in pixels is half as wide as high here
    np.testing.assert_allclose(sizes, np.broadcast_to([[0.25, 0.5], [0.125, 0.25], [0.5, 0.25]], (2, 4, 3, 2)))


def test_detection_decodes_ranks_and_suppresses():
    anchors = np.array([[[0, 0, 0.5, 0.5], [0.01, 0, 0.5, 0.5], [0.5, 0.5, 1, 1], [0, 0.5, 0.5, 1]]], "f4")
    scores = np.array([[[0.1, 0.2, 0.9, 0.3], [0.7, 0.6, 0.06, 0.1], [0.2, 0.2, 0.04, 0.6]]], "f4")
    offsets = np.zeros((1, 16), "f4")
    offsets[0, 12:] = [1, 0, np.log(0.5) / 0.2, 0]  # to the right by a tenth of its width, half as wide
    inputs = [scores, offsets, anchors]
    (y,) = on_cpu("MultiboxDetection", inputs, domain="neo", threshold=0.05)
    right = [
        [0, 0.7, 0, 0, 0.5, 0.5],
        [1, 0.6, 0.175, 0.5, 0.425, 1],
        [0, 0.06, 0.5, 0.5, 1, 1],
        [-1] * 6,
    ]
    np.testing.assert_allclose(y[0], right, atol=1e-6)
    (y,) = on_cpu("MultiboxDetection", inputs, domain="neo", threshold=0.05, nms_topk=2)
    np.testing.assert_allclose(y[0], [right[0], [-1] * 6, [-1] * 6, [-1] * 6], atol=1e-6)


def test_targets_match_labels_to_anchors():
    anchors = np.array([[[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1], [0, 0.5, 0.5, 1], [0.45, 0.45, 1, 1]]], "f4")
    labels = np.full((2, 2, 5), -1, "f4")
    labels[0, 0] = [2, 0.5, 0.5, 1, 1]
    labels[0, 1] = [0, 0, 0.1, 0.1, 0.2]  # overlaps the first anchor a little: its own all the same
    scores = np.zeros((2, 4, 4), "f4")
    offsets, mask, classes = on_cpu("MultiboxTarget", [anchors, labels, scores], domain="neo", outputs=3)
    np.testing.assert_array_equal(classes, [[1, 3, 0, 3], [-1, -1, -1, -1]])
    np.testing.assert_array_equal(mask.reshape(2, 4, 4)[..., 0], [[1, 1, 0, 1], [0, 0, 0, 0]])
    np.testing.assert_allclose(offsets[0, 4:8], 0, atol=1e-6)
    np.testing.assert_allclose(
        offsets[0, :4], [-0.2 / 0.5 / 0.1, -0.1 / 0.5 / 0.1, np.log(0.2) / 0.2, np.log(0.2) / 0.2], rtol=1e-5
    )


def test_targets_mine_the_hardest_negatives():
    rng = np.random.default_rng(1)
    anchors = rng.random((1, 40, 4)).astype("f4") / 4
    anchors[..., 2:] = anchors[..., :2] + 0.1
    anchors[0, 0] = [0.8, 0.8, 1, 1]
    labels = np.array([[[1, 0.8, 0.8, 1, 1]]], "f4")
    scores = rng.standard_normal((1, 3, 40)).astype("f4")
    classes = on_cpu("MultiboxTarget", [anchors, labels, scores], domain="neo", outputs=3, negative_mining_ratio=3.0)[2]
    background = np.exp(scores[0, 0]) / np.exp(scores[0]).sum(0)
    background[0] = 2
    right = np.full(40, -1.0)
    right[0] = 2
    right[np.argsort(background)[:3]] = 0
    np.testing.assert_array_equal(classes[0], right)


def tensor(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def test_an_ssd_head_is_written_behind_a_model():
    inputs = [
        tensor("map", [1, 8, 4, 4]),
        tensor("small", [1, 8, 2, 2]),
        tensor("s", [1, 3, 44]),
        tensor("o", [1, 176]),
    ]
    model = helper.make_model(
        helper.make_graph([], "head", inputs, []), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    anchors = [Anchors("map", (0.3,), (1, 2)), Anchors("small", (0.6,), (1, 2, 0.5))]
    whole = add_ssd_head(model, scores="s", offsets="o", anchors=anchors, threshold=0.3)
    assert not model.graph.output
    rng = np.random.default_rng(2)
    given = [np.zeros((1, 8, 4, 4), "f4"), np.zeros((1, 8, 2, 2), "f4")]
    scores, offsets = rng.random((1, 3, 44)).astype("f4"), rng.standard_normal((1, 176)).astype("f4")
    (y,) = (
        neo.compile(whole).run(dict(zip(["map", "small", "s", "o"], [*given, scores, offsets], strict=True))).values()
    )
    boxes = np.concatenate(
        [
            on_cpu("MultiboxPrior", [x], domain="neo", sizes=list(a.sizes), ratios=[float(r) for r in a.ratios])[0]
            for x, a in zip(given, anchors, strict=True)
        ],
        axis=1,
    )
    (right,) = on_cpu("MultiboxDetection", [scores, offsets, boxes], domain="neo", threshold=0.3)
    np.testing.assert_array_equal(np.asarray(y), right)
    assert (right[0, :, 0] >= 0).sum() > 3


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"scores": "nothing"}, "values of the model"),
        ({"anchors": []}, "must have anchors"),
        ({"output": "s"}, "an output of its own"),
    ],
)
def test_a_head_for_what_is_not_there_is_refused(changed, rule):
    model = helper.make_model(helper.make_graph([], "g", [tensor("s", [1, 2, 4]), tensor("o", [1, 16])], []))
    with pytest.raises(Error, match=rule):
        add_ssd_head(model, **{"scores": "s", "offsets": "o", "anchors": [Anchors("s")], **changed})


@pytest.mark.parametrize(
    ("op", "shapes", "attributes", "rule"),
    [
        ("BoxNms", [(1, 4, 5)], {}, "a row must hold"),
        ("BoxNms", [(1, 4, 6)], {"in_format": "polar"}, "in_format"),
        ("MultiboxPrior", [(1, 3, 2, 2)], {"steps": [1.0]}, "steps must have 2"),
        ("MultiboxDetection", [(1, 2, 4), (1, 15), (1, 4, 4)], {}, "four for each anchor"),
        ("MultiboxDetection", [(1, 2, 4), (1, 16), (1, 4, 4)], {"variances": [1.0]}, "variances must have 4"),
        ("MultiboxTarget", [(1, 4, 4), (1, 2, 4), (1, 2, 4)], {}, "a label must be"),
    ],
)
def test_what_does_not_fit_is_refused(op, shapes, attributes, rule):
    with pytest.raises(Error, match=rule):
        on_cpu(op, [np.zeros(s, "f4") for s in shapes], domain="neo", **attributes)

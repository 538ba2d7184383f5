"""Detectors with non-maximum suppression in the graph, built from raw heads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter


def with_nms(
    path: Path, boxes: str, scores: str, *, label: int, iou: float, score: float, limit: int
) -> onnx.ModelProto:
    """Append NonMaxSuppression to a detector whose heads are boxes ``[1, n, 4]`` and scores ``[1, n, classes]``.

    Parameters
    ----------
    path : Path
        The model; raised to opset 11.
    boxes, scores : str
        Names of the two outputs; boxes are corners.
    label : int
        The one class of interest: the background is not suppressed among itself.
    iou, score : float
        The two thresholds.
    limit : int
        The largest number of boxes.

    Returns
    -------
    onnx.ModelProto
        Outputs ``det_boxes [num_det, 4]`` and ``det_scores [num_det]``; the number is born at run time.
    """
    model = version_converter.convert_version(onnx.load(path), 11)
    graph = model.graph
    constants = {
        "nms/limit": np.array([limit], dtype=np.int64),
        "nms/iou": np.array([iou], dtype=np.float32),
        "nms/score": np.array([score], dtype=np.float32),
        "nms/class_start": np.array([label], dtype=np.int64),
        "nms/class_end": np.array([label + 1], dtype=np.int64),
        "nms/class_axis": np.array([2], dtype=np.int64),
        "nms/third": np.array(2, dtype=np.int64),
        "nms/flat": np.array([-1], dtype=np.int64),
        "nms/four": np.array([-1, 4], dtype=np.int64),
    }
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    thresholds = ["nms/limit", "nms/iou", "nms/score"]
    graph.node.extend(
        [
            helper.make_node("Slice", [scores, "nms/class_start", "nms/class_end", "nms/class_axis"], ["nms/class"]),
            helper.make_node("Transpose", ["nms/class"], ["nms/scores"], perm=[0, 2, 1]),
            helper.make_node("NonMaxSuppression", [boxes, "nms/scores", *thresholds], ["nms/selected"], name="nms"),
            helper.make_node("Gather", ["nms/selected", "nms/third"], ["nms/index"], axis=1),
            helper.make_node("Reshape", [boxes, "nms/four"], ["nms/rows"]),
            helper.make_node("Gather", ["nms/rows", "nms/index"], ["det_boxes"], axis=0),
            helper.make_node("Reshape", ["nms/class", "nms/flat"], ["nms/column"]),
            helper.make_node("Gather", ["nms/column", "nms/index"], ["det_scores"], axis=0),
        ]
    )
    del graph.output[:]
    graph.output.extend(
        [
            helper.make_tensor_value_info("det_boxes", TensorProto.FLOAT, ["num_det", 4]),
            helper.make_tensor_value_info("det_scores", TensorProto.FLOAT, ["num_det"]),
        ]
    )
    onnx.checker.check_model(model)
    return model


def ultraface_with_nms(path: Path) -> onnx.ModelProto:
    """Return UltraFace RFB-320 with the suppression that ``ref_nms.npz`` was made with."""
    return with_nms(path, "boxes", "scores", label=1, iou=0.5, score=0.7, limit=200)

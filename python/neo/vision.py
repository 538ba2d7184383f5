"""Heads of detectors, written into an ONNX model with the operators of the domain ``neo``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from neo.errors import ModelError

__all__ = ["Anchors", "add_ssd_head"]

_DOMAIN = "neo"


@dataclass(frozen=True)
class Anchors:
    """The boxes that a detector starts from at every place of one feature map.

    Parameters
    ----------
    feature : str
        The value of the model that is the feature map; only its height and width matter.
    sizes : sequence of float
        Of a box of the first ratio, as parts of the image's height.
    ratios : sequence of float
        Width by height. Each but the first makes one box more, of the first size.
    steps : tuple of float
        From one place to the next, down and across, as parts of the image; -1: evenly over the image.
    offsets : tuple of float
        Of the first place, down and across, in steps.
    clip : bool
        Whether boxes end at the image's border.
    """

    feature: str
    sizes: Sequence[float] = (1.0,)
    ratios: Sequence[float] = (1.0,)
    steps: tuple[float, float] = (-1.0, -1.0)
    offsets: tuple[float, float] = (0.5, 0.5)
    clip: bool = False


def add_ssd_head(
    model: onnx.ModelProto,
    *,
    scores: str,
    offsets: str,
    anchors: Sequence[Anchors],
    output: str = "detections",
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    nms_topk: int = -1,
    background_id: int = 0,
    force_suppress: bool = False,
    clip: bool = True,
    variances: tuple[float, float, float, float] = (0.1, 0.1, 0.2, 0.2),
) -> onnx.ModelProto:
    """Return the model with the post-processing of a single-shot detector behind it.

    The result has one more output, ``output``, of ``[images, anchors, 6]``: class, score and the corners x0 y0 x1 y1 of
    what was found, the best first, and rows of -1 behind.

    Parameters
    ----------
    model : ModelProto
        Is left as it is.
    scores : str
        The value with the scores of all classes, ``[images, classes, anchors]``.
    offsets : str
        The value with the offsets of the boxes, ``[images, 4 x anchors]``.
    anchors : sequence of Anchors
        One for each feature map, in the order in which their boxes lie in scores and offsets.
    threshold : float
        Lower scores are nothing.
    nms_threshold : float
        Of two boxes of one class whose intersection over union is above, the better stays.
    nms_topk : int
        So many boxes of an image are looked at, the best first; -1: all.
    background_id : int
        The class that is none; -1: there is none.
    force_suppress : bool
        Boxes hide one another whatever their classes.
    clip : bool
        Whether what is found ends at the image's border.
    variances : tuple of float
        What offsets were divided by in training: for x, y, width, height.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> from neo.vision import Anchors, add_ssd_head
    >>> def tensor(name, shape):
    ...     return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    >>> inputs = [tensor("map", [1, 8, 4, 4]), tensor("scores", [1, 3, 32]), tensor("offsets", [1, 128])]
    >>> graph = helper.make_graph([], "head", inputs, [])
    >>> model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    >>> whole = add_ssd_head(
    ...     model, scores="scores", offsets="offsets", anchors=[Anchors("map", sizes=(0.2,), ratios=(1, 2))]
    ... )
    >>> [o.name for o in whole.graph.output]
    ['detections']
    """
    if not anchors:
        msg = "[vision] a head must have anchors. Got none"
        raise ModelError(msg)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    known = {name for node in graph.node for name in node.output}
    known |= {value.name for value in (*graph.input, *graph.initializer)}
    for name in (scores, offsets, *(a.feature for a in anchors)):
        if name not in known:
            msg = f"[vision] a head must be for values of the model. Got {name!r}, which it does not have"
            raise ModelError(msg)
    if output in known:
        msg = f"[vision] a head must have an output of its own. Got {output!r}, which the model has"
        raise ModelError(msg)
    boxes = [f"{output}.anchors{i}" for i in range(len(anchors))]
    for box, a in zip(boxes, anchors, strict=True):
        graph.node.append(
            helper.make_node(
                "MultiboxPrior",
                [a.feature],
                [box],
                domain=_DOMAIN,
                sizes=[float(s) for s in a.sizes],
                ratios=[float(r) for r in a.ratios],
                steps=[float(s) for s in a.steps],
                offsets=[float(o) for o in a.offsets],
                clip=int(a.clip),
            )
        )
    if len(boxes) > 1:
        graph.node.append(helper.make_node("Concat", boxes, [f"{output}.anchors"], axis=1))
    graph.node.append(
        helper.make_node(
            "MultiboxDetection",
            [scores, offsets, f"{output}.anchors" if len(boxes) > 1 else boxes[0]],
            [output],
            domain=_DOMAIN,
            threshold=threshold,
            nms_threshold=nms_threshold,
            nms_topk=nms_topk,
            background_id=background_id,
            force_suppress=int(force_suppress),
            clip=int(clip),
            variances=[float(v) for v in variances],
        )
    )
    graph.output.append(helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
    if all(o.domain != _DOMAIN for o in made.opset_import):
        made.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return made

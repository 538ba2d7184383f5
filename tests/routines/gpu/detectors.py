"""Small SSD and YOLO detectors with decoding and non-maximum suppression in the graph."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Net:
    """Nodes and constants of a small network."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"k{len(self.constants)}"))
        return self.constants[-1].name

    def __call__(self, op, *inputs, **attributes):
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        made = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [made], name=f"{op} {made}", **attributes))
        return made

    def conv(self, x, inputs, outputs, kernel=3, stride=1, relu=True):
        weight = self.random.standard_normal((outputs, inputs, kernel, kernel)) * (2 / (inputs * kernel**2)) ** 0.5
        bias = 0.1 * self.random.standard_normal(outputs)
        y = self("Conv", x, weight.astype("f4"), bias.astype("f4"), strides=[stride] * 2, pads=[kernel // 2] * 4)
        return self("Relu", y) if relu else y

    def detected(self, boxes, scores, iou, score, limit, **attributes):
        """Boxes and scores that non-maximum suppression leaves of boxes [1, n, 4] and scores [1, classes, n]."""
        limits = [np.array([limit]), np.array([iou], "f4"), np.array([score], "f4")]
        selected = self("NonMaxSuppression", boxes, scores, *limits, **attributes)
        place = self("Gather", selected, np.array([0, 2]), axis=1)
        triple = self("Gather", selected, np.array([0, 1, 2]), axis=1)
        self.nodes.append(helper.make_node("GatherND", [boxes, place], ["boxes"], name="boxes"))
        self.nodes.append(helper.make_node("GatherND", [scores, triple], ["scores"], name="scores"))

    def model(self, size):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("boxes", "scores")]
        graph = helper.make_graph(self.nodes, "detector", [x], outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def ssd():
    """Two maps, three anchors in each place, offsets decoded with variances, classes with a background."""
    net, classes, anchors = Net(3), 4, 3
    first = net.conv(net.conv("x", 3, 8, stride=2), 8, 16, stride=2)
    maps = [(first, 16, 12), (net.conv(first, 16, 24, stride=2), 24, 6)]
    offsets, scores, priors = [], [], []
    for x, channels, size in maps:
        for made, width in ((offsets, 4), (scores, classes)):
            head = net.conv(x, channels, anchors * width, relu=False)
            rows = net("Transpose", head, perm=[0, 2, 3, 1])
            made.append(net("Reshape", rows, np.array([1, -1, width])))
        at = (np.stack(np.meshgrid(*[np.arange(size)] * 2), -1).reshape(-1, 1, 2) + 0.5) / size
        shape = np.array([[1.0, 1.0], [1.4, 0.7], [0.7, 1.4]]) * 1.5 / size
        priors.append(np.concatenate(np.broadcast_arrays(at, shape[None]), -1).reshape(1, -1, 4))
    prior = np.concatenate(priors, 1).astype("f4")
    offset = net("Concat", *offsets, axis=1)
    to = np.array([np.iinfo(np.int64).max])
    shift = net("Slice", offset, np.array([0]), np.array([2]), np.array([2]))
    growth = net("Slice", offset, np.array([2]), to, np.array([2]))
    center = net("Add", net("Mul", net("Mul", shift, np.float32(0.1)), prior[..., 2:]), prior[..., :2])
    half = net("Mul", net("Mul", net("Exp", net("Mul", growth, np.float32(0.2))), prior[..., 2:]), np.float32(0.5))
    boxes = net("Concat", net("Sub", center, half), net("Add", center, half), axis=2)
    score = net("Transpose", net("Softmax", net("Concat", *scores, axis=1), axis=2), perm=[0, 2, 1])
    objects = net("Slice", score, np.array([1]), to, np.array([1]))
    net.detected(boxes, objects, 0.45, 0.3, 20)
    return net.model(48)


def yolo():
    """Two scales, three anchors, grids added to sigmoids, scores of an object times those of its class."""
    net, classes, anchors = Net(5), 5, 3
    deep = net.conv(net.conv(net.conv("x", 3, 8, stride=2), 8, 16, stride=2), 16, 32, stride=2)
    high = net.conv(net("Resize", deep, "", np.array([1, 1, 2, 2], "f4"), mode="nearest"), 32, 16)
    boxes, scores = [], []
    for x, channels, size, scale in ((deep, 32, 8, 8), (high, 16, 16, 4)):
        head = net.conv(x, channels, anchors * (5 + classes), kernel=1, relu=False)
        split = net("Reshape", head, np.array([1, anchors, 5 + classes, size, size]))
        rows = net("Transpose", split, perm=[0, 1, 3, 4, 2])
        axis = np.array([4])
        place, extent, rest = (
            net("Slice", rows, np.array([a]), np.array([b]), axis) for a, b in ((0, 2), (2, 4), (4, 5 + classes))
        )
        grid = np.stack(np.meshgrid(*[np.arange(size)] * 2), -1).astype("f4")
        center = net("Mul", net("Add", net("Sigmoid", place), grid), np.float32(scale))
        shape = np.array([[4, 4], [6, 3], [3, 6]], "f4").reshape(1, anchors, 1, 1, 2) * scale / 2
        wide = net("Mul", net("Exp", extent), shape.astype("f4"))
        boxes.append(net("Reshape", net("Concat", center, wide, axis=4), np.array([1, -1, 4])))
        sure = net("Sigmoid", rest)
        score = net(
            "Mul",
            net("Slice", sure, np.array([0]), np.array([1]), axis),
            net("Slice", sure, np.array([1]), np.array([1 + classes]), axis),
        )
        scores.append(net("Reshape", score, np.array([1, -1, classes])))
    all_scores = net("Transpose", net("Concat", *scores, axis=1), perm=[0, 2, 1])
    net.detected(net("Concat", *boxes, axis=1), all_scores, 0.5, 0.35, 10, center_point_box=1)
    return net.model(64)

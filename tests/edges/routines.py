"""A small graph for every routine of the CPU, with names for its axes, so that each can be given 0 or 1 elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.edges.int8_routines import INT8_ROUTINES
from tests.edges.nets import Net, Spec
from tests.edges.table_routines import TABLE_ROUTINES

__all__ = ["ROUTINES"]


def _conv(weight: str, bias: bool = True, **attrs: Any) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        operands = [net.input("NCHW"), net.constant(weight, 0.2)]
        if bias:
            operands.append(net.constant(weight[0]))
        return net.node("Conv", operands, **attrs)

    return build


def _sparse(net: Net, axes: str, kept: int) -> Any:
    """Constant weights of which one in so many is no zero."""
    dims = np.array(net.dims(axes), int)
    net.fixed.update(axes)
    dense = np.random.default_rng(0).uniform(-1, 1, dims).astype(np.float32)
    return net.array(np.where(np.arange(dense.size).reshape(dense.shape) % kept == 0, dense, np.float32(0)))


def _unfolded(net: Net) -> Any:
    return net.node("DepthToSpace", [net.input("NCHW", "uint8", 256)], blocksize=2)


def _unfolded_part(net: Net) -> Any:
    y = net.node("DepthToSpace", [net.input("NCHW")], pin=False, blocksize=3)
    return net.node("Slice", [y, *(net.array(np.array(n)) for n in ([2, 1], [1 << 40, -1], [2, 3]))])


def _transposed(weight: str, **attrs: Any) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        operands = [net.input("NCHW"), net.constant(weight, 0.2), net.constant("C" if weight[1] == "1" else weight[1])]
        group = net.sizes["C"] if weight[1] == "1" else 1
        return net.node("ConvTranspose", operands, group=group, **attrs)

    return build


def _depthwise(net: Net, x: Any, channels: str, size: int = 3, **attrs: Any) -> Any:
    group = net.sizes[channels]
    weight = net.constant(f"{channels}1{size}{size}", 0.3)
    return net.node("Conv", [x, weight, net.constant(channels)], group=group, pads=[size // 2] * 4, **attrs)


def _pointwise(net: Net, x: Any, to: str, channels: str) -> Any:
    return net.node("Conv", [x, net.constant(f"{to}{channels}11", 0.2), net.constant(to)])


def _chain(first: bool, before: bool, behind: bool) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        x, channels = net.input("NCHW"), "C"
        if first:
            weight = net.constant("MC33", 0.2)
            x, channels = net.node("Conv", [x, weight, net.constant("M")], pads=[1] * 4, strides=[2, 2]), "M"
        if before:
            x, channels = _pointwise(net, x, "M", "C"), "M"
        x = _depthwise(net, x, channels)
        return _pointwise(net, x, "O", channels) if behind else x

    return build


def _pointwise_with_prologue(net: Net) -> Any:
    scale = net.node("Mul", [net.input("NCHW"), net.constant("C11")])
    shifted = net.node("Add", [scale, net.constant("C11")])
    x = net.node("Relu", [shifted])
    return _pointwise(net, x, "O", "C")


def _pool(op: str, **attrs: Any) -> Callable[[Net], Any]:
    return lambda net: net.node(op, [net.input("NCHW")], **attrs)


def _unpooled(net: Net, x: Any) -> Any:
    window = {"kernel_shape": [2, 3], "strides": [1, 1]}
    pooled, places = net.node("MaxPool", [x], 2, pin=False, **window)
    return net.node("MaxUnpool", [pooled, places], **window)


def _recurrent(op: str, gates: int, outputs: int = 2, directions: int = 1, **attrs: Any) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        d, hidden = str(directions), net.sizes["H"]
        weights = [
            net.array(np.float32(0.2) * _uniform((directions, gates * hidden, net.sizes[a]), i))
            for i, a in enumerate("IH")
        ]
        net.fixed.update("IH")
        operands = [net.input("TBI"), *weights, None, None, net.input(f"{d}BH")]
        direction = "bidirectional" if directions == 2 else "forward"
        return net.node(op, operands, outputs, hidden_size=hidden, direction=direction, **attrs)

    return build


def _stack(net: Net) -> Any:
    """Two layers of different cells, one above the other."""
    net.fixed.update("IH")
    hidden, x = net.sizes["H"], net.input("TBI")
    for op, gates, size in (("GRU", 3, "I"), ("LSTM", 4, "H")):
        weights = [
            net.array(np.float32(0.2) * _uniform((1, gates * hidden, net.sizes[a]), i))
            for i, a in enumerate(size + "H")
        ]
        is_last = op == "LSTM"
        outputs = net.node(op, [x, *weights], 3 if is_last else 1, pin=is_last, hidden_size=hidden)
        if not is_last:
            x = net.node("Squeeze", [outputs, net.array(np.array([1], np.int64))], pin=False)
    return outputs


def _ragged(op: str, dtype: str = "float32", **attrs: Any) -> Callable[[Net], Any]:
    """Lengths, weights that are inputs, and functions of their own."""

    def build(net: Net) -> Any:
        hidden = net.sizes["H"]
        net.fixed.update("IH")
        w, r = net.input("1GI", dtype), net.input("1GH", dtype)
        lengths = net.input("B", "int32", min(net.sizes["T"], 3) + 1)
        operands = [net.input("TBI", dtype), w, r, None, lengths]
        return net.node(op, operands, 2, hidden_size=hidden, checked_lengths=1, **attrs)

    return build


def _uniform(dims: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, dims).astype(np.float32)


def _pad(net: Net) -> Any:
    return net.node("Pad", [net.input("ABC"), net.array(np.array([0, 1, 2, 1, 0, 2])), net.array(np.float32(0.5))])


def _pad_at_run(net: Net) -> Any:
    """By pads that the graph computes."""
    pads = net.node("Neg", [net.array(np.array([0, -1, -2, 1, 0, -2]))], pin=False)
    return net.node("Pad", [net.input("ABC"), pads, net.array(np.float32(0.5))])


def _reduced(*axes: int) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        x = net.input("ABC")
        return [
            net.node(op, [x, net.array(np.array(axes))], keepdims=0)
            for op in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSum")
        ]

    return build


def _concat(net: Net) -> Any:
    return net.node("Concat", [net.node("Relu", [net.input(axes)], pin=False) for axes in ("ABC", "DBC")], axis=0)


def _norms(dtype: str = "float32") -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        x = net.input("NCHW", dtype)
        channels = [net.constant("C", dtype=dtype), net.constant("C", dtype=dtype)]
        width = [net.constant("W", dtype=dtype), net.constant("W", dtype=dtype)]
        return [
            net.node("InstanceNormalization", [x, *channels]),
            net.node("GroupNormalization", [x, *channels], num_groups=net.sizes["C"] or 1),
            net.node("LayerNormalization", [x, *width], axis=-1),
            net.node("RMSNormalization", [x, width[0]], axis=-1),
        ]

    return build


def _eltwise(net: Net) -> Any:
    x = net.node("Add", [net.input("ABC"), net.input("BC")])
    x = net.node("Mul", [x, net.constant("1", 2.0)])
    return net.node("Sigmoid", [net.node("Max", [x, net.input("AB1")])])


def _typed_eltwise(net: Net) -> Any:
    x = net.node("Add", [net.input("ABC", "int32", 90), net.input("BC", "int32", 90)])
    below = net.node("Less", [x, net.input("AB1", "int32", 90)])
    wide = net.node("Cast", [net.input("ABC", "float16")], to=11)
    return [below, net.node("Where", [below, wide, net.input("1C", "float64")])]


def _gemm(net: Net) -> Any:
    x = net.input("BMK")
    constant = net.node("MatMul", [x, net.constant("KN", 0.3)])
    general = net.node("Gemm", [net.input("MK"), net.constant("NK"), net.constant("N")], transB=1)
    return [constant, net.node("MatMul", [x, net.input("BKN")]), general]


def _attention(net: Net) -> Any:
    k = net.node("Transpose", [net.input("BNK")], perm=[0, 2, 1])
    scores = net.node("Add", [net.node("MatMul", [net.input("BMK"), k]), net.input("MN")])
    return net.node("MatMul", [net.node("Softmax", [scores], axis=-1), net.input("BNV")])


def _resize(**attrs: Any) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        scales = net.array(np.array([1, 1, 2, 2], np.float32))
        return net.node("Resize", [net.input("NCHW"), None, scales], mode="linear", **attrs)

    return build


def _resize_at_run(net: Net) -> Any:
    """By factors that the graph computes."""
    scales = net.node("Exp", [net.array(np.array([0, 0, 0.7, 0.2], np.float32))], pin=False)
    return net.node("Resize", [net.input("NCHW"), None, scales], mode="linear")


def _resize_to_nhwc(net: Net) -> Any:
    y = _resize()(net)
    return net.node("Transpose", [y], perm=[0, 2, 3, 1])


def _channels(net: Net) -> Any:
    x = net.input("NCHW")
    weight = net.constant("CC11", 0.2)
    a, b = net.node("Conv", [x, weight], pin=False), net.node("Conv", [x, net.constant("CC11", 0.2)], pin=False)
    weight = net.array(_uniform((8, 2 * net.sizes["C"], 1, 1), 3))
    return net.node("Conv", [net.node("Concat", [a, b], axis=1), weight], pin=False)


_IMAGE = {"N": 2, "C": 16, "H": 9, "W": 10, "O": 32}
_THREE = {**_IMAGE, "C": 3}
_CHAIN = {"N": 1, "C": 16, "M": 32, "H": 8, "W": 9, "O": 16}
_BLOCK = {"A": 3, "B": 5, "C": 17}
_SAME = [1] * 4

ROUTINES: dict[str, list[Spec]] = {
    **INT8_ROUTINES,
    **TABLE_ROUTINES,
    "cpu:float32/direct_nchwc": [
        Spec(_IMAGE, _conv("OC33", pads=_SAME)),
        Spec(_IMAGE, _conv("OC33", strides=[2, 2], dilations=[2, 2], pads=[2] * 4)),
        Spec(_IMAGE, _conv("OC11", bias=False)),
        Spec({**_IMAGE, "G": 8}, _conv("OG33", group=2, pads=_SAME), fixed="C"),
    ],
    "cpu:float32/direct_nchw": [Spec(_THREE, _conv("OC33", pads=_SAME, strides=[2, 2])), Spec(_THREE, _conv("OC51"))],
    "cpu:float32/direct_rows": [Spec(_THREE, _conv("OC33", pads=_SAME))],
    "cpu:float32/depthwise_nchwc": [
        Spec(_IMAGE, lambda net: _depthwise(net, net.input("NCHW"), "C")),
        Spec(_IMAGE, lambda net: _depthwise(net, net.input("NCHW"), "C", 5, strides=[2, 2])),
    ],
    "cpu:float32/depthwise_pointwise": [Spec(_CHAIN, _chain(first=False, before=False, behind=True))],
    "cpu:float32/pointwise_depthwise": [Spec(_CHAIN, _chain(first=False, before=True, behind=False))],
    "cpu:float32/inverted_residual": [Spec(_CHAIN, _chain(first=False, before=True, behind=True))],
    "cpu:float32/stem_depthwise": [Spec({**_CHAIN, "C": 3}, _chain(first=True, before=False, behind=False))],
    "cpu:float32/stem_depthwise_pointwise": [Spec({**_CHAIN, "C": 3}, _chain(first=True, before=False, behind=True))],
    "cpu:float32/pointwise_with_prologue": [
        Spec(_IMAGE, _pointwise_with_prologue),
        Spec({"N": 1, "C": 128, "H": 16, "W": 16, "O": 128}, _pointwise_with_prologue),
    ],
    "cpu:float32/sparse_nchw": [
        Spec(_IMAGE, lambda net: net.node("Conv", [net.input("NCHW"), _sparse(net, "OC11", 4)])),
        Spec(_IMAGE, lambda net: net.node("Conv", [net.input("NCHW"), _sparse(net, "OC33", 4)], pads=_SAME)),
        Spec(
            _IMAGE,
            lambda net: net.node(
                "Conv", [net.input("NCHW"), _sparse(net, "OC33", 4)], strides=[2, 2], dilations=[2, 2], pads=[2] * 4
            ),
        ),
    ],
    "cpu:float32/strassen": [Spec({"N": 1, "C": 128, "H": 16, "W": 16, "O": 128}, _conv("OC11"))],
    "cpu:float32/im2col": [
        Spec(_IMAGE, _conv("OC33", pads=_SAME)),
        Spec(_IMAGE, _conv("OC11")),
        Spec(_IMAGE, _transposed("CO33", pads=_SAME, strides=[2, 2])),
        Spec(_IMAGE, lambda net: net.node("Conv", [net.input("NCHW"), net.input("OC33"), net.input("O")])),
        Spec(_IMAGE, lambda net: net.node("ConvTranspose", [net.input("NCHW"), net.input("CO33")], strides=[2, 2])),
    ],
    "cpu:float32/large_kernel": [
        Spec(
            {"N": 17, "C": 2, "H": 9, "W": 7, "O": 5, "K": 7, "L": 6},
            lambda net: net.node("Conv", [net.input("NCHW"), net.input("OCKL")], pads=[0, 1, 1, 0]),
            fixed="HWKL",
        )
    ],
    "cpu:float32/subpixel_nchwc": [
        Spec(_IMAGE, _transposed("CO44", pads=_SAME, strides=[2, 2])),
        Spec(_IMAGE, _transposed("CO23", strides=[3, 2], output_padding=[2, 1])),
        Spec(
            {**_IMAGE, "D": 4},
            lambda net: net.node("Conv", [net.input("NCDHW"), net.constant("OC333", 0.2)], pads=[1] * 6),
        ),
    ],
    "cpu:float32/subpixel_rows": [Spec({**_IMAGE, "O": 3}, _transposed("CO44", pads=_SAME, strides=[2, 2]))],
    "cpu:float32/subpixel_winograd": [Spec(_IMAGE, _transposed("CO44", pads=_SAME, strides=[2, 2]))],
    "cpu:float32/transposed_depthwise_nchwc": [Spec(_IMAGE, _transposed("C144", pads=_SAME, strides=[2, 2]))],
    "cpu:float32/winograd": [
        Spec(_IMAGE, _conv("OC33", pads=_SAME)),
        Spec(_IMAGE, _conv("OC55", pads=[2] * 4)),
        Spec(_IMAGE, _conv("OC17")),
        Spec(_IMAGE, _conv("OC33", pads=_SAME, strides=[2, 2])),
        Spec({**_THREE, "H": 20, "W": 22}, _conv("OC77", pads=[3] * 4, strides=[2, 2])),
    ],
    "cpu:float32/gemv_exponent_packed": [
        Spec(
            {"M": 1, "K": 600, "N": 500},
            lambda net: net.node("MatMul", [net.input("MK"), net.constant("KN", 0.3)]),
            fixed="M",
        ),
        Spec(
            {"M": 1, "K": 500, "N": 600},
            lambda net: net.node("Gemm", [net.input("MK"), net.constant("NK", 0.3), net.constant("N")], transB=1),
            fixed="M",
        ),
    ],
    "cpu:float32/attention": [Spec({"B": 2, "M": 7, "K": 9, "N": 20, "V": 18}, _attention)],
    "cpu:float32/gemm_sparse": [
        Spec(
            {"B": 2, "M": 7, "K": 9, "N": 20},
            lambda net: net.node("MatMul", [net.input("BMK"), _sparse(net, "KN", 13)]),
        ),
    ],
    "cpu:float32/gemm_strassen": [
        Spec(
            {"B": 2, "M": 20, "K": 128, "N": 256},
            lambda net: net.node("MatMul", [net.input("BMK"), net.constant("KN", 0.3)]),
        ),
    ],
    "cpu:float32/gemm": [Spec({"B": 2, "M": 7, "K": 9, "N": 20}, _gemm)],
    "cpu/gemm": [
        Spec(
            {"B": 2, "M": 7, "K": 9, "N": 20},
            lambda net, dtype=dtype: net.node("MatMul", [net.input("BMK", dtype, 9), net.input("BKN", dtype, 9)]),
        )
        for dtype in ("float64", "int32", "int64")
    ],
    "cpu:float32/eltwise": [Spec(_BLOCK, _eltwise)],
    "cpu/eltwise": [Spec(_BLOCK, _typed_eltwise)],
    "cpu:float32/pool_nchwc": [
        Spec(_IMAGE, _pool("MaxPool", kernel_shape=[3, 3], pads=_SAME, strides=[2, 2])),
        Spec(_IMAGE, _pool("AveragePool", kernel_shape=[3, 3], pads=_SAME, ceil_mode=1, strides=[2, 2])),
    ],
    "cpu:float32/pool_nchw": [
        Spec(_IMAGE, _pool("AveragePool", kernel_shape=[3, 3], pads=_SAME)),
        Spec(_IMAGE, _pool("MaxPool", kernel_shape=[2, 2], strides=[2, 2], count_include_pad=1)),
    ],
    "cpu/pool": [
        Spec(
            _IMAGE,
            lambda net, op=op: net.node(
                op, [net.input("NCHW", "float64")], kernel_shape=[3, 3], pads=_SAME, strides=[2, 2]
            ),
        )
        for op in ("MaxPool", "AveragePool")
    ],
    "cpu/max_unpool": [Spec(_IMAGE, lambda net: _unpooled(net, net.input("NCHW")))],
    "cpu:float32/global_pool_nchwc": [Spec(_IMAGE, _pool("GlobalAveragePool")), Spec(_IMAGE, _pool("GlobalMaxPool"))],
    "cpu:float32/reduce": [
        Spec(_BLOCK, _reduced(1)),
        Spec(_BLOCK, _reduced(2)),
        Spec(_BLOCK, _reduced(0, 1, 2)),
    ],
    "cpu/reduce": [
        Spec(_BLOCK, lambda net: [net.node(op, [net.input("ABC")], axis=1) for op in ("ArgMax", "ArgMin")]),
        Spec(_BLOCK, lambda net: net.node("ReduceSum", [net.input("ABC", "int64", 9), net.array(np.int64([1]))])),
        Spec(_BLOCK, lambda net: net.node("ReduceMax", [net.input("ABC", "float64"), net.array(np.int64([2]))])),
    ],
    "cpu:float32/softmax": [
        Spec(_BLOCK, lambda net, axis=axis, op=op: net.node(op, [net.input("ABC")], axis=axis))
        for op in ("Softmax", "LogSoftmax")
        for axis in (1, -1)
    ],
    "cpu:float32/norm": [Spec({"N": 2, "C": 4, "H": 3, "W": 9}, _norms())],
    "cpu/norm": [Spec({"N": 2, "C": 4, "H": 3, "W": 9}, _norms("float64"))],
    "cpu/softmax": [
        Spec(_BLOCK, lambda net, axis=axis, op=op: net.node(op, [net.input("ABC", "float64")], axis=axis))
        for op in ("Softmax", "LogSoftmax")
        for axis in (1, -1)
    ],
    "cpu/hardmax": [
        Spec(_BLOCK, lambda net, axis=axis: net.node("Hardmax", [net.input("ABC")], axis=axis)) for axis in (1, -1)
    ],
    "cpu/scan": [
        Spec(
            _BLOCK,
            lambda net, axis=axis, dtype=dtype: net.node(
                "CumSum", [net.input("ABC", dtype, 9), net.array(np.int64(axis))], exclusive=axis
            ),
        )
        for axis in (1, 2)
        for dtype in ("float32", "int64")
    ],
    "cpu/view": [
        Spec(
            {"A": 4, "B": 5, "C": 6},
            lambda net: net.node("Slice", [net.input("ABC"), *(net.array(np.array([n])) for n in (1, 9, 0))]),
            fixed="A",
        )
    ],
    "cpu/concat_in_place": [Spec({"A": 4, "B": 5, "C": 6, "D": 3}, _concat)],
    "cpu:float32/channels_nchwc": [Spec({**_IMAGE, "C": 16}, _channels)],
    "cpu/depth_to_space_nchwc": [
        Spec({"N": 2, "C": 4 * 24, "H": 3, "W": 5}, _unfolded, fixed="C"),
        Spec({"N": 1, "C": 9, "H": 3, "W": 5}, _unfolded_part, fixed="CHW"),
    ],
    "cpu/copy": [
        Spec({"A": 4, "B": 5, "C": 6}, lambda net: net.node("Transpose", [net.input("ABC")], perm=[2, 0, 1])),
        Spec(
            {"A": 1, "B": 5, "C": 6}, lambda net: net.node("Expand", [net.input("1BC"), net.array(np.array([3, 1, 1]))])
        ),
    ],
    "cpu/diagonal": [
        Spec({"A": 3, "B": 5, "C": 6}, lambda net: net.node("Trilu", [net.input("ABC")], upper=0)),
        Spec({"A": 3, "B": 5}, lambda net: net.node("EyeLike", [net.input("AB")], k=1)),
    ],
    "cpu/pad": [Spec({"A": 4, "B": 5, "C": 6}, build) for build in (_pad, _pad_at_run)],
    "cpu/gather": [
        Spec(
            {"A": 4, "B": 5, "I": 3},
            lambda net: net.node("Gather", [net.input("AB"), net.array(np.arange(net.sizes["I"]))]),
            fixed="AI",
        )
    ],
    "cpu:float32/resize_nchwc": [Spec(_IMAGE, _resize())],
    "cpu:float32/resize_nchwc_to_nhwc": [Spec(_IMAGE, _resize_to_nhwc)],
    "cpu:float32/resize_nchw": [
        Spec(_IMAGE, _resize(coordinate_transformation_mode="align_corners")),
        Spec(_IMAGE, _resize(coordinate_transformation_mode="asymmetric")),
    ],
    "cpu/resize": [
        Spec(
            _IMAGE,
            lambda net, mode=mode: net.node(
                "Resize",
                [net.input("NCHW", "uint8", 256), None, net.array(np.array([1, 1, 2, 1.5], np.float32))],
                mode=mode,
            ),
        )
        for mode in ("nearest", "linear")
    ]
    + [Spec(_IMAGE, _resize_at_run)],
    "cpu:float32/grid_sample": [
        Spec(
            {"N": 2, "C": 3, "H": 4, "W": 5, "P": 6, "Q": 7},
            lambda net, mode=mode: net.node("GridSample", [net.input("NCHW"), net.input("NPQ2")], padding_mode=mode),
        )
        for mode in ("zeros", "border", "reflection")
    ]
    + [
        Spec(
            {"N": 2, "C": 3, "D": 2, "H": 4, "W": 5, "P": 6, "Q": 7},
            lambda net: net.node("GridSample", [net.input("NCDHW"), net.input("NPQ23")]),
        )
    ],
    "cpu:float32/recurrent_exponent_packed": [
        Spec({"T": 3, "B": 1, "I": 8, "H": 260}, _recurrent("LSTM", 4, 3), fixed="B"),
        Spec({"T": 3, "B": 1, "I": 8, "H": 300}, _recurrent("GRU", 3, linear_before_reset=1), fixed="B"),
    ],
    "cpu:float32/recurrent_stack": [
        Spec({"T": 3, "B": 2, "I": 5, "H": 7}, _stack),
        Spec({"T": 8, "B": 1, "I": 5, "H": 7}, _stack),
    ],
    "cpu:float64/recurrent": [
        Spec({"T": 3, "B": 4, "I": 5, "H": 7, "G": 28}, _ragged("LSTM", "float64", clip=0.5), fixed="G"),
        Spec({"T": 3, "B": 4, "I": 5, "H": 7, "G": 21}, _ragged("GRU", "float64"), fixed="G"),
    ],
    "cpu:float32/recurrent": [
        Spec({"T": 3, "B": 4, "I": 5, "H": 7, "G": 28}, _ragged("LSTM", clip=0.5, input_forget=1), fixed="G"),
        Spec({"T": 3, "B": 4, "I": 5, "H": 7, "G": 21}, _ragged("GRU", activations=["Softsign", "Relu"]), fixed="G"),
        Spec({"T": 3, "B": 2, "I": 5, "H": 7}, _recurrent("GRU", 3)),
        Spec({"T": 3, "B": 2, "I": 5, "H": 7}, _recurrent("GRU", 3, linear_before_reset=1, directions=2)),
        Spec({"T": 3, "B": 2, "I": 5, "H": 7}, _recurrent("LSTM", 4, 3)),
        Spec({"T": 6, "B": 1, "I": 33, "H": 64}, _recurrent("LSTM", 4, 3, directions=2)),
        Spec({"T": 6, "B": 1, "I": 64, "H": 64}, _recurrent("GRU", 3)),
        Spec({"T": 8, "B": 64, "I": 128, "H": 128}, _recurrent("LSTM", 4, 3)),
        Spec({"T": 8, "B": 64, "I": 128, "H": 128}, _recurrent("GRU", 3)),
        Spec({"T": 3, "B": 2, "I": 5, "H": 7}, _recurrent("RNN", 1)),
    ],
    "cpu:float32/lrn_nchwc": [Spec(_IMAGE, lambda net: net.node("LRN", [net.input("NCHW")], size=3))],
    "cpu:float32/lrn_nchw": [Spec(_IMAGE, lambda net: net.node("LRN", [net.input("NCHW")], size=3))],
    "cpu/scatter_nd": [
        Spec(
            {"A": 4, "B": 5, "I": 3},
            lambda net, kind=kind: net.node(
                "ScatterND",
                [net.input("AB"), net.input("I1", "int64", net.sizes["A"]), net.input("IB")],
                reduction=kind,
            ),
        )
        for kind in ("none", "add")
    ],
    "cpu/index": [
        Spec(
            {"A": 4, "B": 5, "I": 3},
            lambda net: net.node("GatherElements", [net.input("AB"), net.input("IB", "int64", net.sizes["A"])], axis=0),
        ),
        Spec(
            {"A": 4, "B": 5, "I": 3},
            lambda net: net.node(
                "ScatterElements",
                [net.input("AB"), net.input("IB", "int64", net.sizes["A"]), net.input("IB")],
                reduction="add",
            ),
        ),
        Spec({"A": 4, "B": 5}, lambda net: net.node("NonZero", [net.input("AB", "int64", 2)])),
        Spec({"A": 4, "B": 5}, lambda net: net.node("Compress", [net.input("AB"), net.input("A", "bool", 2)], axis=0)),
        Spec({"A": 4, "B": 5}, lambda net: net.node("ReverseSequence", [net.input("AB"), net.input("B", "int64", 2)])),
        Spec(
            {"A": 4, "B": 5},
            lambda net: net.node("Slice", [net.input("AB"), net.input("1", "int64", 3), net.array(np.array([9]))]),
        ),
        Spec({"A": 9}, lambda net: net.node("Unique", [net.input("A", "int64", 4)], 4)),
        Spec(
            {"N": 2, "M": 12, "B": 16},
            lambda net: net.node(
                "Col2Im", [net.input("NMB"), net.array(np.array([5, 5])), net.array(np.array([2, 2]))]
            ),
        ),
        Spec(
            {"N": 2, "C": 3, "B": 7},
            lambda net: net.node(
                "NonMaxSuppression", [net.input("NB4"), net.input("NCB"), net.array(np.array([9], np.int64))]
            ),
        ),
        Spec(
            {"N": 2, "C": 3, "H": 5, "W": 6, "B": 4},
            lambda net: net.node("MaxRoiPool", [net.input("NCHW"), net.input("B5")], pooled_shape=[2, 3]),
        ),
        Spec(
            {"N": 2, "C": 3, "H": 5, "W": 6, "B": 4},
            lambda net: net.node(
                "RoiAlign",
                [net.input("NCHW"), net.input("B4"), net.input("B", "int64", net.sizes["N"])],
                output_height=2,
                output_width=3,
            ),
        ),
    ],
    "cpu/one_hot": [
        Spec(
            {"A": 4, "B": 5},
            lambda net: net.node(
                "OneHot", [net.input("AB", "int64", 7), net.array(np.int64(7)), net.array(np.float32([0, 1]))], axis=1
            ),
        )
    ],
    "cpu/fourier": [
        Spec(
            {"A": 3, "B": 12, "C": 2},
            lambda net: net.node("DFT", [net.input("ABC1"), None, net.array(np.int64(1))]),
        ),
        Spec(
            {"A": 3, "B": 40},
            lambda net: net.node("STFT", [net.input("AB1"), net.array(np.int64(5)), net.constant("9")]),
        ),
    ],
    "cpu/gather_rows": [
        Spec(
            {"A": 4, "B": 5, "I": 3},
            lambda net: net.node("Gather", [net.input("AB"), net.input("I", "int64", net.sizes["A"])], axis=0),
        ),
        Spec(
            {"A": 4, "B": 5, "I": 3},
            lambda net: net.node("GatherND", [net.input("AB"), net.input("I1", "int64", net.sizes["A"])]),
        ),
    ],
    "cpu/top_k": [
        Spec({"A": 4, "B": 5}, lambda net: net.node("TopK", [net.input("AB"), net.array(np.array([1]))], 2, axis=1))
    ],
}

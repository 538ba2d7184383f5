"""Operators of com.microsoft that are a few operators of ONNX in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neo.errors import ModelError
from neo.frontend.onnx.attention_parts import add_values, dims_of, positions_of, slice_axis, split_last
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__ = ["activated"]

_DOMAIN = "com.microsoft"


@register("BiasAdd", domain=_DOMAIN)
def _bias_add(call: Call) -> Results:
    return call.finish("Add", [call.add("Add", [call.need(0), call.need(1)]), call.need(2)])


@register("BiasDropout", "BitmaskBiasDropout", domain=_DOMAIN)
def _bias_dropout(call: Call) -> Results:
    """What dropout leaves at inference: the sum."""
    training = call.input(4)
    if call.wants(1) or (training is not None and (call.constant(4) is None or call.need_constant(4, "").any())):
        raise call.refuse("dropout that trains has no fixed result")
    total = add_values(call, call.need(0), call.need(1), call.input(2))
    return [total]


@register("BiasSplitGelu", domain=_DOMAIN)
def _bias_split_gelu(call: Call) -> Results:
    left, right = split_last(call, call.add("Add", [call.need(0), call.need(1)]), 2)
    return call.finish("Mul", [left, call.add("Gelu", [right])])


@register("BiasSoftmax", domain=_DOMAIN)
def _bias_softmax(call: Call) -> Results:
    """Axes from `axis` on count as one; the bias has fewer axes, repeated inside or outside of those it has."""
    x, bias = call.need(0), call.need(1)
    rank, axis = call.rank(0), int(call.attrs.get("axis", 1))
    axis = axis + rank if axis < 0 else axis
    if not 0 <= axis < rank:
        msg = f"[{call.op}] axis must be one of the data's. Got {axis} for rank {rank}"
        raise ModelError(msg)
    missing = rank - call.rank(1)
    if call.attrs.get("is_inner_broadcast", 0) and missing > 0:
        bias = call.add("Unsqueeze", [bias, call.array(range(axis - missing, axis))])
    total = call.add("Add", [x, bias])
    if axis == rank - 1:
        return call.finish("Softmax", [total], {"axis": -1})
    y = call.add("Softmax", [call.add("Flatten", [total], {"axis": axis})], {"axis": -1})
    return call.finish("Reshape", [y, call.add("Shape", [x])])


# The activations that ONNX Runtime's optimizer fuses, and the attributes that each takes in the order of a list.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "LogSoftmax": ("axis",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softmax": ("axis",),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}


def activated(call: Call, value: _native.Value, params: Sequence[float] | None = None) -> _native.Value:
    """What the attribute `activation` makes of a value, by a list of parameters or by the attributes that name them."""
    op = str(call.attrs.get("activation", ""))
    if not op:
        return value
    if op not in _ACTIVATIONS:
        raise call.refuse(f"the activation is not known. Got {op!r}")
    names = _ACTIVATIONS[op]
    if params is None:
        known = {n: call.attrs[f"activation_{n}"] for n in names if f"activation_{n}" in call.attrs}
    else:
        known = dict(zip(names, params, strict=False))
    if op == "Clip":
        limits = [call.array(known[n], value.dtype) if n in known else None for n in names]
        result: _native.Value = call.add("Clip", [value, *limits])
        return result
    result = call.add(op, [value], known)
    return result  # noqa: RET504  (typed)


def _own(call: Call) -> dict[str, Any]:
    return {name: value for name, value in call.attrs.items() if not name.startswith("activation")}


@register("GemmFastGelu", domain=_DOMAIN)
def _gemm_fast_gelu(call: Call) -> Results:
    product = call.add("MatMul", [call.need(0), call.need(1)])
    return call.finish("Gelu", [add_values(call, product, call.input(2))], {"approximate": "tanh"})


@register("FusedMatMulActivation", domain=_DOMAIN)
def _matmul_activation(call: Call) -> Results:
    return [activated(call, call.add(f"{_DOMAIN}.FusedMatMul", [call.need(0), call.need(1)], _own(call)))]


@register("FusedGemm", domain=_DOMAIN)
def _fused_gemm(call: Call) -> Results:
    return [activated(call, call.add("Gemm", call.inputs, _own(call)))]


@register("FusedConv", domain=_DOMAIN)
def _fused_conv(call: Call) -> Results:
    """A sum may come between the convolution and the activation."""
    y = call.add("Conv", [call.need(0), call.need(1), call.input(2)], _own(call))
    return [activated(call, _plus(call, y, call.input(3)), call.attrs.get("activation_params", ()))]


@register("NhwcFusedConv", domain=_DOMAIN)
def _nhwc_fused_conv(call: Call) -> Results:
    """Channels come last, but for the weights: output channels, input channels, window."""
    rank = call.rank(0)
    x = call.add("Transpose", [call.need(0)], {"perm": [0, rank - 1, *range(1, rank - 1)]})
    y = call.add("Conv", [x, call.need(1), call.input(2)], _own(call))
    y = call.add("Transpose", [y], {"perm": [0, *range(2, rank), 1]})
    return [activated(call, _plus(call, y, call.input(3)), call.attrs.get("activation_params", ()))]


def _plus(call: Call, value: _native.Value, other: _native.Value | None) -> _native.Value:
    result: _native.Value = value if other is None else call.add("Add", [value, other])
    return result


@register("Gelu", domain=_DOMAIN)
def _gelu(call: Call) -> Results:
    return call.finish("Gelu", [call.need(0)])


@register("QuickGelu", domain=_DOMAIN)
def _quick_gelu(call: Call) -> Results:
    return call.finish("Swish", [call.need(0)], {"alpha": float(call.attrs.get("alpha", 1.702))})


@register("BiasGelu", "FastGelu", domain=_DOMAIN)
def _bias_gelu(call: Call) -> Results:
    approximate = "tanh" if call.op == "FastGelu" else "none"
    return call.finish("Gelu", [_plus(call, call.need(0), call.input(1))], {"approximate": approximate})


@register("GroupNorm", "SkipGroupNorm", domain=_DOMAIN)
def _group_norm(call: Call) -> Results:
    """Channels come last unless told otherwise; the activation is SiLU or none."""
    x = call.need(0)
    rank = call.rank(0)
    last = bool(call.attrs.get("channels_last", 1))
    total = x
    if call.op == "SkipGroupNorm":
        skip, bias = call.need(3), call.input(4)
        if call.rank(3) == 2:
            skip = call.add("Unsqueeze", [skip, call.array(range(1, rank - 1) if last else range(2, rank))])
        if bias is not None and not last:
            bias = call.add("Reshape", [bias, call.array([1, -1, *[1] * (rank - 2)])])
        total = call.add("Add", [add_values(call, x, bias), skip])
    y = call.add("Transpose", [total], {"perm": [0, rank - 1, *range(1, rank - 1)]}) if last else total
    attrs = {"num_groups": int(call.attrs.get("groups", 0)), "epsilon": float(call.attrs.get("epsilon", 1e-5))}
    affine = [
        call.need(i) if call.need(i).dtype == x.dtype else call.add("CastLike", [call.need(i), x]) for i in (1, 2)
    ]
    y = call.add("GroupNormalization", [y, *affine], attrs)
    if call.attrs.get("activation", 0):
        y = call.add("Mul", [y, call.add("Sigmoid", [y])])
    if last:
        y = call.add("Transpose", [y], {"perm": [0, *range(2, rank), 1]})
    return [y, total][: len(call.outputs)]


@register("SwiGLU", domain=_DOMAIN)
def _swiglu(call: Call) -> Results:
    gate, up = call.need(0), call.input(1)
    if up is None:
        gate, up = split_last(call, gate, 2)
    limit = float(call.attrs.get("limit", 0.0))
    if limit > 0:
        low, high = (call.array(n, gate.dtype) for n in (-limit, limit))
        gate, up = call.add("Clip", [gate, None, high]), call.add("Clip", [up, low, high])
    alpha, beta = float(call.attrs.get("activation_alpha", 1.0)), float(call.attrs.get("activation_beta", 0.0))
    inner = gate if alpha == 1 else call.add("Mul", [gate, call.array(alpha, gate.dtype)])
    if beta:
        up = call.add("Add", [up, call.array(beta, gate.dtype)])
    return call.finish("Mul", [call.add("Mul", [gate, call.add("Sigmoid", [inner])]), up])


@register("ScaledSiLU", domain=_DOMAIN)
def _scaled_silu(call: Call) -> Results:
    x = call.need(0)
    scale = call.array(float(call.attrs.get("alpha", 1.0)), x.dtype)
    if call.input(1) is not None:
        scale = call.add("CastLike", [call.need(1), x])
    z = call.add("Mul", [x, scale])
    return call.finish("Mul", [z, call.add("Sigmoid", [z])])


@register("CDist", domain=_DOMAIN)
def _cdist(call: Call) -> Results:
    """Distances between rows by |a|^2 + |b|^2 - 2ab, which is never less than 0."""
    metric = str(call.attrs.get("metric", "sqeuclidean"))
    if metric not in ("euclidean", "sqeuclidean"):
        raise call.refuse(f"the metric must be euclidean or sqeuclidean. Got {metric!r}")
    a, b = call.need(0), call.need(1)
    squares = [call.add("ReduceSumSquare", [x, call.array([1])], {"keepdims": keep}) for x, keep in ((a, 1), (b, 0))]
    product = call.add("MatMul", [a, call.add("Transpose", [b], {"perm": [1, 0]})])
    twice = call.add("Mul", [product, call.array(2.0, a.dtype)])
    squared = call.add("Sub", [call.add("Add", squares), twice])
    squared = call.add("Max", [squared, call.array(0.0, a.dtype)])
    return [call.add("Sqrt", [squared]) if metric == "euclidean" else squared]


@register("GatherND", domain=_DOMAIN)
def _gather_nd(call: Call) -> Results:
    return call.finish("GatherND", [call.need(0), call.add("Cast", [call.need(1)], {"to": 7})])


@register("SampleOp", domain=_DOMAIN)
def _sample(call: Call) -> Results:
    return call.finish("Identity", [call.need(0)])


@register("IsAllFinite", domain=_DOMAIN)
def _is_all_finite(call: Call) -> Results:
    """Whether every element of every input is a number; `isinf_only` and `isnan_only` narrow it."""
    bad: _native.Value | None = None
    for i in range(len(call.inputs)):
        x = call.need(i)
        found: list[Any] = []
        if not call.attrs.get("isnan_only", 0):
            found.append(call.add("IsInf", [x]))
        if not call.attrs.get("isinf_only", 0):
            found.append(call.add("IsNaN", [x]))
        for flags in found:
            wide = call.add("Cast", [call.add("Reshape", [flags, call.array([-1])])], {"to": 7})
            bad = add_values(call, bad, call.add("ReduceSum", [wide], {"keepdims": 0}))
    return call.finish("Equal", [bad if bad is not None else call.array(0), call.array(0)])


@register("UnfoldTensor", domain=_DOMAIN)
def _unfold(call: Call) -> Results:
    """All slices of one size along an axis; their elements become the last axis."""
    rank = call.rank(0)
    axis, size, step = (int(call.attrs.get(n, d)) for n, d in (("dim", -1), ("size", 0), ("step", 1)))
    if not -rank <= axis < rank or size < 1 or step < 1:
        msg = f"[{call.op}] dim must be an axis, size and step positive. Got {axis}, {size} and {step}"
        raise ModelError(msg)
    axis %= rank
    x = call.need(0)
    last = call.add("Sub", [dims_of(call, x, axis), call.array([size])])
    count = call.add("Add", [call.add("Div", [last, call.array([step])]), call.array([1])])
    starts = call.add("Mul", [positions_of(call, count), call.array([step])])
    own = positions_of(call, call.array([size]))
    at = call.add("Add", [call.add("Unsqueeze", [starts, call.array([1])]), own])
    made = call.add("Gather", [x, at], {"axis": axis})
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return call.finish("Transpose", [made], {"perm": order})


@register("ComplexMul", "ComplexMulConj", domain=_DOMAIN)
def _complex_mul(call: Call) -> Results:
    """Pairs of real and imaginary parts along the last axis; the second may be conjugated."""
    parts = []
    for i in (0, 1):
        rank = call.rank(i)
        parts += [slice_axis(call, call.need(i), rank - 1, j, j + 1) for j in (0, 1)]
    ar, ai, br, bi = parts

    def mul(x: _native.Value, y: _native.Value) -> Any:
        return call.add("Mul", [x, y])

    plus, minus = ("Sub", "Add") if call.op == "ComplexMul" else ("Add", "Sub")
    real = call.add(plus, [mul(ar, br), mul(ai, bi)])
    imaginary = call.add(minus, [mul(ai, br), mul(ar, bi)])
    return call.finish("Concat", [real, imaginary], {"axis": -1})


@register("Rfft", domain=_DOMAIN)
def _rfft(call: Call) -> Results:
    if (
        int(call.attrs.get("signal_ndim", 1)) != 1
        or call.attrs.get("normalized", 0)
        or not call.attrs.get("onesided", 1)
    ):
        raise call.refuse("the transform must be of one axis, one-sided and not normalized")
    x = call.add("Unsqueeze", [call.need(0), call.array([-1])])
    return call.finish("DFT", [x, None, call.array(-2)], {"onesided": 1})


@register("Irfft", domain=_DOMAIN)
def _irfft(call: Call) -> Results:
    """The spectrum's other half is the first half's mirror, conjugated; the length of the result is even."""
    if (
        int(call.attrs.get("signal_ndim", 1)) != 1
        or call.attrs.get("normalized", 0)
        or not call.attrs.get("onesided", 1)
    ):
        raise call.refuse("the transform must be of one axis, one-sided and not normalized")
    x = call.need(0)
    axis = call.rank(0) - 2
    bins = call.size(0, axis, "the number of frequencies")
    places = positions_of(call, call.array([2 * (bins - 1)]))
    mirror = call.add("Min", [places, call.add("Sub", [call.array(2 * (bins - 1)), places])])
    whole = call.add("Gather", [x, mirror], {"axis": axis})
    is_first = call.add("Unsqueeze", [call.add("Less", [places, call.array(bins)]), call.array([1])])
    signs = [call.array([1.0, last], x.dtype) for last in (1.0, -1.0)]
    whole = call.add("Mul", [whole, call.add("Where", [is_first, *signs])])
    y = call.add("DFT", [whole, None, call.array(axis)], {"inverse": 1})
    first = slice_axis(call, y, axis + 1, 0, 1)
    return call.finish("Squeeze", [first, call.array([axis + 1])])


@register("CropAndResize", domain=_DOMAIN)
def _crop_and_resize(call: Call) -> Results:
    """Boxes of images resized with their corners aligned."""
    crop = call.need_constant(3, "crop_size").reshape(-1)
    mode = str(call.attrs.get("mode", "bilinear"))
    if crop.size != 2 or (crop < 1).any() or mode not in ("bilinear", "nearest"):
        msg = f"[{call.op}] crop_size must be two positive sizes and mode bilinear or nearest. Got {crop} and {mode!r}"
        raise ModelError(msg)
    x, boxes = call.need(0), call.need(1)
    images = call.add("Gather", [x, call.need(2)])
    one = call.array(1.0, "float32")
    corners = [slice_axis(call, boxes, 1, i, i + 1) for i in range(4)]
    seen: _native.Value | None = None
    places = []
    for axis in (0, 1):
        size = call.add("Cast", [dims_of(call, x, 2 + axis)], {"to": 1})
        span = call.add("Sub", [size, one])
        count = int(crop[axis])
        low, high = corners[axis], corners[axis + 2]
        if count > 1:
            step = call.add(
                "Div", [call.add("Mul", [call.add("Sub", [high, low]), span]), call.array(float(count - 1), "float32")]
            )
            numbers = call.add("Cast", [positions_of(call, call.array([count]))], {"to": 1})
            own = call.add("Mul", [numbers, step])
            at = call.add("Add", [call.add("Mul", [low, span]), own])
        else:
            at = call.add("Mul", [call.add("Mul", [call.add("Add", [low, high]), span]), call.array(0.5, "float32")])
        inside = call.add(
            "And", [call.add("GreaterOrEqual", [at, call.array(0.0, "float32")]), call.add("LessOrEqual", [at, span])]
        )
        spread = call.array([1, 3] if axis == 0 else [1, 2])
        inside = call.add("Unsqueeze", [inside, spread])
        seen = inside if seen is None else call.add("And", [seen, inside])
        # GridSample's coordinates run from -1 to 1 between the centres of the corners.
        unit = call.add("Div", [call.add("Mul", [at, call.array(2.0, "float32")]), call.add("Max", [span, one])])
        if mode == "nearest":
            unit = call.add(
                "Div",
                [
                    call.add(
                        "Mul",
                        [
                            call.add("Floor", [call.add("Add", [at, call.array(0.5, "float32")])]),
                            call.array(2.0, "float32"),
                        ],
                    ),
                    call.add("Max", [span, one]),
                ],
            )
        unit = call.add("Sub", [unit, one])
        places.append(call.add("Unsqueeze", [unit, call.array([2, 3] if axis == 0 else [1, 3])]))
    rows, columns = places
    shape = call.add("Concat", [dims_of(call, boxes, 0), call.array([int(crop[0]), int(crop[1]), 1])], {"axis": 0})
    grid = call.add("Concat", [call.add("Expand", [part, shape]) for part in (columns, rows)], {"axis": 3})
    attrs = {"align_corners": 1, "padding_mode": "border", "mode": "linear" if mode == "bilinear" else "nearest"}
    y = call.add("GridSample", [images, grid], attrs)
    outside = call.array(float(call.attrs.get("extrapolation_value", 0.0)), "float32")
    return call.finish("Where", [seen, y, outside])


@register("ConvTransposeWithDynamicPads", domain=_DOMAIN)
def _conv_transpose(call: Call) -> Results:
    attrs = dict(call.attrs)
    if call.input(2) is not None:
        attrs["pads"] = [int(p) for p in call.need_constant(2, "the pads").reshape(-1)]
    return call.finish("ConvTranspose", [call.need(0), call.need(1), call.input(3)], attrs)


def _centred(call: Call, codes: int, zero: int) -> _native.Value:
    wide: _native.Value = call.add("Cast", [call.need(codes)], {"to": 6})
    if call.input(zero) is not None:
        wide = call.add("Sub", [wide, call.add("Cast", [call.need(zero)], {"to": 6})])
    return wide


@register("MulInteger", domain=_DOMAIN)
def _mul_integer(call: Call) -> Results:
    return call.finish("Mul", [_centred(call, 0, 1), _centred(call, 2, 3)])


@register("MatMulInteger16", domain=_DOMAIN)
def _matmul_integer16(call: Call) -> Results:
    to = 12 if call.need(0).dtype == "uint16" and call.need(1).dtype == "uint16" else 6
    return call.finish("MatMul", [call.add("Cast", [call.need(i)], {"to": to}) for i in (0, 1)])


@register("QLinearReduceMean", domain=_DOMAIN)
def _qlinear_reduce_mean(call: Call) -> Results:
    x = call.need(0)
    real = call.add("DequantizeLinear", [x, call.need(1), call.input(2)])
    axes = call.array([int(a) for a in call.attrs["axes"]]) if call.attrs.get("axes") else None
    mean = call.add("ReduceMean", [real, axes], {"keepdims": int(call.attrs.get("keepdims", 1))})
    zero = call.input(4) if call.input(4) is not None else call.array(0, x.dtype)
    return call.finish("QuantizeLinear", [mean, call.need(3), zero])

"""Convolutions against sums written out, and the sizes that inference gives them."""

import itertools

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run


def padding(sizes, kernel, strides, dilations, pads, auto_pad):
    """Output sizes and the padding before each axis."""
    outputs, begins = [], []
    for i, size in enumerate(sizes):
        extent = (kernel[i] - 1) * dilations[i] + 1
        if auto_pad.startswith("SAME"):
            output = -(-size // strides[i])
            total = max(0, (output - 1) * strides[i] + extent - size)
            begins.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
        else:
            begin, end = (0, 0) if auto_pad == "VALID" else (pads[i], pads[i + len(sizes)])
            output = (size + begin + end - extent) // strides[i] + 1
            begins.append(begin)
        outputs.append(output)
    return outputs, begins


def convolution(x, w, group, strides, dilations, pads, auto_pad="NOTSET"):
    sizes, kernel = x.shape[2:], w.shape[2:]
    outputs, begins = padding(sizes, kernel, strides, dilations, pads, auto_pad)
    y = np.zeros((x.shape[0], w.shape[0], *outputs), x.dtype)
    per_group = w.shape[0] // group
    for oc in range(w.shape[0]):
        channels = slice(oc // per_group * w.shape[1], (oc // per_group + 1) * w.shape[1])
        for o in itertools.product(*map(range, outputs)):
            for tap in itertools.product(*map(range, kernel)):
                at = [o[i] * strides[i] + tap[i] * dilations[i] - begins[i] for i in range(len(sizes))]
                if all(0 <= a < s for a, s in zip(at, sizes, strict=True)):
                    y[(slice(None), oc, *o)] += x[(slice(None), channels, *at)] @ w[(oc, slice(None), *tap)]
    return y


CASES = [
    # sizes, kernel, group, strides, dilations, pads, auto_pad
    ((7,), (3,), 1, (2,), (1,), (1, 0), "NOTSET"),
    ((6, 5), (3, 2), 1, (1, 1), (1, 1), (0, 0, 0, 0), "NOTSET"),
    ((6, 5), (3, 2), 2, (2, 1), (1, 2), (1, 2, 3, 0), "NOTSET"),
    ((6, 5), (1, 1), 4, (1, 2), (1, 1), (0, 0, 0, 0), "NOTSET"),
    ((6, 5), (3, 3), 1, (2, 2), (1, 1), (), "SAME_UPPER"),
    ((6, 5), (2, 2), 1, (1, 3), (2, 1), (), "SAME_LOWER"),
    ((6, 5), (3, 2), 1, (2, 2), (1, 1), (), "VALID"),
    ((2, 3), (4, 4), 1, (1, 1), (1, 1), (2, 2, 3, 1), "NOTSET"),
    ((3, 4, 5), (2, 1, 3), 2, (1, 2, 2), (1, 1, 2), (1, 0, 2, 0, 1, 1), "NOTSET"),
]


def attributes(case):
    _, _, group, strides, dilations, pads, auto_pad = case
    attrs = {"group": group, "strides": list(strides), "dilations": list(dilations), "auto_pad": auto_pad}
    return attrs | ({"pads": list(pads)} if pads else {})


def operands(case, seed=0):
    random = np.random.default_rng(seed)
    sizes, kernel, group, *_ = case
    return random.standard_normal((2, 4, *sizes)), random.standard_normal((8, 4 // group, *kernel))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution(case):
    x, w = operands(case)
    bias = np.arange(8.0)
    expected = convolution(x, w, *case[2:]) + bias.reshape(8, *[1] * (x.ndim - 2))
    np.testing.assert_allclose(run("Conv", x, w, bias, **attributes(case)), expected, atol=1e-12)
    clamped = run("Conv", x, w, bias, **attributes(case), clamp_min=-1.0, clamp_max=6.0)
    np.testing.assert_allclose(clamped, np.clip(expected, -1, 6), atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_integer_convolution_pads_with_the_zero_point(case):
    random = np.random.default_rng(1)
    x, w = (random.integers(0, 256, a.shape).astype(np.uint8) for a in operands(case))
    zero = random.integers(0, 256, 8).astype(np.uint8)
    weights = w.astype(np.int64) - zero.reshape(8, *[1] * (x.ndim - 1))
    expected = convolution(x.astype(np.int64) - 7, weights, *case[2:])
    result = run("ConvInteger", x, w, np.uint8(7), zero, **attributes(case))
    np.testing.assert_array_equal(result, expected.astype(np.int32))


@pytest.mark.parametrize("case", [c for c in CASES if c[6] == "NOTSET"], ids=str)
def test_transposed_convolution_is_the_transpose(case):
    x, w = operands(case)
    y = run("Conv", x, w, **attributes(case))
    g = np.random.default_rng(2).standard_normal(y.shape)
    # What the windows leave over at the end of an axis.
    extents = [(k - 1) * d + 1 for k, d in zip(case[1], case[4], strict=True)]
    rank = len(case[0])
    spare = [(case[0][i] + case[5][i] + case[5][i + rank] - extents[i]) % case[3][i] for i in range(rank)]
    back = run("ConvTranspose", g, w, **attributes(case), output_padding=spare)
    assert back.shape == x.shape
    np.testing.assert_allclose(np.vdot(back, x), np.vdot(g, y), rtol=1e-9)


def test_transposed_convolution_to_a_given_shape():
    x, w = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3))
    natural = run("ConvTranspose", x, w, strides=[2, 2])
    assert natural.shape == (1, 1, 7, 7)
    given = run("ConvTranspose", x, w, strides=[2, 2], output_shape=[6, 6], auto_pad="SAME_UPPER")
    np.testing.assert_array_equal(given, natural[:, :, :6, :6])
    lower = run("ConvTranspose", x, w, strides=[2, 2], output_shape=[6, 6])
    np.testing.assert_array_equal(lower, natural[:, :, 1:, 1:])
    for mode in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
        larger = run("ConvTranspose", x, w, strides=[2, 2], output_shape=[8, 9], auto_pad=mode)
        np.testing.assert_array_equal(larger, np.pad(natural, [(0, 0), (0, 0), (0, 1), (0, 2)]))


def test_deformed_convolution_without_offsets_is_a_convolution():
    case = CASES[2]
    x, w = operands(case)
    attrs = {k: v for k, v in attributes(case).items() if k != "auto_pad"}
    y = run("Conv", x, w, **attrs)
    offset = np.zeros((2, 2 * 2 * 6, *y.shape[2:]))
    np.testing.assert_allclose(run("DeformConv", x, w, offset, **attrs, offset_group=2), y, atol=1e-12)
    # One step down is the convolution of the image moved up.
    offset.reshape(2, 2, 6, 2, *y.shape[2:])[:, :, :, 0] = 1
    moved = np.concatenate([x[:, :, 1:], np.zeros_like(x[:, :, :1])], axis=2)
    inner = np.s_[:, :, 1:]  # the padding at the top has moved, too
    np.testing.assert_allclose(
        run("DeformConv", x, w, offset, **attrs, offset_group=2)[inner],
        run("Conv", moved, w, **attrs)[inner],
        atol=1e-12,
    )


def test_causal_convolution_in_two_steps():
    random = np.random.default_rng(3)
    x, w, bias = random.standard_normal((2, 3, 7)), random.standard_normal((3, 1, 4)), random.standard_normal(3)
    whole, state = run("CausalConvWithState", x, w, bias, outputs=2, activation="silu")
    first, middle = run("CausalConvWithState", x[:, :, :2], w, bias, outputs=2, activation="silu")
    second, last = run("CausalConvWithState", x[:, :, 2:], w, bias, middle, outputs=2, activation="silu")
    np.testing.assert_allclose(np.concatenate([first, second], axis=2), whole, atol=1e-12)
    np.testing.assert_array_equal(last, state)
    np.testing.assert_array_equal(state, x[:, :, -3:])


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"pads": [1, 1, 1, 1]}, "float32[N,8,H,W]"),
        ({}, "float32[N,8,H - 2,W - 2]"),
        ({"strides": [2, 2], "pads": [1, 1, 1, 1]}, "float32[N,8,floordiv(H - 1, 2) + 1,floordiv(W - 1, 2) + 1]"),
        ({"strides": [2, 2], "auto_pad": "SAME_UPPER"}, "float32[N,8,ceildiv(H, 2),ceildiv(W, 2)]"),
    ],
)
def test_sizes_from_symbols(attrs, expected):
    result = infer("Conv", "float32[N,4,H,W]", "float32[8,4,3,3]", **attrs)
    values = {"N": 3, "H": 12, "W": 7, "floordiv": lambda a, b: a // b, "ceildiv": lambda a, b: -(-a // b)}
    read = [eval(d, values) for d in _dims(result)]
    assert read == [eval(d, values) for d in _dims(expected)]
    assert result.count("N") == 1


def _dims(text):
    depth, dims, start = 0, [], text.index("[") + 1
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if text[i] in ",]" and depth == 0:
            dims.append(text[start:i])
            start = i + 1
    return dims


def test_empty_batch():
    assert run("Conv", np.zeros((0, 4, 5, 5), np.float32), np.zeros((8, 4, 3, 3), np.float32)).shape == (0, 8, 3, 3)


@pytest.mark.parametrize(
    ("inputs", "attrs", "error", "message"),
    [
        (("float32[1,30,8,8]", "float32[8,4,3,3]"), {"group": 4}, ShapeError, "group times the channels"),
        (("float32[1,4,8,8]", "float32[6,1,3,3]"), {"group": 4}, ShapeError, "divisible by group"),
        (("float32[1,4,2,2]", "float32[6,4,4,4]"), {}, ShapeError, "must fit into the padded input"),
        (("float32[1,4,8,8]", "float32[6,4,3,3]"), {"strides": [0, 1]}, ModelError, "strides must be at least 1"),
        (("float32[1,4,8,8]", "float32[6,4,3,3]"), {"pads": [1, 1]}, ModelError, "pads must have one value"),
        (("float32[1,4,8,8]", "float32[6,4,3,3]"), {"auto_pad": "SAME"}, ModelError, "auto_pad must be"),
        (("float32[1,4,8,8]", "float32[6,4,3,3]"), {"kernel_shape": [2, 2]}, ShapeError, "that of the weights"),
        (("float32[1,4,8,8]", "float32[6,4,3,3]", "float32[5]"), {}, ShapeError, "one element per output channel"),
    ],
)
def test_refusals(inputs, attrs, error, message):
    with pytest.raises(error, match=message):
        infer("Conv", *inputs, **attrs)

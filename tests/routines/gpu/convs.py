"""Convolutions for the GPU's programs: operands, packed constants and what NumPy makes of them."""

import numpy as np


def blocked(x, block):
    """NCHW to NCHW[x]c, the last block filled up with zeros; NCHW for a block of 1."""
    if block == 1:
        return x
    n, c, *space = x.shape
    blocks = -(-c // block)
    out = np.zeros((n, blocks * block, *space), x.dtype)
    out[:, :c] = x
    return np.ascontiguousarray(np.moveaxis(out.reshape(n, blocks, block, *space), 2, -1))


def plain(x, block, channels):
    """The inverse of blocked."""
    if block == 1:
        return x
    n, blocks, *space, _ = x.shape
    return np.moveaxis(x, -1, 2).reshape(n, blocks * block, *space)[:, :channels]


def pack_direct(w, groups, in_block, wide):
    """[group][panel][block][ky][kx][channel][wide] of weights [oc][ic / groups][kh][kw]."""
    oc, ic, kh, kw = w.shape
    og, blocks = oc // groups, -(-ic // in_block)
    panels = -(-og // wide)
    out = np.zeros((groups, panels * wide, blocks * in_block, kh, kw), w.dtype)
    out[:, :og, :ic] = w.reshape(groups, og, ic, kh, kw)
    out = out.reshape(groups, panels, wide, blocks, in_block, kh, kw)
    return np.ascontiguousarray(out.transpose(0, 1, 3, 5, 6, 4, 2))


def pack_bias(bias, groups, wide):
    """A bias with the channels of every group filled up to whole panels."""
    og = len(bias) // groups
    out = np.zeros((groups, -(-og // wide) * wide), bias.dtype)
    out[:, :og] = bias.reshape(groups, og)
    return out.reshape(-1)


def conv(x, w, groups=1, strides=None, dilations=None, pads=None, transposed=False):
    """A convolution, or a transposed one, of any number of spatial axes in float64; pads are beginnings, then ends."""
    x, w = x.astype("f8"), w.astype("f8")
    axes = x.ndim - 2
    strides, dilations, pads = strides or (1,) * axes, dilations or (1,) * axes, pads or (0,) * (2 * axes)
    n, kernel = x.shape[0], w.shape[2:]
    parts = x.reshape(n, groups, -1, *x.shape[2:])
    if not transposed:
        parts = np.pad(parts, [(0, 0)] * 3 + list(zip(pads[:axes], pads[axes:], strict=True)))
        w = w.reshape(groups, -1, *w.shape[1:])
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        out = [(i - s) // t + 1 for i, s, t in zip(parts.shape[3:], spans, strides, strict=True)]
        y = np.zeros((n, groups, w.shape[1], *out))
        for tap in np.ndindex(*kernel):
            window = tuple(
                slice(k * d, k * d + (o - 1) * t + 1, t)
                for k, d, o, t in zip(tap, dilations, out, strides, strict=True)
            )
            y += np.einsum("ngi...,goi->ngo...", parts[(..., *window)], w[(..., *tap)], optimize=True)
        return y.reshape(n, -1, *out)
    w = w.reshape(groups, -1, *w.shape[1:])
    whole = [(i - 1) * t + (k - 1) * d + 1 for i, t, k, d in zip(x.shape[2:], strides, kernel, dilations, strict=True)]
    y = np.zeros((n, groups, w.shape[2], *whole))
    for tap in np.ndindex(*kernel):
        window = tuple(
            slice(k * d, k * d + (i - 1) * t + 1, t)
            for k, d, i, t in zip(tap, dilations, x.shape[2:], strides, strict=True)
        )
        y[(..., *window)] += np.einsum("ngi...,gio->ngo...", parts, w[(..., *tap)], optimize=True)
    inside = tuple(slice(b, size - e) for b, e, size in zip(pads[:axes], pads[axes:], whole, strict=True))
    return y[(..., *inside)].reshape(n, -1, *[i.stop - i.start for i in inside])


#: Positive interpolation points, by how many there are.
WINOGRAD_POINTS = ((), (1,), (1.5, 0.75), (0.5, 2, 1), (0.375, 0.75, 1.25, 2.5), (0.375, 0.625, 1, 1.5, 3))


def winograd_weights(taps, stride, tile):
    """What the points of F(tile, taps) give the weights along one axis, [points][taps]."""
    if taps == 1:
        return np.ones((1, 1))
    pairs = tile // 2 if stride == 2 else (tile + taps - 3) // 2
    points = [0.0, *(sign * p for p in WINOGRAD_POINTS[pairs] for sign in (1, -1))]
    slope = np.poly1d(points, r=True).deriv()
    rows = [[p ** (k // stride) * (k % stride == 0) / slope(p) for k in range(taps)] for p in points]
    middle = [[0.0, 1.0, 0.0]] * tile if stride == 2 else [[0.0] * (taps - 1) + [1.0]]
    return np.array(rows + middle)


def pack_winograd(w, strides, tile, block, wide):
    """[point][panel][block][channel][wide] of weights [oc][ic][kh][kw], transformed."""
    along = [winograd_weights(w.shape[2 + i], strides[i], tile) for i in (0, 1)]
    u = np.einsum("ik,jl,ockl->ijoc", *along, w.astype("f8")).astype("f4")
    oc, ic = w.shape[:2]
    padded = np.zeros((u.shape[0] * u.shape[1], -(-oc // block) * block, ic), "f4")
    padded[:, :oc] = u.reshape(-1, oc, ic)
    return pack_direct(padded.reshape(-1, ic, 1, 1), len(padded), block, wide)

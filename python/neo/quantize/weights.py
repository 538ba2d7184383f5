"""Weights and biases as codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neo.quantize.float_model import FloatModel
from neo.quantize.place import Layer
from neo.quantize.ranges import Grid

__all__ = ["Codes", "quantize_weights"]

# Sums of products and a bias stay in int32.
_LARGEST_BIAS = float(1 << 30)
_LEAST_SCALE = 1e-30


@dataclass(frozen=True)
class Codes:
    """A layer's constants.

    Attributes
    ----------
    weights : int8 array
        Codes, whose zero point is 0.
    scales : float32 array
        One for each output channel along the layer's axis, or one for all.
    bias : int32 array or None
        Counts of the scale of x times that of the channel; None where there is no bias.
    float_bias : float32 array or None
        The bias where the scales of the layer say no unit for it.
    """

    weights: np.ndarray[Any, Any]
    scales: np.ndarray[Any, Any]
    bias: np.ndarray[Any, Any] | None = None
    float_bias: np.ndarray[Any, Any] | None = None

    def real(self, axis: int) -> np.ndarray[Any, Any]:
        """The weights that the codes stand for."""
        real: np.ndarray[Any, Any] = self.weights.astype(np.float32) * _along(self.scales, self.weights.ndim, axis)
        return real


def _along(scales: np.ndarray[Any, Any], rank: int, axis: int) -> np.ndarray[Any, Any]:
    if scales.size == 1:
        return scales.reshape(())
    shape = [1] * rank
    shape[axis] = scales.size
    return scales.reshape(shape)


def quantize_weights(
    model: FloatModel,
    layer: Layer,
    grid: Grid | None,
    *,
    bits: int = 8,
    per_channel: bool = True,
    means: np.ndarray[Any, Any] | None = None,
) -> Codes:
    """Round a layer's weights, symmetric around 0, and its bias.

    Parameters
    ----------
    model : FloatModel
    layer : Layer
    grid : Grid or None
        That of the layer's x; None where x stays float, and the bias with it.
    bits : int
        The codes reach from -(2^(bits - 1) - 1) to 2^(bits - 1) - 1.
    per_channel : bool
        A scale for each output channel, or one.
    means : array or None
        The mean of each channel of x: the bias takes the mean of what rounding the weights does to the sums (bias
        correction, Nagel et al., 2019, section 4.2, from data). Taps in the padding count as others.
    """
    w = model.array(layer.w).astype(np.float64)
    bias = model.array(layer.bias).astype(np.float64).reshape(-1) if layer.bias else None
    others = tuple(a for a in range(w.ndim) if a != layer.axis)
    largest = np.abs(w).max(axis=others) if per_channel else np.abs(w).max()
    top = 2 ** (bits - 1) - 1
    scales = np.atleast_1d(largest / top)
    if bias is not None and grid is not None and layer.op != "ConvTranspose":
        # A bias that is large beside its channel's weights would not fit its codes.
        needed = np.abs(bias) / (grid.scale * _LARGEST_BIAS)
        scales = np.maximum(scales, needed if per_channel else needed.max())
    # Products with the scale of x are normal numbers; where there is nothing to scale, any scale does.
    least = _LEAST_SCALE * max(1.0, 1.0 if grid is None else 1.0 / grid.scale)
    scales = np.where(scales > 0, np.maximum(scales, least), 1.0).astype(np.float32)
    codes = np.clip(np.rint(w / _along(scales.astype(np.float64), w.ndim, layer.axis)), -top, top).astype(np.int8)
    if bias is None:
        return Codes(codes, scales)
    if grid is None or layer.op == "ConvTranspose":
        return Codes(codes, scales, None, bias.astype(np.float32))
    if means is not None:
        bias = bias - _mean_error(layer, codes * _along(scales.astype(np.float64), w.ndim, layer.axis) - w, means)
    unit = (np.float32(grid.scale) * scales).astype(np.float64)
    return Codes(codes, scales, np.clip(np.rint(bias / unit), -_LARGEST_BIAS, _LARGEST_BIAS).astype(np.int32))


def _mean_error(layer: Layer, errors: np.ndarray[Any, Any], means: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The mean that weights' errors add to each output channel."""
    if layer.op != "Conv":
        product: np.ndarray[Any, Any] = np.tensordot(errors, means, axes=(1 - layer.axis, 0))
        return product
    taps = errors.reshape(errors.shape[0], errors.shape[1], -1).sum(axis=2)
    groups = means.size // taps.shape[1]
    by_group = means.reshape(groups, 1, -1)
    summed: np.ndarray[Any, Any] = (taps.reshape(groups, -1, taps.shape[1]) * by_group).sum(axis=2).reshape(-1)
    return summed

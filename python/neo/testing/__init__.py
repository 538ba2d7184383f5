"""Accuracy checks for pytest: compare a module with ONNX Runtime, or with stored tensors.

The float rule
    For every output, ``max |neo - ref| <= FLOAT_FACTOR * eps * sqrt(depth) * max |ref|``, where ``eps`` is the machine
    epsilon of the output's dtype and ``depth`` the longest reduction of the model (``longest_reduction``). Rounding
    errors of a sum of ``depth`` terms grow like ``sqrt(depth)``; the factor stands for layers behind each other and
    for algorithms, such as Winograd's, that trade a few bits for speed.
The quantized rule
    A model that computes on quantized values agrees where every output is within one step of the output's own grid
    (``output_steps``) and the largest value of each row stays the largest; equal values may change places. Integers
    that come out of a quantizing operator lie on a grid of step 1.
Exact
    Other integers, booleans and strings must be equal. Not-a-numbers and infinities must be at the same positions.
Form
    Shapes must be equal, without broadcasting, and so must the kinds of dtype; where the reference is a model, the
    dtypes themselves. ``bfloat16`` and the 8-bit floats of ml_dtypes are floats like any other.

A failure names the output, the worst value's position, both values, and how many are beyond the limit.

Examples
--------
>>> import numpy as np
>>> from neo.testing import assert_arrays_close
>>> assert_arrays_close(np.float32([1, 2]), np.float32([1, 2.0000002]), depth=1)
"""

from neo.testing.arrays import FLOAT_FACTOR, UNKNOWN_DEPTH, assert_arrays_close, assert_quantized_close, float_limit
from neo.testing.graph import longest_reduction, output_steps
from neo.testing.modules import assert_close, seeded_inputs

__all__ = [
    "FLOAT_FACTOR",
    "UNKNOWN_DEPTH",
    "assert_arrays_close",
    "assert_close",
    "assert_quantized_close",
    "float_limit",
    "longest_reduction",
    "output_steps",
    "seeded_inputs",
]

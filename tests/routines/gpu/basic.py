"""Workloads on GPU programs against the reference of their operators."""

import numpy as np
from neo import _native

from tests.routines.gpu.programs import ON, Program


def blocked(x, block):
    """An array with axis 1 in blocks of `block`, the last one padded with zeros."""
    n, c, *rest = x.shape
    padded = np.zeros((n, -(-c // block) * block, *rest), x.dtype)
    padded[:, :c] = x
    return np.ascontiguousarray(np.moveaxis(padded.reshape(n, -1, block, *rest), 2, -1))


def held(x, together):
    """An array as it lies where so many channels are together: 1: as it is, 0: all of them, behind the other axes."""
    if together == 0:
        return np.ascontiguousarray(np.moveaxis(x, 1, -1))
    return x if together == 1 else blocked(x, together)


def _held_operand(x, rank, together):
    if x.ndim == rank and x.shape[1] > 1:
        return held(x, together)
    return held(x[None], together)[0] if x.ndim == rank - 1 and x.shape[0] > 1 else x


def check(text, inputs, *, exact=False, rtol=2e-5, atol=2e-6, packed=(), on=ON, **choice):
    """Assert that the program of a workload computes what the reference does, as plain C and on a device."""
    _, graph = _native.parse_workload(text)
    expected = [np.asarray(y) for y in graph.evaluate(list(inputs))]
    together = choice.get("together", 1)
    program = Program("basic", workload=text, **choice)
    rank = expected[0].ndim
    operands = [x.view(np.uint8) if x.dtype == bool else np.asarray(x) for x in inputs]
    outputs = [(y.shape, np.uint8 if y.dtype == bool else y.dtype) for y in expected]
    if together != 1:
        operands = [_held_operand(x, rank, together) for x in operands]
        outputs = [(*o, held(y, together).shape) for o, y in zip(outputs, expected, strict=True)]
        expected = [held(y, together) for y in expected]
    for place in on:
        actual, _ = program.run(
            [(x.shape, held) for x, held in zip(inputs, operands, strict=True)], outputs, packed=packed, on=place
        )
        for a, y in zip(actual, expected, strict=True):
            if exact or y.dtype.kind not in "fV":
                np.testing.assert_array_equal(a, y.view(a.dtype), err_msg=f"{text} on {place}")
            else:
                if y.dtype.itemsize == 2:  # halves, which assert_allclose compares in their own precision
                    a, y = a.astype("f4"), y.astype("f4")
                np.testing.assert_allclose(a, y, rtol=rtol, atol=atol, err_msg=f"{text} on {place}")

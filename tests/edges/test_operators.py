"""Every numeric operator with each of its axes of 0 and of 1 elements, fixed and at run time, beside ONNX Runtime."""

from __future__ import annotations

import neo
import numpy as np
import pytest
from neo.errors import Error, InternalError
from onnx import defs

from tests.edges.batch import Note, run_cases
from tests.edges.operators import CASES, LEFT_OUT, SIZES

_UNWRITTEN = "ONNX Runtime leaves what it sums nothing for as its memory was; it is zero here"
_MEAN = "the mean of nothing is not-a-number, as in NumPy"
_FITS = "a window that does not fit has no position by the text's floor; ONNX Runtime rounds towards zero"
_REFUSED = "refused: there is nothing to sample or to transform"

#: ``operator axis size`` where neo differs, and why (docs/accuracy.md).
_DIFFERENT = {
    **dict.fromkeys(("MatMulInteger B 0", "QLinearMatMul B 0", "ConvInteger C 0", "QLinearConv C 0"), _UNWRITTEN),
    **dict.fromkeys((f"com.microsoft.{op} B 0" for op in ("DynamicQuantizeMatMul", "QGemm")), _UNWRITTEN),
    **dict.fromkeys(("com.microsoft.MatMulIntegerToFloat B 0", "LSTM T 0"), _UNWRITTEN),
    **dict.fromkeys((f"ReduceMean {axis} 0" for axis in "ABC"), _MEAN),
    "NegativeLogLikelihoodLoss N 0": _MEAN,
    **dict.fromkeys(("MaxPool H 1", "MaxPool W 1"), _FITS),
    **dict.fromkeys(("RoiAlign H 0", "RoiAlign W 0", "DFT L 0"), _REFUSED),
}

#: The cases are tried in so many tests, of which the ring draws some.
PARTS = 12


def test_every_numeric_operator_has_a_case():
    named = {case.op for case in CASES} | {op for ops in LEFT_OUT for op in ops.split()}
    newest = {s.name for s in defs.get_all_schemas() if s.domain == "" and not s.deprecated}
    assert newest <= named


@pytest.mark.parametrize("part", range(PARTS))
def test_no_empty_axis_ends_the_process(part):
    alone = [f"{name} alone" for name in cases() if " 0 " in name and " - " not in name]
    failures = {
        name: f for name, f in run_cases("tests.edges.test_operators:run_case", alone[part::PARTS]).items() if f
    }
    assert not failures, "\n".join(f"{name}: {failure}" for name, failure in failures.items())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_axes_of_nought_and_one(part):
    outcomes = run_cases("tests.edges.test_operators:run_case", cases()[part::PARTS])
    # Where ONNX Runtime ends the process, neo must not.
    for name in [name for name, failure in outcomes.items() if failure.endswith("at: ONNX Runtime")]:
        outcomes.update(run_cases("tests.edges.test_operators:run_case", [f"{name} alone"]))
        del outcomes[name]
    failures = {name: failure for name, failure in outcomes.items() if failure}
    assert not failures, "\n".join(f"{name}: {failure}" for name, failure in failures.items())


def cases() -> list[str]:
    """``number operator axis size fixed|dynamic`` of all cases; first each as it is."""
    found = []
    for number, case in enumerate(CASES):
        found.append(f"{number} {case.op} - 0 fixed")
        for axis in case.axes:
            for size in (0, 1):
                found.append(f"{number} {case.op} {axis} {size} fixed")
                if axis not in case.constant_axes:
                    found.append(f"{number} {case.op} {axis} {size} dynamic")
    return found


def run_case(name: str, note: Note) -> str:
    """What is wrong with one model in neo."""
    import onnxruntime

    number, op, axis, size, kind, *alone = name.split(" ")
    case = CASES[int(number)]
    sizes = SIZES if axis == "-" else {**SIZES, axis: int(size)}
    try:
        model, inputs = case.model(sizes, axis if kind == "dynamic" else "")
    except (ValueError, IndexError):
        return ""  # NumPy has no such array
    note("ONNX Runtime")
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected = None
    try:
        if alone:
            raise ValueError(alone)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        expected = session.run(None, inputs)
    except Exception as error:
        if axis == "-" and not case.alone:
            return f"ONNX Runtime refuses the case itself: {error}"
    note("neo")
    try:
        found = list(neo.compile(model, threads=1).run(inputs).values())
    except InternalError:
        raise
    except Error as error:
        return "" if expected is None or _DIFFERENT.get(f"{op} {axis} {size}") == _REFUSED else f"refused: {error}"
    if f"{op} {axis} {size}" in _DIFFERENT:
        return ""
    if expected is None or op in ("RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"):
        return ""
    step = 1 if "Q" in op else 0  # of codes, which each engine rounds by its own arithmetic
    for value, right in zip(found, expected, strict=True):
        if value.dtype != right.dtype or value.shape != right.shape:
            return f"{value.dtype}{value.shape}, ONNX Runtime: {right.dtype}{right.shape}"
        if not np.allclose(value, right, rtol=1e-3, atol=1e-4 + step, equal_nan=True):
            return f"{value.ravel()[:4]}, ONNX Runtime: {right.ravel()[:4]}"
    return ""

"""Training iterations: gradients against finite differences, and as a whole against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable

import neo
import numpy as np
import onnx
import pytest

from benchmarks.models import training
from benchmarks.models.gradients import Iteration

Made = tuple[onnx.ModelProto, dict[str, np.ndarray]]

#: The builders at sizes of a test, of a dtype.
NETWORKS: dict[str, Callable[[type], Made]] = {
    "lstm": lambda dtype: training.make_lstm(3, 5, 2, 2, dtype),
    "phased lstm": lambda dtype: training.make_phased_lstm(3, 5, 2, 2, dtype),
    "pathnet": lambda dtype: training.make_pathnet(8, 2, 2, dtype),
}


def _ended(b: Iteration, x: str, shape: tuple[int, ...], rank: int = 4) -> Made:
    """The weighted mean of ``x`` as the loss."""
    weighted = b.add("Mul", x, b.normal("share", *shape))
    return b.iteration(b.add("ReduceMean", weighted, axes=list(range(rank)), keepdims=0)), b.feeds


def _conv(dtype: type, image: tuple[int, ...], weight: tuple[int, ...], out: tuple[int, ...], **attrs: object) -> Made:
    b = Iteration(1, dtype)
    x = b.weight(*image)
    y = b.add("Conv", x, b.weight(*weight), b.weight(weight[0]), **attrs)
    return _ended(b, y, out, len(image))


def _unary(op: str, shape: tuple[int, ...], out: tuple[int, ...], **attrs: object) -> Callable[[type], Made]:
    def make(dtype: type) -> Made:
        b = Iteration(2, dtype)
        return _ended(b, b.add(op, b.weight(*shape), **attrs), out, len(out))

    return make


def _products(dtype: type) -> Made:
    b = Iteration(3, dtype)
    batched = b.add("MatMul", b.weight(2, 3, 4), b.weight(4, 5))
    rows = b.add("Reshape", batched, b.constant([6, 5], np.int64))
    both = b.add("Gemm", b.weight(7, 6), rows, b.weight(5), transA=0, transB=0, alpha=0.5, beta=2.0)
    turned = b.add("Gemm", both, b.weight(4, 7), transA=1, transB=1)
    again = b.add("Gemm", b.weight(3, 5), turned, alpha=2.0)
    return _ended(b, b.add("Gemm", again, b.weight(3, 2), transA=1), (4, 2), 2)


def _broadcasts(dtype: type) -> Made:
    b = Iteration(4, dtype)
    x, y = b.weight(2, 1, 4), b.weight(3, 1)
    mixed = b.add("Sub", b.add("Div", x, b.add("Exp", y)), b.add("Mul", y, b.add("Neg", x)))
    first, second = b.add_all("Split", [mixed, b.constant([1, 3], np.int64)], 2, axis=2)
    joined = b.add("Concat", second, b.add("Transpose", first, perm=[0, 1, 2]), axis=2)
    return _ended(b, b.add("Transpose", b.add("Add", joined, b.weight(4))), (4, 3, 2), 3)


_EVEN_LRN = "lrn of an even size"  # which onnxruntime refuses

#: What the networks above have no part of: strides that leave pixels over, dilations, groups, other ranks, overlaps.
OPERATORS: dict[str, Callable[[type], Made]] = {
    "conv": lambda dtype: _conv(dtype, (2, 3, 6, 5), (4, 3, 3, 2), (2, 4, 6, 4), pads=[1, 0, 1, 0]),
    "strided conv": lambda dtype: _conv(
        dtype, (2, 4, 8, 9), (6, 2, 3, 3), (2, 6, 4, 3), strides=[2, 3], pads=[1, 0, 1, 1], group=2
    ),
    "dilated conv": lambda dtype: _conv(
        dtype, (2, 3, 9, 8), (3, 1, 2, 3), (2, 3, 4, 4), dilations=[3, 2], strides=[2, 1], group=3, pads=[1, 0, 0, 0]
    ),
    "conv of one axis": lambda dtype: _conv(dtype, (3, 2, 10), (2, 2, 4), (3, 2, 4), strides=[2], pads=[0, 1]),
    "conv of three axes": lambda dtype: _conv(dtype, (1, 2, 4, 5, 3), (2, 2, 2, 3, 1), (1, 2, 3, 3, 3)),
    "overlapping maxima": _unary(
        "MaxPool", (2, 2, 7, 6), (2, 2, 4, 6), kernel_shape=[3, 3], strides=[2, 1], pads=[1] * 4
    ),
    "maxima that leave a row": _unary("MaxPool", (1, 2, 7, 6), (1, 2, 3, 3), kernel_shape=[2, 2], strides=[2, 2]),
    "averages": _unary("AveragePool", (2, 2, 7, 6), (2, 2, 4, 4), kernel_shape=[3, 2], strides=[2, 2], pads=[1] * 4),
    "global averages": _unary("GlobalAveragePool", (2, 3, 3, 4), (2, 3, 1, 1)),
    "lrn": _unary("LRN", (2, 7, 2, 3), (2, 7, 2, 3), size=5, alpha=0.5, beta=0.6, bias=1.5),
    _EVEN_LRN: _unary("LRN", (2, 7, 2, 3), (2, 7, 2, 3), size=4, alpha=0.5, beta=0.6, bias=1.5),
    "products": _products,
    "broadcasts": _broadcasts,
}

CASES = {**NETWORKS, **OPERATORS}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_finite_differences(case: str) -> None:
    model, feeds = CASES[case](np.float64)
    module = neo.compile(model)
    loss, *gradients = module.run(feeds).values()
    assert loss.shape == ()
    weights = [name for name in feeds if name.startswith("w")]
    assert len(gradients) == len(weights) > 0
    random, step = np.random.default_rng(0), 1e-6
    for name, gradient in zip(weights, gradients, strict=True):
        assert gradient.shape == feeds[name].shape
        # One random direction sees every element; a kink within the step is avoided by its size.
        direction = random.standard_normal(gradient.shape)
        ends = []
        for sign in (1, -1):
            moved = module.run({**feeds, name: feeds[name] + sign * step * direction})
            ends.append(float(next(iter(moved.values()))))
        expected = (ends[0] - ends[1]) / (2 * step)
        scale = max(1e-2, float(np.abs(gradient * direction).sum()))
        assert abs(float((gradient * direction).sum()) - expected) < 1e-5 * scale, name


@pytest.mark.parametrize("case", [case for case in CASES if case != _EVEN_LRN])
def test_agrees_with_onnxruntime(case: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, feeds = CASES[case](np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    first: dict[int, list[np.ndarray]] = {}  # by threads, since the routines depend on their number
    for executors in ((1, 1), (1, 2), (2, 1)):
        found = list(neo.compile(model, threads=executors[0] * executors[1], executors=executors).run(feeds).values())
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-4 * max(1e-2, float(np.abs(wanted).max())))
        same = first.setdefault(executors[0] * executors[1], found)
        assert all(np.array_equal(one, other) for one, other in zip(found, same, strict=True))


@pytest.mark.parametrize("case", ["lstm", "phased lstm", "pathnet"])
def test_little_is_left_to_the_reference(case: str) -> None:
    model, _ = NETWORKS[case](np.float32)
    left = {step.op for step in neo.compile(model).steps if step.routine == "cpu/reference"}
    assert left <= {"SoftmaxCrossEntropyLoss"}


def test_graphs_have_the_paper_s_sizes() -> None:
    names = [entry.name for entry in training.TRAINING]
    assert len(set(names)) == len(names) == 12
    model, feeds = training.TRAINING[0].make()
    assert feeds["x"].shape == (20, 64, 128)
    assert len([name for name in feeds if name.startswith("w")]) == 4 * 3 + 2
    assert len(model.graph.output) == 1 + 4 * 3 + 2


def test_says_what_has_no_gradient() -> None:
    b = Iteration(6)
    with pytest.raises(ValueError, match="no rule for the gradient of 'Erf'"):
        b.iteration(b.add("Squeeze", b.add("Erf", b.weight(1))))
    b = Iteration(7)
    b.weight(2)
    loss = b.add("Squeeze", b.weight(1))
    with pytest.raises(ValueError, match="the loss must depend on every weight. Got 'w0'"):
        b.iteration(loss)

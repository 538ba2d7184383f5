"""Normalizations without a routine of their own as reductions and elementwise operators."""

import pytest

from tests.passes.rewriting import after, ops_of


def graph_text(node: str, dims: str, dtype: str, more: str = "") -> str:
    """A graph of one node over x."""
    return f'graph "g" (x: {dtype}[{dims}]{more}) -> (y) {{\n  {node}\n}}'


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("p", "norm"), [(1, "ReduceL1"), (2, "ReduceL2")])
def test_divides_by_norms_that_are_not_zero(p: int, norm: str, dtype: str) -> None:
    for axis in (0, 1, -1):
        text = graph_text(f"y = LpNormalization(x) {{axis={axis}, p={p}}}", "N,3,5", dtype)
        assert ops_of(after(text, "expand_normalizations")) == [norm, "Equal", "Where", "Div"]
    zeros = f'graph "g" (x: {dtype}[4,3]) -> (y) {{\n  a = Sub(x, x)\n  y = LpNormalization(a) {{axis=1, p={p}}}\n}}'
    after(zeros, "expand_normalizations")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("dims", "attrs"), [("2,3,4,5", ""), ("2,N,7", ""), ("2,3,4", " {axes=[1]}")])
def test_centres_and_divides_by_the_deviation(dims: str, attrs: str, dtype: str) -> None:
    text = graph_text(f"y = MeanVarianceNormalization(x){attrs}", dims, dtype)
    ops = ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Add", "Div"]
    assert ops_of(after(text, "expand_normalizations", rtol=1e-4, atol=1e-4)) == ops


@pytest.mark.parametrize("dims", ["2,3", "2,3,4", "N,3,4,5"])
def test_batch_norms_whose_parameters_arrive_at_run_time(dims: str) -> None:
    more = "".join(f", {name}: float32[3]" for name in ("s", "b", "m", "v"))
    node = "w = Abs(v)\n  y = BatchNormalization(x, s, b, m, w)"
    ops = ops_of(after(graph_text(node, dims, "float32", more), "expand_normalizations", rtol=1e-4, atol=1e-3))
    assert "BatchNormalization" not in ops
    assert ops.count("Unsqueeze") == (0 if dims == "2,3" else 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("dims", "window"),
    [
        ("2,3,9", "kernel_shape=[3]"),
        ("N,3,7,8", "kernel_shape=[3,2], strides=[2,3], pads=[1,0,1,1]"),
        ("1,2,9,8", "kernel_shape=[2,3], strides=[2,2], ceil_mode=1"),
        ("1,2,9,8", "kernel_shape=[3,3], strides=[2,2], dilations=[2,1], ceil_mode=1, pads=[1,1,0,0]"),
        ("N,3,H,W", "kernel_shape=[3,2], strides=[2,2], ceil_mode=1, pads=[1,0,0,0]"),
        ("2,3,N", "kernel_shape=[2], strides=[2], dilations=[2], ceil_mode=1, pads=[0,1]"),
        ("1,2,6,5,7", 'kernel_shape=[2,3,2], strides=[2,1,1], auto_pad="SAME_UPPER"'),
    ],
)
def test_norms_below_windows_are_roots_of_means(dims: str, window: str, p: int, dtype: str) -> None:
    text = graph_text(f"y = LpPool(x) {{{window}, p={p}}}", dims, dtype)
    ops = ops_of(after(text, "expand_normalizations", rtol=1e-5, atol=1e-5))
    assert ops.count("AveragePool") == 1
    assert "LpPool" not in ops


def test_norms_of_planes_beyond_length_are_roots_of_sums() -> None:
    for p, count in ((1, 1), (2, 1), (3, 4)):
        text = graph_text(f"y = GlobalLpPool(x) {{p={p}}}", "2,3,N,5", "float32")
        assert len(ops_of(after(text, "expand_normalizations", rtol=1e-5, atol=1e-5))) == count


@pytest.mark.parametrize("window", ["strides=[3]", "strides=[2], pads=[0,1]"])
def test_leaves_windows_that_may_lie_in_the_padding_alone(window: str) -> None:
    text = graph_text(f"y = LpPool(x) {{kernel_shape=[2], {window}, ceil_mode=1}}", "2,3,N", "float32")
    assert ops_of(after(text, "expand_normalizations")) == ["LpPool"]


def test_leaves_training_and_halves_alone() -> None:
    for node, dtype in (
        ("y = LpNormalization(x)", "float16"),
        ("y = BatchNormalization(x, s, b, m, v) {training_mode=1}", "float32"),
    ):
        more = "".join(f", {name}: {dtype}[3]" for name in ("s", "b", "m", "v")) if "Batch" in node else ""
        ops = ops_of(after(graph_text(node, "2,3,4", dtype, more), "expand_normalizations"))
        assert len(ops) == 1

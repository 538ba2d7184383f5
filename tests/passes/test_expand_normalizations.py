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


def test_leaves_training_and_halves_alone() -> None:
    for node, dtype in (
        ("y = LpNormalization(x)", "float16"),
        ("y = BatchNormalization(x, s, b, m, v) {training_mode=1}", "float32"),
    ):
        more = "".join(f", {name}: {dtype}[3]" for name in ("s", "b", "m", "v")) if "Batch" in node else ""
        ops = ops_of(after(graph_text(node, "2,3,4", dtype, more), "expand_normalizations"))
        assert len(ops) == 1

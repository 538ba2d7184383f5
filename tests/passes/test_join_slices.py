"""join_slices: what an unrolled loop does to each slice of a value is done to the value."""

from __future__ import annotations

import pytest

from tests.passes import recurrent_cells as cells
from tests.passes.rewriting import after, ops_of

PASSES = ("join_slices", "remove_dead_nodes")
STEPS = 4


def unrolled(
    step: str, *, x: str = "float32[4,3,5]", slices: str = "gather", count: int = STEPS, join: str = ""
) -> str:
    """Return a graph of ``step`` for some slices of x; {t} is the step, {x} its slice, and y{t} what it gives."""
    axis = 1 if slices == "second" else 2 if slices == "last" else 0
    lines = []
    if slices == "split":
        parts = ", ".join(f"p{t}" for t in range(STEPS))
        lines += [f"{parts} = Split(x, ones) {{axis=0}}", *(f"x{t} = Squeeze(p{t}, first)" for t in range(STEPS))]
    for t in range(count):
        if slices == "slice":
            lines.append(f"x{t} = Slice(x, at{t}, at{t + 1}, first)")
        elif slices != "split":
            lines.append(f"x{t} = Gather(x, i{t}) {{axis={axis}}}")
        lines += [line.strip().format(t=t, x=f"x{t}") for line in step.splitlines() if line.strip()]
    constants = [
        cells.weights("w", 5, 6),
        cells.weights("v", 6, 5),
        cells.weights("b", 6),
        cells.weights("s", 5),
        cells.weights("m", 3, 5),
        "constant first = int64[1] {0}",
        "constant ones = int64[4] {1, 1, 1, 1}",
        *(f"constant i{t} = int64[] {{{t}}}" for t in range(STEPS)),
        *(f"constant at{t} = int64[1] {{{t}}}" for t in range(STEPS + 1)),
    ]
    results = ", ".join(f"y{t}" for t in range(count))
    body = "\n  ".join([*constants, *lines, *([join] if join else [])])
    return f'graph "g" (x: {x}) -> ({results}) {{\n  {body}\n}}'


def kept(graph) -> list[str]:
    return [op for op in ops_of(graph) if op not in ("Squeeze", "Split", "Gather", "Transpose")]


@pytest.mark.parametrize("slices", ["gather", "second", "split", "slice"])
def test_products_by_one_matrix(slices: str) -> None:
    x = "float32[3,4,5]" if slices == "second" else "float32[4,3,5]"
    assert kept(after(unrolled("y{t} = MatMul({x}, w)", x=x, slices=slices), *PASSES)) == ["MatMul"]


@pytest.mark.parametrize("slices", ["gather", "second", "split"])
def test_gemm_with_a_bias(slices: str) -> None:
    x = "float32[3,4,5]" if slices == "second" else "float32[4,3,5]"
    text = unrolled("y{t} = Gemm({x}, v, b) {{transB=1}}", x=x, slices=slices)
    assert kept(after(text, *PASSES)) == ["MatMul", "Add"]


def test_elementwise_nodes_behind_and_between() -> None:
    step = """
      scaled{t} = Mul({x}, s)
      p{t} = MatMul(scaled{t}, w)
      q{t} = Add(p{t}, b)
      z{t} = Sigmoid(q{t})
      y{t} = Mul(q{t}, z{t})"""
    assert kept(after(unrolled(step), *PASSES)) == ["Mul", "MatMul", "Add", "Sigmoid", "Mul"]


def test_the_rows_of_one_sequence() -> None:
    """Slices along a later axis are parts of the memory, too, where the axes before it have one element."""
    assert kept(after(unrolled("y{t} = Tanh({x})", x="float32[1,4,5]", slices="second"), *PASSES)) == ["Tanh"]


def test_most_of_the_slices() -> None:
    assert kept(after(unrolled("y{t} = MatMul({x}, w)", count=2), *PASSES)) == ["MatMul"]


APART = {
    "one-slice": ("y{t} = MatMul({x}, w)", {"count": 1}),
    "few-slices": ("y{t} = MatMul({x}, w)", {"count": 2, "x": "float32[5,3,5]"}),
    "last-axis": ("y{t} = Tanh({x})", {"slices": "last", "x": "float32[3,5,4]"}),
    "copies": ("y{t} = Tanh({x})", {"slices": "second", "x": "float32[3,4,5]"}),
    "matrix": ("y{t} = Add({x}, m)", {}),
    "recurrence": ("y{t} = Add({x}, x0)", {}),
    "unknown-length": ("y{t} = MatMul({x}, w)", {"x": "float32[T,3,5]", "count": 3}),
}


@pytest.mark.parametrize("name", APART)
def test_what_stays_apart(name: str) -> None:
    step, options = APART[name]
    text = unrolled(step, **options)
    before, result = kept(after(text)), kept(after(text, *PASSES))
    assert result == before


def test_other_attributes() -> None:
    text = unrolled("y{t} = LeakyRelu({x}) {{alpha=0.{t}}}".replace("0.{t}", "0.5"))
    assert kept(after(text, *PASSES)) == ["LeakyRelu"]
    text = text.replace("x1) {alpha=0.5}", "x1) {alpha=0.25}")
    assert kept(after(text, *PASSES)).count("LeakyRelu") == 2

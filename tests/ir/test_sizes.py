"""Sizes that Python gives to a graph: numbers, symbols, expressions and ranges."""

import neo
import pytest
from neo import _native


def type_of(*dims: int | str | None) -> str:
    """Return the type of an input of these sizes."""
    return _native.Graph().add_input("x", "float32", list(dims)).type


@pytest.mark.parametrize(
    ("size", "printed"),
    [
        (3, "3"),
        ("N", "N"),
        ("4*N", "4*N"),
        ("N+1", "N + 1"),
        ("2*N - N", "N"),
        ("floordiv(N, 2)", "floordiv(N, 2)"),
        ('"batch size"', '"batch size"'),
        ("7", "7"),
        ("N in [1,64]", "N"),
        ("N in [5,5]", "5"),
        (None, "x"),
    ],
)
def test_sizes(size: int | str | None, printed: str) -> None:
    assert type_of(2, size) == f"float32[2,{printed}]"


def test_an_expression_is_over_the_symbols_that_the_graph_has() -> None:
    graph = _native.Graph()
    a = graph.add_input("a", "float32", ["N in [2,8]"])
    b = graph.add_input("b", "float32", ["4*N"])
    node = graph.add_node("Concat", [a, b], ["y"], {"axis": 0}, "")
    graph.outputs = node.outputs
    graph.infer()
    assert node.outputs[0].type == "float32[5*N]"
    assert "symbols N in [2,8] hint 2\n" in str(graph)


def test_a_new_size_has_a_name_of_its_own() -> None:
    graph = _native.Graph()
    graph.add_input("a", "float32", ["2*x"])
    assert graph.add_input("x", "float32", [None]).type == "float32[x_1]"


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("4*", r'a size is written like 64, N or .* Got "4\*", expected a size at column 3'),
        ("batch size", r'Got "batch size", expected the end at column 7'),
        ("", r'Got "", expected a size at column 1'),
        ("4*N in [1,2]", r'only a symbol has a range\. Got "4\*N in \[1,2\]"'),
        ("N in [a,b]", r'a range is written like \[1,64\]\. Got "\[a,b\]"'),
        ("N in [1,2", r'Got "\[1,2"'),
        ("N in [1,2]]", r'Got "\[1,2\]\]"'),
        ("N in [1]", r'Got "\[1\]"'),
        ("N in 5", r'Got "5"'),
        ("N in [99999999999999999999,1]", "a range is written like"),
    ],
)
def test_malformed_sizes_are_refused(size: str, message: str) -> None:
    with pytest.raises(neo.ModelError, match=message):
        type_of(size)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(neo.ShapeError, match="range of a symbol must not be empty"):
        type_of("N in [3,2]")

"""Einsum as products, sums and transpositions."""

import pytest

from tests.passes.rewriting import after, ops_of

SIZES = dict(zip("abcdefghijkl", (2, 3, 4, 5, 2, 3, 2, 3, 4, 5, 6, 7), strict=True))


def graph_text(equation: str, symbols: str = "") -> str:
    """A graph of one Einsum; axes in `symbols` have sizes that only a call tells."""
    terms = equation.split("->")[0].replace(" ", "").split(",")
    inputs = []
    for i, term in enumerate(terms):
        dims = ",".join(letter.upper() if letter in symbols else str(SIZES[letter]) for letter in term)
        inputs.append(f"x{i}: float32[{dims}]")
    names = ", ".join(f"x{i}" for i in range(len(terms)))
    return f'graph "g" ({", ".join(inputs)}) -> (y) {{\n  y = Einsum({names}) {{equation="{equation}"}}\n}}'


@pytest.mark.parametrize(
    ("equation", "ops"),
    [
        ("ij,jk->ik", ["MatMul"]),
        ("bij,bjk->bik", ["MatMul"]),
        ("bhid,bhjd->bhij", ["Transpose", "MatMul"]),
        ("bij,kj->bik", ["Transpose", "MatMul"]),
        ("ij,ij->i", ["Unsqueeze", "Unsqueeze", "MatMul", "Squeeze"]),
        ("i,i->", ["Unsqueeze", "Unsqueeze", "MatMul", "Squeeze"]),
        ("i,j->ij", ["Unsqueeze", "Unsqueeze", "Mul"]),
        ("ij->ji", ["Transpose"]),
        ("ij->j", ["ReduceSum"]),
        ("ij->", ["ReduceSum"]),
        ("ij,kl->ik", ["ReduceSum", "ReduceSum", "Unsqueeze", "Unsqueeze", "Mul"]),
        ("abcd,cdef->abef", ["Reshape", "Reshape", "MatMul", "Reshape"]),
        ("ij,jk", ["MatMul"]),
    ],
)
def test_what_becomes_of_an_equation(equation: str, ops: list[str]) -> None:
    assert ops_of(after(graph_text(equation), "expand_einsum")) == ops


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk,kl->il",
        "abc,cd,bde->ae",
        "a,b,c->cab",
        "abcd,bd->ca",
        "abcd,efcb->adef",
        "ibh,jbh->bij",
        "bij,bjk->kbi",
        "abc,abc,abc->ac",
        "abc,abd,cd->ab",
        "ki,jk->ij",
        "abc,dc->dba",
    ],
)
def test_equations_of_any_form(equation: str) -> None:
    assert "Einsum" not in ops_of(after(graph_text(equation), "expand_einsum"))


@pytest.mark.parametrize(
    ("equation", "symbols"),
    [
        ("bij,bjk->bik", "bijk"),
        ("bhid,bhjd->bhij", "bhijd"),
        ("ij,jk->ki", "ijk"),
        ("abc,cde->abde", "a"),
        ("abcd,cdef->abef", "ab"),
        ("labc,lcd->labd", "la"),
        ("bthd,hde->bhte", "bt"),
        ("abc,bd->abcd", "abc"),
        ("i,j->ij", "ij"),
        ("bid,hdj->bhij", "bh"),
        ("abid,acdje->abcije", "abcije"),
        ("abg,cdge,ef->acdbf", "acd"),
    ],
)
def test_sizes_that_only_a_call_tells(equation: str, symbols: str) -> None:
    assert "Einsum" not in ops_of(after(graph_text(equation, symbols), "expand_einsum"))


@pytest.mark.parametrize(
    ("equation", "symbols"),
    [("ii->i", ""), ("iij,jk->ik", ""), ("abc,bcd->ad", "b")],
)
def test_what_stays(equation: str, symbols: str) -> None:
    assert ops_of(after(graph_text(equation, symbols), "expand_einsum")) == ["Einsum"]


@pytest.mark.parametrize(
    ("sizes", "equation", "ops"),
    [
        (("M,2,3", "N,3,2"), "bij,bjk->bik", ["MatMul"]),
        (("M,N,5,4", "K,L,6,4"), "bcxd,bcyd->bcxy", ["Transpose", "MatMul"]),
        (("1,2,3", "5,3,2"), "bij,bjk->bik", ["MatMul"]),
        (("M,3", "N,4"), "bi,bj->bij", ["Unsqueeze", "Unsqueeze", "Mul"]),
        (("M,3", "N,4"), "bi,bj->ij", ["Einsum"]),
        (("1,2,3", "5,3,2", "5,7"), "bij,bjk,bl->ikl", ["Einsum"]),
    ],
)
def test_sizes_of_one_letter_that_may_differ(sizes: tuple[str, ...], equation: str, ops: list[str]) -> None:
    inputs = ", ".join(f"x{i}: float32[{dims}]" for i, dims in enumerate(sizes))
    names = ", ".join(f"x{i}" for i in range(len(sizes)))
    text = f'graph "g" ({inputs}) -> (y) {{\n  y = Einsum({names}) {{equation="{equation}"}}\n}}'
    assert ops_of(after(text, "expand_einsum")) == ops


def test_an_axis_that_repeats_along_another_stays() -> None:
    text = 'graph "g" (x: float32[2,1], z: float32[3,4]) -> (y) {\n  y = Einsum(x, z) {equation="ij,jk->ik"}\n}'
    assert ops_of(after(text, "expand_einsum")) == ["Einsum"]


def test_the_axes_of_an_ellipsis() -> None:
    text = 'graph "g" (x: float32[2,3,4,5], z: float32[2,3,5,6]) -> (y) {\n  y = Einsum(x, z) {equation="...ij,...jk->...ik"}\n}'
    assert ops_of(after(text, "expand_einsum")) == ["MatMul"]

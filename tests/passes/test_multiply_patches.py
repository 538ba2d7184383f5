"""Convolutions of patches that lie edge to edge as products, one of the forms that selection chooses among."""

import pytest

from tests.passes.recurrent_cells import weights
from tests.passes.rewriting import after, ops_of


def graph_text(x: str, kernel: tuple[int, ...], attributes: str, *, channels: int = 3, group: int = 1) -> str:
    """A graph of one Conv of four filters."""
    constants = [weights("w", 4, channels // group, *kernel), weights("b", 4)]
    lines = [*constants, f"y = Conv(x, w, b) {{{attributes}, group={group}}}"]
    return f'graph "g" (x: float32[{x}]) -> (y) {{\n  ' + "\n  ".join(lines) + "\n}"


@pytest.mark.parametrize(
    ("x", "kernel", "attributes"),
    [
        ("2,3,32,48", (16, 16), "strides=[16, 16]"),
        ("N,3,14,42", (14, 14), "strides=[14, 14], clamp_min=0.0, kernel_shape=[14, 14]"),
        ("1,3,600", (200,), 'strides=[200], auto_pad="VALID"'),
        ("N,3,8,8,6", (8, 8, 3), "strides=[8, 8, 3]"),
        ("1,3,16,16", (8, 8), "strides=[8, 8]"),
        ("1,3,16,16", (16, 16), "strides=[16, 16]"),
    ],
)
def test_patches_are_rows_of_a_product(x: str, kernel: tuple[int, ...], attributes: str) -> None:
    result = after(graph_text(x, kernel, attributes), "multiply_patches", "fold_constants", atol=1e-4)
    assert ops_of(result) == ["Reshape", "Transpose", "Reshape", "Gemm", "Reshape", "Transpose", "Reshape"]


def test_what_reads_them_as_rows_moves_nothing() -> None:
    text = graph_text("N,3,32,48", (16, 16), "strides=[16, 16]").replace(
        "}\n}",
        """}
          constant s = int64[3] {0, 4, -1}
          r = Reshape(y, s)
          t = Transpose(r) {perm=[0, 2, 1]}
        }""",
    )
    text = text.replace("-> (y)", "-> (t)")
    result = after(
        text,
        "multiply_patches",
        "fold_constants",
        "eliminate_reshapes",
        "eliminate_transposes",
        "eliminate_reshapes",
        atol=1e-4,
    )
    assert ops_of(result).count("Transpose") == 1


@pytest.mark.parametrize(
    ("x", "kernel", "attributes", "form"),
    [
        ("1,3,32,33", (16, 16), "strides=[16, 16]", {}),
        ("1,3,32,W", (16, 16), "strides=[16, 16]", {}),
        ("1,3,32,32", (16, 16), "strides=[16, 8]", {}),
        ("1,3,30,30", (16, 16), "strides=[16, 16], pads=[1, 1, 1, 1]", {}),
        ("1,3,30,30", (16, 16), 'strides=[16, 16], auto_pad="SAME_UPPER"', {}),
        ("1,3,32,32", (16, 16), "strides=[16, 16], dilations=[1, 2]", {}),
        ("1,3,16,16", (1, 1), "strides=[1, 1]", {}),
        ("1,4,64,64", (32, 32), "strides=[32, 32]", {"channels": 4, "group": 2}),
    ],
)
def test_leaves_other_windows(x: str, kernel: tuple[int, ...], attributes: str, form: dict) -> None:
    assert ops_of(after(graph_text(x, kernel, attributes, **form), "multiply_patches", atol=1e-4)) == ["Conv"]

"""Copies on GPUs: what only moves elements, padding of every mode, layouts."""

import numpy as np
import pytest

from tests.routines.gpu.basic import blocked, check
from tests.routines.gpu.programs import ON, Program


def counted(*dims, dtype=np.float32):
    return np.arange(np.prod(dims), dtype=np.int64).astype(dtype).reshape(dims)


@pytest.mark.parametrize(
    ("text", "dims", "on"),
    [
        ("y = Transpose(i0) {perm=[0, 2, 3, 1]} <- i0: float32[2,19,5,7]", (2, 19, 5, 7), ON),
        ("y = Transpose(i0) {perm=[2, 1, 0]} <- i0: float32[5,4,9]", (5, 4, 9), ("opencl",)),
        (
            "y = Slice(i0, k0, k1, k2, k3) <- i0: float32[4,9,33], k0: int64[2] {8, 1}, k1: int64[2] {0, 33}, k2: int64[2] {1, 2}, k3: int64[2] {-2, 1}",
            (4, 9, 33),
            ON,
        ),
        ("y0, y1 = Split(i0, k0) {axis=1} <- i0: float32[3,10], k0: int64[2] {3, 7}", (3, 10), ("opencl",)),
        ("y = Tile(i0, k0) <- i0: float32[3,5], k0: int64[2] {2, 3}", (3, 5), ("opencl",)),
        ("y = Expand(i0, k0) <- i0: float32[3,1], k0: int64[3] {2, 3, 5}", (3, 1), ("opencl",)),
        ('y = DepthToSpace(i0) {blocksize=2, mode="CRD"} <- i0: float32[1,8,3,4]', (1, 8, 3, 4), ("opencl",)),
        ("y = Reshape(i0, k0) <- i0: float32[3,6], k0: int64[2] {9, 2}", (3, 6), ("opencl",)),
    ],
)
def test_copies(text, dims, on):
    check(text, [counted(*dims)], exact=True, on=on)


def test_several_inputs():
    text = "y = Concat(i0, i1, i2) {axis=1} <- i0: float32[N,3,5], i1: float32[N,1,5], i2: float32[N,4,5] where N in [1,64] hint 2"
    check(text, [counted(2, n, 5) + 100 * n for n in (3, 1, 4)], exact=True)


@pytest.mark.parametrize("together", [4, 0])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_pieces_where_channels_lie_together(axis, together):
    sizes = [[2, 8, 3, 5] for _ in range(3)]
    for piece, size in zip(sizes, (4, 12, 8), strict=True):
        piece[axis] = size
    shapes = [f"float32[{','.join(map(str, s))}]" for s in sizes]
    operands = ", ".join(f"i{i}: {s}" for i, s in enumerate(shapes))
    pieces = [counted(*s) + 1000 * i for i, s in enumerate(sizes)]
    check(f"y = Concat(i0, i1, i2) {{axis={axis}}} <- {operands}", pieces, exact=True, together=together)
    whole = np.concatenate(pieces, axis)
    text = f"y0, y1, y2 = Split(i0, k0) {{axis={axis}}} <- i0: float32[{','.join(map(str, whole.shape))}], k0: int64[3] {{4, 12, 8}}"
    check(text, [whole], exact=True, on=("opencl",), together=together)


def test_widths():
    for dtype in ("int8", "int64"):
        check(
            f"y = Transpose(i0) {{perm=[1, 0]}} <- i0: {dtype}[17,11]", [counted(17, 11, dtype=dtype)], on=("opencl",)
        )


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads(mode):
    text = f'y = Pad(i0, k0, k1) {{mode="{mode}"}} <- i0: float32[5,6], k0: int64[4] {{2, -1, 1, 3}}, k1: float32[] {{1.5}}'
    check(text, [counted(5, 6)], exact=True, on=ON if mode == "reflect" else ("opencl",))


@pytest.mark.parametrize("on", ON)
def test_layouts(on):
    x = counted(2, 21, 5, 7)
    sizes = {f"d{i}": n for i, n in enumerate(x.shape)}
    blocks = blocked(x, 8)
    for kind, source, target in [
        ("NCHW8c", x, blocks),
        ("NCHW", blocks, x),
        ("NHWC", x, x.transpose(0, 2, 3, 1)),
        ("NCHW4c", blocks, blocked(x, 4)),
        ("NHWC", blocks, x.transpose(0, 2, 3, 1)),
    ]:
        start = "NCHW8c" if source is blocks else "NCHW"
        program = Program("copy_layouts", to=kind, **{"from": start}, **sizes)
        (actual,), _ = program.run([(x.shape, source)], [(x.shape, np.float32, target.shape)], on=on)
        np.testing.assert_array_equal(actual, target)

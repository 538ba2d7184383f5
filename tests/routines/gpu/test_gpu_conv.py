"""Convolutions of the GPU's programs against NumPy."""

import numpy as np
import pytest

from tests.kernel_ir.kernels import tf32
from tests.routines.gpu.convs import blocked, conv, pack_bias, pack_direct, plain
from tests.routines.gpu.programs import ON, Program

# A schedule, then kernel, strides and dilations: what else a shape has is an argument of the kernel.
DIRECT = [
    ({"in_block": 16, "out_block": 16, "lanes": 16, "vectors": 2, "columns": 3, "unroll": 1}, (3, 3, 1, 1, 1, 1)),
    ({"out_block": 8, "lanes": 8, "vectors": 1, "columns": 2, "rows": 2, "tx": 2, "tz": 2}, (3, 2, 2, 1, 1, 2)),
    (
        {
            "in_block": 4,
            "out_block": 4,
            "lanes": 4,
            "vectors": 1,
            "columns": 3,
            "reuse": 1,
            "unroll": 1,
            "inner": 4,
            "load": 4,
        },
        (3, 3, 1, 2, 1, 1),
    ),
    ({"in_block": 8, "lanes": 4, "vectors": 3, "columns": 1, "order": 1, "ty": 2, "inner": 2}, (1, 3, 3, 1, 1, 1)),
    (
        {"in_block": 4, "out_block": 8, "lanes": 16, "vectors": 1, "columns": 2, "unroll": 2, "order": 1},
        (2, 2, 1, 2, 2, 1),
    ),
]
# batch, channels, height, width, outputs, groups, pads
SHAPES = [
    (1, 16, 7, 7, 32, 1, (1, 1, 1, 1)),
    (2, 5, 13, 11, 19, 1, (0, 2, 1, 0)),
    (1, 1, 3, 3, 1, 1, (0, 0, 0, 0)),
    (1, 32, 6, 17, 32, 2, (2, 1, 0, 3)),
]


def run_direct(schedule, shape, window, on, **form):
    n, ic, h, w, oc, groups, pads = shape
    kh, kw, sh, sw, dh, dw = window
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, ic, h, w), dtype="f4")
    weight = rng.standard_normal((oc, ic // groups, kh, kw), dtype="f4")
    bias = rng.standard_normal(oc, dtype="f4")
    expected = conv(x, weight, groups, (sh, sw), (dh, dw), pads)
    residual = rng.standard_normal(expected.shape, dtype="f4")
    if form.get("bias"):
        expected = expected + bias.reshape(1, -1, 1, 1)
    if form.get("residual"):
        expected = expected + residual
    if form.get("relu"):
        expected = np.maximum(expected, 0)
    numbers = {"phb": pads[0], "pwb": pads[1], "phe": pads[2], "pwe": pads[3], "groups": groups, "ic": ic, "oc": oc}
    numbers |= dict(zip(("kh", "kw", "sh", "sw", "dh", "dw"), window, strict=True))
    program = Program("conv_direct", **numbers, **schedule, **form)
    wide = schedule["lanes"] * schedule["vectors"]
    packed = [pack_direct(weight, groups, schedule.get("in_block", 1), wide)]
    if form.get("bias"):
        packed.append(pack_bias(bias, groups, wide))
    # In memory NHWC is one block of all channels.
    out_block = oc if schedule.get("out_last") else schedule.get("out_block", 1)
    operands = [(x.shape, blocked(x, ic if schedule.get("in_last") else schedule.get("in_block", 1)))]
    if form.get("residual"):
        operands.append((residual.shape, blocked(residual, out_block)))
    memory = blocked(np.zeros(expected.shape, "f4"), out_block).shape
    (y,), _ = program.run(operands, [(expected.shape, "f4", memory)], packed, on)
    np.testing.assert_allclose(plain(y, out_block, oc), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("case", range(len(DIRECT)))
def test_direct_convolution(case, on):
    schedule, window = DIRECT[case]
    for shape in (SHAPES[case % 4], SHAPES[(case + 1) % 4]):
        groups = shape[5]
        divides = (
            shape[1] // groups % schedule.get("in_block", 1) == 0
            and shape[4] // groups % schedule.get("out_block", 1) == 0
        )
        if groups == 1 or divides:
            run_direct(schedule, shape, window, on, bias=1, residual=1, relu=1)


# Schedule, window, shape
CHANNELS_LAST = [
    (
        {"in_block": 4, "out_block": 4, "lanes": 4, "vectors": 3, "columns": 3, "inner": 4, "load": 4, "tz": 2},
        (3, 3, 1, 2, 1, 1),
        (2, 12, 7, 9, 20, 1, (1, 0, 1, 2)),
    ),
    (
        {"out_block": 8, "lanes": 16, "vectors": 1, "columns": 2, "rows": 2, "order": 1},
        (3, 1, 1, 1, 1, 1),
        (1, 5, 6, 5, 24, 1, (1, 0, 1, 0)),
    ),
    (
        {"in_block": 8, "out_block": 16, "lanes": 8, "vectors": 2, "columns": 2, "reuse": 1, "unroll": 1, "load": 4},
        (3, 3, 2, 2, 1, 1),
        (1, 24, 9, 11, 16, 1, (1, 1, 1, 1)),
    ),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("case", range(len(CHANNELS_LAST)))
def test_direct_convolution_of_channels_last(case, on):
    schedule, window, shape = CHANNELS_LAST[case]
    schedule = {"inner": schedule.get("load", 1), **schedule, "out_last": 1}
    run_direct({**schedule, "in_last": 1}, shape, window, on, bias=1, residual=1, relu=1)
    if case == 1:  # from NCHW
        run_direct(schedule, shape, window, on)


TILED = [
    {"tp": 8, "tc": 4, "pixels": 2, "channels": 2, "depth": 8},
    {"tp": 16, "tc": 2, "pixels": 1, "channels": 4, "depth": 4, "unroll": 1},
]
# Kernel, strides, dilations, pads; channels, outputs, groups; sizes of the input
CASES = [
    ((3,), (2,), (1,), (1, 0), 5, 7, 1, (19,)),
    ((3, 2), (1, 2), (2, 1), (1, 0, 2, 1), 6, 9, 3, (9, 7)),
    ((2, 3, 3), (2, 1, 2), (1, 1, 1), (0, 1, 1, 1, 1, 0), 3, 4, 1, (4, 5, 6)),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("case", "transposed"), [(0, 1), (1, 0), (1, 1), (2, 0)])
def test_tiled_convolution(case, transposed, on):
    kernel, strides, dilations, pads, ic, oc, groups, sizes = CASES[case]
    rng = np.random.default_rng(case)
    x = rng.standard_normal((2, ic, *sizes), dtype="f4")
    shape = (ic, oc // groups) if transposed else (oc, ic // groups)
    weight, bias = rng.standard_normal((*shape, *kernel), dtype="f4"), rng.standard_normal(oc, dtype="f4")
    expected = conv(x, weight, groups, strides, dilations, pads, transposed)
    expected = expected + bias.reshape(-1, *[1] * len(sizes))
    numbers = {"axes": len(sizes), "ic": ic, "oc": oc, "groups": groups, "transposed": transposed, "bias": 1}
    for i, axis in enumerate("dhw"[-len(sizes) :]):
        numbers |= {f"k{axis}": kernel[i], f"s{axis}": strides[i], f"d{axis}": dilations[i]}
        numbers |= {f"p{axis}b": pads[i], f"p{axis}e": pads[i + len(sizes)]}
    if transposed:
        program = Program("conv_tiled", **numbers, **TILED[0], runtime_weights=1)
        (y,), _ = program.run([x, weight, bias], [(expected.shape, "f4")], on=on)
    else:
        program = Program("conv_tiled", **numbers, **TILED[case % 2])
        (y,), _ = program.run([x], [(expected.shape, "f4")], [weight, bias], on)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


MATRICES = [
    {"tp": 32, "tc": 2, "pixels": 1, "channels": 16, "depth": 8, "unroll": 1},
    {"tp": 32, "tc": 1, "pixels": 2, "channels": 32, "depth": 16},
]


def matrix_program(case, transposed, **choice):
    kernel, strides, dilations, pads, ic, oc, groups, sizes = CASES[case]
    numbers = {"axes": len(sizes), "ic": ic, "oc": oc, "groups": groups, "transposed": transposed, "by_matrices": 1}
    for i, axis in enumerate("dhw"[-len(sizes) :]):
        numbers |= {f"k{axis}": kernel[i], f"s{axis}": strides[i], f"d{axis}": dilations[i]}
        numbers |= {f"p{axis}b": pads[i], f"p{axis}e": pads[i + len(sizes)]}
    return Program("conv_tiled", **numbers, **MATRICES[case % 2], **choice)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("case", "transposed"), [(0, 0), (1, 0), (1, 1), (2, 0)])
def test_tiled_convolution_by_matrices(case, transposed, on):
    kernel, strides, dilations, pads, ic, oc, groups, sizes = CASES[case]
    rng = np.random.default_rng(case)
    x = rng.standard_normal((2, ic, *sizes), dtype="f4")
    shape = (ic, oc // groups) if transposed else (oc, ic // groups)
    weight, bias = rng.standard_normal((*shape, *kernel), dtype="f4"), rng.standard_normal(oc, dtype="f4")
    column = bias.reshape(-1, *[1] * len(sizes))
    expected = np.maximum(conv(tf32(x), tf32(weight), groups, strides, dilations, pads, transposed) + column, 0)
    (y,), _ = matrix_program(case, transposed, bias=1, relu=1).run([x], [(expected.shape, "f4")], [weight, bias], on)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    unrounded = np.maximum(conv(x, weight, groups, strides, dilations, pads, transposed) + column, 0)
    assert np.abs(y - unrounded).max() > 1e-4


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", [87, 90])
def test_matrices_compile_for_cuda(capability):
    program = matrix_program(1, 0, bias=1)
    assert "mma.sync" in program.native.print(0, "cuda", "matrices")
    program.compile_cuda(capability, "matrices")


DEPTHWISE = [
    ({"block": 4, "last": 1, "lanes": 4, "columns": 2, "reuse": 1, "tx": 2}, (3, 3, 1, 1, 1, 1)),
    ({"block": 8, "lanes": 8, "columns": 3, "reuse": 1, "tx": 2}, (3, 3, 1, 1, 1, 1)),
    ({"block": 16, "lanes": 4, "columns": 1, "rows": 2}, (3, 2, 2, 2, 1, 1)),
    ({"lanes": 1, "columns": 4, "ty": 2}, (2, 3, 1, 2, 2, 1)),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("case", range(len(DEPTHWISE)))
def test_depthwise_convolution(case, on):
    schedule, (kh, kw, sh, sw, dh, dw) = DEPTHWISE[case]
    block = schedule.get("block", 1)
    for n, channels, h, w, pads in [(1, 16, 7, 7, (1, 1, 1, 1)), (2, 5, 4, 11, (0, 2, 1, 0)), (1, 20, 5, 6, (1,) * 4)]:
        if schedule.get("last") and channels % block != 0:
            continue
        rng = np.random.default_rng(channels)
        x = rng.standard_normal((n, channels, h, w), dtype="f4")
        weight = rng.standard_normal((channels, 1, kh, kw), dtype="f4")
        expected = np.maximum(conv(x, weight, channels, (sh, sw), (dh, dw), pads), 0)
        numbers = {"phb": pads[0], "pwb": pads[1], "phe": pads[2], "pwe": pads[3], "relu": 1}
        numbers |= dict(zip(("kh", "kw", "sh", "sw", "dh", "dw"), DEPTHWISE[case][1], strict=True))
        program = Program("conv_depthwise", ic=channels, oc=channels, groups=channels, **numbers, **schedule)
        packed = blocked(weight.transpose(1, 0, 2, 3), block)
        held = channels if schedule.get("last") else block
        memory = blocked(np.zeros(expected.shape, "f4"), held).shape
        (y,), _ = program.run([(x.shape, blocked(x, held))], [(expected.shape, "f4", memory)], [packed], on)
        np.testing.assert_allclose(plain(y, held, channels), expected, rtol=1e-4, atol=1e-4)

"""Convolutions by subgroups with block reads, against NumPy; where there are no subgroups, as the kernel IR lowers them."""

import re

import numpy as np
import pytest

from tests.routines.gpu.convs import blocked, conv, pack_bias, pack_direct, plain
from tests.routines.gpu.programs import ON, Program

# A schedule and its size; then kernel, strides and dilations.
SCHEDULES = [
    ({"size": 16, "columns": 3, "load": 4, "reuse": 1, "unroll": 1}, (3, 3, 1, 1, 1, 1)),
    ({"size": 8, "vectors": 2, "columns": 2, "rows": 2, "load": 8, "order": 1}, (3, 2, 2, 1, 1, 2)),
    ({"size": 8, "vectors": 4, "columns": 1, "load": 2, "unroll": 1}, (1, 3, 3, 2, 1, 1)),
    ({"size": 16, "columns": 5, "load": 8, "flat": 1, "order": 1}, (1, 1, 1, 1, 1, 1)),
    ({"size": 32, "columns": 2, "rows": 1, "load": 1}, (2, 2, 1, 2, 2, 1)),
    ({"size": 8, "columns": 4, "rows": 2, "load": 2, "reuse": 1, "unroll": 1}, (3, 3, 1, 2, 1, 1)),
]
# batch, channels, height, width, outputs, groups, pads
SHAPES = [
    (2, 5, 7, 11, 19, 1, (0, 2, 1, 0)),
    (1, 1, 3, 3, 1, 1, (0, 0, 0, 0)),
    (1, 32, 3, 9, 32, 2, (2, 1, 0, 3)),
    (1, 37, 5, 4, 41, 1, (0, 0, 0, 0)),
    (1, 16, 4, 5, 32, 1, (1, 1, 1, 1)),
]


def program_of(schedule, shape, window, **form):
    _, ic, _, _, oc, groups, pads = shape
    numbers = {"phb": pads[0], "pwb": pads[1], "phe": pads[2], "pwe": pads[3], "groups": groups, "ic": ic, "oc": oc}
    numbers |= dict(zip(("kh", "kw", "sh", "sw", "dh", "dw"), window, strict=True))
    return Program("conv_subgroup", **numbers, **schedule, **form)


def run(schedule, shape, window, on, **form):
    n, ic, h, w, oc, groups, pads = shape
    kh, kw, sh, sw, dh, dw = window
    size, vectors = schedule["size"], schedule.get("vectors", 1)
    rng = np.random.default_rng(ic)
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
    is_depthwise = ic == oc == groups > 1
    packed = [
        blocked(weight.transpose(1, 0, 2, 3), size)
        if is_depthwise
        else pack_direct(weight, groups, size, size * vectors)
    ]
    if form.get("bias"):
        packed.append(pack_bias(bias, 1 if is_depthwise else groups, size * vectors))
    operands = [(x.shape, blocked(x, size))]
    if form.get("residual"):
        operands.append((residual.shape, blocked(residual, size)))
    memory = blocked(np.zeros(expected.shape, "f4"), size).shape
    (y,), _ = program_of(schedule, shape, window, **form).run(operands, [(expected.shape, "f4", memory)], packed, on)
    np.testing.assert_allclose(plain(y, size, oc), expected, rtol=1e-4, atol=1e-4)
    filled = np.moveaxis(y, -1, 2).reshape(n, -1, *expected.shape[2:])[:, oc:]
    assert not filled.any(), "channels that fill a block up are not zero"


def fits(schedule, shape):
    ic, oc, groups, size = shape[1], shape[4], shape[5], schedule["size"]
    if schedule.get("flat") and any(shape[6]):
        return False  # there is no padding along a plane
    return groups == 1 or (ic // groups % size == 0 and oc // groups % size == 0)


@pytest.mark.parametrize("case", range(len(SCHEDULES)))
def test_plain_c_of_every_shape(case):
    schedule, window = SCHEDULES[case]
    fitting = [s for s in SHAPES if fits(schedule, s)]
    assert len(fitting) >= 2
    for shape in fitting:
        run(schedule, shape, window, "c", bias=1, residual=1, relu=1)


@pytest.mark.parametrize("case", [0, 1, 3])
def test_a_device_without_subgroups(case):
    schedule, window = SCHEDULES[case]
    run(schedule, SHAPES[3], window, "opencl", bias=1, residual=1, relu=1)


DEPTHWISE = [
    ({"size": 16, "columns": 3, "load": 4, "reuse": 1, "unroll": 1}, (3, 3, 1, 1, 1, 1)),
    ({"size": 8, "columns": 2, "rows": 2, "load": 8, "order": 1}, (3, 2, 2, 1, 1, 2)),
    ({"size": 32, "columns": 4, "load": 2, "unroll": 1}, (5, 5, 1, 2, 1, 1)),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("case", range(len(DEPTHWISE)))
def test_depthwise(case, on):
    schedule, window = DEPTHWISE[case]
    for n, channels, h, w, pads in [
        (1, 16, 7, 9, (1, 1, 1, 1)),
        (2, 5, 5, 11, (0, 2, 1, 0)),
        (1, 37, 6, 5, (2, 2, 2, 2)),
    ]:
        run(schedule, (n, channels, h, w, channels, channels, pads), window, on, bias=1, residual=1, relu=1)


@pytest.mark.parametrize("schedule", [SCHEDULES[0], SCHEDULES[1], DEPTHWISE[0]])
def test_intel_reads_blocks_and_shuffles(schedule):
    shape = (1, 64, 7, 7, 64, 64 if schedule is DEPTHWISE[0] else 1, (1, 1, 1, 1))
    program = program_of(schedule[0], shape, schedule[1], bias=1, relu=1)
    text = program.native.print(0, "opencl", "intel")
    size, load = schedule[0]["size"], schedule[0]["load"]
    assert f"intel_reqd_sub_group_size({size})" in text
    assert "intel_sub_group_block_read(" in text
    assert "intel_sub_group_block_write(" in text
    assert (f"intel_sub_group_block_read{load}(" in text) == (schedule is not DEPTHWISE[0] or load <= 5)
    # What is passed has a number for its place: no register is addressed at run time.
    places = re.findall(r"intel_sub_group_shuffle\(\w+, (\w+)\)", text)
    assert (not places) if schedule is DEPTHWISE[0] else places
    assert all(place.isdigit() and int(place) < size for place in places)
    assert "barrier" not in text


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", [87, 90])
def test_cuda_compiles(capability):
    program_of(SCHEDULES[4][0], (1, 64, 7, 7, 64, 1, (1, 1, 1, 1)), SCHEDULES[4][1]).compile_cuda(capability)

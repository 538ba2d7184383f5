"""Chains of convolutions of 8-bit codes that one routine runs, against operators on codes: equal, on every tier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from neo import _native

from tests.routines.codes import Codes, by_tier, dequantize, on_vnni, pick, weights_of
from tests.routines.pinning import candidates, compile_pinned, rejections

BOTH = "cpu:int8/inverted_residual"
BEHIND = "cpu:int8/depthwise_pointwise"
BEFORE = "cpu:int8/pointwise_depthwise"
ALONE = "cpu:int8/depthwise_float32"
#: The convolutions of each routine: depthwise and pointwise ones.
FORMS = {BOTH: "pdp", BEHIND: "dp", BEFORE: "pd", ALONE: "d"}
CASES = 24

by_routine = pytest.mark.parametrize("routine", FORMS)


class Chain(Codes):
    """x -> convolutions c0, c1, ... whose results q0, q1, ... are codes -> the last of these."""

    def __init__(self, seed: int, x_dims: list[int], x_type: str | None = None, bytes_only: bool = False) -> None:
        super().__init__(seed)
        self.bytes_only = bytes_only
        self.step = 0.05
        self.codes_of = self.x = self.input(x_type or pick(self.random, ["uint8", "int8"]), x_dims)
        self.x_grid = self.x_codes_grid = self.grid(str(self.x[0].dtype), self.step)
        self.count = 0

    def both(self, op: str, inputs: list[tuple[Any, Any]], name: str, **attrs: Any) -> tuple[Any, Any]:
        """A node of both graphs."""
        pair = zip((self.float, self.whole), zip(*inputs, strict=True), strict=True)
        made = [self.add(graph, op, list(operands), name, **attrs) for graph, operands in pair]
        return made[0], made[1]

    def weights(self, shape: list[int], fill: int | None) -> list[tuple[Any, Any]]:
        if not self.bytes_only and fill is None:
            return weights_of(self, shape, 0)[0]
        codes = self.codes("int8", shape) if fill is None else np.full(shape, fill, np.int8)
        scale = self.random.uniform(0.001, 0.02, shape[0]).astype(np.float32)
        return [self.constant(k) for k in (codes, scale, np.zeros(shape[0], np.int8))]

    def conv(
        self,
        kind: str,
        out: int,
        attrs: dict[str, Any],
        add: str = "",
        clamp: bool = False,
        fill: int | None = None,
        bias: int | None = None,
    ) -> Chain:
        """`add`: the chain's input "x", or another value, to the rounded results. `fill`, `bias`: all weights, all units of the bias."""
        i, (codes, whole) = self.count, self.codes_of
        self.count += 1
        channels = codes.shape[1]
        axes = len(codes.shape) - 2
        kernel = attrs["kernel_shape"] if kind == "d" else [1] * axes
        shape = [channels, 1, *kernel] if kind == "d" else [out, channels, *kernel]
        window = {**attrs, "group": channels} if kind == "d" else {"kernel_shape": kernel}
        w = self.weights(shape, fill)
        axis = {"axis": 0} if w[1][0].constant.ndim else {}
        real = [dequantize(self, codes, self.x_grid, f"dq_x{i}")]
        if i == 0:
            self.x_numbers = real[0]
        real.append(self.add(self.float, "DequantizeLinear", [k[0] for k in w], f"dq_w{i}", **axis))
        depth = int(np.prod(shape[1:]))
        spread = float(self.step * 150 * np.mean(w[1][0].constant) * 100 * np.sqrt(depth) / 128)
        operands = [whole, *(g[1] for g in self.x_grid), *(k[1] for k in w)]
        first = self.grid(pick(self.random, ["uint8", "int8"]), spread)
        operands += [g[1] for g in first]
        if bias is not None or self.random.random() < 0.7:
            units = self.random.integers(-(2**15), 2**15, shape[0]) if bias is None else np.full(shape[0], bias)
            numbers = self.constant(units.astype(np.int32))
            unit = (np.float32(self.step) * w[1][0].constant).astype(np.float32)
            grid = [self.constant(unit)[0], self.constant(np.zeros(unit.shape, np.int32))[0]]
            real.append(self.add(self.float, "DequantizeLinear", [numbers[0], *grid], f"dq_b{i}", axis=0))
            operands.append(numbers[1])
        made = self.add(self.float, "Conv", real, f"c{i}", **window)
        right = self.add(self.whole, "QLinearConv", operands, f"c{i}", **window)
        y_grid = first
        if add:
            y_grid = self.grid(pick(self.random, ["uint8", "int8"]), spread)
            if add == "x":
                other, other_grid = self.x, self.x_codes_grid
            else:
                other, other_grid = self.input("uint8", self.dims(made)), self.grid("uint8", spread)
            codes = self.add(self.float, "QuantizeLinear", [made, *(g[0] for g in first)], f"m{i}")
            numbers = self.both("DequantizeLinear", [(codes, right), *first], f"dm{i}")
            others = self.both("DequantizeLinear", [other, *other_grid], f"do{i}")
            if add == "x" and self.random.random() < 0.5:
                others = self.x_numbers, others[1]
            pair = [numbers, others] if self.random.random() < 0.5 else [others, numbers]
            made, right = self.both("Add", pair, f"add{i}")
            if clamp:
                made, right = self.both("Relu", [(made, right)], f"relu{i}")
            self.codes_of = self.both("QuantizeLinear", [(made, right), *y_grid], f"q{i}")
        else:
            if clamp:
                made = self.add(self.float, "Relu", [made], f"relu{i}")
                numbers = self.add(self.whole, "DequantizeLinear", [right, *(g[1] for g in first)], f"dr{i}")
                low = self.add(self.whole, "Relu", [numbers], f"relu{i}")
                right = self.add(self.whole, "QuantizeLinear", [low, *(g[1] for g in first)], f"qr{i}")
            self.codes_of = self.add(self.float, "QuantizeLinear", [made, *(g[0] for g in first)], f"q{i}"), right
        self.x_grid, self.step = y_grid, float(y_grid[0][0].constant)
        return self

    def dims(self, value: Any) -> list[int]:
        """The dims of a value so far."""
        self.float.outputs = [value]
        self.float.infer()
        return [int(d) for d in value.shape]

    def function(self, op: str, ratio: float = 0) -> None:
        """Put a function of one code behind the results so far; `ratio`: of its scale to theirs, any where 0."""
        to = self.grid(
            pick(self.random, ["uint8", "int8"]), (ratio or float(self.random.uniform(1.5, 2.5))) * self.step
        )
        numbers = self.both("DequantizeLinear", [self.codes_of, *self.x_grid], f"df{self.count}")
        made = self.both(op, [numbers], f"f{self.count}")
        self.codes_of = self.both("QuantizeLinear", [made, *to], f"q{self.count - 1}f")
        self.x_grid, self.step = to, float(to[0][0].constant)

    def last(self) -> str:
        """The name of the last node."""
        return str(self.codes_of[0].name).split(".")[0]

    def hold(self, tier: str, routine: str) -> None:
        """The routine gives the numbers of the operators on codes, with every schedule and on teams of any size."""
        self.finish(*self.codes_of)
        graph = _folded(self.float)
        expected = self.whole.evaluate(self.inputs)[0]
        for threads in (1, 2, 3):
            pins = {c["routine"] for c in candidates(graph, tier, self.last(), threads)}
            pins = {pin for pin in pins if pin.split("{")[0] == routine}
            assert pins
            for pin in pins:
                pinned = compile_pinned(graph, tier, {self.last(): pin}, threads)
                assert pinned.routines[self.last()] == pin
                np.testing.assert_array_equal(pinned(*self.inputs), expected, err_msg=pin)
                np.testing.assert_array_equal(pinned(*self.inputs, threads=threads), expected, err_msg=pin)


def _folded(graph: Any) -> Any:
    return _native.run_passes(graph, ["fold_constants"])


def random_window(random: np.random.Generator, axes: int) -> dict[str, Any]:
    kernel = [pick(random, [1, 2, 3, 3, 3, 5, 7]) for _ in range(axes)]
    dilation = [pick(random, [1, 1, 1, 2]) for _ in range(axes)]
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    return {
        "kernel_shape": kernel,
        "strides": [pick(random, [1, 1, 2, 3]) for _ in range(axes)],
        "dilations": dilation,
        "pads": [int(random.integers(0, e)) for e in [*extent, *extent]],
    }


def chain_of(seed: int, form: str, **more: Any) -> Chain:
    """A chain of any sizes, functions and clamps."""
    random = np.random.default_rng(seed)
    axes = pick(random, [1, 2, 2, 2])
    attrs = random_window(random, axes)
    extent = [(k - 1) * d + 1 for k, d in zip(attrs["kernel_shape"], attrs["dilations"], strict=True)]
    sizes = [
        max(1, e - attrs["pads"][i] - attrs["pads"][i + axes]) + int(random.integers(0, 18))
        for i, e in enumerate(extent)
    ]
    chain = Chain(seed, [pick(random, [1, 1, 2]), int(random.integers(2, 50)), *sizes], **more)
    for i, kind in enumerate(form):
        is_last = i + 1 == len(form)
        add = pick(random, ["", "", "value"]) if is_last and kind == "p" else ""
        chain.conv(kind, int(random.integers(2, 90)), attrs, add, random.random() < 0.4)
        if random.random() < 0.25:
            chain.function(pick(random, ["HardSwish", "Sigmoid"]))
    return chain


@by_tier
@by_routine
@pytest.mark.parametrize("seed", range(CASES))
def test_a_chain_gives_the_codes_of_its_operators(seed: int, routine: str, tier: str) -> None:
    chain_of(seed, FORMS[routine]).hold(tier, routine)


@on_vnni
@pytest.mark.parametrize("routine", [BOTH, BEHIND, BEFORE])
@pytest.mark.parametrize("seed", range(CASES // 2))
def test_weights_that_are_bytes(seed: int, routine: str) -> None:
    chain_of(seed, FORMS[routine], bytes_only=True).hold("avx512_vnni", routine)


@by_tier
@pytest.mark.parametrize("add", ["x", "value"])
@pytest.mark.parametrize("size", [7, 56])
def test_an_inverted_residual(size: int, add: str, tier: str) -> None:
    chain = Chain(size, [1, 24, size, size], bytes_only=True)
    attrs = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [1, 1]}
    chain.conv("p", 70, attrs, clamp=True).conv("d", 0, attrs, clamp=True).conv("p", 24, attrs, add).hold(tier, BOTH)


@by_tier
@by_routine
@pytest.mark.parametrize(("size", "stride"), [([0, 5], 1), ([1, 1], 2), ([300, 3], 1), ([3, 300], 2), ([13, 11], 2)])
def test_images_of_any_size(size: list[int], stride: int, routine: str, tier: str) -> None:
    chain = Chain(3, [1, 17, *size])
    attrs = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [stride] * 2}
    for kind in FORMS[routine]:
        chain.conv(kind, 33, attrs)
    chain.hold(tier, routine)


@by_tier
@pytest.mark.parametrize("code", [0, 255])
def test_largest_sums(code: int, tier: str) -> None:
    chain = Chain(5, [1, 40, 9, 9], "uint8")
    attrs = {"kernel_shape": [16, 16], "pads": [8] * 4}
    chain.conv("p", 20, attrs).conv("d", 0, attrs).conv("p", 19, attrs)
    chain.inputs[0][:] = code
    chain.hold(tier, BOTH)


@by_tier
@pytest.mark.parametrize("ratio", [0.3, 0.5, 1, 2, 7.7])
@pytest.mark.parametrize("seed", range(4))
def test_hard_swish_also_halfway_between_codes(seed: int, ratio: float, tier: str) -> None:
    chain = Chain(seed, [1, 20, 9, 30])
    attrs = {"kernel_shape": [3, 3], "pads": [1] * 4}
    for kind in "pdp":
        chain.conv(kind, 21, attrs)
        if kind == "d" or seed % 2:
            chain.function("HardSwish", ratio)
    chain.hold(tier, BOTH)


class OpenChain(Chain):
    """A chain whose batch and image have sizes that a call tells."""

    def input(self, dtype: str, dims: list[int]) -> tuple[Any, Any]:
        self.inputs.append(self.codes(dtype, dims))
        sizes = ["N", dims[1], "H", "W"]
        return self.float.add_input("x", dtype, sizes), self.whole.add_input("x", dtype, sizes)


@by_tier
@by_routine
def test_sizes_that_a_call_tells(routine: str, tier: str) -> None:
    chain = OpenChain(3, [1, 40, 14, 14], "uint8", bytes_only=True)
    for kind in FORMS[routine]:
        chain.conv(kind, 90, {"kernel_shape": [3, 3], "pads": [1] * 4})
    chain.finish(*chain.codes_of)
    graph = _folded(chain.float)
    channels = chain.inputs[0].shape[1]
    for threads in (1, 3):
        pins = {c["routine"] for c in candidates(graph, tier, chain.last(), threads)}
        for pin in (pin for pin in pins if pin.split("{")[0] == routine):
            pinned = compile_pinned(graph, tier, {chain.last(): pin}, threads)
            for n, h, w in ((1, 14, 14), (2, 9, 14), (0, 5, 5), (1, 40, 61), (5, 1, 2)):
                x = chain.codes("uint8", [n, channels, h, w])
                np.testing.assert_array_equal(pinned(x, threads=threads), chain.whole.evaluate([x])[0], err_msg=pin)


def reason_of(chain: Chain, routine: str) -> str | None:
    chain.finish(*chain.codes_of)
    return rejections(_folded(chain.float), "scalar", chain.last()).get(routine)


def test_says_why_not() -> None:
    attrs = {"kernel_shape": [3, 3], "pads": [1] * 4}
    # A tall kernel.
    chain = Chain(1, [1, 8, 9, 9]).conv("d", 0, {"kernel_shape": [65, 1], "pads": [32, 0, 32, 0]}).conv("p", 8, attrs)
    assert reason_of(chain, BEHIND) == "the kernel has too many rows"
    chain = Chain(1, [1, 8, 9, 9]).conv("d", 0, {"kernel_shape": [17, 17], "pads": [8] * 4}).conv("p", 8, attrs)
    assert reason_of(chain, BEHIND) == "the kernel has more than 256 taps"
    chain = Chain(1, [1, 8, 9, 9]).conv("d", 0, attrs, "value").conv("p", 8, attrs)
    assert reason_of(chain, BEHIND) == "something is added between the convolutions"


def test_says_why_sums_and_grids_are_not_taken() -> None:
    attrs = {"kernel_shape": [3, 3], "pads": [1] * 4}
    chain = Chain(1, [1, 8, 9, 9]).conv("d", 0, attrs, bias=1 << 24)
    assert reason_of(chain, ALONE) == "the bias is too large for sums in float32"
    chain = Chain(1, [1, 8, 9, 9]).conv("d", 0, attrs, "value")
    assert reason_of(chain, ALONE) == "something is added to depthwise sums"
    chain = Chain(1, [1, 40000, 1, 1], "uint8").conv("d", 0, attrs).conv("p", 1, attrs, fill=127)
    assert reason_of(chain, BEHIND) == "a sum may leave int32"
    chain = Chain(1, [1, 8, 9, 9]).conv("p", 8, attrs)
    zero = chain.x_grid[1][0].constant
    chain.x_grid = chain.x_grid[0], chain.constant(zero - zero.dtype.type(1))
    assert reason_of(chain.conv("d", 0, attrs), BEFORE) == "codes are read from another zero point"
    chain = Chain(1, [1, 8, 9, 9])
    scale = tuple(graph.add_input("scale", "float32", []) for graph in (chain.float, chain.whole))
    chain.x_grid = scale, chain.x_grid[1]
    assert reason_of(chain.conv("p", 8, attrs).conv("d", 0, attrs), BEFORE) == "the grid is known to the call alone"


def test_codes_that_others_read_are_no_chain() -> None:
    attrs = {"kernel_shape": [3, 3], "pads": [1] * 4}
    chain = Chain(1, [1, 8, 9, 9]).conv("d", 0, attrs)
    inner = chain.codes_of[0]
    chain.conv("p", 8, attrs)
    chain.finish(*chain.codes_of)
    chain.float.outputs = [chain.codes_of[0], inner]
    found = {c["routine"].split("{")[0] for c in candidates(_folded(chain.float), "scalar", chain.last())}
    assert BEHIND not in found

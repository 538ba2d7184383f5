"""A small graph for every routine of 8-bit codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.edges.nets import Net, Spec

__all__ = ["INT8_ROUTINES"]

# Powers of two: sums and quotients are exact in float32 too.
_X_STEP, _W_STEP, _Y_STEP = np.float32(0.125), np.float32(0.0625), np.float32(0.5)
_X_ZERO = np.uint8(100)


def _linear(net: Net, codes: Any, step: np.float32 = _X_STEP, zero: Any = _X_ZERO) -> Any:
    return net.node("DequantizeLinear", [codes, net.array(step), net.array(zero)], pin=False)


def _number(net: Net, codes: Any) -> Any:
    return net.node("DequantizeLinear", [codes, net.array(_X_STEP), net.array(_X_ZERO)])


def _codes_matmul(net: Net) -> Any:
    operands = [_linear(net, net.input(axes, "uint8", 256)) for axes in ("BMK", "BKN")]
    return _rounded(net, net.node("MatMul", operands, pin=False))


def _by_columns(net: Net) -> Any:
    return net.node("DequantizeLinear", [net.input("AB", "int16", 1000), net.input("B")], axis=1)


def _rounded(net: Net, value: Any, step: np.float32 = _Y_STEP, pin: bool = True) -> Any:
    return net.node("QuantizeLinear", [value, net.array(step), net.array(np.uint8(90))], pin=pin)


def _code_weights(net: Net, axes: str, zero: int = 0) -> Any:
    net.fixed.update(a for a in axes if not a.isdigit())
    codes = np.random.default_rng(1).integers(-128, 128, net.dims(axes)).astype(np.int8)
    return _linear(net, net.array(codes), _W_STEP, np.int8(zero))


def _code_conv(
    weight: str, residual: bool = False, axes: str = "NCHW", zero: int = 0, **attrs: Any
) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        x = _linear(net, net.input(axes, "uint8", 256))
        more = {"group": net.sizes["C"]} if weight[1] == "1" else {}
        y = net.node("Conv", [x, _code_weights(net, weight, zero), net.constant(weight[0])], pin=False, **attrs, **more)
        if residual:
            y = net.node("Add", [y, _linear(net, net.input("NOHW", "uint8", 256))], pin=False)
        return _rounded(net, y)

    return build


def _code_chain(*weights: str) -> Callable[[Net], Any]:
    """Convolutions with weights of these axes; of a depthwise one the second is 1."""

    def build(net: Net) -> Any:
        codes, grid = net.input(f"N{'M' if weights[0][1] == '1' else 'C'}HW", "uint8", 256), (_X_STEP, _X_ZERO)
        for weight in weights:
            more = {"group": net.sizes["M"], "pads": _SAME} if weight[1] == "1" else {}
            operands = [_linear(net, codes, *grid), _code_weights(net, weight), net.constant(weight[0])]
            codes = _rounded(net, net.node("Conv", operands, pin=False, **more), pin=weight == weights[-1])
            grid = (_Y_STEP, np.uint8(90))
        return codes

    return build


def _code_gemm(net: Net) -> Any:
    x = _linear(net, net.input("BMK", "uint8", 256))
    return _rounded(net, net.node("MatMul", [x, _code_weights(net, "KN")], pin=False))


def _block_gemm(net: Net) -> Any:
    net.fixed.update("KN")
    random = np.random.default_rng(2)
    depth, columns = net.dims("KN")
    blocks = -(-depth // 4)
    parts = [random.integers(0, 16, (rows, columns)).astype(np.uint8) for rows in (depth, blocks)]
    scale = np.full((blocks, columns), 0.25, np.float32)
    operands = [net.array(parts[0]), net.array(scale), net.array(parts[1])]
    weights = net.node("DequantizeLinear", operands, pin=False, axis=0, block_size=4)
    return net.node("MatMul", [net.input("BMK"), weights])


def _code_function(op: str, inputs: int = 1, axes: str = "NCHW", **attrs: Any) -> Callable[[Net], Any]:
    def build(net: Net) -> Any:
        operands = [_linear(net, net.input(axes, "uint8", 256)) for _ in range(inputs)]
        y = net.node(op, operands, pin=False, **attrs)
        # A maximum keeps its scale.
        return _rounded(net, y) if op != "MaxPool" else net.node("QuantizeLinear", [y, *_grid_of(net)])

    return build


def _with_function(build: Callable[[Net], Any]) -> Callable[[Net], Any]:
    def behind(net: Net) -> Any:
        number = _linear(net, build(net), _Y_STEP, np.uint8(90))
        return _rounded(net, net.node("HardSwish", [number], pin=False))

    return behind


def _gate(net: Net) -> Any:
    operands = [_linear(net, net.input(axes, "uint8", 256)) for axes in ("NCHW", "NC11")]
    return _rounded(net, net.node("Mul", operands, pin=False))


def _grid_of(net: Net) -> list[Any]:
    return [net.array(_X_STEP), net.array(_X_ZERO)]


def _coded_lstm(net: Net) -> Any:
    hidden, depths = net.sizes["H"], [net.sizes[a] for a in "IH"]
    net.fixed.update("IH")
    random = np.random.default_rng(3)
    codes = [net.array(random.integers(-128, 128, (1, depth, 4 * hidden)).astype(np.int8)) for depth in depths]
    grid = [net.array(np.array([0.004], np.float32)), net.array(np.array([3], np.int8))]
    operands = [net.input("TBI"), *codes, None, None, None, None, None, *grid, *grid]
    return net.node("com.microsoft.DynamicQuantizeLSTM", operands, 3, hidden_size=hidden)


_IMAGE = {"N": 2, "C": 16, "H": 9, "W": 10, "O": 32}
_THREE = {**_IMAGE, "C": 3}
_CHAIN = {"N": 1, "C": 16, "M": 32, "H": 8, "W": 9, "O": 16}
_BLOCK = {"A": 3, "B": 5, "C": 17}
_SAME = [1] * 4

INT8_ROUTINES: dict[str, list[Spec]] = {
    "cpu:int8/direct_nchwc": [
        Spec(_IMAGE, _code_conv("OC33", pads=_SAME)),
        Spec(_IMAGE, _code_conv("OC11")),
        Spec(_IMAGE, _code_conv("OC33", residual=True, pads=_SAME)),
        Spec(_IMAGE, _code_conv("OC33", zero=37, pads=_SAME)),
        Spec(_IMAGE, _with_function(_code_conv("OC33", pads=_SAME))),
        Spec({**_IMAGE, "D": 5}, _code_conv("OC333", axes="NCDHW", pads=[1] * 6, strides=[2, 1, 1])),
    ],
    "cpu:int8/winograd_nchwc": [
        Spec(_IMAGE, _code_conv("OC33", pads=_SAME)),
        Spec(_IMAGE, _code_conv("OC33", residual=True, pads=_SAME)),
        Spec(_IMAGE, _with_function(_code_conv("OC33", zero=37, pads=_SAME))),
    ],
    "cpu:int8/direct_nchw": [
        Spec(_THREE, _code_conv("OC33", pads=_SAME, strides=[2, 2])),
        Spec({**_THREE, "C": 1}, _code_conv("OC55", zero=37, pads=[2] * 4)),
    ],
    "cpu:int8/depthwise_nchwc": [
        Spec(_IMAGE, _code_conv("C133", pads=_SAME)),
        Spec(_IMAGE, _code_conv("C155", pads=[2] * 4, strides=[2, 2])),
        Spec(_IMAGE, _code_conv("C133", zero=37, pads=_SAME)),
        Spec(_IMAGE, _with_function(_code_conv("C133", pads=_SAME))),
    ],
    "cpu:int8/depthwise_float32": [Spec(_CHAIN, _code_chain("M133")), Spec(_IMAGE, _code_conv("C155", pads=[2] * 4))],
    "cpu:int8/depthwise_pointwise": [Spec(_CHAIN, _code_chain("M133", "OM11"))],
    "cpu:int8/pointwise_depthwise": [Spec(_CHAIN, _code_chain("MC11", "M133"))],
    "cpu:int8/inverted_residual": [Spec(_CHAIN, _code_chain("MC11", "M133", "OM11"))],
    "cpu:int8/few_channels_nchw": [
        Spec({**_IMAGE, "O": 3}, _code_conv("OC33", pads=_SAME)),
        Spec({**_IMAGE, "O": 1}, _code_conv("OC11", zero=37)),
    ],
    "cpu:int8/gemm": [Spec({"B": 2, "M": 7, "K": 9, "N": 20}, _code_gemm)],
    "cpu:int8/pool_nchwc": [
        Spec(_IMAGE, _code_function("MaxPool", kernel_shape=[3, 3], pads=_SAME, strides=[2, 2]), fixed="C"),
        Spec(_IMAGE, _code_function("AveragePool", kernel_shape=[2, 2], strides=[2, 2]), fixed="C"),
        Spec({**_IMAGE, "H": 8, "W": 8}, _code_function("GlobalAveragePool"), fixed="C"),
        Spec({**_IMAGE, "D": 5}, _code_function("MaxPool", 1, "NCDHW", kernel_shape=[2, 3, 2]), fixed="C"),
    ],
    "cpu:int8/eltwise": [
        Spec(_BLOCK, _code_function("Add", 2, "ABC")),
        Spec(_IMAGE, _code_function("HardSwish")),
        Spec(_IMAGE, _gate, fixed="C"),
    ],
    "cpu:int8/block_weights": [Spec({"B": 2, "M": 7, "K": 9, "N": 20}, _block_gemm)],
    "cpu:int8/matmul": [
        Spec({"B": 2, "M": 7, "K": 9, "N": 20}, _codes_matmul, fixed="K"),
        Spec(
            {"B": 2, "M": 7, "K": 9, "N": 20},
            lambda net: net.node("MatMulInteger", [net.input("BMK", "uint8", 256), net.input("BKN", "int8", 100)]),
        ),
    ],
    "cpu:int8/linear": [
        Spec(_BLOCK, lambda net: _rounded(net, net.input("ABC"))),
        Spec(_IMAGE, lambda net: _number(net, net.input("NCHW", "uint8", 256))),
        Spec({"A": 3, "B": 37}, _by_columns),
    ],
    "cpu:int8/recurrent": [
        Spec({"T": 3, "B": 2, "I": 5, "H": 7}, _coded_lstm),
        Spec({"T": 2, "B": 1, "I": 16, "H": 64}, _coded_lstm),
    ],
}

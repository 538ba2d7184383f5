"""Models that strain a compiler rather than a kernel: many weights, many nodes, many bodies; random values, seeded.

Each is written once into a folder, by :func:`write`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.models.builder import Builder, Shape

__all__ = ["GENERATED", "write"]


def _dense(b: Builder, x: str, rows: int, columns: int, *, transposed: bool = False) -> str:
    if transposed:
        product = b.add("MatMul", x, b.add("Transpose", b.weight(columns, rows), perm=[1, 0]))
    else:
        product = b.add("MatMul", x, b.weight(rows, columns))
    return b.add("Add", b.weight(columns), product)


def _gelu(b: Builder, x: str) -> str:
    scaled = b.add("Add", b.add("Erf", b.add("Div", x, b.constant(2**0.5))), b.constant(1.0))
    return b.add("Mul", b.add("Mul", x, scaled), b.constant(0.5))


def _norm(b: Builder, x: str, width: int, *, as_op: bool) -> str:
    if as_op:
        return b.add("LayerNormalization", x, b.weight(width), b.weight(width), axis=-1)
    centred = b.add("Sub", x, b.add("ReduceMean", x, axes=[-1]))
    variance = b.add("ReduceMean", b.add("Pow", centred, b.constant(2.0)), axes=[-1])
    scaled = b.add("Div", centred, b.add("Sqrt", b.add("Add", variance, b.constant(1e-5))))
    return b.add("Add", b.add("Mul", scaled, b.weight(width)), b.weight(width))


def _transformer(
    seed: int, layers: int, width: int, heads: int, length: Shape, *, transposed: bool, fused_norm: bool
) -> onnx.ModelProto:
    b = Builder(seed)
    x = "x"
    split = b.constant([0, 0, heads, width // heads], np.int64)
    merge = b.constant([0, 0, width], np.int64)
    for _ in range(layers):
        queries, keys, values = (_dense(b, x, width, width, transposed=transposed) for _ in range(3))
        queries = b.add("Transpose", b.add("Reshape", queries, split), perm=[0, 2, 1, 3])
        keys = b.add("Transpose", b.add("Reshape", keys, split), perm=[0, 2, 3, 1])
        values = b.add("Transpose", b.add("Reshape", values, split), perm=[0, 2, 1, 3])
        scores = b.add("Div", b.add("MatMul", queries, keys), b.constant((width // heads) ** 0.5))
        mixed = b.add("MatMul", b.add("Softmax", scores, axis=-1), values)
        mixed = b.add("Reshape", b.add("Transpose", mixed, perm=[0, 2, 1, 3]), merge)
        x = b.add("Add", x, _dense(b, mixed, width, width, transposed=transposed))
        x = _norm(b, x, width, as_op=fused_norm)
        inner = _gelu(b, _dense(b, x, width, 4 * width, transposed=transposed))
        x = b.add("Add", x, _dense(b, inner, 4 * width, width, transposed=transposed))
        x = _norm(b, x, width, as_op=fused_norm)
    return b.model({"x": [*length, width]}, [x])


def _unrolled_gru(seed: int, steps: int, width: int) -> onnx.ModelProto:
    """A gated recurrent layer written out step by step, as tracing exports a loop; all steps share their weights."""
    b = Builder(seed)
    gates = [(b.weight(width, width), b.weight(width, width), b.weight(width)) for _ in range(3)]
    one = b.constant(1.0)
    state = "h"
    states = []
    for step in range(steps):
        x = b.add("Gather", "x", b.constant(step, np.int64), axis=0)

        def gate(index: int, left: str, right: str) -> str:
            kernel, recurrent, bias = gates[index]
            return b.add("Add", b.add("Add", b.add("MatMul", left, kernel), b.add("MatMul", right, recurrent)), bias)

        update = b.add("Sigmoid", gate(0, x, state))
        reset = b.add("Sigmoid", gate(1, x, state))
        fresh = b.add("Tanh", gate(2, x, b.add("Mul", reset, state)))
        kept = b.add("Mul", b.add("Sub", one, update), state)
        state = b.add("Add", b.add("Mul", update, fresh), kept)
        states.append(b.add("Unsqueeze", state, b.constant([0], np.int64)))
    return b.model({"x": [steps, 1, width], "h": [1, width]}, [b.add("Concat", *states, axis=0)])


def _small_nodes(seed: int, nodes: int) -> onnx.ModelProto:
    """Elementwise nodes, sums, slices and shape arithmetic on small tensors of dynamic length, few of which fuse."""
    b = Builder(seed)
    live = ["x"] * 4
    width = 32
    while len(b.nodes) < nodes:
        turn = len(b.nodes) % 11
        a, c = live[-1], live[-4]
        if turn in (0, 3):
            made = b.add("Add", a, c)
        elif turn == 1:
            made = b.add("Mul", a, b.weight(width))
        elif turn == 2:
            made = b.add("Sigmoid", a)
        elif turn == 4:
            halves = b.add_all("Split", [a], 2, axis=-1)
            made = b.add("Concat", *reversed(halves), axis=-1)
        elif turn == 5:
            made = b.add("Sub", a, b.add("ReduceMean", a, axes=[-1]))
        elif turn == 6:
            turned = b.add("Transpose", a, perm=[0, 2, 1])
            made = b.add("Transpose", b.add("Softmax", turned, axis=-1), perm=[0, 2, 1])
        elif turn == 7:
            sizes = b.add("Concat", b.add("Shape", a, end=2), b.constant([4, width // 4], np.int64), axis=0)
            folded = b.add("ReduceMax", b.add("Reshape", a, sizes), axes=[2], keepdims=1)
            made = b.add("Add", a, b.add("Reshape", b.add("Expand", folded, sizes), b.add("Shape", a)))
        elif turn == 8:
            made = b.add("Tanh", b.add("MatMul", a, b.weight(width, width)))
        else:
            made = b.add("Where", b.add("Greater", a, b.constant(0.0)), a, b.add("Mul", c, b.constant(0.1)))
        live = [*live[-3:], made]
    return b.model({"x": [1, "T", width]}, live)


def _info(name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _step(prefix: str, seed: int, width: int) -> onnx.GraphProto:
    """A body of a Scan: three products of its own."""
    b = Builder(seed, prefix)
    state = f"{prefix}state"
    for _ in range(3):
        state = b.add("Tanh", b.add("Add", b.add("MatMul", state, b.weight(width, width)), f"{prefix}x"))
    last, each = b.add("Identity", state), b.add("Identity", state)
    inputs = [_info(f"{prefix}state", [1, width]), _info(f"{prefix}x", [1, width])]
    return helper.make_graph(b.nodes, prefix, inputs, [_info(n, [1, width]) for n in (last, each)], b.initializers)


def _repeated(prefix: str, body: onnx.GraphProto, width: int) -> onnx.GraphProto:
    """A body of a Loop: a Scan of `body` over the sequence that the turn before gave."""
    b = Builder(0, prefix)
    turn, proceed, state, sequence = (f"{prefix}{part}" for part in ("turn", "proceed", "state", "sequence"))
    last, each = b.add_all("Scan", [state, sequence], 2, body=body, num_scan_inputs=1)
    results = [b.add("Identity", proceed), b.add("Tanh", last), b.add("Sigmoid", each)]
    inputs = [_info(turn, [], TensorProto.INT64), _info(proceed, [], TensorProto.BOOL)]
    carried = [[1, width], ["T", 1, width]]
    inputs += [_info(state, carried[0]), _info(sequence, carried[1])]
    outputs = [_info(results[0], [], TensorProto.BOOL)]
    outputs += [_info(name, shape) for name, shape in zip(results[1:], carried, strict=True)]
    return helper.make_graph(b.nodes, prefix, inputs, outputs)


def _scans(seed: int, loops: int, width: int) -> onnx.ModelProto:
    """Scans one behind the other, every third inside a Loop."""
    b = Builder(seed)
    x, state = "x", "h"
    for loop in range(loops):
        body = _step(f"scan{loop}_", seed + loop, width)
        if loop % 3 == 2:
            inputs = [b.constant(3, np.int64), b.constant(True, np.bool_), state, x]
            state, x = b.add_all("Loop", inputs, 2, body=_repeated(f"loop{loop}_", body, width))
        else:
            state, x = b.add_all("Scan", [state, x], 2, body=body, num_scan_inputs=1)
    return b.model({"x": ["T", 1, width], "h": [1, width]}, [x, state])


def _vocoder(seed: int, width: int, flows: int) -> onnx.ModelProto:
    """A speech synthesiser: gated dilated convolutions over a dynamic length, then transposed ones with residual blocks."""
    b = Builder(seed)

    def conv(x: str, outputs: int, inputs: int, kernel: int, dilation: int = 1) -> str:
        pad = dilation * (kernel - 1) // 2
        weight, bias = b.weight(outputs, inputs, kernel), b.weight(outputs)
        return b.add("Conv", x, weight, bias, kernel_shape=[kernel], pads=[pad, pad], dilations=[dilation])

    x = "x"
    for _ in range(flows):
        for layer in range(4):
            tanh, sigmoid = b.add_all("Split", [conv(x, 2 * width, width, 5, 2**layer)], 2, axis=1)
            gated = b.add("Mul", b.add("Tanh", tanh), b.add("Sigmoid", sigmoid))
            x = b.add("Add", x, conv(gated, width, width, 1))
    channels = 512
    x = conv(x, channels, width, 7)
    for stride, kernel in ((8, 16), (8, 16), (2, 4), (2, 4)):
        x = b.add("LeakyRelu", x, alpha=0.1)
        pad = (kernel - stride) // 2
        weight, bias = b.weight(channels, channels // 2, kernel), b.weight(channels // 2)
        x = b.add(*("ConvTranspose", x, weight, bias), kernel_shape=[kernel], strides=[stride], pads=[pad, pad])
        channels //= 2
        sums = []
        for taps in (3, 7, 11):
            y = x
            for dilation in (1, 3, 5):
                inner = conv(b.add("LeakyRelu", y, alpha=0.1), channels, channels, taps, dilation)
                inner = conv(b.add("LeakyRelu", inner, alpha=0.1), channels, channels, taps)
                y = b.add("Add", y, inner)
            sums.append(y)
        x = b.add("Div", b.add("Add", b.add("Add", sums[0], sums[1]), sums[2]), b.constant(3.0))
    return b.model({"x": [1, width, "T"]}, [b.add("Tanh", conv(x, 1, channels, 7))])


#: Each model's maker, and whether its weights lie in a file beside it.
GENERATED: dict[str, tuple[Callable[[], onnx.ModelProto], bool]] = {
    "transformer_12x768": (
        lambda: _transformer(1, 12, 768, 12, ["N", "T"], transposed=False, fused_norm=False),
        False,
    ),
    "transformer_transposed": (
        lambda: _transformer(2, 12, 768, 12, [1, 128], transposed=True, fused_norm=True),
        False,
    ),
    "external_300mb": (
        lambda: _transformer(3, 6, 1024, 16, ["N", "T"], transposed=False, fused_norm=True),
        True,
    ),
    "unrolled_gru_300": (lambda: _unrolled_gru(4, 300, 256), False),
    "small_nodes_3000": (lambda: _small_nodes(5, 3000), False),
    "scans_60": (lambda: _scans(6, 60, 64), False),
    "vocoder": (lambda: _vocoder(7, 192, 12), False),
}


def write(name: str, folder: Path) -> Path:
    """Return the file of a model, written now if the folder has none.

    Parameters
    ----------
    name : str
        A key of ``GENERATED``.
    folder : Path
        Where to; it is made.
    """
    make, external = GENERATED[name]
    path = folder / f"{name}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{name}.partial.onnx"
        weights = f"{name}.weights"
        (folder / weights).unlink(missing_ok=True)
        onnx.save(make(), partial, save_as_external_data=external, location=weights if external else None)
        partial.replace(path)
    return path

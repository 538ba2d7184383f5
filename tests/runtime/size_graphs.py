"""Models whose sizes are computed: by arithmetic on the inputs' sizes, and from data."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_END = 2**63 - 1


class Builder:
    """Collects nodes and constants; values are named by their number."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: object) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def weights(self, *dims: int) -> str:
        return self.constant((self.random.standard_normal(dims) * 0.1).astype(np.float32))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attrs: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attrs))
        return names

    def op(self, op: str, *inputs: str, **attrs: object) -> str:
        return self.add(op, *inputs, **attrs)[0]

    def size(self, x: str, axis: int) -> str:
        """The size of an axis, as a vector of one number."""
        return self.op("Shape", x, start=axis, **({} if axis == -1 else {"end": axis + 1}))

    def sizes(self, *parts: str | int) -> str:
        return self.op("Concat", *(self.ints(p) if isinstance(p, int) else p for p in parts), axis=0)

    def flat(self, x: str) -> str:
        return self.op("Reshape", x, self.ints(-1))

    def model(self, inputs: dict[str, list[int | str | None]], outputs: list[str]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "sizes",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def shifted_windows(blocks: int) -> onnx.ModelProto:
    """Windows of an image of any height and width, padded, shifted and merged, as exporters write Swin."""
    b, window, channels = Builder(), 3, 4
    x = b.op("Transpose", b.op("Conv", "x", b.weights(channels, 3, 2, 2), strides=[2, 2]), perm=[0, 2, 3, 1])
    for block in range(blocks):
        image, w = x, b.ints(window)
        batch, height, width = (b.size(x, axis) for axis in range(3))
        right, below = (b.op("Mod", b.op("Sub", w, b.op("Mod", s, w)), w) for s in (width, height))
        # The amounts come from the last axis to the first, a begin and an end each.
        listed = b.op(
            "Concat", b.sizes(0, 0, 0, right, 0, below), b.op("ConstantOfShape", b.ints(2), value=_ZERO), axis=0
        )
        rows = b.op("Slice", b.op("Reshape", listed, b.ints(-1, 2)), b.ints(-1), b.ints(-_END), b.ints(0), b.ints(-1))
        x = b.op("Pad", x, b.flat(b.op("Transpose", rows, perm=[1, 0])))
        tall, wide = b.size(x, 1), b.size(x, 2)
        for axis in (1, 2) if block % 2 else ():
            ends = (
                b.op("Slice", x, b.ints(1), b.ints(_END), b.ints(axis)),
                b.op("Slice", x, b.ints(0), b.ints(1), b.ints(axis)),
            )
            x = b.op("Concat", *ends, axis=axis)
        down, across = b.op("Div", tall, w), b.op("Div", wide, w)
        x = b.op("Reshape", x, b.sizes(batch, down, window, across, window, channels))
        x = b.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5])
        x = b.op("Reshape", x, b.sizes(b.op("Mul", batch, b.op("Mul", down, across)), window * window, channels))
        x = b.op("MatMul", x, b.weights(channels, channels))
        x = b.op("Reshape", x, b.sizes(batch, down, across, window, window, channels))
        x = b.op("Reshape", b.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), b.sizes(batch, tall, wide, channels))
        x = b.op("Slice", x, b.ints(0, 0), b.sizes(height, width), b.ints(1, 2))
        x = b.op("Add", image, x)
        if block % 4 == 3:
            odd = (b.op("Mod", b.size(x, axis), b.ints(2)) for axis in (1, 2))
            x = b.op("Pad", x, b.sizes(0, 0, 0, 0, 0, *odd, 0))
            x = b.op("Slice", x, b.ints(0, 0), b.ints(_END, _END), b.ints(1, 2), b.ints(2, 2))
    return b.model({"x": ["batch", 3, "height", "width"]}, [b.op("ReduceMean", x, b.ints(1, 2), keepdims=0)])


_ZERO = helper.make_tensor("zero", TensorProto.INT64, [1], [0])


def random_sizes(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A graph of random arithmetic on sizes and of operators that take their sizes from it, and arrays for it."""
    b = Builder(seed)
    random = b.random
    named = {name: int(random.integers(1, 9)) for name in ("n", "m")}
    declared: dict[str, list[int | str | None]] = {}
    feeds: dict[str, np.ndarray] = {}
    values: list[tuple[str, int]] = []  # floats, with their ranks
    for i in range(2):
        dims = [random.choice([*named, "3", "?"]) for _ in range(int(random.integers(1, 4)))]
        declared[f"x{i}"] = [3 if d == "3" else None if d == "?" else str(d) for d in dims]
        shape = [named.get(str(d), 3) for d in dims]
        feeds[f"x{i}"] = random.standard_normal(shape).astype(np.float32)
        values.append((f"x{i}", len(shape)))
    sizes = [b.size("x0", 0), b.size("x1", 0)]

    def pick(items: list) -> object:
        return items[int(random.integers(len(items)))]

    def small(low: int = 0) -> str:
        return b.op("Min", b.op("Max", pick(sizes), b.ints(low)), b.ints(7))

    def from_data(x: str) -> str:
        positive = b.op("Greater", x, b.constant(np.float32(0)))
        match int(random.integers(4)):
            case 0:
                return b.size(b.op("NonZero", positive), 1)
            case 1:
                ended = b.op("Concat", b.flat(x), b.constant(np.float32([0])), axis=0)
                return b.op("ArgMax", ended, axis=0, keepdims=1)
            case 2:
                return b.flat(b.op("ReduceSum", b.op("Cast", positive, to=TensorProto.INT64), keepdims=0))
        return b.size(b.op("Unique", b.op("Round", b.flat(x))), 0)

    def arithmetic() -> str:
        x, y, k = pick(sizes), pick(sizes), b.ints(int(random.integers(1, 5)))
        match int(random.integers(7)):
            case 0:
                return b.op("Add", x, y)
            case 1:
                return b.op("Div", x, k)
            case 2:
                return b.op("Mod", b.op("Sub", k, b.op("Mod", x, k)), k)
            case 3:
                return b.op("Max", b.op("Sub", x, y), k)
            case 4:
                parts = b.op("Ceil", b.op("Div", b.op("Cast", x, to=TensorProto.FLOAT), b.constant(np.float32(2))))
                return b.op("Cast", parts, to=TensorProto.INT64)
            case 5:
                return b.op("Where", b.op("Greater", x, y), x, k)
        return b.op("Min", b.op("Mul", x, k), y)

    def consume(x: str, rank: int) -> tuple[str, int]:
        match int(random.integers(10)):
            case 0:
                return b.op("ConstantOfShape", b.sizes(small(), small())), 2
            case 1:
                return b.op("Expand", b.op("ReduceSum", x, keepdims=0), b.sizes(small(), 2, small())), 3
            case 2:
                stop = b.op("Squeeze", small(), b.ints(0))
                range_ = b.op("Range", b.constant(np.int64(0)), stop, b.constant(np.int64(2)))
                return b.op("Cast", range_, to=TensorProto.FLOAT), 1
            case 3:
                return b.op("Slice", x, b.ints(0), pick(sizes), b.ints(int(random.integers(rank)))), rank
            case 4:
                before, after = (b.sizes(*(small() for _ in range(rank))) for _ in range(2))
                tall = b.op("Pad", x, b.op("Concat", before, after, axis=0))
                return b.op("Slice", tall, b.ints(*[0] * rank), b.ints(*[6] * rank)), rank
            case 5:
                tiled = b.op("Tile", x, b.sizes(*(small() for _ in range(rank))))
                return b.op("Slice", tiled, b.ints(*[0] * rank), b.ints(*[5] * rank)), rank
            case 6:
                flat = b.flat(x)
                return b.add("TopK", flat, b.op("Min", pick(sizes), b.size(flat, 0)), outputs=2)[0], 1
            case 7:
                flat = b.flat(x)
                left = b.op("Mod", b.op("Sub", b.ints(3), b.op("Mod", b.size(flat, 0), b.ints(3))), b.ints(3))
                return b.op("Reshape", b.op("Pad", flat, b.sizes(0, left)), b.ints(-1, 3)), 2
            case 8:
                signal = b.op("Reshape", b.op("Pad", b.flat(x), b.sizes(1, small())), b.ints(1, 1, -1))
                return b.op("Conv", signal, b.weights(2, 1, 3), pads=[1, 1]), 3
        flat = b.flat(x)
        cut = b.op("Min", small(), b.size(flat, 0))
        _, rest = b.add(
            "Split", flat, b.op("Concat", cut, b.op("Sub", b.size(flat, 0), cut), axis=0), outputs=2, axis=0
        )
        return rest, 1

    for _ in range(int(random.integers(6, 20))):
        x, rank = pick(values)
        kind = random.random()
        if kind < 0.2:
            sizes.append(from_data(x))
        elif kind < 0.45:
            sizes.append(arithmetic())
        else:
            values.append(consume(x, rank))
            sizes.append(b.size(values[-1][0], int(random.integers(values[-1][1]))))
    return b.model(declared, [name for name, _ in values[2:]][-6:] + sizes[-2:]), feeds

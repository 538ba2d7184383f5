"""Public attacks on readers of ONNX: each is refused with one line that says why, or does no harm."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.untrusted.attempt import complaint

LIMITS = neo.Limits(bytes=1 << 22, nodes=2000, memory=1 << 26, seconds=20.0)


def model(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str] = ("y",),
    x: Sequence[int | str] | None = (1, 3, 8, 8),
    opset: int = 21,
    functions: Sequence[onnx.FunctionProto] = (),
    **constants: Any,
) -> onnx.ModelProto:
    """A model of one input x; constants by name."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    tensors = [
        c if isinstance(c, TensorProto) else numpy_helper.from_array(np.asarray(c), n) for n, c in constants.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=n) for n in outputs], tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    names = ["" if n == "_" else n for n in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


def ints(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


def conv(**attributes: Any) -> onnx.ModelProto:
    return model([node("Conv", "x w", **attributes)], w=np.ones((4, 3, 3, 3), np.float32))


def pool(**attributes: Any) -> onnx.ModelProto:
    return model([node("MaxPool", "x", **{"kernel_shape": [2, 2], **attributes})])


def raw(dims: Sequence[int], data: bytes, kind: int = TensorProto.FLOAT, **more: Any) -> TensorProto:
    return TensorProto(name="w", dims=dims, data_type=kind, raw_data=data, **more)


def with_tensor(tensor: TensorProto) -> onnx.ModelProto:
    return model([node("Add", "x w")], w=tensor)


def graph_of(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], inputs: Sequence[Any] = ()) -> onnx.GraphProto:
    return helper.make_graph(nodes, "b", list(inputs), [onnx.ValueInfoProto(name=n) for n in outputs])


def loop(trips: int, *, grows: bool = False) -> onnx.ModelProto:
    scalar = helper.make_tensor_value_info
    body = graph_of(
        [
            node("Identity", "go", "go2"),
            node("Concat", "s s", "t", axis=0) if grows else node("Neg", "s", "t"),
        ],
        ["go2", "t"],
        [scalar("i", TensorProto.INT64, []), scalar("go", TensorProto.BOOL, []), scalar("s", TensorProto.FLOAT, None)],
    )
    return model([node("Loop", "n _ x", body=body)], x=[4], n=np.array(trips, np.int64))


def function(name: str, *calls: str) -> onnx.FunctionProto:
    nodes = [node(c, "a", f"t{i}" if i < len(calls) - 1 else "b", domain="f") for i, c in enumerate(calls)]
    return helper.make_function(
        "f", name, ["a"], ["b"], nodes, [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]
    )


def laughs(levels: int, width: int) -> onnx.ModelProto:
    leaf = helper.make_function("f", "F0", ["a"], ["b"], [node("Neg", "a", "b")], [helper.make_opsetid("", 21)])
    functions = [leaf, *(function(f"F{i}", *[f"F{i - 1}"] * width) for i in range(1, levels + 1))]
    return model([node(f"F{levels}", "x", domain="f")], functions=functions)


def nested_ifs(levels: int, width: int = 1) -> onnx.ModelProto:
    nodes = [node("Neg", "x")]
    for _ in range(levels):
        branches = graph_of(nodes, ["y"])
        nodes = [
            helper.make_node("If", ["c"], ["y"], then_branch=branches, else_branch=graph_of([node("Abs", "x")], ["y"]))
        ] * width
    return model(nodes, c=np.array(True))


def without_branches() -> onnx.ModelProto:
    return model([node("If", "c")], c=np.array(True))


def cycle() -> onnx.ModelProto:
    return model([node("Add", "x b", "a"), node("Neg", "a", "b"), node("Neg", "b")])


def twice_defined() -> onnx.ModelProto:
    return model([node("Neg", "x"), node("Abs", "x")])


def both_data() -> onnx.ModelProto:
    return with_tensor(raw([2], b"\0" * 8, float_data=[1.0, 2.0]))


def scan_of_other_lengths() -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "ab"]
    body = graph_of([node("Add", "a b", "o")], ["o"], inputs)
    return model([node("Scan", "x w", body=body, num_scan_inputs=2)], x=[3], w=np.ones(4, np.float32))


def resize(scales: Sequence[float]) -> onnx.ModelProto:
    return model([node("Resize", "x _ s", mode="linear")], s=np.array(scales, np.float32))


def nan_resize() -> onnx.ModelProto:
    return resize([1, 1, float("nan"), 1])


M, U = neo.ModelError, neo.UnsupportedError
HUGE = 1 << 62

#: What is refused while it compiles: how it is made, what the message must say, its class.
REFUSED: dict[str, tuple[Callable[[], onnx.ModelProto], str, type[neo.Error]]] = {
    "dims whose product overflows": (lambda: with_tensor(raw([1 << 32, 1 << 32], b"")), "fewer than 2^46 elements", M),
    "dims whose product is 0 mod 2^64": (
        lambda: with_tensor(raw([1 << 32, 1 << 32, 1 << 4], b"")),
        "fewer than 2^46",
        M,
    ),
    "negative dims": (lambda: with_tensor(raw([-1, -4], b"\0" * 16)), "sizes must not be negative", M),
    "one huge dim": (lambda: with_tensor(raw([HUGE], b"")), "fewer than 2^46 elements", M),
    "input of a huge dim": (lambda: model([node("Neg", "x")], x=[HUGE]), "sizes must be between 0 and 2^46", M),
    "raw data cut off": (lambda: with_tensor(raw([1, 3, 8, 8], b"\0" * 10)), "data must match its type and sizes", M),
    "raw data too long": (lambda: with_tensor(raw([2], b"\0" * 12)), "data must match its type and sizes", M),
    "a segment": (lambda: with_tensor(raw([1], b"\0" * 4, segment=TensorProto.Segment(begin=1, end=2))), "whole", M),
    "no such type": (lambda: with_tensor(raw([1], b"\0" * 4, kind=99)), "the element type must be known", M),
    "Reshape to two unknown": (lambda: model([node("Reshape", "x s")], s=ints(-1, -1)), "[Reshape]", M),
    "Reshape to less than -1": (lambda: model([node("Reshape", "x s")], s=ints(-2, 96)), "[Reshape]", M),
    "Reshape 0 beyond the rank": (lambda: model([node("Reshape", "x s")], s=ints(192, 1, 1, 1, 0)), "[Reshape]", M),
    "Reshape whose product overflows": (lambda: model([node("Reshape", "x s")], s=ints(1 << 32, 1 << 32, -1)), "[", M),
    "Reshape that does not fit": (lambda: model([node("Reshape", "x s")], s=ints(5, -1)), "[Reshape]", M),
    "Pad by 2^62": (lambda: model([node("Pad", "x p")], s=1, p=ints(0, 0, 0, 0, 0, 0, HUGE, HUGE)), "[", M),
    "Pad by -2^63": (lambda: model([node("Pad", "x p")], p=ints(0, 0, 0, -(1 << 63), 0, 0, 0, 0)), "[", M),
    "Pad of too few": (lambda: model([node("Pad", "x p")], p=ints(0, 0)), "[Pad]", M),
    "Conv group 0": (lambda: conv(group=0), "[Conv]", M),
    "Conv group -1": (lambda: conv(group=-1), "[Conv]", M),
    "Conv stride 0": (lambda: conv(strides=[0, 1]), "[Conv]", M),
    "Conv dilation 0": (lambda: conv(dilations=[0, 1]), "[Conv]", M),
    "Conv dilation 2^62": (lambda: conv(dilations=[HUGE, 1]), "[", M),
    "Conv pads 2^62": (lambda: conv(pads=[HUGE, 0, HUGE, 0]), "[", M),
    "Conv kernel of others": (lambda: conv(kernel_shape=[1 << 31, 1]), "[Conv]", M),
    "Conv pads of 3": (lambda: conv(pads=[1, 1, 1]), "[Conv]", M),
    "Pool kernel 0": (lambda: pool(kernel_shape=[0, 2]), "[MaxPool]", M),
    "Pool kernel 2^62": (lambda: pool(kernel_shape=[HUGE, HUGE]), "[", M),
    "Pool kernel -1": (lambda: pool(kernel_shape=[-1, 2]), "[MaxPool]", M),
    "Pool stride 0": (lambda: pool(strides=[0, 0]), "[MaxPool]", M),
    "an axis out of range": (lambda: model([node("Softmax", "x", axis=7)]), "[Softmax]", M),
    "an axis of -2^63": (lambda: model([node("Flatten", "x", axis=-(1 << 63))]), "[Flatten]", M),
    "Transpose twice the same": (lambda: model([node("Transpose", "x", perm=[0, 0, 0, 0])]), "[Transpose]", M),
    "Concat of an axis far out": (lambda: model([node("Concat", "x x", axis=1 << 40)]), "[Concat]", M),
    "If without branches": (without_branches, "is required", M),
    "a function that calls itself": (
        lambda: model([node("F", "x", domain="f")], functions=[function("F", "F")]),
        "may nest 64 deep",
        M,
    ),
    "functions that call each other": (
        lambda: model([node("F", "x", domain="f")], functions=[function("F", "G"), function("G", "F")]),
        "may nest 64 deep",
        M,
    ),
    "a billion laughs of functions": (lambda: laughs(30, 2), "a model may have 2000 nodes", M),
    "names twice": (twice_defined, "a value must be defined once", M),
    "a cycle": (cycle, "cycle", M),
    "Gather out of range": (lambda: model([node("Gather", "c i")], c=np.ones(3, np.float32), i=ints(7)), "[Gather]", M),
    "Resize by 0": (lambda: resize([1, 1, 0, 1]), "[Resize]", M),
    "Resize by less than 0": (lambda: resize([1, 1, -2, 1]), "[Resize]", M),
    "Resize by NaN": (nan_resize, "[Resize]", M),
    "Resize by infinity": (lambda: resize([1, 1, float("inf"), 1]), "[", M),
    "TopK of -1": (lambda: model([node("TopK", "x k", "y z")], k=ints(-1)), "[TopK]", M),
    "TopK of more than there are": (lambda: model([node("TopK", "x k", "y z")], k=ints(1 << 40)), "[TopK]", M),
    "Tile by -1": (lambda: model([node("Tile", "x t")], t=ints(1, 1, 1, -1)), "[", M),
    "Expand to -5": (lambda: model([node("Expand", "x t")], t=ints(-5)), "[Expand]", M),
    "ConstantOfShape of -1": (lambda: model([node("ConstantOfShape", "t")], t=ints(-1)), "[ConstantOfShape]", M),
    "Range by 0": (lambda: model([node("Range", "a b c")], a=np.int64(0), b=np.int64(5), c=np.int64(0)), "[Range]", M),
    "Slice by 0": (
        lambda: model([node("Slice", "x a b c d")], a=ints(0), b=ints(1), c=ints(0), d=ints(0)),
        "[Slice]",
        M,
    ),
    "Split into others": (lambda: model([node("Split", "x s", "y z")], s=ints(7, -6)), "[Split]", M),
    "Einsum without sense": (lambda: model([node("Einsum", "x", equation="\0->->")]), "[Einsum]", M),
    "Einsum of a rank too high": (lambda: model([node("Einsum", "x", equation="abcdefgh->a")]), "[Einsum]", M),
    "Constant without a value": (lambda: model([node("Constant", "")]), "a constant must have one value", M),
    "Scan over other lengths": (scan_of_other_lengths, "[Scan]", M),
    "DepthToSpace by 0": (lambda: model([node("DepthToSpace", "x", blocksize=0)]), "[DepthToSpace]", M),
    "a name of many lines": (
        lambda: model([helper.make_node("Softmax", ["x"], ["y"], name="a\nb\x1b[2J", axis=9)]),
        "[Softmax]",
        M,
    ),
    "an operator of a name of 1 MB": (lambda: model([node("A" * (1 << 20), "x")]), "every node must be supported", U),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, words, kind = REFUSED[name]
    with pytest.raises(neo.Error) as caught:
        neo.compile(make().SerializeToString(), threads=1, limits=LIMITS)
    assert words in str(caught.value)
    assert isinstance(caught.value, kind)
    assert not complaint(caught.value)


#: What is sound for ONNX, but asks for more than there is: refused by the call at the latest, or answered.
GREEDY: dict[str, Callable[[], onnx.ModelProto]] = {
    "ConstantOfShape of 2^40": lambda: model([node("ConstantOfShape", "t")], t=ints(1 << 40)),
    "Expand to 2^34": lambda: model([node("Expand", "c t")], c=np.ones(1, np.float32), t=ints(1 << 17, 1 << 17)),
    "Tile by 2^20, twice": lambda: model(
        [node("Tile", "c t", "m"), node("Tile", "m t")], c=np.ones(4, np.float32), t=ints(1 << 20)
    ),
    "Range to 2^40": lambda: model([node("Range", "a b c")], a=np.int64(0), b=np.int64(1 << 40), c=np.int64(1)),
    "OneHot of depth 2^40": lambda: model(
        [node("OneHot", "i d v")], i=ints(1, 2), d=np.int64(1 << 40), v=np.array([0, 1], np.float32)
    ),
    "Resize by 10^4": lambda: resize([1, 1, 1e4, 1e4]),
    "Pad by 2^30": lambda: model([node("Pad", "x p")], p=ints(0, 0, 0, 0, 0, 0, 1 << 30, 0)),
    "Pad at the edge by 2^30": lambda: model([node("Pad", "x p", mode="edge")], p=ints(0, 0, 0, 0, 0, 0, 1 << 30, 0)),
    "many folds of 15 MB": lambda: model(
        [node("ConstantOfShape", "t", f"c{i}") for i in range(40)]
        + [node("Sum", " ".join(f"c{i}" for i in range(40)))],
        t=ints(15 << 18),
    ),
    "MatMul of what a fold makes": lambda: model(
        [node("ConstantOfShape", "t", "c"), node("MatMul", "c c")], t=ints(1 << 9, 1 << 9)
    ),
    "a Loop that doubles": lambda: loop(60, grows=True),
}


def answer(made: onnx.ModelProto) -> dict[str, Any] | neo.Error:
    """What a call on ones gives, or why there is none."""
    try:
        module = neo.compile(made.SerializeToString(), threads=1, limits=LIMITS)
        sizes = {t.name: [d if isinstance(d, int) else 1 for d in t.shape or ()] for t in module.inputs}
        return module.run({name: np.ones(dims, np.float32) for name, dims in sizes.items()})
    except neo.Error as error:
        return error


def peak_bytes(*, anew: bool = False) -> int:
    """The most memory that this process held so far, or, with ``anew``, what it holds now, from where the peak is counted."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


@pytest.mark.parametrize("name", GREEDY)
def test_greedy(name: str) -> None:
    made = GREEDY[name]()
    before = peak_bytes(anew=True)
    given = answer(made)
    # Tables that a step makes of its sizes are within the limits as well.
    assert peak_bytes() - before < 8 * LIMITS.memory
    if isinstance(given, neo.Error):
        assert not complaint(given)
        assert isinstance(given, (neo.OutOfMemoryError, neo.ShapeError, neo.UnsupportedError))
    else:
        assert sum(y.nbytes for y in given.values()) <= LIMITS.memory


def test_a_loop_without_end_is_cancelled() -> None:
    module = neo.compile(loop(1 << 62), threads=1, limits=LIMITS)
    future = module.run_async({"x": np.ones(4, np.float32)})
    while not future.running():
        pass
    future.cancel()
    with pytest.raises(BaseException, match="cancelled|^$"):
        future.result(20)


@pytest.mark.parametrize(
    "make",
    [
        lambda: model(
            [node("NonMaxSuppression", "b s m i")],
            b=np.ones((1, 4, 4), np.float32),
            s=np.ones((1, 1, 4), np.float32),
            m=ints((1 << 63) - 1),
            i=np.array([float("nan")], np.float32),
        ),
        lambda: model([node("Neg", "x")], x=[0, 3, 0, 0]),
        lambda: model([node("GlobalAveragePool", "x")], x=[1, 0, 0, 0]),
        lambda: model([node("Softmax", "x", axis=0)], x=[0]),
        lambda: with_tensor(raw([0, 1], b"")),
        both_data,
        lambda: model([node("Einsum", "x", equation="...ij->...ji")]),
        lambda: nested_ifs(25),
    ],
)
def test_odd_but_harmless(make: Callable[[], onnx.ModelProto]) -> None:
    given = answer(make())
    assert not isinstance(given, neo.Error) or not complaint(given)


def test_a_regex_that_backtracks() -> None:
    graph = helper.make_graph(
        [helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="(a|a)*(a+)+b")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [1])],
        [onnx.ValueInfoProto(name="y")],
    )
    module = neo.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), limits=LIMITS)
    assert not module(np.array(["a" * 5000], object))[0]


@pytest.mark.parametrize(
    "pattern", ["(((a{1000}){1000}){1000}){1000}", "a{99999999999999999999}", "(" * 5000, "a**" * 99]
)
def test_a_regex_that_grows(pattern: str) -> None:
    graph = helper.make_graph(
        [helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [1])],
        [onnx.ValueInfoProto(name="y")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    with pytest.raises(neo.Error) as caught:
        neo.compile(made, limits=LIMITS)
    assert not complaint(caught.value)


def deep_bytes(levels: int) -> bytes:
    """If inside If, written by hand: onnx itself reads about 30."""

    def field(number: int, body: bytes) -> bytes:
        size, header = len(body), bytearray([number << 3 | 2])
        while size >= 0x80:
            header.append(size & 0x7F | 0x80)
            size >>= 7
        header.append(size)
        return bytes(header) + body

    graph = helper.make_graph([node("Neg", "x")], "g", [], [onnx.ValueInfoProto(name="y")]).SerializeToString()
    for _ in range(levels):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        body = field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attribute)
        graph = field(1, body) + field(2, b"g") + field(12, field(1, b"y"))
    return b"\x08\x0a" + field(7, graph) + field(8, b"\x10\x15")


@pytest.mark.parametrize("levels", [40, 1000, 3000])
def test_bodies_nested_deep(levels: int) -> None:
    with pytest.raises(neo.ModelError, match="do not parse"):
        neo.compile(deep_bytes(levels), limits=LIMITS)


EXTERNAL = {
    "from above": ({"location": "../secret.bin"}, "must lie in the model's folder"),
    "from above, by a detour": ({"location": "sub/../../secret.bin"}, "must lie in the model's folder"),
    "absolute": ({"location": "/etc/passwd"}, "must lie in the model's folder"),
    "a link out": ({"location": "link.bin"}, "must lie in the model's folder"),
    "a link to a folder out": ({"location": "up/secret.bin"}, "must lie in the model's folder"),
    "a device": ({"location": "/dev/zero"}, "must lie in the model's folder"),
    "a backslash": ({"location": "..\\secret.bin"}, "must exist"),
    "a null": ({"location": "a\0b"}, "must lie in the model's folder"),
    "a folder": ({"location": "."}, "must exist"),
    "nothing": ({"location": ""}, "must lie in the model's folder"),
    "a pipe": ({"location": "pipe"}, "must exist"),
    "a name of 100,000": ({"location": "x" * 100_000}, "external data must"),
    "an offset beyond": ({"location": "data.bin", "offset": "64"}, "must lie inside its file"),
    "an offset that overflows": ({"location": "data.bin", "offset": str((1 << 63) - 1)}, "must lie inside its file"),
    "an offset below 0": ({"location": "data.bin", "offset": "-8"}, "must lie inside its file"),
    "an offset of 10,000 digits": ({"location": "data.bin", "offset": "9" * 10_000}, "must be integers"),
    "a length of others": ({"location": "data.bin", "length": "8"}, "must lie inside its file"),
    "a length that is no number": ({"location": "data.bin", "length": "1e3"}, "must be integers"),
}


@pytest.mark.parametrize("name", EXTERNAL)
def test_external_data(name: str, tmp_path: Path) -> None:
    facts, words = EXTERNAL[name]
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 64)
    (folder / "data.bin").write_bytes(b"\0" * 64)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    tensor = TensorProto(name="w", dims=[4, 4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, text in facts.items():
        tensor.external_data.add(key=key, value=text)
    (folder / "m.onnx").write_bytes(with_tensor(tensor).SerializeToString())
    with pytest.raises(neo.ModelError, match=words) as caught:
        neo.compile(folder / "m.onnx", limits=LIMITS)
    assert not complaint(caught.value)


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(neo.ResourceError, match="must be a plain file"):
        neo.compile("/dev/null", limits=LIMITS)

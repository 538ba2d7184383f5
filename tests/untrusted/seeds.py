"""The sound models that damage starts from: networks of a few nodes, ONNX's own node tests, small real ones."""

from __future__ import annotations

import os
import warnings
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.untrusted.routine_seeds import routine_models

__all__ = ["Seed", "built_seeds", "load_seeds", "save_seeds"]

_MOST_BYTES = 100_000


class Seed(NamedTuple):
    """A model and, where there are any, inputs for it in its own order."""

    name: str
    model: onnx.ModelProto
    inputs: list[TensorProto]


def save_seeds(path: Path) -> None:
    """Write the seeds of this machine to a zip file; takes a while, because ONNX computes its tests."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for seed in (*built_seeds(), *_node_tests(), *_real()):
            file.writestr(f"{seed.name}.onnx", seed.model.SerializeToString())
            for i, tensor in enumerate(seed.inputs):
                file.writestr(f"{seed.name}.{i}.pb", tensor.SerializeToString())


def load_seeds(path: Path) -> list[Seed]:
    """What :func:`save_seeds` wrote."""
    seeds: dict[str, Seed] = {}
    with zipfile.ZipFile(path) as file:
        for entry in file.namelist():
            if entry.endswith(".onnx"):
                name = entry.removesuffix(".onnx")
                seeds[name] = Seed(name, onnx.load_from_string(file.read(entry)), [])
            else:
                tensor = TensorProto()
                tensor.ParseFromString(file.read(entry))
                seeds[entry.rsplit(".", 2)[0]].inputs.append(tensor)
    return list(seeds.values())


def _node_tests() -> list[Seed]:
    from onnx.backend.test.loader import load_model_tests

    seeds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [c for kind in ("node", "simple", "pytorch-operator") for c in load_model_tests(kind=kind)]
    for case in cases:
        model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
        if model.ByteSize() > _MOST_BYTES:
            continue
        given = case.data_sets[0][0] if case.data_sets else []
        inputs = []
        for x in given:
            tensor = (
                x if isinstance(x, TensorProto) else numpy_helper.from_array(x) if isinstance(x, np.ndarray) else None
            )
            if tensor is None or tensor.ByteSize() > _MOST_BYTES:
                inputs = []
                break
            inputs.append(tensor)
        seeds.append(Seed(f"node-{case.name}", model, inputs))
    return seeds


def _real() -> list[Seed]:
    folder = os.environ.get("NEO_TEST_MODELS")
    if not folder:
        return []
    # Those of onnx-light are small files of large networks.
    files = [
        p for p in sorted(Path(folder).rglob("*.onnx")) if p.stat().st_size <= _MOST_BYTES and "light" not in p.stem
    ]
    return [Seed(f"real-{p.stem}", onnx.load(p), []) for p in files]


def _value(name: str, dims: list[int | str] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def _weight(name: str, *dims: int, dtype: type = np.float32) -> TensorProto:
    numbers = np.random.default_rng(len(name)).standard_normal(dims)
    return numpy_helper.from_array((numbers * (20 if np.dtype(dtype).kind in "iu" else 0.3)).astype(dtype), name)


def _ints(name: str, *numbers: int) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def _model(
    name: str,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[str],
    initializers: list[TensorProto],
    opset: int = 21,
    functions: list[onnx.FunctionProto] | None = None,
    domains: dict[str, int] | None = None,
) -> Seed:
    graph = helper.make_graph(nodes, name, inputs, [onnx.ValueInfoProto(name=n) for n in outputs], initializers)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in (domains or {}).items())]
    return Seed(f"built-{name}", helper.make_model(graph, opset_imports=opsets, functions=functions or []), [])


def built_seeds() -> list[Seed]:
    """Networks of a few nodes, one for each way through the compiler and for each routine."""
    routines = [Seed(f"built-{name}", model, []) for name, model in routine_models().items()]
    return [*_ways(), *routines]


def _ways() -> list[Seed]:
    node = helper.make_node
    image = _value("x", [1, 3, 8, 8])
    return [
        _model(
            "convnet",
            [
                node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1], kernel_shape=[3, 3]),
                node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"]),
                node("Relu", ["n"], ["r"]),
                node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                node("Conv", ["p", "d"], ["dw"], group=8, pads=[1, 1, 1, 1]),
                node("Add", ["dw", "p"], ["a"]),
                node("GlobalAveragePool", ["a"], ["g"]),
                node("Flatten", ["g"], ["f"]),
                node("Gemm", ["f", "fc", "fb"], ["y"], transB=1),
                node("Softmax", ["y"], ["z"]),
            ],
            [image],
            ["z"],
            [
                _weight("w", 8, 3, 3, 3),
                _weight("b", 8),
                *(numpy_helper.from_array(np.full(8, 0.5, np.float32), n) for n in "somv"),
                _weight("d", 8, 1, 3, 3),
                _weight("fc", 10, 8),
                _weight("fb", 10),
            ],
        ),
        _model(
            "shapes",
            [
                node("Shape", ["x"], ["s"]),
                node("Gather", ["s", "zero"], ["n"]),
                node("Concat", ["n", "minus"], ["t"], axis=0),
                node("Reshape", ["x", "t"], ["r"]),
                node("Unsqueeze", ["r", "one"], ["u"]),
                node("Expand", ["u", "big"], ["e"]),
                node("Pad", ["e", "pads", "c"], ["p"]),
                node("Slice", ["p", "starts", "ends", "axes", "steps"], ["l"]),
                node("Tile", ["l", "times"], ["i"]),
                node("Transpose", ["i"], ["y"], perm=[1, 0, 2]),
            ],
            [_value("x", ["N", 3, 4])],
            ["y", "s"],
            [
                _ints("zero", 0),
                _ints("one", 1),
                _ints("minus", -1),
                _ints("big", 1, 2, 1),
                _ints("pads", 0, 0, 1, 0, 0, 1),
                numpy_helper.from_array(np.array(0.5, np.float32), "c"),
                _ints("starts", 0),
                _ints("ends", 6),
                _ints("axes", 2),
                _ints("steps", 2),
                _ints("times", 1, 2, 1),
            ],
        ),
        _model(
            "makers",
            [
                node("ConstantOfShape", ["dims"], ["f"], value=numpy_helper.from_array(np.array([2], np.float32))),
                node("Range", ["from", "to", "by"], ["r"]),
                node("OneHot", ["r", "depth", "values"], ["h"], axis=-1),
                node("Resize", ["x", "", "scales"], ["z"], mode="linear"),
                node("Resize", ["x", "", "", "sizes"], ["w"], mode="nearest"),
                node("TopK", ["x", "k"], ["t", "ti"], axis=-1),
                node("GatherND", ["x", "at"], ["g"]),
                node("Add", ["f", "h"], ["y"]),
            ],
            [_value("x", [1, 1, 4, 4])],
            ["y", "z", "w", "t", "ti", "g"],
            [
                _ints("dims", 3, 4),
                *(numpy_helper.from_array(np.array(n, np.int64), s) for s, n in (("from", 0), ("to", 3), ("by", 1))),
                numpy_helper.from_array(np.array(4, np.int64), "depth"),
                numpy_helper.from_array(np.array([0, 1], np.float32), "values"),
                numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"),
                _ints("sizes", 1, 1, 6, 6),
                _ints("k", 2),
                numpy_helper.from_array(np.array([[0, 0, 1]], np.int64), "at"),
            ],
        ),
        _model(
            "recurrent",
            [
                node("LSTM", ["x", "w", "r", "b"], ["l", "", ""], hidden_size=4),
                node("Squeeze", ["l", "one"], ["s"]),
                node("GRU", ["s", "gw", "gr"], ["", "h"], hidden_size=3, linear_before_reset=1),
                node("Einsum", ["h", "h"], ["y"], equation="dbh,dbk->bhk"),
            ],
            [_value("x", ["T", 1, 5])],
            ["y", "l"],
            [
                _weight("w", 1, 16, 5),
                _weight("r", 1, 16, 4),
                _weight("b", 1, 32),
                _ints("one", 1),
                _weight("gw", 1, 9, 4),
                _weight("gr", 1, 9, 3),
            ],
        ),
        _model(
            "attention",
            [
                node("LayerNormalization", ["x", "g", "b"], ["n"]),
                node("MatMul", ["n", "wq"], ["q"]),
                node("MatMul", ["n", "wk"], ["k"]),
                node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
                node("MatMul", ["q", "kt"], ["s"]),
                node("Mul", ["s", "scale"], ["sc"]),
                node("Softmax", ["sc"], ["p"], axis=-1),
                node("MatMul", ["p", "n"], ["o"]),
                node("Gelu", ["o"], ["e"]),
                node("Add", ["e", "x"], ["y"]),
                node("ReduceMean", ["y", "axes"], ["m"], keepdims=0),
            ],
            [_value("x", ["B", 4, 8])],
            ["y", "m"],
            [
                _weight("g", 8),
                _weight("b", 8),
                _weight("wq", 8, 8),
                _weight("wk", 8, 8),
                numpy_helper.from_array(np.array(0.35, np.float32), "scale"),
                _ints("axes", 1),
            ],
        ),
        _model(
            "quantized",
            [
                node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
                node("Conv", ["d", "wd"], ["c"], pads=[1, 1, 1, 1]),
                node("Relu", ["c"], ["r"]),
                node("QuantizeLinear", ["r", "s", "z"], ["rq"]),
                node("DequantizeLinear", ["rq", "s", "z"], ["rd"]),
                node("QLinearConv", ["q", "s", "z", "w", "ws", "wz", "s", "z"], ["ql"]),
                node("DynamicQuantizeLinear", ["rd"], ["dq", "dqs", "dqz"]),
                node("MatMulInteger", ["dq", "mi"], ["y"]),
            ],
            [image],
            ["y", "ql"],
            [
                numpy_helper.from_array(np.array(0.05, np.float32), "s"),
                numpy_helper.from_array(np.array(128, np.uint8), "z"),
                _weight("w", 4, 3, 3, 3, dtype=np.int8),
                numpy_helper.from_array(np.full(4, 0.02, np.float32), "ws"),
                numpy_helper.from_array(np.zeros(4, np.int8), "wz"),
                _weight("mi", 8, 5, dtype=np.int8),
            ],
        ),
        _model(
            "vision",
            [
                node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["n"]),
                node("RoiAlign", ["x", "rois", "batch"], ["r"], output_height=2, output_width=2, sampling_ratio=2),
                node("GridSample", ["x", "grid"], ["g"]),
                node("DepthToSpace", ["d"], ["y"], blocksize=2),
                node("NonZero", ["x"], ["z"]),
                node("Unique", ["scores"], ["u", "", "", ""]),
            ],
            [image, _value("boxes", [1, 4, 4]), _value("scores", [1, 1, 4]), _value("d", [1, 4, 2, 2])],
            ["n", "r", "g", "y", "z", "u"],
            [
                _ints("most", 3),
                numpy_helper.from_array(np.array([0.5], np.float32), "iou"),
                numpy_helper.from_array(np.array([0.1], np.float32), "least"),
                numpy_helper.from_array(np.array([[0, 0, 4, 4]], np.float32), "rois"),
                _ints("batch", 0),
                _weight("grid", 1, 2, 2, 2),
            ],
        ),
        _model(
            "text",
            [
                node("StringNormalizer", ["x"], ["n"], case_change_action="LOWER"),
                node("StringSplit", ["n"], ["s", "c"], delimiter=" "),
                node("StringConcat", ["n", "n"], ["j"]),
                node("RegexFullMatch", ["j"], ["m"], pattern="a+b*"),
                node(
                    "TfIdfVectorizer",
                    ["i"],
                    ["t"],
                    max_gram_length=2,
                    max_skip_count=1,
                    min_gram_length=1,
                    mode="TF",
                    ngram_counts=[0, 2],
                    ngram_indexes=[0, 1, 2],
                    pool_int64s=[1, 2, 1, 2],
                ),
            ],
            [_value("x", [3], TensorProto.STRING), _value("i", [5], TensorProto.INT64)],
            ["s", "c", "m", "t"],
            [],
        ),
        _control(),
        _functions(),
        _sequences(),
        _model(
            "signal",
            [
                node("Unsqueeze", ["x", "two"], ["u"]),
                node("DFT", ["u", "", "axis"], ["d"]),
                node("STFT", ["u", "step", "window", "length"], ["s"]),
                node("CumSum", ["x", "one"], ["c"]),
                node("MelWeightMatrix", ["bins", "length", "rate", "low", "high"], ["m"]),
                node("ScatterElements", ["x", "at", "put"], ["e"], axis=1),
            ],
            [_value("x", [1, 32])],
            ["d", "s", "c", "m", "e"],
            [
                _ints("two", 2),
                *(
                    numpy_helper.from_array(np.array(n, np.int64), s)
                    for s, n in (("axis", 1), ("step", 4), ("length", 8), ("one", 1), ("bins", 4), ("rate", 16))
                ),
                _weight("window", 8),
                numpy_helper.from_array(np.array(0, np.float32), "low"),
                numpy_helper.from_array(np.array(8, np.float32), "high"),
                numpy_helper.from_array(np.array([[1, 3]], np.int64), "at"),
                _weight("put", 1, 2),
            ],
        ),
        _model(
            "transposed",
            [
                node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 2], output_padding=[1, 1]),
                node("InstanceNormalization", ["c", "s", "s"], ["n"]),
                node("PRelu", ["n", "slope"], ["p"]),
                node(
                    "AveragePool",
                    ["p"],
                    ["a"],
                    kernel_shape=[3, 3],
                    ceil_mode=1,
                    count_include_pad=1,
                    pads=[1, 1, 1, 1],
                ),
                node("LRN", ["a"], ["l"], size=3),
                node("Split", ["l", "parts"], ["y", "z"], axis=1),
                node("Where", ["mask", "y", "z"], ["o"]),
            ],
            [image],
            ["o"],
            [
                _weight("w", 3, 4, 3, 3),
                _weight("s", 4),
                _weight("slope", 4, 1, 1),
                _ints("parts", 2, 2),
                numpy_helper.from_array(np.array([True]), "mask"),
            ],
        ),
    ]


def _control() -> Seed:
    node = helper.make_node
    body = helper.make_graph(
        [
            node("Add", ["acc", "x"], ["acc_out"]),
            node("Less", ["acc_out", "limit"], ["below"]),
            node("ReduceMin", ["below8"], ["go_out"], keepdims=0),
            node("Cast", ["below"], ["below8"], to=TensorProto.INT32),
        ],
        "body",
        [_value("i", [], TensorProto.INT64), _value("go", [], TensorProto.BOOL), _value("acc", [2])],
        [onnx.ValueInfoProto(name=n) for n in ("go_b", "acc_out", "below")],
    )
    body.node.append(node("Cast", ["go_out"], ["go_b"], to=TensorProto.BOOL))
    scan = helper.make_graph(
        [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["o"])],
        "scan",
        [_value("s", []), _value("e", [])],
        [onnx.ValueInfoProto(name="t"), onnx.ValueInfoProto(name="o")],
    )
    then = helper.make_graph([node("Mul", ["l", "x"], ["r"])], "then", [], [onnx.ValueInfoProto(name="r")])
    other = helper.make_graph([node("Neg", ["l"], ["r2"])], "else", [], [onnx.ValueInfoProto(name="r2")])
    return _model(
        "control",
        [
            node("Loop", ["trips", "", "x"], ["l", "hist"], body=body),
            node("Scan", ["start", "l"], ["total", "sums"], body=scan, num_scan_inputs=1),
            node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ],
        [_value("x", [2]), _value("c", [], TensorProto.BOOL)],
        ["y", "hist", "total", "sums"],
        [
            numpy_helper.from_array(np.array(4, np.int64), "trips"),
            numpy_helper.from_array(np.array(100, np.float32), "limit"),
            numpy_helper.from_array(np.array(0, np.float32), "start"),
        ],
    )


def _functions() -> Seed:
    node = helper.make_node
    scale = helper.make_node("LeakyRelu", ["a"], ["b"])
    scale.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]
    leaky = helper.make_function("f", "Leaky", ["a"], ["b"], [scale], opsets, attributes=["slope"])
    twice = helper.make_function(
        "f",
        "Twice",
        ["a"],
        ["b"],
        [node("Leaky", ["a"], ["m"], domain="f", slope=0.1), node("Leaky", ["m"], ["b"], domain="f", slope=0.2)],
        opsets,
    )
    return _model(
        "functions",
        [
            node("Twice", ["x"], ["t"], domain="f"),
            node("Celu", ["t"], ["c"]),
            node("NegativeLogLikelihoodLoss", ["c", "i"], ["y"]),
        ],
        [_value("x", ["N", 3]), _value("i", ["N"], TensorProto.INT64)],
        ["y", "t"],
        [],
        functions=[leaky, twice],
        domains={"f": 1},
    )


def _sequences() -> Seed:
    node = helper.make_node
    mapped = helper.make_graph([node("Relu", ["e"], ["r"])], "map", [_value("e", [None, 2])], [_value("r", [None, 2])])
    return _model(
        "sequences",
        [
            node("SplitToSequence", ["x", "parts"], ["s"], axis=0),
            node("SequenceMap", ["s"], ["m"], body=mapped),
            node("SequenceInsert", ["m", "x", "at"], ["i"]),
            node("SequenceAt", ["i", "at"], ["e"]),
            node("ConcatFromSequence", ["i"], ["c"], axis=0),
            node("SequenceLength", ["i"], ["l"]),
            node("Optional", ["e"], ["o"]),
            node("OptionalGetElement", ["o"], ["y"]),
        ],
        [_value("x", [4, 2])],
        ["c", "l", "y"],
        [_ints("parts", 2, 2), numpy_helper.from_array(np.array(0, np.int64), "at")],
        opset=18,
    )

"""Every numeric operator of ONNX and of ONNX Runtime that neo has, as a model whose axes have names.

An operand is a text: its axes as letters (digits are sizes), then ``:`` and a dtype, then ``<`` and a bound of its
integers. A ``!`` behind it makes it a constant. Anything else than a text is a constant itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["CASES", "LEFT_OUT", "SIZES", "Case"]

SIZES = {"A": 3, "B": 4, "C": 6, "D": 5, "N": 2, "H": 5, "W": 7, "K": 8, "T": 4, "U": 9, "L": 10, "M": 12}
_OPSET = 22


class Case(NamedTuple):
    """A node: operator, operands, attributes (``"$A"``: the size of an axis), number of outputs, opset.

    `alone`: ONNX Runtime does not run the operator as it is here.
    """

    op: str
    operands: tuple[Any, ...]
    attrs: Mapping[str, Any] = {}
    outputs: int = 1
    opset: int = _OPSET
    alone: bool = False

    @property
    def axes(self) -> list[str]:
        """Letters of the operands."""
        return sorted(
            {a for operand in self.operands if isinstance(operand, str) for a in _axes(operand) if a.isalpha()}
        )

    @property
    def constant_axes(self) -> set[str]:
        """Letters that a constant or an attribute fixes."""
        constants = [o for o in self.operands if isinstance(o, str) and o.endswith("!")]
        attrs = [a[1:] for a in self.attrs.values() if isinstance(a, str) and a.startswith("$")]
        return {a for text in (*map(_axes, constants), *attrs) for a in text}

    def model(self, sizes: Mapping[str, int], symbol: str = "") -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The model and inputs for it. The axis `symbol` has no size in the model."""
        random = np.random.default_rng(len(self.op))
        inputs, names, constants, values = [], [], [], {}
        for i, operand in enumerate(self.operands):
            if operand is None:
                names.append("")
                continue
            names.append(f"x{i}")
            if not isinstance(operand, str):
                constants.append(numpy_helper.from_array(np.asarray(operand), f"x{i}"))
                continue
            value = _array(random, operand, sizes)
            if operand.endswith("!"):
                constants.append(numpy_helper.from_array(value, f"x{i}"))
                continue
            dims = [a if a == symbol else n for a, n in zip(_axes(operand), value.shape, strict=True)]
            inputs.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(value.dtype), dims))
            values[f"x{i}"] = value
        attrs = {k: sizes[v[1:]] if isinstance(v, str) and v.startswith("$") else v for k, v in self.attrs.items()}
        domain, _, op = self.op.rpartition(".")
        node = helper.make_node(op, names, [f"y{i}" for i in range(self.outputs)], domain=domain, **attrs)
        outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(self.outputs)]
        graph = helper.make_graph([node], "edge", inputs, outputs, constants)
        opsets = [
            helper.make_opsetid("", self.opset),
            helper.make_opsetid("com.microsoft", 1),
            helper.make_opsetid("ai.onnx.ml", 3),
        ]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10), values


def _axes(operand: str) -> str:
    return operand.rstrip("!").split(":")[0].split("<")[0]


def _array(random: np.random.Generator, operand: str, sizes: Mapping[str, int]) -> np.ndarray:
    text, _, bound = operand.rstrip("!").partition("<")
    axes, _, dtype = text.partition(":")
    dims = [int(a) if a.isdigit() else sizes[a] for a in axes]
    dtype = dtype or "float32"
    if dtype == "bool":
        return random.random(dims) < 0.5
    if np.dtype(dtype).kind in "iu":
        return random.integers(0, max(int(bound or 9), 1), dims).astype(dtype)
    return random.uniform(0.1, 0.9, dims).astype(dtype)


def _ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


_UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Shape",
    "Size",
    "NonZero",
    "Dropout",
]
_BINARY = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Max",
    "Min",
    "Mean",
    "Sum",
    "Pow",
    "Mod",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "PRelu",
]
_REDUCTIONS = [
    f"Reduce{kind}" for kind in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
]
_SCALE, _ZERO = np.float32(0.05), np.uint8(3)
_SAME = {"pads": [1, 1, 1, 1]}

CASES: list[Case] = [
    *(Case(op, ("ABC",), {"fmod": 1} if op == "Mod" else {}) for op in _UNARY),
    *(Case(op, ("ABC", "BC"), {"fmod": 1} if op == "Mod" else {}) for op in _BINARY),
    *(Case(op, ("ABC:int64", "BC:int64")) for op in ["Add", "Sub", "Mul", "Max", "Min", "Equal", "Less"]),
    *(Case(op, ("ABC:bool", "BC:bool")) for op in ("And", "Or", "Xor")),
    *(Case(op, ("ABC:uint8", "BC:uint8")) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    Case("BitwiseNot", ("ABC:uint8",)),
    Case("BitShift", ("ABC:uint8", "BC:uint8<7"), {"direction": "LEFT"}),
    Case("Not", ("ABC:bool",)),
    Case("Swish", ("ABC",), opset=24),
    Case("Clip", ("ABC", np.float32(0.3), np.float32(0.6))),
    Case("Where", ("ABC:bool", "BC", "C")),
    *(Case(op, ("ABC", _ints(axis)), {"keepdims": 0}) for op in _REDUCTIONS for axis in (1, -1)),
    *(Case(op, ("ABC",)) for op in _REDUCTIONS),
    *(Case(op, ("ABC:int32", _ints(1))) for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1")),
    *(Case(op, ("ABC",), {"axis": 1}) for op in ("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax")),
    Case("Softmax", ("ABC",), {"axis": -1}),
    Case("CumSum", ("ABC", np.int64(1))),
    Case("CumProd", ("ABC", np.int64(1)), opset=26),
    Case("LpNormalization", ("ABC",), {"axis": 1}),
    Case("MeanVarianceNormalization", ("NCHW",)),
    Case("BatchNormalization", ("NCHW", "C", "C", "C", "C")),
    Case("InstanceNormalization", ("NCHW", "C", "C")),
    Case("GroupNormalization", ("NCHW", "C", "C"), {"num_groups": 2}),
    Case("GroupNormalization", ("NCHW", "C!", "C!"), {"num_groups": 2}),
    Case("InstanceNormalization", ("NCHW", "C!", "C!")),
    Case("LayerNormalization", ("ABC", "C", "C"), {"axis": -1}, outputs=3),
    Case("RMSNormalization", ("ABC", "C"), {"axis": -1}, opset=23),
    Case("LRN", ("NCHW",), {"size": 3}),
    Case("MatMul", ("ABC", "CD")),
    Case("MatMul", ("ABC", "ACD")),
    Case("MatMul", ("ABC", "CD!")),
    Case("MatMul", ("C", "CD")),
    Case("Gemm", ("AB", "BC", "C"), {"alpha": 0.5}),
    Case("Gemm", ("AB", "CB!", "C!"), {"transB": 1}),
    Case("Einsum", ("AB", "BC"), {"equation": "ij,jk->ik"}),
    Case("Einsum", ("ABC", "ADC"), {"equation": "bij,bkj->bik"}),
    Case("Einsum", ("ABC", "DCN"), {"equation": "bid,hdj->bhij"}),
    Case("Einsum", ("ABC",), {"equation": "...j->..."}),
    Case("Einsum", ("A", "B"), {"equation": "i,j->ij"}),
    Case("MatMulInteger", ("AB:uint8", "BC:int8", np.uint8(3))),
    Case("MatMulInteger", ("AB:uint8", "BC:int8!")),
    Case("QLinearMatMul", ("AB:uint8", _SCALE, _ZERO, "BC:uint8", _SCALE, _ZERO, _SCALE, _ZERO)),
    Case("QLinearMatMul", ("AB:uint8", _SCALE, _ZERO, "BC:uint8!", _SCALE, _ZERO, _SCALE, _ZERO)),
    Case("Conv", ("NCHW", "KC33", "K"), _SAME),
    Case("Conv", ("NCHW", "KC33!", "K!"), _SAME),
    Case("Conv", ("NCHW", "C133!"), {"group": "$C", **_SAME}),
    Case("Conv", ("NCW", "KC3!"), {"pads": [1, 1]}),
    Case("Conv", ("NCHW", "KC33!"), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    Case("ConvTranspose", ("NCHW", "CK33"), {"strides": [2, 2]}),
    Case("ConvTranspose", ("NCHW", "CK33!", "K!"), {"strides": [2, 2]}),
    Case("ConvInteger", ("NCHW:uint8", "KC33:uint8", np.uint8(2)), _SAME),
    Case("ConvInteger", ("NCHW:uint8", "KC33:uint8!", np.uint8(2)), _SAME),
    Case("QLinearConv", ("NCHW:uint8", _SCALE, _ZERO, "KC33:uint8", _SCALE, _ZERO, _SCALE, _ZERO), _SAME),
    Case("QLinearConv", ("NCHW:uint8", _SCALE, _ZERO, "KC33:uint8!", _SCALE, _ZERO, _SCALE, _ZERO), _SAME),
    Case("MaxPool", ("NCHW",), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("MaxPool", ("NCHW",), {"kernel_shape": [3, 3], **_SAME}, outputs=2),
    Case("AveragePool", ("NCHW",), {"kernel_shape": [3, 3], **_SAME}),
    Case("LpPool", ("NCHW",), {"kernel_shape": [2, 2]}),
    *(Case(op, ("NCHW",), opset=21) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")),
    Case(
        "LSTM",
        ("TBC", np.full((1, 20, 6), 0.1, np.float32), np.full((1, 20, 5), 0.1, np.float32)),
        {"hidden_size": 5},
        outputs=3,
    ),
    Case(
        "LSTM",
        ("TBC", np.full((2, 20, 6), 0.1, np.float32), np.full((2, 20, 5), 0.1, np.float32)),
        {"hidden_size": 5, "direction": "bidirectional"},
        outputs=3,
    ),
    Case(
        "GRU",
        ("TBC", np.full((1, 15, 6), 0.1, np.float32), np.full((1, 15, 5), 0.1, np.float32), None, None, "1B5"),
        {"hidden_size": 5},
        outputs=2,
    ),
    Case(
        "GRU",
        ("TBC", np.full((1, 15, 6), 0.1, np.float32), np.full((1, 15, 5), 0.1, np.float32)),
        {"hidden_size": 5, "linear_before_reset": 1},
        outputs=2,
    ),
    Case(
        "RNN",
        ("TBC", np.full((1, 5, 6), 0.1, np.float32), np.full((1, 5, 5), 0.1, np.float32)),
        {"hidden_size": 5},
        outputs=2,
    ),
    Case("LSTM", ("TBC", "18C", "182"), {"hidden_size": 2}, outputs=3),
    Case("GRU", ("TBC", "16C", "162"), {"hidden_size": 2}, outputs=2),
    Case("QuantizeLinear", ("ABC", _SCALE, _ZERO)),
    Case("QuantizeLinear", ("ABC", "B", "B:uint8"), {"axis": 1}),
    Case("DequantizeLinear", ("ABC:uint8", "B", "B:uint8"), {"axis": 1}),
    Case("DynamicQuantizeLinear", ("ABC",), outputs=3),
    Case("Cast", ("ABC",), {"to": 7}),
    Case("CastLike", ("ABC", "1:int32")),
    Case("Concat", ("ABC", "ADC"), {"axis": 1}),
    Case("Split", ("ABC",), {"axis": 1, "num_outputs": 2}, outputs=2),
    Case("Slice", ("ABC", _ints(1), _ints(9), _ints(1))),
    Case("Slice", ("ABC", _ints(-1), _ints(-9), _ints(1), _ints(-1))),
    Case("Pad", ("ABC", _ints(0, 1, 0, 0, 2, 0), np.float32(0.5))),
    Case("Pad", ("ABC", _ints(0, 1, 0, 0, 1, 0)), {"mode": "reflect"}),
    Case("Pad", ("ABC", _ints(0, 1, 0, 0, 1, 0)), {"mode": "edge"}),
    Case("Transpose", ("ABC",), {"perm": [2, 0, 1]}),
    Case("Reshape", ("ABC", _ints(0, -1))),
    Case("Flatten", ("ABC",), {"axis": 1}),
    Case("Squeeze", ("1BC", _ints(0))),
    Case("Unsqueeze", ("ABC", _ints(0, 2))),
    Case("Expand", ("A1C", _ints(1, 4, 1))),
    Case("Tile", ("ABC", _ints(2, 1, 3))),
    Case("Tile", ("ABC", "3:int64<3")),
    Case("DepthToSpace", ("NKHW",), {"blocksize": 2}),
    Case("SpaceToDepth", ("NCTL",), {"blocksize": 2}),
    Case("Gather", ("ABC", "D:int64<3")),
    Case("Gather", ("ABC", "D:int64<4"), {"axis": 1}),
    Case("GatherElements", ("ABC", "ADC:int64<4"), {"axis": 1}),
    Case("GatherND", ("ABC", "D2:int64<3")),
    Case("ScatterElements", ("ABC", "ADC:int64<4", "ADC"), {"axis": 1}),
    Case("ScatterElements", ("ABC", "ADC:int64<4", "ADC"), {"axis": 1, "reduction": "add"}),
    Case("ScatterND", ("ABC", "D1:int64<3", "DBC")),
    Case("TopK", ("ABC", _ints(1)), {"axis": 1}, outputs=2),
    Case("TopK", ("ABC", _ints(0)), {"axis": 1}, outputs=2),
    Case("Unique", ("ABC",), outputs=4),
    Case("Compress", ("ABC", "B:bool"), {"axis": 1}),
    Case("OneHot", ("AB:int64<5", np.int64(5), np.array([0, 1], np.float32))),
    Case("EyeLike", ("AB",)),
    Case("Trilu", ("ABC", np.int64(0))),
    Case("ReverseSequence", ("TBC", "B:int64<4")),
    Case("CenterCropPad", ("ABC", _ints(2, 7, 3))),
    Case("Col2Im", ("N9M", _ints(4, 4), _ints(3, 3)), {"pads": [0, 1, 1, 1]}),
    Case("ConstantOfShape", ("3:int64<3",)),
    Case("Range", (np.int64(0), np.int64(0), np.int64(1))),
    Case("Resize", ("NCHW", None, np.array([1, 1, 2, 2], np.float32)), {"mode": "linear"}),
    Case("Resize", ("NCHW", None, np.array([1, 1, 0.5, 2], np.float32)), {"mode": "nearest"}),
    Case("Resize", ("NCHW", None, np.array([1, 1, 2, 2], np.float32)), {"mode": "cubic"}),
    Case("Resize", ("NCHW", None, None, _ints(2, 6, 3, 4)), {"mode": "linear"}),
    Case("GridSample", ("NCHW", "NTU2")),
    Case("AffineGrid", ("N23", _ints(2, 1, 3, 4))),
    Case(
        "RoiAlign", ("NCHW", "A4", "A:int64<1"), {"output_height": 2, "output_width": 2, "sampling_ratio": 2}, opset=21
    ),
    Case("MaxRoiPool", ("NCHW", "A5"), {"pooled_shape": [2, 2]}, opset=21),
    Case("NonMaxSuppression", ("NA4", "NBA", _ints(3))),
    Case("Det", ("NAA",)),
    Case("DFT", ("NL1",), {"axis": 1}, opset=19),
    Case("STFT", ("NL1", np.int64(2), "T")),
    Case("BlackmanWindow", (np.int64(0),), alone=True),
    Case("HannWindow", (np.int64(1),)),
    Case("HammingWindow", (np.int64(1),)),
    Case("MelWeightMatrix", (np.int64(0), np.int64(8), np.int64(16), np.float32(0), np.float32(8))),
    Case("NegativeLogLikelihoodLoss", ("NC", "N:int64<6")),
    Case("SoftmaxCrossEntropyLoss", ("NC", "N:int64<6"), outputs=2),
    Case("DeformConv", ("NCHW", "KC33", np.zeros((2, 18, 5, 7), np.float32)), _SAME),
    Case("Attention", ("NKTD", "NKUD", "NKUD"), opset=23),
    Case("RotaryEmbedding", ("NATK", "LB", "LB", "NT:int64<9"), opset=23),
    Case("SwiGLU", ("ABC", "ABC"), opset=26, alone=True),
    Case("BitCast", ("ABC",), {"to": 6}, opset=26),
    Case("TensorScatter", ("NAUD", "NATD", "N:int64<2"), {"axis": 2}, opset=24),
    Case("MaxUnpool", ("NCHW", "NCHW:int64<9"), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("RandomNormalLike", ("ABC",), {"seed": 1.0}, opset=21),
    Case("RandomUniformLike", ("ABC",), {"seed": 1.0}, opset=21),
    Case("Bernoulli", ("ABC",), {"seed": 1.0}, opset=21),
    Case("Multinomial", ("AB",), {"sample_size": 3, "seed": 1.0}, opset=21),
    *(
        Case(f"ai.onnx.ml.{op}", ("AB",), attrs)
        for op, attrs in (
            ("Binarizer", {"threshold": 0.5}),
            ("Imputer", {"imputed_value_floats": [1.0], "replaced_value_float": 0.0}),
            ("Normalizer", {"norm": "L2"}),
            ("Scaler", {"offset": [0.5], "scale": [2.0]}),
        )
    ),
    Case("ai.onnx.ml.LinearRegressor", ("A4",), {"coefficients": [0.1, 0.2, 0.3, 0.4], "intercepts": [1.0]}),
    Case(
        "ai.onnx.ml.LinearClassifier",
        ("A2",),
        {"coefficients": [0.1, 0.2, 0.3, 0.4], "intercepts": [1.0, 2.0], "classlabels_ints": [0, 1]},
        outputs=2,
    ),
    Case("ai.onnx.ml.OneHotEncoder", ("A1:int64<3",), {"cats_int64s": [0, 1, 2]}),
    Case("ai.onnx.ml.ArrayFeatureExtractor", ("AB", "D:int64<3")),
    Case("ai.onnx.ml.FeatureVectorizer", ("AB", "AC"), {"inputdimensions": [4, 6]}),
    Case("com.microsoft.FusedMatMul", ("ABC", "ADC"), {"transB": 1, "alpha": 0.5}),
    Case("com.microsoft.FusedConv", ("NCHW", "KC33!", "K!"), {"activation": "Relu", **_SAME}),
    Case("com.microsoft.FusedGemm", ("AB", "BC", "C"), {"activation": "Relu"}),
    Case("com.microsoft.BiasGelu", ("ABC", "C")),
    Case("com.microsoft.FastGelu", ("ABC", "C")),
    Case("com.microsoft.Gelu", ("ABC",)),
    Case("com.microsoft.QuickGelu", ("ABC",)),
    Case("com.microsoft.SkipLayerNormalization", ("ABC", "ABC", "C", "C")),
    Case("com.microsoft.SkipSimplifiedLayerNormalization", ("ABC", "ABC", "C")),
    Case("com.microsoft.DynamicQuantizeMatMul", ("AB", "BC:uint8!", _SCALE, _ZERO)),
    Case("com.microsoft.MatMulIntegerToFloat", ("AB:uint8", "BC:uint8!", _SCALE, _SCALE, _ZERO, _ZERO)),
    Case("com.microsoft.QGemm", ("AB:uint8", _SCALE, _ZERO, "BC:uint8!", _SCALE, _ZERO, None, _SCALE, _ZERO)),
    Case("com.microsoft.QLinearAdd", ("ABC:uint8", _SCALE, _ZERO, "ABC:uint8", _SCALE, _ZERO, _SCALE, _ZERO)),
    Case("com.microsoft.QLinearMul", ("ABC:uint8", _SCALE, _ZERO, "ABC:uint8", _SCALE, _ZERO, _SCALE, _ZERO)),
    Case("com.microsoft.QLinearSigmoid", ("ABC:uint8", _SCALE, _ZERO, _SCALE, _ZERO)),
    Case("com.microsoft.QLinearLeakyRelu", ("ABC:uint8", _SCALE, _ZERO, _SCALE, _ZERO), {"alpha": 0.1}),
    Case("com.microsoft.QLinearSoftmax", ("ABC:uint8", _SCALE, _ZERO, _SCALE, _ZERO), {"opset": 13}),
    Case("com.microsoft.QLinearGlobalAveragePool", ("NCHW:uint8", _SCALE, _ZERO, _SCALE, _ZERO), {"channels_last": 0}),
    Case("com.microsoft.QLinearAveragePool", ("NCHW:uint8", _SCALE, _ZERO, _SCALE, _ZERO), {"kernel_shape": [2, 2]}),
    Case(
        "com.microsoft.QLinearConcat",
        (_SCALE, _ZERO, "ABC:uint8", _SCALE, _ZERO, "ADC:uint8", _SCALE, _ZERO),
        {"axis": 1},
    ),
]

#: Operators of ONNX without a case, and why.
LEFT_OUT = {
    "CausalConvWithState LinearAttention FlexAttention": "no other engine runs them; their cases are in tests/conformance",
    "Constant RandomNormal RandomUniform": "no input has an axis",
    "If Loop Scan SequenceMap": "control flow",
    "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty "
    "SequenceErase SequenceInsert SequenceLength SplitToSequence": "sequences",
    "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer": "strings",
    "ImageDecoder": "bytes of a file",
}

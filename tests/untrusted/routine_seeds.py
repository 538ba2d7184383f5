"""Sound models that together are offered every routine of the CPU, those of large weights too."""

from __future__ import annotations

from typing import NamedTuple

import onnx
from onnx import parser

__all__ = ["routine_models"]


class _Network(NamedTuple):
    """Inputs, nodes and outputs as text, and the dims of weights, which a node of the model makes."""

    inputs: str
    nodes: str
    outputs: str
    weights: dict[str, tuple[int, ...]]


_SAME = "pads = [1, 1, 1, 1]"
_NETWORKS = {
    "convolutions": _Network(
        "float[1, 16, 12, 12] x",
        f"a = Conv <{_SAME}> (x, w) b = Relu (a) c = Conv <{_SAME}, strides = [2, 2]> (b, v) d = Conv (c, p) y = Add (d, c)",
        "y",
        {"w": (32, 16, 3, 3), "v": (32, 32, 3, 3), "p": (32, 32, 1, 1)},
    ),
    "first": _Network(
        "float[N, 3, 24, 24] x",
        f"a = Conv <{_SAME}> (x, w) y = MaxPool <kernel_shape = [2, 2]> (a)",
        "y",
        {"w": (16, 3, 3, 3)},
    ),
    "transposed": _Network(
        "float[1, 16, 9, 7] x",
        f"a = ConvTranspose <{_SAME}, strides = [2, 2]> (x, w) b = Relu (a) c = ConvTranspose <strides = [2, 2], group = 16> (b, v) "
        f"y = ConvTranspose <{_SAME}, strides = [2, 2]> (c, u)",
        "y",
        {"w": (16, 16, 4, 4), "v": (16, 1, 2, 2), "u": (16, 3, 4, 4)},
    ),
    "pointwise": _Network(
        "float[1, 128, 16, 16] x",
        "s = Mul (x, m) t = Add (s, m) r = Relu (t) a = Conv (r, w) y = Conv (a, w)",
        "y",
        {"m": (128, 1, 1), "w": (128, 128, 1, 1)},
    ),
    "zeros": _Network(
        "float[1, 16, 9, 7] x",
        "i = EyeLike (w) k = Unsqueeze (i, last) y = Conv (x, k)",
        "y",
        {"w": (16, 16)},
    ),
    "chain": _Network(
        "float[1, 3, 16, 16] x",
        f"f = Conv <{_SAME}, strides = [2, 2]> (x, w) g = Relu (f) d = Conv <{_SAME}, group = 32> (g, v) e = Relu (d) "
        f"p = Conv (e, u) q = Conv (p, t) h = Conv <{_SAME}, group = 32> (q, v) y = Conv (h, u)",
        "y",
        {"w": (32, 3, 3, 3), "v": (32, 1, 3, 3), "u": (16, 32, 1, 1), "t": (32, 16, 1, 1)},
    ),
    "gradients": _Network(
        "float[17, 2, 12, 12] x, float[4, 2, 11, 10] v",
        "w = Conv (x, v) p, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) "
        "u = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (p, i)",
        "w, u",
        {},
    ),
    "row": _Network(
        "float[1, 640] x", "a = MatMul (x, w) b = Tanh (a) y = MatMul (b, v)", "y", {"w": (640, 500), "v": (500, 7)}
    ),
    "rows": _Network(
        "float[N, 128] x",
        "a = MatMul (x, w) b = Sigmoid (a) y = Gemm (b, v, x)",
        "y",
        {"w": (128, 256), "v": (256, 128)},
    ),
    "long_recurrent": _Network(
        "float[T, 1, 8] x",
        "l, lh, lc = LSTM <hidden_size = 260> (x, w, r) s = Squeeze (l) u = Reshape (s, dims) g, gh = GRU <hidden_size = 4> (u, v, q)",
        "lh, gh",
        {"w": (1, 1040, 8), "r": (1, 1040, 260), "v": (1, 12, 260), "q": (1, 12, 4)},
    ),
    "recurrent_stack": _Network(
        "float[T, 1, 8] x",
        "a = LSTM <hidden_size = 8> (x, w, r) b = Squeeze (a, one) c = LSTM <hidden_size = 8> (b, w, r) d = Squeeze (c, one) "
        "y, h = GRU <hidden_size = 4> (d, v, q)",
        "y, h",
        {"w": (1, 32, 8), "r": (1, 32, 8), "v": (1, 12, 8), "q": (1, 12, 4)},
    ),
    "recurrent64": _Network(
        "double[T, 2, 8] x, int32[2] lengths",
        "u = Cast <to = 11> (w) v = Cast <to = 11> (r) y, h = GRU <hidden_size = 4> (x, u, v, , lengths)",
        "y, h",
        {"w": (1, 12, 8), "r": (1, 12, 4)},
    ),
    "recurrent_codes": _Network(
        "float[T, 2, 8] x, int32[2] lengths",
        "w8 = QuantizeLinear (w, step, zero) r8 = QuantizeLinear (r, step, zero) y, h, c = com.microsoft.DynamicQuantizeLSTM "
        "<hidden_size = 4> (x, w8, r8, , lengths, , , , ones, zeros, ones, zeros)",
        "y, h",
        {"w": (1, 8, 16), "r": (1, 4, 16)},
    ),
    "images": _Network(
        "float[1, 16, 9, 9] x, float[1, 4, 5, 2] at",
        'l = LRN <size = 3> (x) r = Resize <mode = "linear"> (l, , twice) g = GridSample (r, at) '
        "a = AveragePool <kernel_shape = [3, 3]> (r) m = GlobalAveragePool (a) c = Concat <axis = 1> (l, l) "
        'b = Conv (c, w) z = Resize <mode = "linear"> (x, , twice) t = Transpose <perm = [0, 2, 3, 1]> (z) '
        "i = InstanceNormalization (b, n, n)",
        "g, m, t, i",
        {"w": (16, 32, 1, 1), "n": (16,)},
    ),
    "moves": _Network(
        "float[4, 5, 6] x, int64[N, 1] at, float[N, 5, 6] put, int64[4, 2, 6] from",
        "p = Pad (x, pads) g = Gather (x, some) o = GatherND (x, at) s = ScatterND (x, at, put) e = GatherElements <axis = 1> (x, from) "
        "k, ki = TopK (x, one) a, b = Split <axis = 1, num_outputs = 2> (x) j = Relu (a) i = Abs (b) c = Concat <axis = 1> (j, i) "
        "t = Transpose <perm = [2, 0, 1]> (x) f = Softmax (c) m = ReduceMean (f) n = Add (at, from2) q = ArgMax (f) r = MatMul (at, one)",
        "p, g, o, s, e, k, ki, t, m, n, q, r",
        {},
    ),
    "at_run": _Network(
        "float[1, 3, 9, 9] x, int64[4] sizes, float[4] factors, int64[8] around, float[1, 2, 3, 4, 3] at, float[1, 12, 64] columns",
        'r = Resize <mode = "linear"> (x, , , sizes) n = Resize (x, , factors) p = Pad (x, around) c = CenterCropPad (x, sizes) '
        'v = Resize <mode = "cubic"> (x, , factors) u = Unsqueeze (x, one) g = GridSample (u, at) m = Col2Im (columns, image, block)',
        "r, n, p, c, v, g, m",
        {},
    ),
    "attention": _Network(
        "float[2, N, 3, 16] q, float[2, M, 3, 16] k, float[2, 1, 1, M] hidden, bool[N, M] seen",
        "r = Transpose <perm = [0, 2, 1, 3]> (q) t = Transpose <perm = [0, 2, 3, 1]> (k) v = Transpose <perm = [0, 2, 1, 3]> (k) "
        "s = MatMul (r, t) a = Add (s, hidden) w = Where (seen, a, low) p = Softmax (w) o = MatMul (p, v) "
        "y = Transpose <perm = [0, 2, 1, 3]> (o)",
        "y",
        {},
    ),
    "kinds": _Network(
        "float[4, 5, 6] x, double[1, 3, 9, 9] d, uint8[1, 3, 9, 9] u, int64[4, 5] i, float[2, 64, 1] s",
        "a = CumSum (x, axis) b = Hardmax (x) c = Trilu (x) f = DFT <axis = 1> (s) o = OneHot (i, depth, off_on) n = NonZero (i) "
        "p = MaxPool <kernel_shape = [3, 3]> (d) q = Softmax (d) r = LayerNormalization (d, nine) "
        'v = Resize <mode = "linear"> (u, , twice)',
        "a, b, c, f, o, n, p, q, r, v",
        {},
    ),
    "codes": _Network(
        "uint8[1, 16, 12, 12] x",
        f"w8 = QuantizeLinear (w, step, zero) v8 = QuantizeLinear (v, step, zero) u8 = QuantizeLinear (u, step, zero) "
        f"wd = DequantizeLinear (w8, step, zero) vd = DequantizeLinear (v8, step, zero) ud = DequantizeLinear (u8, step, zero) "
        f"xd = DequantizeLinear (x, step, middle) a = Conv <{_SAME}> (xd, wd) "
        f"a8 = QuantizeLinear (a, step, middle) ad = DequantizeLinear (a8, step, middle) b = Conv <{_SAME}, group = 16> (ad, vd) "
        f"b8 = QuantizeLinear (b, step, middle) bd = DequantizeLinear (b8, step, middle) c = Add (bd, xd) "
        f"c8 = QuantizeLinear (c, step, middle) cd = DequantizeLinear (c8, step, middle) d = HardSwish (cd) "
        f"d8 = QuantizeLinear (d, step, middle) dd = DequantizeLinear (d8, step, middle) e = GlobalAveragePool (dd) "
        f"e8 = QuantizeLinear (e, step, middle) ed = DequantizeLinear (e8, step, middle) f = Flatten (ed) "
        f"g = MatMul (f, ud) y = QuantizeLinear (g, step, middle) z = DepthToSpace <blocksize = 2> (a8) "
        f"t8 = QuantizeLinear (t, step, zero) td = DequantizeLinear (t8, step, zero) h = Conv <{_SAME}> (xd, td) "
        f"h8 = QuantizeLinear (h, step, middle)",
        "y, z, h8",
        {"w": (16, 16, 3, 3), "v": (16, 1, 3, 3), "u": (16, 10), "t": (3, 16, 3, 3)},
    ),
    "codes_chain": _Network(
        "uint8[1, 16, 12, 12] x",
        f"w8 = QuantizeLinear (w, step, zero) v8 = QuantizeLinear (v, step, zero) u8 = QuantizeLinear (u, step, zero) "
        f"wd = DequantizeLinear (w8, step, zero) vd = DequantizeLinear (v8, step, zero) ud = DequantizeLinear (u8, step, zero) "
        f"xd = DequantizeLinear (x, step, middle) a = Conv (xd, wd) "
        f"a8 = QuantizeLinear (a, step, middle) ad = DequantizeLinear (a8, step, middle) b = Conv <{_SAME}, group = 32> (ad, vd) "
        f"b8 = QuantizeLinear (b, step, middle) bd = DequantizeLinear (b8, step, middle) c = Conv (bd, ud) "
        f"y = QuantizeLinear (c, step, middle)",
        "y",
        {"w": (32, 16, 1, 1), "v": (32, 1, 3, 3), "u": (16, 32, 1, 1)},
    ),
    "codes_matmul": _Network(
        "uint8[2, N, 12] x, int8[2, 12, 9] z",
        "xd = DequantizeLinear (x, step, middle) zd = DequantizeLinear (z, step, zero) a = MatMul (xd, zd) "
        "y = QuantizeLinear (a, step, middle) w = MatMulInteger (x, z)",
        "y, w",
        {},
    ),
    "trees": _Network(
        "float[N, 4] x",
        "y = ai.onnx.ml.TreeEnsembleRegressor <nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [3, 0, 0], "
        'nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0], '
        "nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], "
        "target_weights = [1.0, 2.0], n_targets = 1> (x)",
        "y",
        {},
    ),
    "tables": _Network(
        "float[N, 4] x, string[N, 3] w",
        'n = ai.onnx.ml.Normalizer <norm = "L2"> (x) l, p = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 2.0, 3.0, 4.0], '
        "intercepts = [0.5], classlabels_ints = [3, 4]> (n) c, s = ai.onnx.ml.SVMClassifier <coefficients = [1.0, -1.0, 0.5], "
        'support_vectors = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0], kernel_type = "RBF", rho = [0.1], '
        "kernel_params = [0.5, 0.0, 3.0], vectors_per_class = [1, 2], classlabels_ints = [0, 1], prob_a = [-1.0], prob_b = [0.0]> (n) "
        'e = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1, 2]> (w) '
        'h = ai.onnx.ml.OneHotEncoder <cats_strings = ["a", "b"]> (w) t = TfIdfVectorizer <mode = "TFIDF", min_gram_length = 1, '
        "max_gram_length = 2, max_skip_count = 1, ngram_counts = [0, 2], ngram_indexes = [0, 1, 2], weights = [1.0, 2.0, 3.0], "
        'pool_strings = ["a", "b", "a", "b"]> (w)',
        "l, p, c, s, e, h, t",
        {},
    ),
}
_CONSTANTS = (
    "int64[3] dims = {-1, 1, 260}, float[4] twice = {1, 1, 2, 2}, int64[6] pads = {0, 1, 0, 0, 0, 2}, int64[2] some = {1, 2}, int64[2] last = {2, 3}, "
    "int64 axis = {1}, int64 depth = {7}, float[2] off_on = {0, 1}, double[9] nine = {1, 2, 3, 4, 5, 6, 7, 8, 9}, "
    "int64[1] one = {1}, int64[1] from2 = {3}, float step = {0.05}, int8 zero = {0}, uint8 middle = {128}, "
    "float[1] ones = {0.01}, int8[1] zeros = {0}, float low = {-1000}, int64[2] image = {9, 9}, int64[2] block = {2, 2}"
)


def routine_models() -> dict[str, onnx.ModelProto]:
    """The models by name."""
    models = {}
    for name, network in _NETWORKS.items():
        sizes = "".join(
            f", int64[{len(dims)}] {w}_dims = {{{', '.join(map(str, dims))}}}" for w, dims in network.weights.items()
        )
        made = " ".join(
            f"{w} = ConstantOfShape <value: tensor = float[1] {{0.01}}> ({w}_dims)" for w in network.weights
        )
        text = f'<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3, "com.microsoft": 1]> {name} ({network.inputs}) => ({network.outputs})'
        model = parser.parse_model(f"{text} <{_CONSTANTS}{sizes}> {{ {made} {network.nodes} }}")
        read = {n for node in model.graph.node for n in node.input}
        kept = [t for t in model.graph.initializer if t.name in read]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        models[name] = model
    return models

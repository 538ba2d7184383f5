"""Writes the corpus of the loader: ``python -m fuzz.corpus`` after a change of the format or of the routines.

Small modules of every kind of step and item, compiled for the weakest instruction set, for AVX2 and for a device, and texts.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import neo
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

FOLDER = Path(__file__).parent / "corpus"
LARGEST = 8000
TOTAL = 300_000

_HEAD = '<ir_version: 9, opset_import: ["" : 20]>\n'


@dataclass(frozen=True)
class Network:
    """A graph as text, shapes of random weights it names, and pins."""

    text: str
    weights: dict[str, tuple[int, ...]]
    routines: dict[str, str]


NETWORKS = {
    "conv": Network(
        """conv (float[1, 3, 6, 6] x) => (float[1, 8, 6, 6] y) {
          a = Conv <pads = [1, 1, 1, 1]> (x, w, b) r = Relu (a) c = Conv (r, v) y = Add (c, r) }""",
        {"w": (8, 3, 3, 3), "b": (8,), "v": (8, 8, 1, 1)},
        {},
    ),
    "winograd": Network(
        """winograd (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y) {
          [only] y = Conv <pads = [1, 1, 1, 1]> (x, w) }""",
        {"w": (4, 4, 3, 3)},
        {"only": "cpu:float32/winograd*"},
    ),
    "depthwise": Network(
        """depthwise (float[N, 8, 5, 5] x) => (float[N, 8, 3, 3] y) {
          d = Conv <group = 8, strides = [2, 2], pads = [1, 1, 1, 1]> (x, w) y = Clip (d, zero, six) }""",
        {"w": (8, 1, 3, 3), "zero": (), "six": ()},
        {},
    ),
    "gemm": Network(
        """gemm (float[N, 12] x) => (float[N, 5] y) {
          h = Gemm (x, w, b) t = Tanh (h) g = MatMul (t, v) y = Softmax (g) }""",
        {"w": (12, 8), "b": (8,), "v": (8, 5)},
        {},
    ),
    "lstm": Network(
        """lstm (float[T, 1, 3] x) => (float[T, 1, 1, 4] y, h) { y, h, c = LSTM <hidden_size = 4> (x, w, r) }""",
        {"w": (1, 16, 3), "r": (1, 16, 4)},
        {},
    ),
    "views": Network(
        """views (float[N, 4, 6] x) => (y, z) {
          a, b = Split <axis = 1, num_outputs = 2> (x) t = Transpose <perm = [0, 2, 1]> (a) m = MatMul (t, b)
          y = Concat <axis = 1> (b, a) z = ReduceMean (m) }""",
        {},
        {},
    ),
    "if": Network(
        """choose (float[N, 4] x, bool flag) => (float[N, 4] y) {
          y = If (flag) < then_branch = plus () => (float[N, 4] p) { p = Add (x, row) },
                          else_branch = minus () => (float[N, 4] q) { q = Sub (x, row) } > }""",
        {"row": (4,)},
        {},
    ),
    "loop": Network(
        """repeat (int64 trips, bool go, float[N] x) => (last, all) {
          last, all = Loop (trips, go, x) < body = step (int64 i, bool c, float[N] v) => (bool d, float[N] w, float[N] e)
            { d = Identity (c) w = Mul (v, v) e = Add (w, x) } > }""",
        {},
        {},
    ),
    "scan": Network(
        """scan (float[2] start, float[T, 2] x) => (last, all) {
          last, all = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) => (float[2] t, float[2] o)
            { t = Add (s, e) o = Identity (t) } > (start, x) }""",
        {},
        {},
    ),
    "words": Network(
        """words (string[N] s, seq(float[K]) q) => (t, n, first) <string[2] more = {"a", ""}, int64 zero = {0}> {
          t = Concat <axis = 0> (s, more) n = SequenceLength (q) first = SequenceAt (q, zero) }""",
        {},
        {},
    ),
}

# Those that are compiled for a device too: one that computes nothing and needs no driver.
ON_DEVICE = ("gemm", "views")

# Operators of ONNX's own cases that the networks do not have.
CASES = (
    "attention_4d",
    "averagepool_2d_pads",
    "col2im",
    "compress_0",
    "constant_pad",
    "convinteger_with_padding",
    "convtranspose_pads",
    "cumsum_1d",
    "dequantizelinear",
    "det_2d",
    "dft",
    "dynamicquantizelinear",
    "einsum_inner_prod",
    "expand_dim_changed",
    "gathernd_example_int32",
    "gridsample_bilinear",
    "gru_defaults",
    "hardswish",
    "layer_normalization_2d_axis0",
    "lrn",
    "matmulinteger",
    "maxunpool_export_without_output_shape",
    "nonmaxsuppression_two_classes",
    "nonzero_example",
    "onehot_with_axis",
    "optional_get_element_optional_tensor",
    "range_float_type_positive_delta",
    "regex_full_match_basic",
    "resize_upsample_scales_linear",
    "reversesequence_time",
    "roialign_aligned_true",
    "scatter_elements_with_axis",
    "sequence_insert_at_front",
    "slice",
    "split_to_sequence_1",
    "string_concat",
    "string_split_basic",
    "strnormalizer_export_monday_casesensintive_lower",
    "tfidfvectorizer_tf_batch_onlybigrams_skip0",
    "top_k",
    "ai_onnx_ml_tree_ensemble_single_tree",
    "unique_sorted_without_axis",
    "where_example",
)

TEXTS = {
    "values": '{"a":[1,-2.5e3,true,false,null,"x"],"b":{"c":{}},"d":[]}',
    "strings": '["\\u0041\\ud83d\\ude00\\n\\"\\\\\\/\\b\\f\\r\\t","\u00e9\u4e2d\U0001f600",""]',
    "numbers": "[0,-0,9223372036854775807,-9223372036854775808,18446744073709551616,1e308,5e-324,0.1]",
    "deep": "[" * 30 + "]" * 30,
}


def _model(network: Network) -> onnx.ModelProto:
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(_HEAD + network.text)
    for name, shape in network.weights.items():
        weight = np.asarray(random.standard_normal(shape), np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    return model


def _models() -> Iterator[tuple[str, onnx.ModelProto, dict[str, str]]]:
    for name, network in NETWORKS.items():
        yield name, _model(network), network.routines
    cases = {case.name.removeprefix("test_"): case.model for case in collect_testcases(None)}
    for name in CASES:
        model = cases[name]
        assert model is not None
        yield name, model, {}


def _safetensors(header: object, blobs: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return struct.pack("<Q", len(text)) + text + blobs


def _for_any_host(path: Path) -> None:
    """Have a module of a device, whose steps are all there, ask for no more of its host than every machine has."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    plan = json.loads(header["__metadata__"]["neo.plan"])
    plan["target"]["isa"] = "scalar"
    header["__metadata__"]["neo.plan"] = json.dumps(plan, separators=(",", ":"))
    path.write_bytes(_safetensors(header, data[8 + size :]))


def main() -> None:
    """Write the corpus anew."""
    for folder in ("module", "json", "safetensors"):
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
        for path in (FOLDER / folder).iterdir():
            path.unlink()
    total = 0
    for name, model, pins in _models():
        targets = ["cpu:scalar", *(["cpu:avx2"] if name in NETWORKS else []), *(["null"] if name in ON_DEVICE else [])]
        for target in targets:
            path = FOLDER / "module" / f"{name}-{target.removeprefix('cpu:')}.neo"
            neo.compile(model, target=target, threads=1, routines=pins or None).save(path)
            if target == "null":
                _for_any_host(path)
            if path.stat().st_size > LARGEST:
                print(f"{path.name}: {path.stat().st_size} bytes, left out")
                path.unlink()
            else:
                total += path.stat().st_size
    for name, text in TEXTS.items():
        (FOLDER / "json" / name).write_text(text, encoding="utf-8")
    blob = {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}
    plan = {"neo.plan": "{}", "neo.format": "1"}
    next_blob = {"dtype": "U8", "shape": [2, 64], "data_offsets": [64, 192]}
    for name, header, size in (
        ("none", {"__metadata__": plan}, 0),
        ("two", {"__metadata__": plan, "0": blob, "1": next_blob}, 192),
    ):
        (FOLDER / "safetensors" / name).write_bytes(_safetensors(header, bytes(size)))
    print(f"{total} bytes of modules")
    assert total < TOTAL


if __name__ == "__main__":
    main()

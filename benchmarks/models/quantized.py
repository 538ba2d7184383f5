"""Quantized models as onnxruntime.quantization and its graph optimizer write them, of float networks with random weights.

A float network (:mod:`benchmarks.models.quantizable`) and a way to write it (:class:`Static`, :class:`Dynamic`,
:class:`WeightsOnly`) make a model; operators that no tool writes alone are single ones. Needs onnxruntime for the first
two ways.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models.quantizable import NETWORKS, Feeds, Network

__all__ = ["NETWORKS", "QUANTIZED", "SMALL", "Dynamic", "Network", "Quantized", "Static", "WeightsOnly"]

Array = np.ndarray[Any, Any]

MICROSOFT = "com.microsoft"


# Ways to write them.


@contextlib.contextmanager
def _quiet() -> Iterator[Path]:
    """A folder for the tool's files, with its advice left out."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    finally:
        root.setLevel(level)


@dataclass(frozen=True)
class Static:
    """Scales of activations by calibration; the zero points of uint8 codes are anywhere, of `symmetric` ones 128.

    `microsoft`: by that domain's operators.
    """

    qdq: bool = True
    activation: str = "uint8"
    weight: str = "int8"
    per_channel: bool = False
    reduce_range: bool = False
    symmetric: bool = False
    microsoft: bool = False

    def __call__(self, network: Network) -> onnx.ModelProto:
        from onnxruntime import quantization

        kinds = {"uint8": quantization.QuantType.QUInt8, "int8": quantization.QuantType.QInt8}
        samples = iter([network.feeds(seed) for seed in (100, 101)])

        class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
            def get_next(self) -> Feeds | None:
                return next(samples, None)

        with _quiet() as folder:
            onnx.save(network.model(), folder / "float.onnx")
            quantization.quantize_static(
                folder / "float.onnx",
                folder / "codes.onnx",
                Reader(),
                quant_format=quantization.QuantFormat.QDQ if self.qdq else quantization.QuantFormat.QOperator,
                activation_type=kinds[self.activation],
                weight_type=kinds[self.weight],
                per_channel=self.per_channel,
                reduce_range=self.reduce_range,
                extra_options={"ActivationSymmetric": self.symmetric, "UseQDQContribOps": self.microsoft},
            )
            return onnx.load(folder / "codes.onnx")


@dataclass(frozen=True)
class Dynamic:
    """Scales of activations at run time; `optimized`: as ONNX Runtime's optimizer fuses that."""

    weight: str = "int8"
    per_channel: bool = False
    optimized: bool = False

    def __call__(self, network: Network) -> onnx.ModelProto:
        import onnxruntime
        from onnxruntime import quantization

        kinds = {"uint8": quantization.QuantType.QUInt8, "int8": quantization.QuantType.QInt8}
        with _quiet() as folder:
            onnx.save(network.model(), folder / "float.onnx")
            quantization.quantize_dynamic(
                folder / "float.onnx",
                folder / "codes.onnx",
                per_channel=self.per_channel,
                weight_type=kinds[self.weight],
            )
            if not self.optimized:
                return onnx.load(folder / "codes.onnx")
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
            options.optimized_model_filepath = str(folder / "fused.onnx")
            onnxruntime.InferenceSession(str(folder / "codes.onnx"), options, providers=["CPUExecutionProvider"])
            return onnx.load(folder / "fused.onnx")


def _blocks(weight: Array, size: int, bits: int, *, symmetric: bool) -> tuple[Array, Array, Array | None]:
    """Codes [N, blocks, size], scales and zero points [N, blocks] of a weight [K, N]."""
    depth, columns = weight.shape
    blocks = -(-depth // size)
    padded = np.zeros((columns, blocks * size), np.float32)
    padded[:, :depth] = weight.T
    parts = padded.reshape(columns, blocks, size)
    levels, middle = (1 << bits) - 1, 1 << (bits - 1)
    if symmetric:
        scale = np.abs(parts).max(-1) / (middle - 1)
        zero = np.full_like(scale, middle)
    else:
        low, high = np.minimum(parts.min(-1), 0), np.maximum(parts.max(-1), 0)
        scale = (high - low) / levels
        zero = np.rint(-low / np.where(scale > 0, scale, 1)).clip(0, levels)
    scale = np.where(scale > 0, scale, 1).astype(np.float32)
    codes = np.rint(parts / scale[..., None] + zero[..., None]).clip(0, levels).astype(np.uint8)
    return codes, scale, None if symmetric else zero.astype(np.uint8)


def _packed(codes: Array, bits: int) -> Array:
    """Codes of four bits, two to a byte, the first in the lower half; of eight bits as they are."""
    if bits == 8:
        return codes
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros_like(codes[..., :1])], -1)
    packed: Array = codes[..., ::2] | codes[..., 1::2] << 4
    return packed


@dataclass(frozen=True)
class WeightsOnly:
    """Products by constants with weights in blocks along the sum: MatMulNBits, or `qdq`: a DequantizeLinear."""

    bits: int = 4
    block: int = 32
    symmetric: bool = True
    qdq: bool = False
    accuracy_level: int = 0

    def __call__(self, network: Network) -> onnx.ModelProto:
        model = network.model()
        constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
        nodes = []
        for node in model.graph.node:
            weight = constants.get(node.input[1]) if node.op_type == "MatMul" else None
            nodes += [node] if weight is None else self._product(model.graph, node, weight)
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        del model.opset_import[:]
        model.opset_import.extend([helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)])
        model.ir_version = 10
        used = {name for node in nodes for name in node.input}
        kept = [c for c in model.graph.initializer if c.name in used]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        return model

    def _product(self, graph: onnx.GraphProto, node: onnx.NodeProto, weight: Array) -> list[onnx.NodeProto]:
        stem = node.input[1]
        codes, scale, zero = _blocks(weight, self.block, self.bits, symmetric=self.symmetric)
        columns = codes.shape[0]

        def constant(name: str, value: Array) -> str:
            graph.initializer.append(numpy_helper.from_array(value, f"{stem}_{name}"))
            return f"{stem}_{name}"

        if not self.qdq:
            inputs = [node.input[0], constant("codes", _packed(codes, self.bits)), constant("scale", scale)]
            if zero is not None:
                inputs.append(constant("zero", _packed(zero, self.bits).reshape(-1)))
            attributes = {"K": weight.shape[0], "N": columns, "bits": self.bits, "block_size": self.block}
            attributes["accuracy_level"] = self.accuracy_level
            return [helper.make_node("MatMulNBits", inputs, list(node.output), domain=MICROSOFT, **attributes)]
        kind = {4: TensorProto.UINT4, 8: TensorProto.UINT8}[self.bits]
        rows = codes.reshape(columns, -1)[:, : weight.shape[0]].T
        points = np.full(scale.shape, 1 << (self.bits - 1)) if zero is None else zero
        for name, value in (("codes", rows), ("zero", points.T)):
            data = np.ascontiguousarray(value, np.uint8)
            raw = _packed(data.reshape(-1), self.bits).tobytes()
            graph.initializer.append(helper.make_tensor(f"{stem}_{name}", kind, data.shape, raw, raw=True))
        constant("scale", np.ascontiguousarray(scale.T))
        names = [f"{stem}_{name}" for name in ("codes", "scale", "zero")]
        numbers = helper.make_node("DequantizeLinear", names, [f"{stem}_real"], axis=0, block_size=self.block)
        product = helper.make_node("MatMul", [node.input[0], f"{stem}_real"], list(node.output))
        return [numbers, product]


# What is measured and tested.


@dataclass(frozen=True)
class Quantized:
    """A model, the float one that it was written from, and what feeds both."""

    model: Callable[[], onnx.ModelProto]
    real: Callable[[], onnx.ModelProto]
    feeds: Callable[[], Feeds]


Way = Callable[[Network], onnx.ModelProto]


def _written(network: str, way: Way) -> Quantized:
    return Quantized(lambda: way(NETWORKS[network]), NETWORKS[network].model, lambda: NETWORKS[network].feeds(7))


WAYS: dict[str, Way] = {
    "qdq-u8s8": Static(),
    "qdq-u8s8-channel": Static(per_channel=True),
    "qdq-s8s8": Static(activation="int8", per_channel=True),
    "qdq-s8s8-symmetric": Static(activation="int8", symmetric=True),
    "qdq-u8u8": Static(weight="uint8"),
    "qdq-u8u8-symmetric": Static(weight="uint8", symmetric=True),
    "qdq-u8s8-reduced": Static(reduce_range=True, per_channel=True),
    "qop-u8s8": Static(qdq=False),
    "qop-u8s8-channel": Static(qdq=False, per_channel=True),
    "qop-u8u8": Static(qdq=False, weight="uint8"),
    "qop-s8s8": Static(qdq=False, activation="int8", per_channel=True),
    "qdq-u8s8-microsoft": Static(microsoft=True),
}
DYNAMIC_WAYS: dict[str, Way] = {
    "dynamic-s8": Dynamic(),
    "dynamic-s8-channel": Dynamic(per_channel=True),
    "dynamic-u8": Dynamic("uint8"),
    "dynamic-s8-fused": Dynamic(optimized=True),
    "dynamic-u8-fused": Dynamic("uint8", optimized=True),
}
WEIGHTS_ONLY: dict[str, Way] = {
    "int4-32": WeightsOnly(),
    "int4-32-zeros": WeightsOnly(symmetric=False),
    "int4-128": WeightsOnly(block=128),
    "int8-32": WeightsOnly(bits=8),
    "int8-64-zeros": WeightsOnly(bits=8, block=64, symmetric=False),
    "int4-qdq-16": WeightsOnly(block=16, qdq=True),
    "int8-qdq-32-zeros": WeightsOnly(bits=8, qdq=True, symmetric=False),
}


def _all(networks: dict[str, list[str]], ways: dict[str, Way]) -> dict[str, Quantized]:
    return {f"{name}-{way}": _written(name, ways[way]) for name, chosen in networks.items() for way in chosen}


_EVERY, _DYNAMIC = list(WAYS), list(DYNAMIC_WAYS)
_COMMON = ["qdq-u8s8-channel", "qop-u8u8", "qdq-s8s8"]
_KINDS = ("mobile-v3", "efficient", "shuffle", "unet", "keyword", "plain", "branches", "grouped")
#: Of milliseconds each: members of the tests.
SMALL: dict[str, Quantized] = {
    **_all(dict.fromkeys(("cnn", "mobile", "mlp-b8", "encoder"), _EVERY), WAYS),
    **_all(dict.fromkeys(("cnn-odd-b8", "mobile-odd-b8", "detector", "mlp-b1"), _EVERY[:3] + _EVERY[7:9]), WAYS),
    **_all(
        {name: ["qdq-u8s8", "qdq-s8s8", "qop-u8s8"] for name in ("cnn-1d", "cnn-3d", "encoder-b8", "segmenter")}, WAYS
    ),
    **_all(dict.fromkeys(_KINDS, _COMMON), WAYS),
    **_all(dict.fromkeys(("mlp-b1", "mlp-b8", "encoder", "encoder-b8"), _DYNAMIC), DYNAMIC_WAYS),
    **_all({name: ["dynamic-u8", "dynamic-s8"] for name in ("cnn-odd-b8", "cnn-1d", "lstm")}, DYNAMIC_WAYS),
    **_all({name: list(WEIGHTS_ONLY) for name in ("mlp-b1", "encoder")}, WEIGHTS_ONLY),
}
#: Those and larger ones, whose times say something.
QUANTIZED: dict[str, Quantized] = {
    **SMALL,
    **_all({"cnn-wide": ["qdq-u8s8-channel", "qdq-s8s8", "qop-u8s8"]}, WAYS),
    **_all({"mobile-wide": ["qdq-u8s8-channel", "qop-u8s8"]}, WAYS),
    **_all({f"{kind}-wide": _COMMON for kind in _KINDS}, WAYS),
    **_all({"detector-320": ["qdq-u8s8", "qdq-s8s8", "qop-u8s8"]}, WAYS),
    **_all({"segmenter-256": ["qdq-u8s8-channel", "qdq-s8s8"]}, WAYS),
    **_all({"mlp-wide": ["qdq-u8s8", "qop-u8s8"]}, WAYS),
    **_all({"encoder-minilm": ["qdq-u8s8", "qdq-s8s8", "qop-u8s8"], "encoder-bert": ["qdq-u8s8"]}, WAYS),
    **_all(dict.fromkeys(("encoder-minilm", "encoder-bert"), _DYNAMIC), DYNAMIC_WAYS),
    **_all({"lstm-wide": ["dynamic-s8"], "mlp-wide": _DYNAMIC}, DYNAMIC_WAYS),
    **_all({name: list(WEIGHTS_ONLY) for name in ("mlp-wide", "encoder-minilm")}, WEIGHTS_ONLY),
}

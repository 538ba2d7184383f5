"""Quantizing without data: weights as codes, and scales that MatMul and Gemm compute when they run."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
from onnx import TensorProto, helper

from neo.errors import ModelError
from neo.quantize.float_model import FloatModel
from neo.quantize.place import LAYER_OPS, Layer, find_layers, matching
from neo.quantize.report import LayerReport, QuantizeReport
from neo.quantize.result import Quantized
from neo.quantize.study import Builder, Settings
from neo.quantize.weights import quantize_weights
from neo.quantize.write import QdqWriter

__all__ = ["quantize_without_data"]

_STATIC = "Nothing was calibrated: give calibration data for convolutions on codes."


def quantize_without_data(model: FloatModel, settings: Settings, build: Builder) -> Quantized:
    """Write MatMul and Gemm as DynamicQuantizeLinear and MatMulInteger, and the weights of others as codes.

    Raises
    ------
    neo.ModelError
        There is nothing to quantize.
    """
    layers, reasons = find_layers(model, LAYER_OPS)
    skipped = matching(model, settings.skip)
    writer = QdqWriter(model)
    rows = {name: LayerReport(name, "", "float32", reason) for name, reason in reasons.items()}
    dynamic: dict[str, tuple[str, str, str]] = {}
    count = 0
    for layer in layers:
        if layer.name in skipped:
            rows[layer.name] = LayerReport(layer.name, layer.op, "float32", "it is skipped")
            continue
        codes = quantize_weights(model, layer, None, bits=settings.weight_bits, per_channel=settings.per_channel)
        count += 1
        if layer.op in ("MatMul", "Gemm"):
            _multiply_integers(writer, layer, codes.weights, codes.scales, dynamic)
            rows[layer.name] = LayerReport(layer.name, layer.op, "int8", "")
        else:
            writer.set_weights(layer, codes, None)
            rows[layer.name] = LayerReport(layer.name, layer.op, "int8 weights", "")
    if not count:
        why = "".join(f"\n  {name}: {row.reason}" for name, row in rows.items())
        msg = (
            f"[quantize] there must be a Conv, ConvTranspose, MatMul or Gemm of constant float32 weights. Got none{why}"
        )
        raise ModelError(msg)
    left = {name: row.reason for name, row in rows.items() if row.precision == "float32"}
    facts = {"settings": asdict(settings), "samples": 0, "float": left}
    proto = writer.finish({"neo.quantize": json.dumps(facts, sort_keys=True)})
    ops = {node.name: node.op_type for node in model.nodes}
    ordered = [LayerReport(n, ops[n], rows[n].precision, rows[n].reason) for n in ops if n in rows]
    verdict = (
        f"{sum(r.precision == 'int8' for r in ordered)} products compute the scales of what they read when they run, "
        f"{sum(r.precision == 'int8 weights' for r in ordered)} layers have weights as codes and compute in float32.",
        _STATIC,
    )
    sizes = model.proto.ByteSize(), proto.ByteSize()
    report = QuantizeReport(tuple(ordered), verdict, None, None, None, None, *sizes, 0)
    return Quantized(proto, report, build)


def _multiply_integers(
    writer: QdqWriter,
    layer: Layer,
    weights: np.ndarray,
    scales: np.ndarray,
    dynamic: dict[str, tuple[str, str, str]],
) -> None:
    """Put a product of integers in the place of a MatMul or Gemm."""
    nodes = []
    if layer.x not in dynamic:
        codes, scale, zero = (writer.name(f"{layer.x}/{part}") for part in ("codes", "scale", "zero"))
        nodes.append(helper.make_node("DynamicQuantizeLinear", [layer.x], [codes, scale, zero], name=codes))
        dynamic[layer.x] = codes, scale, zero
    codes, scale, zero = dynamic[layer.x]
    matrix = weights if layer.axis == 1 else np.ascontiguousarray(weights.T)
    w = writer.constant(f"{layer.name}/weights", matrix)
    w_scale = writer.constant(f"{layer.name}/weights/scale", scales if scales.size > 1 else scales.reshape(()))
    names = [writer.name(f"{layer.name}/{part}") for part in ("whole", "sums", "unit", "scaled")]
    whole, sums, unit, scaled = names
    last = scaled if layer.bias else layer.y
    nodes += [
        helper.make_node("MatMulInteger", [codes, w, zero], [whole], name=whole),
        helper.make_node("Cast", [whole], [sums], name=sums, to=TensorProto.FLOAT),
        helper.make_node("Mul", [scale, w_scale], [unit], name=unit),
        helper.make_node("Mul", [sums, unit], [last], name=scaled),
    ]
    if layer.bias:
        nodes.append(helper.make_node("Add", [scaled, layer.bias], [layer.y], name=writer.name(f"{layer.name}/biased")))
    writer.replace_node(layer.node, nodes)

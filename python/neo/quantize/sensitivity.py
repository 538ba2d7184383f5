"""The error that rounding one layer alone makes in the outputs: the rest runs in float."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from neo.difference import energy_ratio
from neo.quantize.study import Study
from neo.quantize.write import QdqWriter
from neo.report.progress import LateProgress

__all__ = ["measure_sensitivities", "switched_model"]

#: Samples that each layer is tried on.
TRIED = 6


def switched_model(study: Study) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The float model with an input for each layer that says whether it is computed with rounded operands.

    Returns
    -------
    ModelProto, dict of str to str
        The model, and the name of each layer's input, a bool.
    """
    model = study.model
    placement = study.placement({layer.name for layer in study.layers})
    grids = study.grids(placement)
    writer = QdqWriter(model)
    rounded: dict[str, str] = {}
    switches: dict[str, str] = {}
    for layer in placement.layers:
        grid = grids[placement.rounded[layer.x]]
        nodes: list[onnx.NodeProto] = []
        if layer.x not in rounded:
            linear = [writer.constant(f"{layer.x}/scale", np.array(grid.scale, np.float32))]
            linear.append(writer.constant(f"{layer.x}/zero", np.array(grid.zero, grid.dtype)))
            codes, rounded[layer.x] = writer.name(f"{layer.x}/codes"), writer.name(f"{layer.x}/rounded")
            nodes.append(helper.make_node("QuantizeLinear", [layer.x, *linear], [codes], name=codes))
            nodes.append(
                helper.make_node("DequantizeLinear", [codes, *linear], [rounded[layer.x]], name=rounded[layer.x])
            )
        constants = study.codes(layer, grid)
        read = [rounded[layer.x], writer.constant(f"{layer.w}/rounded", constants.real(layer.axis))]
        if constants.bias is not None:
            unit = np.float32(grid.scale) * constants.scales
            read.append(writer.constant(f"{layer.bias}/rounded", (constants.bias * unit).astype(np.float32)))
        elif layer.bias:
            read.append(layer.bias)
        switch = switches[layer.name] = writer.name(f"{layer.name}/switch")
        writer.proto.graph.input.append(helper.make_tensor_value_info(switch, onnx.TensorProto.BOOL, []))
        for inputs, suffix in ((model.nodes[layer.node].input, "float"), (read, "rounded")):
            node = onnx.NodeProto()
            node.CopyFrom(model.nodes[layer.node])
            node.name = writer.name(f"{layer.name}/{suffix}")
            del node.input[:]
            node.input.extend(inputs)
            node.output[0] = node.name
            nodes.append(node)
        both = [switch, nodes[-1].name, nodes[-2].name]
        nodes.append(helper.make_node("Where", both, [layer.y], name=writer.name(f"{layer.name}/chosen")))
        writer.replace_node(layer.node, nodes)
    return writer.finish({}), switches


def measure_sensitivities(study: Study) -> dict[str, float]:
    """The error of the outputs with one layer rounded, by layer: energy of the difference over that of the outputs."""
    proto, switches = switched_model(study)
    module = study.build(proto)
    off = {name: np.array(False) for name in switches.values()}
    calls = study.calls[:TRIED]
    errors = dict.fromkeys(switches, 0.0)
    with LateProgress("trying layers", len(calls) * len(switches)) as progress:
        for call in calls:
            reference = module.run({**call, **off})
            for layer, switch in switches.items():
                found: dict[str, Any] = module.run({**call, **off, switch: np.array(True)})
                errors[layer] += sum(energy_ratio(found[name], y) for name, y in reference.items()) / len(calls)
                progress.advance(1)
    return errors

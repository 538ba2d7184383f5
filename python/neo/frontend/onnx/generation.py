"""GreedySearch, Sampling and BeamSearch of com.microsoft, written out as a loop over their decoder.

The decoder becomes a function of the model. It is called once with the whole prompt, and then by a Loop with one token
and the keys and values of the tokens before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from neo.errors import ModelError, UnsupportedError
from neo.frontend.onnx.generation_scores import BeamScorer, GreedyScorer, Scorer
from neo.frontend.onnx.nodes import Nodes
from neo.frontend.onnx.order import names_read

if TYPE_CHECKING:
    from neo import _native
    from neo.frontend.onnx.importer import Context, Importer
    from neo.frontend.onnx.scope import Scope

__all__ = ["OPERATORS", "convert"]

OPERATORS = frozenset({"GreedySearch", "Sampling", "BeamSearch"})

_FUNCTIONS = "neo.generation"
_OPSET = 21  # of the nodes written here


def convert(
    importer: Importer,
    scope: Scope,
    node: onnx.NodeProto,
    attributes: Mapping[str, onnx.AttributeProto],
    context: Context,
    place: str,
) -> Sequence[_native.Value | None]:
    """The outputs of a search; none where something in its decoder was refused."""
    attrs = {n: importer.value_of(a, place) for n, a in attributes.items() if a.type != onnx.AttributeProto.GRAPH}
    if int(attrs.get("model_type", 0)) != 0:
        msg = f"a search must be over a decoder alone. Got model_type = {attrs['model_type']}"
        raise UnsupportedError(msg)
    if "decoder" not in attributes:
        msg = f"[{node.op_type}] a search must have its decoder. Got none - at {place}"
        raise ModelError(msg)
    nodes = Nodes(f"{node.output[0]}.search")
    decoders = []
    for name in ("init_decoder", "decoder"):
        graph = attributes[name].g if name in attributes else attributes["decoder"].g
        decoders.append(_Decoder(importer, graph, f"{place}.{name}", context))
    names = _Search(node, attrs, decoders, nodes).write()
    inner = type(context)({**context.opsets, "": _OPSET}, {}, place)
    importer.convert_nodes(scope, nodes.protos, inner)
    return [scope.find(name) if name else None for name in names[: len(node.output)]]


class _Decoder:
    """A decoder as a function of the model: tokens, positions, mask and caches to logits and caches."""

    def __init__(self, importer: Importer, graph: onnx.GraphProto, name: str, context: Context) -> None:
        if len(graph.input) < 4 or len(graph.output) != len(graph.input) - 2:
            msg = (
                "[GreedySearch] a decoder must take tokens, positions, a mask and caches, and give logits and as many "
                f"caches. Got {len(graph.input)} inputs and {len(graph.output)} outputs - at {name}"
            )
            raise ModelError(msg)
        self.name = name
        self.caches = [_cache_type(value, name) for value in graph.input[3:]]
        inputs = [value.name for value in graph.input]
        known = {*inputs, *(t.name for t in graph.initializer), *(o for n in graph.node for o in n.output)}
        self.outer = sorted({read for n in graph.node for read in names_read(n)} - known - {""})
        constants = [
            helper.make_node("Constant", [], [t.name], value=t) for t in graph.initializer if t.name not in inputs
        ]
        function = onnx.FunctionProto()
        function.domain, function.name = _FUNCTIONS, name
        function.input.extend([*inputs, *self.outer])
        function.output.extend(value.name for value in graph.output)
        function.node.extend([*constants, *graph.node])
        for domain, version in context.opsets.items():
            function.opset_import.append(helper.make_opsetid(domain, version))
        importer.add_function(function)

    def call(self, nodes: Nodes, tokens: str, positions: str, mask: str, caches: Sequence[str]) -> list[str]:
        """Logits and caches."""
        inputs = [tokens, positions, mask, *caches, *self.outer]
        return nodes.many(self.name, inputs, len(caches) + 1, domain=_FUNCTIONS)


def _cache_type(value: onnx.ValueInfoProto, place: str) -> tuple[int, int, int]:
    """Element type, heads and size of a head of [2, batch, heads, length, size]."""
    tensor = value.type.tensor_type
    dims = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in tensor.shape.dim]
    if len(dims) != 5 or dims[2] < 1 or dims[4] < 1:
        msg = f"[GreedySearch] a cache must be [2, batch, heads, length, size] with known heads and size. Got {dims} - at {place}"
        raise ModelError(msg)
    return tensor.elem_type, dims[2], dims[4]


class _Search:
    """The nodes of one search."""

    def __init__(
        self, node: onnx.NodeProto, attrs: Mapping[str, Any], decoders: Sequence[_Decoder], nodes: Nodes
    ) -> None:
        self.node = node
        self.op = node.op_type
        self.attrs = attrs
        self.first, self.rest = decoders
        self.nodes = nodes

    def given(self, beam: int, greedy: int | None = None) -> str:
        """The name of an input by its number in BeamSearch and in the two others; empty where it is left out."""
        index = beam if self.op == "BeamSearch" else greedy
        return self.node.input[index] if index is not None and index < len(self.node.input) else ""

    def write(self) -> list[str]:
        n = self.nodes
        ids = n("Cast", self.given(0, 0), to=TensorProto.INT32)
        mask, positions = self._mask_and_positions(ids)
        beams = n.as_int(self.given(3)) if self.op == "BeamSearch" else ""
        if beams:
            shape = n("Concat", n.ints(-1), n.size(ids, 1), axis=0)
            ids, mask, positions = (n("Reshape", n.repeat(x, beams), shape) for x in (ids, mask, positions))
        scorer = self._scorer(beams)
        rows, length = n.size(ids, 0), n.size(ids, 1)
        longest = n.as_int(self.given(1, 1))
        caches = [self._empty(rows, *cache) for cache in self.first.caches]
        logits, *caches = self.first.call(n, ids, positions, mask, caches)
        state, picked = scorer.step(n, logits, scorer.start(n, ids, longest), first=True)
        caches = [self._pick(n, cache, picked) for cache in caches]
        counts = n("ReduceSum", mask, n.ints(1), keepdims=0)
        steps = n("Sub", n("Sub", longest, length), n.ints(1))
        carried = [*state, counts, mask, *caches]
        body, names = self._body(scorer, len(state), len(caches))
        made = n.many(
            "Loop", [n("Squeeze", steps), n("Not", scorer.is_over(n, state)), *carried], len(names), body=body
        )
        traces = made[len(carried) :]
        return scorer.finish(n, made[: len(state)], longest, [*zip(scorer.traces(state), traces, strict=True)])

    def _scorer(self, beams: str) -> Scorer:
        inputs = {
            "min_length": self.given(2, 2),
            "repetition_penalty": self.given(6, 3),
            "vocab_mask": self.given(7, 4),
            "prefix_vocab_mask": self.given(8, 5),
        }
        if self.op == "BeamSearch":
            inputs["prompt"] = self.nodes.size(self.given(0), 1)
            inputs.update(num_return_sequences=self.given(4), length_penalty=self.given(5))
            if self.given(11):
                msg = "a processor of logits (logits_processor) is not supported"
                raise UnsupportedError(msg)
            return BeamScorer(self.attrs, inputs, beams)
        if self.op == "Sampling":
            inputs.update(presence_mask=self.given(0, 7))
        return GreedyScorer(self.attrs, inputs, is_random=self.op == "Sampling")

    def _mask_and_positions(self, ids: str) -> tuple[str, str]:
        """Which tokens of the prompt are not padding, and their places among those, both int32."""
        n = self.nodes
        mask = self.given(9, 6)
        if not mask:
            pad = n.constant(int(self.attrs.get("pad_token_id", 0)), np.int32)
            mask = n("Cast", n("Not", n("Equal", ids, pad)), to=TensorProto.INT32)
        places = n("Mul", n("Sub", n("CumSum", mask, n.constant(1, np.int64)), n.constant(1, np.int32)), mask)
        return mask, places

    def _empty(self, rows: str, dtype: int, heads: int, size: int) -> str:
        n = self.nodes
        shape = n("Concat", n.ints(2), rows, n.ints(heads, 0, size), axis=0)
        zero = helper.make_tensor("zero", dtype, [1], [0.0])
        return n("ConstantOfShape", shape, value=zero)

    @staticmethod
    def _pick(n: Nodes, cache: str, rows: str) -> str:
        return n("Gather", cache, rows, axis=1) if rows else cache

    def _body(self, scorer: Scorer, states: int, caches: int) -> tuple[onnx.GraphProto, list[str]]:
        n = Nodes(f"{self.nodes.prefix}.body")
        inputs = [f"{n.prefix}.{i}" for i in range(states + 2 + caches)]
        state, (positions, mask), old = inputs[:states], inputs[states : states + 2], inputs[states + 2 :]
        tokens = n("Unsqueeze", scorer.tokens(state), n.ints(1))
        one = n("Expand", n.constant(1, np.int32), n("Shape", tokens))
        mask = n("Concat", mask, one, axis=1)
        logits, *fresh = self.rest.call(n, tokens, n("Unsqueeze", positions, n.ints(1)), mask, old)
        following, picked = scorer.step(n, logits, state, first=False)
        fresh = [self._pick(n, cache, picked) for cache in fresh]
        results = [*following, n("Add", positions, n.constant(1, np.int32)), mask, *fresh]
        going_on = n("Not", scorer.is_over(n, following))
        outputs = [going_on, *results, *scorer.traces(following)]
        outputs = [n("Identity", name) for name in outputs]
        formals = [
            helper.make_tensor_value_info(f"{n.prefix}.step", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{n.prefix}.going_on", TensorProto.BOOL, []),
            *(onnx.ValueInfoProto(name=name) for name in inputs),
        ]
        graph = helper.make_graph(n.protos, n.prefix, formals, [onnx.ValueInfoProto(name=name) for name in outputs])
        return graph, outputs[1:]

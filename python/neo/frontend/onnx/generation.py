"""GreedySearch, Sampling and BeamSearch of com.microsoft, written out as a loop over their decoder.

The decoder becomes a function of the model. It is called once with the whole prompt, and then by a Loop with one token
and the keys and values of the tokens before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from neo.errors import ModelError, UnsupportedError
from neo.frontend.onnx.generation_scores import BeamScorer, GreedyScorer, Scorer
from neo.frontend.onnx.messages import to_proto
from neo.frontend.onnx.nodes import Nodes
from neo.frontend.onnx.order import names_read

if TYPE_CHECKING:
    from neo import _native
    from neo.frontend.onnx.importer import Context, Importer
    from neo.frontend.onnx.scope import Scope

__all__ = ["convert"]


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
    kind = int(attrs.get("model_type", 0))
    if kind not in (0, 1) or (kind == 1 and node.op_type != "BeamSearch"):
        msg = (
            f"a search must be over a decoder, or a beam search over an encoder and a decoder. Got model_type = {kind}"
        )
        raise UnsupportedError(msg)
    if "decoder" not in attributes:
        msg = f"[{node.op_type}] a search must have its decoder. Got none - at {place}"
        raise ModelError(msg)
    nodes = Nodes(f"{node.output[0]}.search")
    wanted = ("init_decoder", "decoder") if kind == 0 else ("encoder", "decoder")
    graphs = [to_proto(attributes[name].g if name in attributes else attributes["decoder"].g) for name in wanted]
    parts = [_Part(importer, g, f"{place}.{name}", context) for g, name in zip(graphs, wanted, strict=True)]
    search = _Search if kind == 0 else _EncoderSearch
    names = search(node, attrs, parts, nodes).write()
    inner = type(context)({**context.opsets, "": _OPSET}, {}, place)
    importer.convert_nodes(scope, nodes.protos, inner)
    return [scope.find(name) if name else None for name in names[: len(node.output)]]


class _Part:
    """A graph of a search as a function of the model."""

    def __init__(self, importer: Importer, graph: onnx.GraphProto, name: str, context: Context) -> None:
        self.name = name
        self.graph = graph
        self.inputs = list(graph.input)
        self.outputs = [value.name for value in graph.output]
        inputs = [value.name for value in graph.input]
        known = {*inputs, *(t.name for t in graph.initializer), *(o for n in graph.node for o in n.output)}
        self.outer = sorted({read for n in graph.node for read in names_read(n)} - known - {""})
        constants = [
            helper.make_node("Constant", [], [t.name], value=t) for t in graph.initializer if t.name not in inputs
        ]
        function = onnx.FunctionProto()
        function.domain, function.name = _FUNCTIONS, name
        function.input.extend([*inputs, *self.outer])
        function.output.extend(self.outputs)
        function.node.extend([*constants, *graph.node])
        for domain, version in context.opsets.items():
            function.opset_import.append(helper.make_opsetid(domain, version))
        importer.add_function(function)

    def check(self, has_shape: bool, what: str) -> None:
        """Raise an error where the graph has not the inputs and outputs of its part."""
        if not has_shape:
            msg = (
                f"[BeamSearch] the graph must have the inputs and outputs of {what}. "
                f"Got {len(self.inputs)} and {len(self.outputs)} - at {self.name}"
            )
            raise ModelError(msg)

    def call(self, nodes: Nodes, *inputs: str) -> list[str]:
        """The outputs."""
        return nodes.many(self.name, [*inputs, *self.outer], len(self.outputs), domain=_FUNCTIONS)


def _cache_type(value: onnx.ValueInfoProto, place: str) -> tuple[int, int, int]:
    """Element type, heads and size of a head of [..., heads, length, size]."""
    tensor = value.type.tensor_type
    dims = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in tensor.shape.dim]
    if len(dims) not in (4, 5) or dims[-3] < 1 or dims[-1] < 1:
        msg = f"[GreedySearch] a cache must be [..., heads, length, size] with known heads and size. Got {dims} - at {place}"
        raise ModelError(msg)
    return tensor.elem_type, dims[-3], dims[-1]


class _Search:
    """The nodes of one search."""

    def __init__(self, node: onnx.NodeProto, attrs: Mapping[str, Any], parts: Sequence[_Part], nodes: Nodes) -> None:
        self.node = node
        self.op = node.op_type
        self.attrs = attrs
        self.first, self.rest = parts
        self.nodes = nodes
        self.prompt = ""  # the number of tokens that the search begins with, int64 [1]

    def given(self, beam: int, greedy: int | None = None) -> str:
        """The name of an input by its number in BeamSearch and in the two others; empty where it is left out."""
        index = beam if self.op == "BeamSearch" else greedy
        return self.node.input[index] if index is not None and index < len(self.node.input) else ""

    def write(self) -> list[str]:
        n = self.nodes
        for part in (self.first, self.rest):
            part.check(len(part.inputs) > 3 and len(part.outputs) == len(part.inputs) - 2, "a decoder with caches")
        ids = n("Cast", self.given(0, 0), to=TensorProto.INT32)
        mask, positions = self._mask_and_positions(ids)
        beams = n.as_int(self.given(3)) if self.op == "BeamSearch" else ""
        if beams:
            shape = n("Concat", n.ints(-1), n.size(ids, 1), axis=0)
            ids, mask, positions = (n("Reshape", n.repeat(x, beams), shape) for x in (ids, mask, positions))
        self.prompt = n.size(ids, 1)
        scorer = self._scorer(beams)
        rows, length = n.size(ids, 0), n.size(ids, 1)
        longest = n.as_int(self.given(1, 1))
        caches = [self._empty(rows, *_cache_type(value, self.first.name)) for value in self.first.inputs[3:]]
        logits, *caches = self.first.call(n, ids, positions, mask, *caches)
        state, picked = scorer.step(n, logits, scorer.start(n, ids, longest), first=True)
        caches = [self._pick(n, cache, picked, 1) for cache in caches]
        counts = n("ReduceSum", mask, n.ints(1), keepdims=0)

        def decode(m: Nodes, inner: Sequence[str], carried: Sequence[str]) -> tuple[str, list[tuple[str, int]]]:
            positions, seen, *old = carried
            tokens = m("Unsqueeze", scorer.tokens(inner), m.ints(1))
            one = m.constant(1, np.int32)
            seen = m("Concat", seen, m("Expand", one, m("Shape", tokens)), axis=1)
            logits, *fresh = self.rest.call(m, tokens, m("Unsqueeze", positions, m.ints(1)), seen, *old)
            return logits, [(m("Add", positions, one), -1), (seen, -1), *((cache, 1) for cache in fresh)]

        return self._loop(scorer, state, [counts, mask, *caches], decode, n("Sub", longest, length), longest)

    def _loop(
        self,
        scorer: Scorer,
        state: Sequence[str],
        carried: Sequence[str],
        decode: Callable[[Nodes, Sequence[str], Sequence[str]], tuple[str, list[tuple[str, int]]]],
        count: str,
        longest: str,
    ) -> list[str]:
        """The outputs after all steps but the first of `count`.

        `decode` writes the nodes of a step: from the state and what else is carried to the logits and what is carried
        further, each with the axis of its rows, which go where their beams go; -1 for what stays.
        """
        n = self.nodes
        m = Nodes(f"{n.prefix}.body")
        inputs = [f"{m.prefix}.{i}" for i in range(len(state) + len(carried))]
        logits, fresh = decode(m, inputs[: len(state)], inputs[len(state) :])
        following, picked = scorer.step(m, logits, inputs[: len(state)], first=False)
        moved = [self._pick(m, name, picked, axis) if axis >= 0 else name for name, axis in fresh]
        results = [m("Not", scorer.is_over(m, following)), *following, *moved, *scorer.traces(following)]
        outputs = [m("Identity", name) for name in results]
        formals = [
            helper.make_tensor_value_info(f"{m.prefix}.step", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{m.prefix}.going_on", TensorProto.BOOL, []),
            *(onnx.ValueInfoProto(name=name) for name in inputs),
        ]
        body = helper.make_graph(m.protos, m.prefix, formals, [onnx.ValueInfoProto(name=name) for name in outputs])
        steps = n("Squeeze", n("Sub", count, n.ints(1)))
        going_on = n("Not", scorer.is_over(n, state))
        made = n.many("Loop", [steps, going_on, *state, *carried], len(outputs) - 1, body=body)
        traces = made[len(inputs) :]
        return scorer.finish(n, made[: len(state)], longest, [*zip(scorer.traces(state), traces, strict=True)])

    def _scorer(self, beams: str) -> Scorer:
        inputs = {
            "min_length": self.given(2, 2),
            "repetition_penalty": self.given(6, 3),
            "vocab_mask": self.given(7, 4),
            "prefix_vocab_mask": self.given(8, 5),
        }
        if self.op == "BeamSearch":
            inputs["prompt"] = self.prompt
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

    def _empty(self, rows: str, dtype: int, heads: int, size: int, *, pairs: bool = True) -> str:
        n = self.nodes
        lead = [n.ints(2), rows] if pairs else [rows]
        shape = n("Concat", *lead, n.ints(heads, 0, size), axis=0)
        zero = helper.make_tensor("zero", dtype, [1], [0.0])
        return n("ConstantOfShape", shape, value=zero)

    @staticmethod
    def _pick(n: Nodes, cache: str, rows: str, axis: int) -> str:
        return n("Gather", cache, rows, axis=axis) if rows else cache


class _EncoderSearch(_Search):
    """A beam search over an encoder, which also decodes the first token or not, and a decoder that reads what it gives."""

    def write(self) -> list[str]:
        n = self.nodes
        encoder, decoder = self.first, self.rest
        names = [value.name for value in decoder.inputs]
        has_hidden = len(names) > 2 and names[2] == "encoder_hidden_states"
        lead = 3 if has_hidden else 2
        own = len(decoder.outputs) - 1
        decodes = len(encoder.inputs) == 3
        encoder.check(len(encoder.inputs) in (2, 3), "an encoder")
        encoder.check(len(encoder.outputs) == (2 + 2 * own if decodes else own), "an encoder")
        decoder.check(own > 1 and len(names) == lead + 2 * own and (decodes or not has_hidden), "a decoder with caches")
        ids = n("Cast", self.given(0), to=TensorProto.INT32)
        mask = self.given(9) or self._mask(ids)
        beams, longest = n.as_int(self.given(3)), n.as_int(self.given(1))
        tokens = self.given(10)
        if not tokens:
            start = n.constant(int(self.attrs.get("decoder_start_token_id", -1)), np.int32)
            tokens = n("Expand", start, n("Concat", n.size(ids, 0), n.ints(1), axis=0))
        rows = n("Mul", n.size(ids, 0), beams)
        numbers = n("Range", n.constant(0, np.int64), n("Squeeze", rows), n.constant(1, np.int64))
        spread = n("Div", numbers, beams)

        def repeat(name: str) -> str:
            return n("Gather", name, spread)

        encoded = encoder.call(n, ids, mask, *([tokens] if decodes else []))
        seen, sequences = repeat(mask), repeat(tokens)
        fixed = [seen, *([repeat(encoded[1])] if has_hidden else [])]
        cross = [repeat(name) for name in encoded[-own:]]
        if decodes:
            logits, caches = repeat(encoded[0]), [repeat(name) for name in encoded[2 : 2 + own]]
        else:
            types = [_cache_type(value, decoder.name) for value in decoder.inputs[lead : lead + own]]
            empty = [self._empty(rows, *kind, pairs=False) for kind in types]
            logits, *caches = decoder.call(n, sequences, *fixed, *empty, *cross)
        self.prompt = n.size(tokens, 1)
        scorer = self._scorer(beams)
        state, picked = scorer.step(n, logits, scorer.start(n, sequences, longest), first=True)
        caches = [self._pick(n, cache, picked, 0) for cache in caches]
        dims = decoder.inputs[0].type.tensor_type.shape.dim
        takes_one = len(dims) == 2 and dims[1].dim_value == 1

        def decode(m: Nodes, inner: Sequence[str], carried: Sequence[str]) -> tuple[str, list[tuple[str, int]]]:
            given = m("Unsqueeze", scorer.tokens(inner), m.ints(1)) if takes_one else inner[1]
            logits, *fresh = decoder.call(m, given, *fixed, *carried, *cross)
            return logits, [(cache, 0) for cache in fresh]

        return self._loop(scorer, state, caches, decode, n("Sub", longest, self.prompt), longest)

    def _mask(self, ids: str) -> str:
        """Padding on the left is masked, int32 [batch, length]."""
        n = self.nodes
        pad = n.constant(int(self.attrs.get("pad_token_id", 0)), np.int32)
        words = n("Cast", n("Not", n("Equal", ids, pad)), to=TensorProto.INT32)
        before = n("CumSum", words, n.constant(1, np.int64))
        return n("Cast", n("Greater", before, n.constant(0, np.int32)), to=TensorProto.INT32)

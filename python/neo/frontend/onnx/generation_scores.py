"""How searches choose tokens: from logits and the tokens so far to the next tokens, as ONNX nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from neo.errors import UnsupportedError
from neo.frontend.onnx.nodes import Nodes

__all__ = ["BeamScorer", "GreedyScorer", "Scorer"]

_LOWEST = -3.4028234663852886e38
_MOST_WORDS = 256  # of a sequence that may not come again


class Scorer(ABC):
    """What all searches do to the scores [rows, words] of the next token.

    Parameters
    ----------
    attrs : mapping
        The attributes of the search.
    inputs : mapping
        Names of its inputs by their names in the operator's description, empty where left out.
    """

    def __init__(self, attrs: Mapping[str, Any], inputs: Mapping[str, str]) -> None:
        self.attrs = attrs
        self.inputs = inputs
        self.eos = int(attrs.get("eos_token_id", -1))
        self.pad = int(attrs.get("pad_token_id", 0))

    @abstractmethod
    def start(self, n: Nodes, ids: str, longest: str) -> list[str]:
        """The state before the first step, for tokens int32 [rows, length] and the longest length int64 [1]."""

    def tokens(self, state: Sequence[str]) -> str:
        """The tokens of the last step, int32 [rows]."""
        return state[0]

    @abstractmethod
    def traces(self, state: Sequence[str]) -> list[str]:
        """Parts of a state that are kept for every step."""

    @abstractmethod
    def step(self, n: Nodes, logits: str, state: Sequence[str], *, first: bool) -> tuple[list[str], str]:
        """The next state, and from which rows its caches come, int64 [rows]; empty where each keeps its own."""

    @abstractmethod
    def is_over(self, n: Nodes, state: Sequence[str]) -> str:
        """Whether every sequence has ended, a bool."""

    @abstractmethod
    def finish(self, n: Nodes, state: Sequence[str], longest: str, traces: Sequence[tuple[str, str]]) -> list[str]:
        """The outputs of the operator, from the last state and the traces of the first and the other steps."""

    @staticmethod
    def last(n: Nodes, logits: str) -> str:
        """The logits of the last token, float32 [rows, words]."""
        rows = n("Squeeze", n("Slice", logits, n.ints(-1), n.ints(1 << 60), n.ints(1)), n.ints(1))
        return n("Cast", rows, to=TensorProto.FLOAT)

    def masked(self, n: Nodes, scores: str, hidden: str) -> str:
        """Scores with the lowest number where a word is hidden."""
        return n("Where", hidden, n.constant(_LOWEST, np.float32), scores)

    def process(self, n: Nodes, scores: str, sequences: str, *, first: bool, beams: str = "") -> str:
        """Scores after the penalties and masks, in ONNX Runtime's order."""
        wide = n("Cast", sequences, to=TensorProto.INT64)
        shape = n("Shape", scores)
        if self.inputs["repetition_penalty"]:
            penalty = n("Reshape", self.inputs["repetition_penalty"], n.ints(1))
            penalty = n("Cast", penalty, to=TensorProto.FLOAT)
            used = self._mark(n, shape, wide, n("Expand", n.constant(1, np.int32), n("Shape", wide)))
            below = n("Less", scores, n.constant(0, np.float32))
            punished = n("Where", below, n("Mul", scores, penalty), n("Div", scores, penalty))
            scores = n("Where", used, punished, scores)
        size = int(self.attrs.get("no_repeat_ngram_size", 0))
        if size > _MOST_WORDS:
            msg = f"no_repeat_ngram_size must be at most {_MOST_WORDS}. Got {size}"
            raise UnsupportedError(msg)
        if size > 0:
            scores = self.masked(n, scores, self._repeated(n, shape, wide, size))
        if self.inputs["vocab_mask"]:
            scores = self.masked(n, scores, n("Equal", self.inputs["vocab_mask"], n.constant(0, np.int32)))
        if first and self.inputs["prefix_vocab_mask"]:
            mask = self.inputs["prefix_vocab_mask"]
            if beams:
                mask = n("Reshape", n.repeat(mask, beams), shape)
            scores = self.masked(n, scores, n("Equal", mask, n.constant(0, np.int32)))
        if self.inputs["min_length"]:
            words = n("Range", n.constant(0, np.int64), n("Squeeze", n.size(scores, 1)), n.constant(1, np.int64))
            is_end = n("Equal", words, n.constant(self.eos, np.int64))
            is_short = n("Less", n.size(sequences, 1), n.as_int(self.inputs["min_length"]))
            scores = self.masked(n, scores, n("And", is_end, is_short))
        return scores

    @staticmethod
    def _mark(n: Nodes, shape: str, words: str, flags: str) -> str:
        """Which words of each row have a flag, bool [rows, words]."""
        none = n("Expand", n.constant(0, np.int32), shape)
        marked = n("ScatterElements", none, words, flags, axis=1, reduction="max")
        return n("Greater", marked, n.constant(0, np.int32))

    def _repeated(self, n: Nodes, shape: str, words: str, size: int) -> str:
        """Words that would end a sequence of `size` words that is there already."""
        last = n("Slice", words, n.ints(size - 1), n.ints(1 << 60), n.ints(1))
        same = n("Expand", n.constant(True, np.bool_), n("Shape", last))
        for i in range(size - 1):
            behind = size - 1 - i
            here = n("Slice", words, n.ints(i), n.ints(-behind), n.ints(1))
            end = n.ints(-behind + 1) if behind > 1 else n.ints(1 << 60)
            same = n("And", same, n("Equal", here, n("Slice", words, n.ints(-behind), end, n.ints(1))))
        return self._mark(n, shape, last, n("Cast", same, to=TensorProto.INT32))

    def padded(self, n: Nodes, sequences: str, longest: str, pad: int) -> str:
        """Sequences int32 [rows, length] filled up to the longest length."""
        missing = n("Sub", longest, n.size(sequences, 1))
        filler = n("Expand", n.constant(pad, np.int32), n("Concat", n.size(sequences, 0), missing, axis=0))
        return n("Concat", sequences, filler, axis=1)


class GreedyScorer(Scorer):
    """The best word, or one drawn from the best; a state is tokens, sequences, which rows ended, and scores."""

    def __init__(self, attrs: Mapping[str, Any], inputs: Mapping[str, str], *, is_random: bool) -> None:
        super().__init__(attrs, inputs)
        self.is_random = is_random

    def start(self, n: Nodes, ids: str, longest: str) -> list[str]:  # noqa: ARG002
        """The state before the first step, for tokens int32 [rows, length]."""
        rows = n.size(ids, 0)
        return [
            n("Expand", n.constant(0, np.int32), rows),
            ids,
            n("Expand", n.constant(False, np.bool_), rows),
            n("Expand", n.constant(0, np.float32), n("Concat", rows, n.ints(1), axis=0)),
        ]

    def traces(self, state: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Parts of a state that are kept for every step."""
        return []

    def step(self, n: Nodes, logits: str, state: Sequence[str], *, first: bool) -> tuple[list[str], str]:
        """The next state, and from which rows its caches come, int64 [rows]; empty where each keeps its own."""
        _, sequences, ended, _ = state
        scores = self.process(n, self.last(n, logits), sequences, first=first)
        if self.is_random:
            scores = self._filtered(n, scores)
            words = n("Multinomial", scores, sample_size=1, dtype=TensorProto.INT32)
            words = n("Squeeze", words, n.ints(1))
        else:
            words = n("Cast", n("ArgMax", scores, axis=1, keepdims=0), to=TensorProto.INT32)
        ended = n("Or", ended, n("Equal", words, n.constant(self.eos, np.int32)))
        words = n("Where", ended, n.constant(self.pad, np.int32), words)
        sequences = n("Concat", sequences, n("Unsqueeze", words, n.ints(1)), axis=1)
        return [words, sequences, ended, scores], ""

    def _filtered(self, n: Nodes, scores: str) -> str:
        """Scores by the temperature, less the penalty of words that are present, without what top_p leaves out."""
        temperature = float(self.attrs.get("temperature", 1.0))
        if temperature != 1:
            scores = n("Div", scores, n.constant(temperature, np.float32))
        penalty = float(self.attrs.get("presence_penalty", 0.0))
        if penalty and self.inputs["presence_mask"]:
            present = n("Cast", self.inputs["presence_mask"], to=TensorProto.FLOAT)
            scores = n("Sub", scores, n("Mul", present, n.constant(penalty, np.float32)))
        top = float(self.attrs.get("top_p", 0.0))
        custom = bool(self.attrs.get("custom", 0))
        count = n.size(scores, 1)
        ordered, places = n.many("TopK", [scores, count], 2, axis=1, largest=int(custom), sorted=1)
        sums = n("CumSum", n("Softmax", ordered, axis=1), n.constant(1, np.int64))
        ranks = n("Range", n.constant(0, np.int64), n("Squeeze", count), n.constant(1, np.int64))
        if custom:
            before = n("Slice", sums, n.ints(0), n.ints(-1), n.ints(1))
            left_out = n("Greater", before, n.constant(top, np.float32))
            left_out = n("Pad", n("Cast", left_out, to=TensorProto.INT32), n.ints(0, 1, 0, 0))
            left_out = n("Greater", left_out, n.constant(0, np.int32))
        else:
            left_out = n("LessOrEqual", sums, n.constant(1 - top, np.float32))
            keep = n("Sub", count, n.ints(int(self.attrs.get("min_tokens_to_keep", 0))))
            spared = n("And", n("GreaterOrEqual", ranks, keep), n("Greater", ranks, n.constant(0, np.int64)))
            left_out = n("And", left_out, n("Not", spared))
        value = n.constant(float(self.attrs.get("filter_value", -1e20)), np.float32)
        return n("ScatterElements", scores, places, n("Where", left_out, value, ordered), axis=1)

    def is_over(self, n: Nodes, state: Sequence[str]) -> str:
        """Whether every sequence has ended, a bool."""
        flags = n("Cast", state[2], to=TensorProto.INT32)
        return n("Equal", n("ReduceMin", flags, keepdims=0), n.constant(1, np.int32))

    def finish(self, n: Nodes, state: Sequence[str], longest: str, traces: Sequence[tuple[str, str]]) -> list[str]:  # noqa: ARG002
        """The outputs of the operator, from the last state and the traces of the first and the other steps."""
        return [self.padded(n, state[1], longest, self.pad), state[3]]


class BeamScorer(Scorer):
    """The best sequences of words.

    A state is the tokens [rows], the sequences [rows, length], the scores of beams [batch, beams], the scores of finished
    sequences [batch, beams], best first and -inf where there is none, these sequences [batch, beams, longest], which
    batches are done, and the scores of all words at the last step [batch, beams, words].
    """

    def __init__(self, attrs: Mapping[str, Any], inputs: Mapping[str, str], beams: str) -> None:
        super().__init__(attrs, inputs)
        self.beams = beams

    def start(self, n: Nodes, ids: str, longest: str) -> list[str]:
        """The state before the first step, for tokens int32 [rows, length]."""
        rows = n.size(ids, 0)
        batch = n("Div", rows, self.beams)
        pair = n("Concat", batch, self.beams, axis=0)
        places = n("Range", n.constant(0, np.int64), n("Squeeze", self.beams), n.constant(1, np.int64))
        first = n("Equal", places, n.constant(0, np.int64))
        scores = n("Where", first, n.constant(0, np.float32), n.constant(-1e9, np.float32))
        return [
            n("Expand", n.constant(0, np.int32), rows),
            ids,
            n("Expand", scores, pair),
            n("Expand", n.constant(-np.inf, np.float32), pair),
            n("Expand", n.constant(self.pad, np.int32), n("Concat", pair, longest, axis=0)),
            n("Expand", n.constant(False, np.bool_), batch),
            n("Expand", n.constant(0, np.float32), n("Concat", pair, n.ints(1), axis=0)),
        ]

    def traces(self, state: Sequence[str]) -> list[str]:
        """Parts of a state that are kept for every step."""
        return [state[6]]

    def _share(self, n: Nodes, scores: str, length: str) -> str:
        """Scores by the length of their sequences."""
        power = self.inputs["length_penalty"]
        exponent = n("Reshape", power, n.ints(1)) if power else n.constant([1.0], np.float32)
        return n("Div", scores, n("Pow", n("Cast", length, to=TensorProto.FLOAT), exponent))

    def _finish_some(self, n: Nodes, kept: Sequence[str], scores: str, sequences: str, rows: str) -> list[str]:
        """The best of what is finished and of new sequences, by scores [batch, beams] and rows int64 [batch, beams]."""
        old_scores, old_sequences = kept
        longest = n.size(old_sequences, 2)
        fresh = n("Gather", self.padded(n, sequences, longest, self.pad), rows)
        all_scores = n("Concat", old_scores, scores, axis=1)
        all_sequences = n("Concat", old_sequences, fresh, axis=1)
        best, places = n.many("TopK", [all_scores, self.beams], 2, axis=1)
        chosen = n("Expand", n("Unsqueeze", places, n.ints(2)), n("Shape", old_sequences))
        return [best, n("GatherElements", all_sequences, chosen, axis=1)]

    def step(self, n: Nodes, logits: str, state: Sequence[str], *, first: bool) -> tuple[list[str], str]:
        """The next state, and from which rows its caches come, int64 [rows]; empty where each keeps its own."""
        _, sequences, beam_scores, finished, stored, done, _ = state
        length = n.size(sequences, 1)
        scores = n("LogSoftmax", self.last(n, logits), axis=1)
        scores = self.process(n, scores, sequences, first=first, beams=self.beams)
        words = n.size(scores, 1)
        batch = n.size(beam_scores, 0)
        scores = n("Reshape", scores, n("Concat", batch, self.beams, words, axis=0))
        scores = n("Add", scores, n("Unsqueeze", beam_scores, n.ints(2)))
        flat = n("Reshape", scores, n("Concat", batch, n("Mul", self.beams, words), axis=0))
        twice = n("Mul", self.beams, n.ints(2))
        best, at = n.many("TopK", [flat, twice], 2, axis=1)
        word = n("Mod", at, words)
        groups = n("Range", n.constant(0, np.int64), n("Squeeze", batch), n.constant(1, np.int64))
        offset = n("Unsqueeze", n("Mul", groups, self.beams), n.ints(1))
        row = n("Add", n("Div", at, words), offset)
        ends = n("Equal", word, n.constant(self.eos, np.int64))
        open_rows = n("Unsqueeze", done, n.ints(1))
        # Those of the better half of the candidates that end are finished.
        half = [n("Slice", x, n.ints(0), self.beams, n.ints(1)) for x in (best, row, ends)]
        counts = n("And", half[2], n("Not", open_rows))
        fresh = n("Where", counts, self._share(n, half[0], length), n.constant(-np.inf, np.float32))
        finished, stored = self._finish_some(n, [finished, stored], fresh, sequences, half[1])
        # The first candidates that do not end go on.
        ranks = n("Range", n.constant(0, np.int64), n("Squeeze", twice), n.constant(1, np.int64))
        order = n("Add", ranks, n("Mul", n("Cast", ends, to=TensorProto.INT64), twice))
        _, chosen = n.many("TopK", [order, self.beams], 2, axis=1, largest=0)
        word, row, kept = (n("GatherElements", x, chosen, axis=1) for x in (word, row, best))
        word = n("Where", open_rows, n.constant(self.pad, np.int64), word)
        row = n("Where", open_rows, offset, row)
        kept = n("Where", open_rows, n.constant(0, np.float32), kept)
        done = n("Or", done, self._is_done(n, finished, best, length))
        rows = n("Reshape", row, n.ints(-1))
        tokens = n("Cast", n("Reshape", word, n.ints(-1)), to=TensorProto.INT32)
        sequences = n("Concat", n("Gather", sequences, rows), n("Unsqueeze", tokens, n.ints(1)), axis=1)
        return [tokens, sequences, kept, finished, stored, done, scores], rows

    def _is_done(self, n: Nodes, finished: str, best: str, length: str) -> str:
        """Whether no beam can become better than what is finished, bool [batch]."""
        worst = n("ReduceMin", finished, n.ints(1), keepdims=0)
        full = n("Greater", worst, n.constant(-np.inf, np.float32))
        if self.attrs.get("early_stopping", 0):
            return full
        hope = self._share(n, n("ReduceMax", best, n.ints(1), keepdims=0), length)
        return n("And", full, n("GreaterOrEqual", worst, hope))

    def is_over(self, n: Nodes, state: Sequence[str]) -> str:
        """Whether every sequence has ended, a bool."""
        flags = n("Cast", state[5], to=TensorProto.INT32)
        return n("Equal", n("ReduceMin", flags, keepdims=0), n.constant(1, np.int32))

    def finish(self, n: Nodes, state: Sequence[str], longest: str, traces: Sequence[tuple[str, str]]) -> list[str]:
        """The outputs of the operator, from the last state and the traces of the first and the other steps."""
        _, sequences, beam_scores, finished, stored, done, _ = state
        open_scores = self._share(n, beam_scores, n.size(sequences, 1))
        fresh = n("Where", n("Unsqueeze", done, n.ints(1)), n.constant(-np.inf, np.float32), open_scores)
        rows = n("Range", n.constant(0, np.int64), n("Squeeze", n.size(sequences, 0)), n.constant(1, np.int64))
        rows = n("Reshape", rows, n("Shape", beam_scores))
        best, stored = self._finish_some(n, [finished, stored], fresh, sequences, rows)
        count = n.as_int(self.inputs["num_return_sequences"])
        results = [n("Slice", x, n.ints(0), count, n.ints(1)) for x in (stored, best)]
        [(first, others)] = traces
        steps = n("Concat", n("Unsqueeze", first, n.ints(0)), others, axis=0)
        missing = n("Sub", n("Sub", longest, n.as_int(self.inputs["prompt"])), n.size(steps, 0))
        pads = n("Concat", n.ints(0, 0, 0, 0), missing, n.ints(0, 0, 0), axis=0)
        return [*results, n("Pad", steps, pads)]

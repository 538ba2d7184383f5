"""GreedySearch, BeamSearch and Sampling of com.microsoft over a small decoder, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from .networks import Builder, gpt2

WORDS = 50


def decoder(seed: int) -> onnx.GraphProto:
    """The decoder of a network, with the integers and the names that searches give it."""
    model, _ = gpt2(14, False, seed)
    graph = model.graph
    for value in list(graph.input)[:3]:
        value.type.tensor_type.elem_type = TensorProto.INT32
    names = {graph.output[0].name: "logits", graph.output[1].name: "present_0", graph.output[2].name: "present_1"}
    for node in graph.node:
        for group in (node.input, node.output):
            for i, name in enumerate(group):
                group[i] = {**names, "attention_mask": "mask"}.get(name, name)
    for output in graph.output:
        output.name = names[output.name]
    graph.node.insert(0, helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT))
    return graph


INPUTS = {
    "GreedySearch": [
        "input_ids",
        "max_length",
        "min_length",
        "repetition_penalty",
        "vocab_mask",
        "prefix_vocab_mask",
        "attention_mask",
    ],
    "BeamSearch": [
        "input_ids",
        "max_length",
        "min_length",
        "num_beams",
        "num_return_sequences",
        "length_penalty",
        "repetition_penalty",
        "vocab_mask",
        "prefix_vocab_mask",
        "attention_mask",
    ],
}
INPUTS["Sampling"] = [*INPUTS["GreedySearch"], "presence_mask", "seed"]


def search(
    op: str, feeds: dict[str, np.ndarray], outputs: list[tuple[str, int]], seed: int, **attrs: Any
) -> onnx.ModelProto:
    names = [name if name in feeds else "" for name in INPUTS[op]]
    while not names[-1]:
        names.pop()
    given = {"eos_token_id": 3, "pad_token_id": 0, "model_type": 0, **attrs}
    node = helper.make_node(
        op, names, [name for name, _ in outputs], domain="com.microsoft", decoder=decoder(seed), **given
    )
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), ["batch", "length"] if name == "input_ids" else x.shape
        )
        for name, x in feeds.items()
    ]
    results = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs]
    imports = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "search", inputs, results), opset_imports=imports, ir_version=8)


def peer(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    results: list[np.ndarray] = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    return results


def number(value: float, dtype: type = np.int32) -> np.ndarray:
    return np.array([value], dtype)


def prompt(batch: int, length: int, seed: int) -> np.ndarray:
    ids = np.random.default_rng(seed).integers(4, WORDS, (batch, length)).astype(np.int32)
    if batch > 1:
        ids[1, :2] = 0
    return ids


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("batch", [2])
@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"repetition_penalty": number(1.7, np.float32)},
        {"min_length": number(9), "vocab_mask": np.arange(WORDS, dtype=np.int32) % 3},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2},
        {"no_repeat_ngram_size": 3, "prefix": True},
    ],
)
def test_greedy_search(seed: int, batch: int, extra: dict[str, Any]) -> None:
    feeds = {"input_ids": prompt(batch, 4, seed), "max_length": number(14)}
    feeds.update({k: v for k, v in extra.items() if isinstance(v, np.ndarray)})
    if extra.get("prefix"):
        feeds["prefix_vocab_mask"] = np.random.default_rng(seed).integers(0, 2, (batch, WORDS)).astype(np.int32)
    attrs = {k: v for k, v in extra.items() if isinstance(v, int) and k != "prefix"}
    model = search("GreedySearch", feeds, [("sequences", TensorProto.INT32)], seed, **attrs)
    [want] = peer(model, feeds)
    np.testing.assert_array_equal(neo.compile(model).run(feeds)["sequences"], want)


def test_greedy_search_ends_early() -> None:
    feeds = {"input_ids": prompt(2, 4, 1), "max_length": number(12)}
    free = search("GreedySearch", feeds, [("sequences", TensorProto.INT32)], 1)
    tokens = peer(free, feeds)[0]
    for eos in {int(tokens[0, 6]), int(tokens[1, 5])}:
        model = search("GreedySearch", feeds, [("sequences", TensorProto.INT32)], 1, eos_token_id=eos)
        # Behind the step where the last row ends, ONNX Runtime leaves memory as it is.
        ends = [next((i for i in range(4, 12) if row[i] == eos), 11) for row in tokens]
        got = neo.compile(model).run(feeds)["sequences"]
        np.testing.assert_array_equal(got[:, : max(ends) + 1], peer(model, feeds)[0][:, : max(ends) + 1])
        assert (got[:, max(ends) + 1 :] == 0).all()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("beams", [1, 2, 4])
@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"early_stopping": 1},
        {"length_penalty": number(0.5, np.float32), "repetition_penalty": number(1.3, np.float32)},
        {"min_length": number(8), "no_repeat_ngram_size": 2},
    ],
)
def test_beam_search(seed: int, beams: int, extra: dict[str, Any]) -> None:
    """Each prompt for itself: in ONNX Runtime one of a batch ends by the scores of its neighbour."""
    feeds = {
        "input_ids": prompt(2, 4, seed),
        "max_length": number(12),
        "min_length": number(1),
        "num_beams": number(beams),
        "num_return_sequences": number(max(1, beams // 2)),
        "length_penalty": number(1, np.float32),
        **{k: v for k, v in extra.items() if isinstance(v, np.ndarray)},
    }
    attrs = {k: v for k, v in extra.items() if isinstance(v, int)}
    outputs = [("sequences", TensorProto.INT32), ("scores_of_sequences", TensorProto.FLOAT)]
    free = search("BeamSearch", feeds, outputs, seed, **attrs)
    common = int(np.bincount(peer(free, feeds)[0][:, 0, 5:].ravel(), minlength=WORDS)[1:].argmax()) + 1
    model = search("BeamSearch", feeds, outputs, seed, **{**attrs, "eos_token_id": common})
    rows = [peer(model, {**feeds, "input_ids": feeds["input_ids"][i : i + 1]}) for i in range(2)]
    got = list(neo.compile(model).run(feeds).values())
    np.testing.assert_array_equal(got[0], np.concatenate([row[0] for row in rows]))
    np.testing.assert_allclose(got[1], np.concatenate([row[1] for row in rows]), rtol=1e-4, atol=1e-4)


def test_beam_search_gives_the_scores_of_all_words() -> None:
    feeds = {"input_ids": prompt(2, 4, 1), "max_length": number(9), "min_length": number(1), "num_beams": number(3)}
    feeds.update(num_return_sequences=number(2), length_penalty=number(1, np.float32))
    outputs = [("a", TensorProto.INT32), ("b", TensorProto.FLOAT), ("c", TensorProto.FLOAT)]
    model = search("BeamSearch", feeds, outputs, 1, eos_token_id=-1)
    for got, want in zip(neo.compile(model).run(feeds).values(), peer(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_sampling_from_one_word_is_greedy() -> None:
    feeds = {"input_ids": prompt(2, 4, 2), "max_length": number(12)}
    greedy = search("GreedySearch", feeds, [("sequences", TensorProto.INT32)], 2)
    want = neo.compile(greedy).run(feeds)["sequences"]
    for custom in (0, 1):
        model = search(
            "Sampling", feeds, [("sequences", TensorProto.INT32)], 2, top_p=1e-6, custom=custom, min_tokens_to_keep=1
        )
        np.testing.assert_array_equal(neo.compile(model).run(feeds)["sequences"], want)
        np.testing.assert_array_equal(peer(model, feeds)[0], want)


def encoder_and_decoder(seed: int, decodes: bool, takes_one: bool) -> tuple[onnx.GraphProto, onnx.GraphProto]:
    """Two small graphs; the encoder gives the first logits too, or only what the decoder attends to."""
    heads, size, width = 2, 4, 8
    tables = Builder(14, seed)
    words, queries = tables.random.standard_normal((WORDS, width)), tables.random.standard_normal((6, width, width))
    out = tables.random.standard_normal((width, WORDS)) * 2

    def matrix(b: Builder, x: str, i: int) -> str:
        return b.heads(b.add("MatMul", [x, b.constant(queries[i] / 2)]), heads, size)

    def attend(b: Builder, q: str, k: str, v: str, mask: str | None) -> str:
        return b.merge(b.attention(q, b.add("Transpose", [k], perm=[0, 1, 3, 2]), v, size, mask), width)

    def decode(b: Builder, ids: str, past: list[str], cross: list[str], mask: str) -> list[str]:
        x = b.add("Gather", [b.constant(words), ids])
        own = [matrix(b, x, 1), matrix(b, x, 2)]
        own = [b.add("Concat", [old, new], axis=2) for old, new in zip(past, own, strict=True)] if past else own
        x = b.add("Add", [x, attend(b, matrix(b, x, 0), own[0], own[1], None)])
        x = b.add("Add", [x, attend(b, matrix(b, x, 3), cross[0], cross[1], mask)])
        return [b.add("MatMul", [x, b.constant(out)]), *own]

    def hidden(b: Builder) -> str:
        mask = b.axes("Unsqueeze", b.add("Cast", ["encoder_attention_mask"], to=TensorProto.FLOAT), 1, 2)
        return b.add("Mul", [b.add("Sub", [mask, b.constant(1.0)]), b.constant(10000.0)])

    def graph(b: Builder, inputs: list[Any], outputs: list[tuple[str, str, list[Any]]]) -> onnx.GraphProto:
        for name, made, _ in outputs:
            b.nodes.append(helper.make_node("Identity", [made], [name]))
        infos = [helper.make_tensor_value_info(name, 1, dims) for name, _, dims in outputs]
        return helper.make_graph(b.nodes, "part", inputs, infos, b.initializers)

    def ids(name: str, *dims: Any) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.INT32, dims)

    long, short = ["b", heads, "e", size], ["b", heads, "p", size]
    given = [ids("encoder_input_ids", "b", "e"), ids("encoder_attention_mask", "b", "e")]
    b = Builder(14, seed)
    x = b.add("Gather", [b.constant(words), "encoder_input_ids"])
    cross = [matrix(b, x, 4), matrix(b, x, 5)]
    last = [("present_key_cross_0", cross[0], long), ("present_value_cross_0", cross[1], long)]
    if decodes:
        made = decode(b, "decoder_input_ids", [], cross, hidden(b))
        first = [("logits", made[0], ["b", 1, WORDS]), ("encoder_hidden_states", x, ["b", "e", width])]
        own = [("present_key_self_0", made[1], short), ("present_value_self_0", made[2], short)]
        encoder = graph(b, [*given, ids("decoder_input_ids", "b", 1)], [*first, *own, *last])
    else:
        encoder = graph(b, given, last)
    b = Builder(14, seed)
    past = ["past_key_self_0", "past_value_self_0", "past_key_cross_0", "past_value_cross_0"]
    inputs = [ids("input_ids", "b", 1 if takes_one else "s"), given[1]]
    if decodes:
        inputs.append(helper.make_tensor_value_info("encoder_hidden_states", 1, ["b", "e", width]))
    inputs += [helper.make_tensor_value_info(n, 1, short if "self" in n else long) for n in past]
    token = "input_ids" if takes_one else b.add("Slice", ["input_ids", b.ints(-1), b.ints(1 << 60), b.ints(1)])
    made = decode(b, token, past[:2], past[2:], hidden(b))
    grown = ["b", heads, "t", size]
    outputs = [
        ("logits", made[0], ["b", 1, WORDS]),
        ("present_key_self_0", made[1], grown),
        ("present_value_self_0", made[2], grown),
    ]
    return encoder, graph(b, inputs, outputs)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("decodes", [True, False])
@pytest.mark.parametrize("takes_one", [True, False])
@pytest.mark.parametrize("beams", [1, 3])
def test_beam_search_with_an_encoder(seed: int, decodes: bool, takes_one: bool, beams: int) -> None:
    encoder, decoder_graph = encoder_and_decoder(seed, decodes, takes_one)
    feeds = {
        "input_ids": prompt(2, 5, seed),
        "max_length": number(9),
        "min_length": number(1),
        "num_beams": number(beams),
        "num_return_sequences": number(1),
        "length_penalty": number(1, np.float32),
    }
    outputs = [("sequences", TensorProto.INT32), ("scores", TensorProto.FLOAT)]
    model = search("BeamSearch", feeds, outputs, seed, model_type=1, encoder=encoder, decoder_start_token_id=2)
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "decoder":
            attribute.g.CopyFrom(decoder_graph)
    rows = [peer(model, {**feeds, "input_ids": feeds["input_ids"][i : i + 1]}) for i in range(2)]
    got = list(neo.compile(model).run(feeds).values())
    np.testing.assert_array_equal(got[0], np.concatenate([row[0] for row in rows]))
    np.testing.assert_allclose(got[1], np.concatenate([row[1] for row in rows]), rtol=1e-4, atol=1e-4)


def test_bad_searches_are_one_line() -> None:
    feeds = {"input_ids": prompt(1, 4, 1), "max_length": number(9)}
    for attrs, kind, reason in (
        ({"model_type": 2}, neo.UnsupportedError, "Got model_type = 2"),
        ({"model_type": 1}, neo.UnsupportedError, "Got model_type = 1"),
    ):
        model = search("GreedySearch", feeds, [("sequences", TensorProto.INT32)], 1, **attrs)
        with pytest.raises(kind, match=reason):
            neo.compile(model)
    model = search("GreedySearch", feeds, [("sequences", TensorProto.INT32)], 1)
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "decoder":
            del attribute.g.input[3:]
    with pytest.raises(neo.ModelError, match="must have the inputs and outputs of a decoder with caches. Got 3 and 3"):
        neo.compile(model)


def test_long_sequences_that_may_not_repeat_are_refused() -> None:
    feeds = {"input_ids": prompt(1, 4, 1), "max_length": number(9)}
    model = search("GreedySearch", feeds, [("sequences", TensorProto.INT32)], 1, no_repeat_ngram_size=1 << 40)
    with pytest.raises(neo.UnsupportedError, match="no_repeat_ngram_size must be at most 256"):
        neo.compile(model)

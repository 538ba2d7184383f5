"""Attention of com.microsoft: each form of masks, packed operands and caches, against ONNX Runtime."""

from __future__ import annotations

import warnings
from typing import Any

import neo
import numpy as np
import pytest

from .models import node_model
from .peer import DOMAIN, Random, answers, check, check_model, declared, open_sizes

RANDOM = Random(39)
normal = RANDOM.normal

B, S, N, H = 3, 5, 2, 4
D = N * H


def masks(keys: int, queries: int = S, batch: int = B) -> dict[str, Any]:
    """Each form of a mask, by a name, for rows whose first key is seen."""
    lengths = np.array([keys, 1, keys - 2], np.int32)[:batch]
    starts = np.array([0, 0, 1], np.int32)[:batch]
    flags = RANDOM.integers(0, 2, batch, keys)
    flags[:, 0] = 1
    square = RANDOM.integers(0, 2, batch, queries, keys)
    square[:, :, 0] = 1
    offsets = np.arange(batch + 1, dtype=np.int32) * queries
    return {
        "none": None,
        "lengths": lengths,
        "ends and starts": np.concatenate([lengths, starts]),
        "lengths and offsets": np.concatenate([lengths, offsets, offsets]),
        "keys": flags,
        "queries and keys": square,
    }


FORMS = sorted(masks(4))
MASK_SYMBOLS: dict[str, list[str | int]] = {
    "lengths": ["B"],
    "ends and starts": ["M"],
    "lengths and offsets": ["M"],
    "keys": ["B", "T"],
    "queries and keys": ["B", "S", "T"],
}


def symbols_of(form: str, at: int, **others: Any) -> dict[int, Any]:
    found = {int(name[1:]): names for name, names in others.items()}
    if form != "none":
        found[at] = MASK_SYMBOLS[form]
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [0, 3])
def test_attention(form: str, causal: int, past: int) -> None:
    mask = masks(S + past)[form]
    x, w, b = normal(B, S, 6), normal(6, 3 * D), normal(3 * D)
    symbols = symbols_of(form, 3, x0=["B", "S", 6])
    inputs: list[Any] = [x, w, b, mask]
    outputs = 1
    if past:
        inputs.append(normal(2, B, N, past, H))
        symbols[4] = [2, "B", N, "P", H]
        symbols.pop(3, None)
        outputs = 2
    check("Attention", inputs, outputs=outputs, symbols=symbols, num_heads=N, unidirectional=causal)


@pytest.mark.parametrize("bias", [(B, N), (1, N), (B, 1), (1, 1)])
def test_attention_with_a_bias_of_scores(bias: tuple[int, int]) -> None:
    x, w, b = normal(B, S, 6), normal(6, 3 * D), normal(3 * D)
    added = normal(*bias, S, S)
    symbols = {0: ["B", "S", 6], 5: ["B" if bias[0] > 1 else 1, bias[1], "S", "S"]}
    check("Attention", [x, w, b, None, None, added], symbols=symbols, num_heads=N, scale=0.3)
    check("Attention", [x, w, b, masks(S)["keys"], None, added], num_heads=N, mask_filter_value=-50.0)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("form", ["lengths", "keys", "queries and keys"])
def test_a_masked_score_below_the_numbers_of_the_dtype(form: str, dtype: Any, causal: int) -> None:
    """Keys that are masked and come later too have a score, of which the softmax makes 0."""
    arrays = [normal(B, S, 6), normal(6, 3 * D), normal(3 * D)]
    model, feeds = node_model(
        "Attention",
        [*(array.astype(dtype) for array in arrays), masks(S)[form]],
        {"num_heads": N, "unidirectional": causal, "mask_filter_value": float(np.finfo(np.float32).min)},
        opset=17,
        domain=DOMAIN,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = neo.compile(model).run(feeds)
    tolerance = 2e-5 if dtype == np.float32 else 4e-3
    for mine, theirs in zip(got.values(), answers(model, feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def test_attention_with_values_of_another_size() -> None:
    x = normal(B, S, 6)
    sizes = [D, D, 3 * N]
    for causal in (0, 1):
        check(
            "Attention",
            [x, normal(6, sum(sizes)), normal(sum(sizes)), masks(S)["keys"]],
            num_heads=N,
            qkv_hidden_sizes=sizes,
            unidirectional=causal,
            symbols={0: ["B", "S", 6]},
        )
    check("Attention", [x, normal(6, 3 * D)], num_heads=N)


@pytest.mark.parametrize("form", ["none", "keys"])
def test_attention_with_a_cache_of_fixed_length(form: str) -> None:
    """The cache is as long as the longest sequence, and filled from the front."""
    longest, past = 9, 4
    x, w, b = normal(B, 1, 6), normal(6, 3 * D), normal(3 * D)
    cache = normal(2, B, N, longest, H)
    mask = masks(past + 1)[form]
    filled = np.array([past], np.int32)
    model, arrays = node_model(
        "Attention",
        [x, w, b, mask, cache, None, filled],
        {"num_heads": N, "past_present_share_buffer": 1, "unidirectional": 1},
        opset=17,
        domain=DOMAIN,
        outputs=2,
    )
    plain, own = node_model(
        "Attention",
        [x, w, b, mask, cache[:, :, :, :past]],
        {"num_heads": N, "unidirectional": 1},
        opset=17,
        domain=DOMAIN,
        outputs=2,
    )
    y, present = neo.compile(model).run(arrays).values()
    want, short = neo.compile(plain).run(own).values()
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(present[:, :, :, : past + 1], short, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(present[:, :, :, past + 1 :], cache[:, :, :, past + 1 :])


@pytest.mark.parametrize("form", [form for form in FORMS if form != "ends and starts"])
@pytest.mark.parametrize("past", [0, 3])
def test_multi_head_attention(form: str, past: int) -> None:
    keys = S + 1
    mask = masks(keys + past)[form]
    q, k, v = normal(B, S, D), normal(B, keys, D), normal(B, keys, D)
    inputs: list[Any] = [q, k, v, normal(3 * D), mask, normal(1, N, S, keys + past)]
    symbols = symbols_of(form, 4, x0=["B", "S", D], x1=["B", "L", D], x2=["B", "L", D])
    outputs = 1
    if past:
        inputs += [normal(B, N, past, H), normal(B, N, past, H)]
        symbols[6] = symbols[7] = ["B", N, "P", H]
        outputs = 3
    check("MultiHeadAttention", inputs, outputs=outputs, symbols=symbols, num_heads=N)


def test_multi_head_attention_with_packed_operands() -> None:
    """ONNX Runtime runs them on other devices; here they are held to the same operands apart."""
    bias, mask = normal(3 * D), masks(S)["keys"]
    q, k, v = normal(B, S, D), normal(B, S, D), normal(B, S, D)
    for tail in ([None, mask], [bias, mask], [bias]):
        apart, arrays = node_model("MultiHeadAttention", [q, k, v, *tail], {"num_heads": N}, opset=17, domain=DOMAIN)
        want = answers(declared(apart, [1]), arrays)
        parts = [x.reshape(B, S, N, H) for x in (q, k, v)]
        check(
            "MultiHeadAttention",
            [np.stack(parts, axis=3), None, None, *tail],
            want=want,
            num_heads=N,
            symbols={0: ["B", "S", N, 3, H]},
        )
        if tail[0] is None:
            check(
                "MultiHeadAttention",
                [q, np.stack(parts[1:], axis=3), None, *tail],
                want=want,
                num_heads=N,
                symbols={0: ["B", "S", D], 1: ["B", "L", N, 2, H]},
            )


def test_multi_head_attention_with_keys_and_values_by_head() -> None:
    q, k, v = normal(B, S, D), normal(B, N, 7, H), normal(B, N, 7, H)
    symbols = {0: ["B", "S", D], 1: ["B", N, "L", H], 2: ["B", N, "L", H]}
    check("MultiHeadAttention", [q, k, v], num_heads=N, symbols=symbols)
    check("MultiHeadAttention", [q, k, v, None, masks(7)["keys"], normal(B, N, S, 7)], num_heads=N, symbols=symbols)


@pytest.mark.parametrize("size", [H, 6])
def test_multi_head_attention_with_values_of_another_size_and_past(size: int) -> None:
    q, k, v = normal(B, S, D), normal(B, S, D), normal(B, S, N * size)
    check("MultiHeadAttention", [q, k, v, normal(2 * D + N * size)], num_heads=N, unidirectional=1)
    past = [normal(B, N, 3, H), normal(B, N, 3, H)]
    if size == H:
        check(
            "MultiHeadAttention",
            [q, k, v, None, None, None, *past],
            outputs=3,
            num_heads=N,
            unidirectional=1,
            symbols={0: ["B", "S", D], 1: ["B", "S", D], 2: ["B", "S", D], 6: ["B", N, "P", H], 7: ["B", N, "P", H]},
        )


def test_multi_head_attention_gives_its_scores() -> None:
    q, k, v = normal(B, S, D), normal(B, S, D), normal(B, S, D)
    check("MultiHeadAttention", [q, k, v], outputs=4, num_heads=N)
    check("MultiHeadAttention", [q, k, v, None, masks(S)["keys"]], outputs=4, num_heads=N)


def test_decoder_masked_attention_over_keys_of_an_encoder() -> None:
    q, k, v = normal(B, 1, D), normal(B, N, 7, H), normal(B, N, 7, H)
    symbols = {0: ["B", 1, D], 1: ["B", N, "L", H], 2: ["B", N, "L", H]}
    check("DecoderMaskedMultiHeadAttention", [q, k, v], num_heads=N, symbols=symbols)
    check("DecoderMaskedMultiHeadAttention", [q, k, v, masks(7)["keys"]], num_heads=N, symbols=symbols)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("packed", [False, True])
def test_decoder_masked_attention_with_caches_of_beams(beams: int, packed: bool) -> None:
    longest, past, rows = 9, 5, 2 * beams
    q, k, v = normal(rows, 1, D), normal(rows, 1, D), normal(rows, 1, D)
    bias = normal(3 * D)
    cache = [normal(rows, N, longest, H), normal(rows, N, longest, H)]
    mask = np.ones((rows, past + 1), np.int32)
    mask[:, 2] = 0
    added = normal(1, N, 1, past + 1)
    filled = np.array([past], np.int32)
    attrs = {"num_heads": N, "past_present_share_buffer": 1}
    symbols = {0: ["R", 1, D * (3 if packed else 1)], 5: ["R", N, "M", H], 6: ["R", N, "M", H]}
    if packed:
        operands: list[Any] = [np.concatenate([q, k, v], axis=2), None, None]
    else:
        operands, symbols[1], symbols[2] = [q, k, v], ["R", 1, D], ["R", 1, D]
    if beams == 1:
        inputs = [*operands, mask, added, *cache, filled, None, None, None if packed else bias]
    else:
        indirection = RANDOM.integers(0, beams, 2, beams, longest)
        inputs = [
            *operands,
            mask,
            added,
            *cache,
            filled,
            np.array([beams], np.int32),
            indirection,
            None if packed else bias,
        ]
        symbols[9] = ["G", beams, "M"]
    if packed:
        plain = _decode(q, k, v, mask, added, cache, past, inputs[9], beams)
        check("DecoderMaskedMultiHeadAttention", inputs, outputs=3, symbols=symbols, want=plain, **attrs)
    else:
        check("DecoderMaskedMultiHeadAttention", inputs, outputs=3, symbols=symbols, **attrs)


def _decode(q: Any, k: Any, v: Any, mask: Any, added: Any, cache: Any, past: int, beams: Any, width: int) -> list[Any]:
    """What the operator computes for one query of each row, in plain loops."""
    rows = q.shape[0]
    present = [c.copy() for c in cache]
    y = np.zeros((rows, 1, D), np.float32)
    for r in range(rows):
        for h in range(N):
            at = slice(h * H, (h + 1) * H)
            sources = [
                r if beams is None else r // width * width + int(beams[r // width, r % width, t]) for t in range(past)
            ]
            keys = np.stack([cache[0][s, h, t] for t, s in enumerate(sources)] + [k[r, 0, at]])
            values = np.stack([cache[1][s, h, t] for t, s in enumerate(sources)] + [v[r, 0, at]])
            scores = keys @ q[r, 0, at] / np.sqrt(H) + np.where(mask[r] == 0, -10000.0, 0.0) + added[0, h, 0]
            weights = np.exp(scores - scores.max())
            y[r, 0, at] = weights / weights.sum() @ values
            present[0][r, h, past], present[1][r, h, past] = k[r, 0, at], v[r, 0, at]
    return [y, *present]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("past", [0, 3])
def test_quantized_attention(signed: bool, per_column: bool, past: int) -> None:
    x = RANDOM.integers(0, 200, B, S, 6, dtype=np.uint8)
    w = (
        RANDOM.integers(-60, 60, 6, 3 * D, dtype=np.int8)
        if signed
        else RANDOM.integers(70, 190, 6, 3 * D, dtype=np.uint8)
    )
    scale = np.float32(0.01) if not per_column else RANDOM.generator.uniform(0.005, 0.02, 3 * D).astype(np.float32)
    zero = np.array(3 if signed else 128, w.dtype)
    if per_column:
        zero = np.full(3 * D, zero, w.dtype)
    mask = np.array([S + past, 2, 3], np.int32)
    inputs: list[Any] = [x, w, normal(3 * D), np.float32(0.02), scale, mask, np.uint8(100), zero]
    outputs = 1
    if past:
        inputs, outputs = [*inputs, normal(2, B, N, past, H)], 2
        inputs[5] = None
    check(
        "QAttention",
        inputs,
        outputs=outputs,
        constants=(1, 7),
        num_heads=N,
        unidirectional=1,
        symbols={0: ["B", "S", 6]} if not past else None,
        tolerance=1e-3,
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("heads", [(4, 2), (2, 2), (3, 1)])
def test_group_query_attention_on_a_prompt(packed: bool, rotary: int, heads: tuple[int, int]) -> None:
    n, kv = heads
    batch, length, size = 2, 5, 16
    q, k, v = normal(batch, length, n * size), normal(batch, length, kv * size), normal(batch, length, kv * size)
    lengths = np.array([length - 1, 2], np.int32)
    operands: list[Any] = [np.concatenate([q, k, v], axis=2), None, None] if packed else [q, k, v]
    inputs = [*operands, None, None, lengths, np.array(length, np.int32)]
    if rotary:
        inputs += [normal(12, size // 2), normal(12, size // 2)]
    check(
        "GroupQueryAttention",
        inputs,
        outputs=3,
        num_heads=n,
        kv_num_heads=kv,
        do_rotary=rotary,
        symbols={
            0: ["B", "S", operands[0].shape[2]],
            **({} if packed else {1: ["B", "S", kv * size], 2: ["B", "S", kv * size]}),
            5: ["B"],
        },
        seen={0: ([0] * 5 + [1] * 3, [0, 1, 2, 3, 4, 0, 1, 2])},  # not the padding of the second row
    )


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    "options", [{}, {"local_window_size": 3}, {"softcap": 2.0}, {"smooth_softmax": 1}, {"scale": 0.3}]
)
def test_group_query_attention_of_one_token(interleaved: int, options: dict[str, Any]) -> None:
    n, kv, size, past, batch = 4, 2, 16, 6, 2
    q, k, v = normal(batch, 1, n * size), normal(batch, 1, kv * size), normal(batch, 1, kv * size)
    cache = [normal(batch, kv, past, size), normal(batch, kv, past, size)]
    lengths = np.array([past, past - 2], np.int32)
    inputs = [q, k, v, *cache, lengths, np.array(past + 1, np.int32), normal(12, size // 2), normal(12, size // 2)]
    check(
        "GroupQueryAttention",
        inputs,
        outputs=3,
        num_heads=n,
        kv_num_heads=kv,
        do_rotary=1,
        rotary_interleaved=interleaved,
        symbols={
            0: ["B", 1, n * size],
            1: ["B", 1, kv * size],
            2: ["B", 1, kv * size],
            3: ["B", kv, "P", size],
            4: ["B", kv, "P", size],
            5: ["B"],
        },
        **options,
    )


def test_group_query_attention_with_sinks_a_bias_and_positions() -> None:
    n, kv, size, past = 4, 2, 16, 6
    q, k, v = normal(1, 3, n * size), normal(1, 3, kv * size), normal(1, 3, kv * size)
    cache = [normal(1, kv, past, size), normal(1, kv, past, size)]
    tail = [np.array([past + 2], np.int32), np.array(past + 3, np.int32), normal(20, size // 2), normal(20, size // 2)]
    positions = np.array([[6, 7, 8]], np.int64)
    check(
        "GroupQueryAttention",
        [q, k, v, *cache, *tail, positions, normal(1, 1, 3, past + 3), normal(n)],
        outputs=3,
        num_heads=n,
        kv_num_heads=kv,
        do_rotary=1,
    )
    check("GroupQueryAttention", [q, k, v, *cache, *tail], outputs=3, num_heads=n, kv_num_heads=kv, do_rotary=1)


@pytest.mark.parametrize("which", [1, 2])
def test_group_query_attention_gives_its_scores(which: int) -> None:
    n, kv, size = 4, 2, 16
    q, k, v = normal(1, 4, n * size), normal(1, 4, kv * size), normal(1, 4, kv * size)
    check(
        "GroupQueryAttention",
        [q, k, v, None, None, np.array([3], np.int32), np.array(4, np.int32)],
        outputs=4,
        num_heads=n,
        kv_num_heads=kv,
        qk_output=which,
        seen={3: np.tril_indices(0)},
    )


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [2, 1])
def test_rotary_embedding(interleaved: int, width: int) -> None:
    x, cos, sin = normal(2, 4, 8), normal(10, width), normal(10, width)
    ids = np.array([[3, 4, 5, 6], [0, 1, 2, 3]])
    partial = {"num_heads": 2, "rotary_embedding_dim": 2} if width == 1 else {}
    check(
        "RotaryEmbedding",
        [x, ids, cos, sin],
        interleaved=interleaved,
        symbols={0: ["B", "S", 8], 1: ["B", "S"]},
        **partial,
    )
    check(
        "RotaryEmbedding", [x, np.array([2]), cos, sin], interleaved=interleaved, symbols={0: ["B", "S", 8]}, **partial
    )
    check("RotaryEmbedding", [normal(2, 2, 4, 4), ids, cos, sin], interleaved=interleaved, **partial)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [2, 1])
def test_rotary_embedding_of_heads_of_unknown_size(interleaved: int, width: int) -> None:
    cos, sin, ids = normal(10, width), normal(10, width), np.array([[3, 4, 5], [0, 1, 2]])
    partial = {"num_heads": 2, "rotary_embedding_dim": 2} if width == 1 else {}
    for x, names in ((normal(2, 3, 8), ["B", "S", "H"]), (normal(2, 2, 3, 4), ["B", "N", "S", "H"])):
        more = {"num_heads": 2} if x.ndim == 3 else {}
        check("RotaryEmbedding", [x, ids, cos, sin], interleaved=interleaved, symbols={0: names}, **{**partial, **more})


def test_multi_head_attention_of_unknown_hidden_sizes() -> None:
    q, k, v, bias = normal(B, S, D), normal(B, 4, D), normal(B, 4, D), normal(3 * D)
    symbols = {0: ["B", "S", "D"], 1: ["B", "T", "D"], 2: ["B", "T", "V"]}
    check("MultiHeadAttention", [q, k, v, bias], symbols=symbols, num_heads=N)
    check("MultiHeadAttention", [q, k, v, bias], symbols={**symbols, 3: ["three"]}, num_heads=N)
    keys, values = normal(B, N, 4, H), normal(B, N, 4, H)
    check("MultiHeadAttention", [q, keys, values, bias], symbols={0: ["B", "S", "D"]}, num_heads=N)


def test_bad_attention_is_refused_in_one_line() -> None:
    x, w, b = normal(B, S, 6), normal(6, 3 * D), normal(3 * D)
    for op, inputs, attrs, kind, reason in (
        ("Attention", [x, w, b], {"do_rotary": 1}, neo.UnsupportedError, "do_rotary"),
        ("Attention", [x, w, b], {"num_heads": 0}, neo.ModelError, "'num_heads' must be positive"),
        (
            "Attention",
            [x, w, b, np.ones((1, 1, 1, 1, 1), np.int32)],
            {},
            neo.UnsupportedError,
            "must have 1 to 4 axes. Got 5",
        ),
        ("MultiHeadAttention", [x, x], {}, neo.UnsupportedError, "values must be given"),
        (
            "GroupQueryAttention",
            [x, x, x, None, None, np.zeros(B, np.int32), np.int32(S)],
            {"kv_num_heads": 0},
            neo.ModelError,
            "'kv_num_heads' must be positive",
        ),
        (
            "GroupQueryAttention",
            [x, x, x, None, None, np.zeros(B, np.int32), np.int32(S)],
            {"num_heads": 3, "kv_num_heads": 2},
            neo.ModelError,
            "multiple of kv_num_heads",
        ),
    ):
        model, _ = node_model(op, inputs, {"num_heads": N, **attrs}, opset=17, domain=DOMAIN)
        with pytest.raises(kind, match=reason):
            neo.compile(model)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("rotated", [0, 2])
def test_onnx_rotary_embedding(interleaved: int, positions: bool, rotated: int) -> None:
    """The operator of ONNX in parts, with packed heads and with heads apart."""
    half = (rotated or 4) // 2
    ids = np.array([[3, 4, 5, 6, 7], [0, 1, 2, 3, 4]])
    tail: list[Any] = (
        [normal(10, half), normal(10, half), ids] if positions else [normal(2, 5, half), normal(2, 5, half)]
    )
    attrs = {"interleaved": interleaved, "rotary_embedding_dim": rotated}
    for x, more in ((normal(2, 5, 8), {"num_heads": 2}), (normal(2, 2, 5, 4), {})):
        model, arrays = node_model("RotaryEmbedding", [x, *tail], {**attrs, **more}, opset=23)
        want = answers(declared(model, [1]), arrays)
        names = ["B", "S", 8] if x.ndim == 3 else ["B", 2, "S", 4]
        symbols: dict[int, Any] = {
            0: names,
            **({3: ["B", "S"]} if positions else {1: ["B", "S", half], 2: ["B", "S", half]}),
        }
        check_model(model, arrays, want)
        check_model(open_sizes(model, symbols), arrays, want)

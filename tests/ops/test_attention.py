"""Attention and rotary embedding against their formulas, and what their caches and masks have to agree on."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import floats, infer, run

B, HEADS, KV, QUERIES, KEYS, SIZE, VALUE = 2, 4, 2, 3, 5, 6, 4


def operands(queries=QUERIES, keys=KEYS, seed=0):
    return (
        floats(B, HEADS, queries, SIZE, seed=seed),
        floats(B, KV, keys, SIZE, seed=seed + 1),
        floats(B, KV, keys, VALUE, seed=seed + 2),
    )


def attention(q, k, v, bias=0.0, scale=None, softcap=0.0):
    """Every head of K and V serves HEADS / KV heads of Q; rows that see no key are zero."""
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
    raw = q @ k.swapaxes(2, 3) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    capped = softcap * np.tanh(raw / softcap) if softcap else raw
    biased = capped + bias
    top = biased.max(-1, keepdims=True)
    e = np.exp(biased - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    return p @ v, raw, capped, biased, p


def banned(allowed):
    return np.where(allowed, 0.0, -np.inf)


def packed(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_at_every_stage(mode):
    q, k, v = operands()
    mask = floats(B, 1, QUERIES, KEYS, seed=9)
    y, *stages = attention(q, k, v, mask, scale=0.3, softcap=2.0)
    outputs = run("Attention", q, k, v, mask, outputs=4, scale=0.3, softcap=2.0, qk_matmul_output_mode=mode)
    # Attributes are float32.
    np.testing.assert_allclose(outputs[0], y, atol=1e-7)
    np.testing.assert_allclose(outputs[3], stages[mode], atol=1e-7)
    np.testing.assert_array_equal(outputs[1], k)


def test_packed_heads_are_the_same():
    q, k, v = operands()
    y = run("Attention", q, k, v)
    result = run("Attention", packed(q), packed(k), packed(v), q_num_heads=HEADS, kv_num_heads=KV)
    np.testing.assert_allclose(result, packed(y), atol=1e-12)


@pytest.mark.parametrize(
    "dims", [(QUERIES, KEYS), (1, KEYS), (HEADS, QUERIES, KEYS), (B, 1, QUERIES, KEYS), (QUERIES, 2)]
)
@pytest.mark.parametrize("causal", [0, 1])
def test_masks_broadcast_and_short_ones_are_padded(dims, causal):
    q, k, v = operands()
    allowed = floats(*dims, seed=5) > -0.5
    whole = np.concatenate([allowed, np.zeros((*dims[:-1], KEYS - dims[-1]), bool)], axis=-1)
    bias = banned(whole & (np.tri(QUERIES, KEYS, dtype=bool) if causal else True))
    y = run("Attention", q, k, v, allowed, is_causal=causal)
    np.testing.assert_allclose(y, attention(q, k, v, bias)[0], atol=1e-12)
    added = run("Attention", q, k, v, banned(allowed), is_causal=causal)
    np.testing.assert_allclose(added, y, atol=1e-12)


def test_a_query_that_sees_nothing_gives_zero():
    q, k, v = operands()
    y, _, _, p = run("Attention", q, k, v, np.zeros((QUERIES, KEYS), bool), outputs=4, qk_matmul_output_mode=3)
    assert not y.any()
    assert not p.any()


@pytest.mark.parametrize("causal", [0, 1])
def test_a_cache_is_what_came_before(causal):
    q, k, v = operands(queries=KEYS)
    whole = run("Attention", q, k, v, is_causal=causal)
    past = np.s_[:, :, :2]
    new = np.s_[:, :, 2:]
    y, present_k, present_v = run(
        "Attention", q[new], k[new], v[new], None, k[past], v[past], outputs=3, is_causal=causal
    )
    np.testing.assert_allclose(y, whole[new], atol=1e-12)
    np.testing.assert_array_equal(present_k, k)
    np.testing.assert_array_equal(present_v, v)


def test_valid_lengths_shift_the_diagonal():
    q, k, v = operands()
    lengths = np.array([5, 3])
    y = run("Attention", q, k, v, None, None, None, lengths, is_causal=1)
    i, j = np.indices((QUERIES, KEYS))
    for b, length in enumerate(lengths):
        bias = banned((j < length) & (j <= i + length - QUERIES))
        part = attention(q[b : b + 1], k[b : b + 1], v[b : b + 1], bias)[0]
        np.testing.assert_allclose(y[b : b + 1], part, atol=1e-12)


@pytest.mark.parametrize(("left", "right"), [(1, -1), (-1, 0), (1, 1), (0, 0)])
def test_sliding_windows(left, right):
    q, k, v = operands()
    past = np.s_[:, :, :2]
    y = run(
        "Attention", q, k[:, :, 2:], v[:, :, 2:], None, k[past], v[past], left_window_size=left, right_window_size=right
    )
    i, j = np.indices((QUERIES, KEYS))
    allowed = ((left < 0) | (j >= i + 2 - left)) & ((right < 0) | (j <= i + 2 + right))
    np.testing.assert_allclose(y, attention(q, k, v, banned(allowed))[0], atol=1e-12)


def test_sizes_from_symbols():
    q, kv, past = "float32[B,8,Q,64]", "float32[B,2,K,64]", "float32[B,2,P,64]"
    assert infer("Attention", q, kv, kv, None, past, past, outputs=4) == [
        "float32[B,8,Q,64]", "float32[B,2,K + P,64]", "float32[B,2,K + P,64]", "float32[B,8,Q,K + P]",
    ]  # fmt: skip
    assert infer("Attention", *["float32[B,T,512]"] * 3, q_num_heads=8, kv_num_heads=8) == "float32[B,T,512]"


def test_refusals():
    q, k, v = "float32[2,4,3,6]", "float32[2,3,5,6]", "float32[2,3,5,6]"
    with pytest.raises(ShapeError, match="heads of queries must be a multiple"):
        infer("Attention", q, k, v)
    with pytest.raises(ModelError, match="q_num_heads is required"):
        infer("Attention", "float32[2,3,8]", "float32[2,3,8]", "float32[2,3,8]")
    with pytest.raises(ModelError, match="past_key and past_value must be given together"):
        infer("Attention", q, q, q, None, q)
    with pytest.raises(ModelError, match="qk_matmul_output_mode must be 0 to 3"):
        infer("Attention", q, q, q, qk_matmul_output_mode=4)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rotated", [0, 4])
def test_rotary_embedding_turns_pairs(interleaved, rotated):
    x = floats(B, HEADS, QUERIES, SIZE)
    half = (rotated or SIZE) // 2
    angles = floats(10, half, seed=1)
    positions = np.array([[3, 0, 9], [1, 1, 2]])
    pairs = np.arange(2 * half).reshape((half, 2) if interleaved else (2, half))
    real, imaginary = pairs.T if interleaved else pairs
    turned = (x[..., real] + 1j * x[..., imaginary]) * np.exp(1j * angles[positions])[:, None]
    expected = x.copy()
    expected[..., real], expected[..., imaginary] = turned.real, turned.imag
    attrs = {"interleaved": interleaved, "rotary_embedding_dim": rotated}
    cos, sin = np.cos(angles), np.sin(angles)
    np.testing.assert_allclose(run("RotaryEmbedding", x, cos, sin, positions, **attrs), expected, atol=1e-12)
    flat = run("RotaryEmbedding", packed(x), cos[positions], sin[positions], **attrs, num_heads=HEADS)
    np.testing.assert_allclose(flat, packed(expected), atol=1e-12)
    with pytest.raises(ShapeError):
        run("RotaryEmbedding", x, cos, sin, positions + 10, **attrs)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention_steps(rule):
    steps, key_size, value_size = 4, 3, 2
    q, k = floats(B, steps, HEADS, key_size), floats(B, steps, KV, key_size, seed=1)
    v, past = floats(B, steps, KV, value_size, seed=2), floats(B, KV, key_size, value_size, seed=3)
    decay = -np.abs(floats(B, steps, KV, key_size, seed=4)) if rule.startswith("gated") else None
    beta = np.abs(floats(B, steps, KV, seed=5)) if rule.endswith("delta") else None
    state, expected = past.copy(), np.zeros((B, steps, HEADS, value_size))
    for t in range(steps):
        if decay is not None:
            state *= np.exp(decay[:, t])[..., None]
        write = v[:, t]
        if beta is not None:
            write = beta[:, t, :, None] * (write - np.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t, :, :, None] * write[:, :, None, :]
        expected[:, t] = np.einsum("bhk,bhkv->bhv", q[:, t], np.repeat(state, HEADS // KV, axis=1)) * 0.5
    flat = [None if a is None else a.reshape(B, steps, -1) for a in (q, k, v)] + [past]
    flat += [None if a is None else a.reshape(B, steps, -1) for a in (decay, beta)]
    y, present = run(
        "LinearAttention", *flat, outputs=2, update_rule=rule, q_num_heads=HEADS, kv_num_heads=KV, scale=0.5
    )
    np.testing.assert_allclose(y, expected.reshape(B, steps, -1), atol=1e-12)
    np.testing.assert_allclose(present, state, atol=1e-12)

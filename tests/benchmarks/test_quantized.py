"""Quantized models of the benchmarks against onnxruntime, and which routines they run by."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from benchmarks.models.quantized import DYNAMIC_WAYS, SMALL, WEIGHTS_ONLY

pytest.importorskip("onnxruntime")

# Of the largest result: a code that is rounded the other way early becomes a few of the last ones. Weights in blocks are
# multiplied in float32.
LARGEST_CODES, LARGEST_WEIGHTS = 0.06, 2e-5
# Operators whose codes have no routine yet.
WITHOUT = {"Resize", "com.microsoft.DynamicQuantizeLSTM"}
NAMES = [name for i, name in enumerate(SMALL) if i % 3 == 0 or name.startswith("encoder-dynamic")]


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_onnxruntime(name: str) -> None:
    from benchmarks.quantized import distance, session

    model, feeds = SMALL[name].model(), SMALL[name].feeds()
    data = model.SerializeToString()
    expected = [np.asarray(a) for a in session(data, 1, plain=True).run(None, feeds)]
    module = neo.compile(model, threads=1)
    limit = LARGEST_WEIGHTS if any(name.endswith(way) for way in WEIGHTS_ONLY) else LARGEST_CODES
    assert distance(list(module.run(feeds).values()), expected) <= limit
    assert {s.op for s in module.steps if s.routine == "cpu/reference"} <= WITHOUT


@pytest.mark.parametrize("way", DYNAMIC_WAYS)
def test_products_of_dynamic_quantization_multiply_codes(way: str) -> None:
    module = neo.compile(SMALL[f"encoder-{way}"].model(), threads=1)
    # Queries by keys and scores by values are float32 in the model, too.
    products = [s.routine.split("{")[0] for s in module.steps if s.op in ("MatMul", "Gemm")]
    assert products.count("cpu:int8/gemm") == 12
    assert len(products) <= 16


@pytest.mark.parametrize(("name", "convolutions"), [("segmenter-qdq-u8s8", 13), ("mobile-qdq-u8s8-microsoft", 9)])
def test_convolutions_of_a_static_model_multiply_codes(name: str, convolutions: int) -> None:
    """Of those with one channel per group each is computed as it is faster, and not counted."""
    module = neo.compile(SMALL[name].model(), threads=1)
    counts = dict.fromkeys(("direct_nchw", "direct_nchwc", "winograd_nchwc", "few_channels_nchw"), 1)
    counts |= {"pointwise_depthwise": 1, "depthwise_pointwise": 1, "inverted_residual": 2}
    if name.startswith("segmenter"):
        counts |= {
            "depthwise_nchwc": 1,
            "depthwise_float32": 1,
            **{kind: counts[kind] + 1 for kind in list(counts)[4:]},
        }
    names = [s.routine.split("{")[0].removeprefix("cpu:int8/") for s in module.steps]
    # A transposed one is a convolution of its phases; of so few pixels one convolution may be faster in float32.
    assert sum(counts.get(kind, 0) for kind in names) >= convolutions - 1
    assert "ConvTranspose" not in {s.op for s in module.steps}

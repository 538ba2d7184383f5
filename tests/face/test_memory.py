"""Memory stays flat, whatever shapes come."""

import gc
import os
from pathlib import Path

import numpy as np


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_memory_is_flat_over_ten_thousand_random_shapes(digits, images):
    module = digits.with_threads(1)
    largest = 8
    sizes = np.random.default_rng(0).integers(0, largest + 1, 10_000)
    for n in range(largest + 1):
        module(images[:n])
    gc.collect()
    kept, before = module._native.kept_bytes, resident_bytes()
    for n in sizes:
        module(images[:n])
    gc.collect()
    assert module._native.kept_bytes == kept
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # it keeps freed memory for a while
        assert resident_bytes() - before < 8 << 20


def test_bindings_are_kept_for_a_bounded_number_of_shapes(pair):
    module = pair.with_threads(1)
    for n in range(500):
        x = np.full((n, 3), n, np.float32)
        np.testing.assert_array_equal(module(x, x)[0], 2 * x)
    assert module._native.binding_count <= 64

import pytest
from neo import _native

LIMIT = 6_000_000  # bytes, every instruction set included
# What only other builds than Release hold: debug information, sanitizers, coverage.
OTHER_BUILDS = (b".debug_info", b"__asan_init", b"__tsan_init", b"__ubsan_", b"__gcov_")


def test_the_library_is_small():
    library = _native.library_path().read_bytes()
    if any(mark in library for mark in OTHER_BUILDS):
        pytest.skip("not built in Release")
    assert len(library) <= LIMIT

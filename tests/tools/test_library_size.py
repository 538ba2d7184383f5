import neo
import pytest
from neo import _native, config

#: Bytes with every instruction set: of the library that runs saved modules, and of the extension, which compiles them
#: as well.
RUNTIME_LIMIT, EXTENSION_LIMIT = 8 << 20, 12 << 20
# What only other builds than Release hold: debug information, sanitizers, coverage.
OTHER_BUILDS = (b".debug_info", b"__asan_init", b"__tsan_init", b"__ubsan_", b"__gcov_")


def test_the_library_is_small():
    extension = _native.library_path().read_bytes()
    if any(mark in extension for mark in OTHER_BUILDS):
        pytest.skip("not built in Release")
    assert len(extension) <= EXTENSION_LIMIT
    try:
        runtime = next(config.prefix().glob("lib*/libneo.so.0"))
    except neo.ResourceError:
        beside = _native.library_path().resolve().parent / "libneo.so.0"
        assert beside.exists(), "neither the installation nor the build has libneo"
        runtime = beside
    assert runtime.stat().st_size <= RUNTIME_LIMIT

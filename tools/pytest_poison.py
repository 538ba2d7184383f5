"""A pytest plugin: memory is NaN before its first use, so that a step which reads what nobody wrote fails."""

from __future__ import annotations


def pytest_configure() -> None:
    """Poison what the core allocates from now on."""
    from neo import _native

    _native.poison_new_memory(True)

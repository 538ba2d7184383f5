"""For all tests of this folder: plans are checked against their specification after lowering."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def verify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO_VERIFY", "1")

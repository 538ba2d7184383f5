"""A short soak; ``python -m tests.soak`` runs for ten minutes."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_eight_seconds_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--seconds", "8"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "held for 8 s" in done.stdout

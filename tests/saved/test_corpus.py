"""The corpus of the fuzzers is made of modules that this neo loads, and is small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import neo
import pytest

CORPUS = Path(__file__).parent.parent.parent / "fuzz" / "corpus"
MODULES = sorted((CORPUS / "module").glob("*.neo"))


@pytest.mark.parametrize("path", [p for p in MODULES if "avx2" not in p.name], ids=lambda p: p.stem)
def test_a_module_of_the_corpus_loads(path: Path) -> None:
    # Where this fails after a change of the format or of a routine, `python -m fuzz.corpus` writes the corpus again.
    module = neo.load(path, threads=1)
    assert module.steps
    assert module.target == ("null" if "null" in path.name else "cpu:scalar")


def test_the_corpus_is_small() -> None:
    assert len(MODULES) > 40
    assert sum(p.stat().st_size for p in CORPUS.rglob("*") if p.is_file()) < 300_000


def test_what_campaigns_found_ends() -> None:
    code = (
        "import sys, neo\n"
        "for path in sys.argv[1:]:\n"
        "    try: neo.load(path, threads=1, limits=neo.Limits(memory=64 << 20, seconds=1))\n"
        "    except neo.InternalError: raise\n"
        "    except neo.Error: pass\n"
        "print('ended')"
    )
    command = [sys.executable, "-c", code, *map(str, sorted((CORPUS / "found").glob("*.neo")))]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.stdout == "ended\n", done.stderr

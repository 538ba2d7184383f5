"""The importer under Atheris, which keeps what reaches new lines: ``python -m tests.untrusted.guided DIR -runs=10000``.

DIR is the corpus: it starts with the sound models of ``seeds`` and grows. Options are libFuzzer's. A finding ends the
run and leaves its model beside DIR. Needs the package atheris (``pip install atheris``), which wants Linux.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

import atheris
import onnx

with atheris.instrument_imports(include=["neo.frontend", "neo.compile", "neo.pipeline"], enable_loader_override=False):
    import neo.frontend.onnx  # noqa: F401  (read here, so that its lines are counted)

from tests.untrusted.attempt import Attempts
from tests.untrusted.mutate import damage, damage_bytes
from tests.untrusted.seeds import load_seeds, save_seeds

__all__ = ["main"]


def main() -> None:
    """Fuzz until the options say so or a promise is broken."""
    folders = [Path(a) for a in sys.argv[1:] if not a.startswith("-")]
    if not folders:
        raise SystemExit(__doc__)
    corpus = folders[0].resolve()
    corpus.mkdir(parents=True, exist_ok=True)
    archive = corpus.with_suffix(".seeds.zip")
    if not archive.exists():
        save_seeds(archive.with_suffix(".new"))
        archive.with_suffix(".new").rename(archive)
    seeds = load_seeds(archive)
    models = [seed.model for seed in seeds if seed.model.ByteSize() < 1 << 13]
    for model in models:
        raw = model.SerializeToString(deterministic=True)
        (corpus / hashlib.sha256(raw).hexdigest()[:16]).write_bytes(raw)
    files = corpus.with_suffix(".files")
    files.mkdir(exist_ok=True)
    attempts = Attempts(seeds, files)

    def try_one(raw: bytes) -> None:
        *_, finding, _ = attempts.attempt(raw, random.Random(raw))
        if finding:
            raise AssertionError(finding)

    def mutate(raw: bytes, most: int, number: int) -> bytes:
        rng = random.Random(number)
        model = onnx.ModelProto()
        try:
            model.ParseFromString(raw)
        except Exception:  # protobuf's own, which has no public name
            return damage_bytes(rng, raw)[:most]
        if rng.random() < 0.1:
            return damage_bytes(rng, raw)[:most]
        damage(rng, model, models)
        changed: bytes = model.SerializeToString(deterministic=True)
        return changed if len(changed) <= most else raw[:most]

    atheris.Setup([*sys.argv[:1], "-max_len=65536", "-timeout=60", *sys.argv[1:]], try_one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""``python -m tests.models.store_answers FOLDER`` stores onnxruntime's answers on the small models of the zoo."""

from __future__ import annotations

import sys
from pathlib import Path

from . import answers, zoo
from .engines import expected_of, fused_of


def main() -> None:
    """Write one archive a model."""
    where = Path(sys.argv[1])
    where.mkdir(parents=True, exist_ok=True)
    for model in zoo.MODELS:
        if model.small and model.onnxruntime:
            answers.save(where, model, expected_of(model), fused_of(model) if model.quantized else ())


if __name__ == "__main__":
    main()

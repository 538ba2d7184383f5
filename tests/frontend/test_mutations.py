"""A damaged model is refused with an error, or runs: it never ends the process."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import pytest

SEED = 20250
DEMO = (Path(neo.__file__).parent / "demo" / "digits.onnx").read_bytes()


def mutate(random: np.random.Generator) -> bytes:
    """Change a few bytes; nearer the end and the beginning more often, where the structure is."""
    raw = bytearray(DEMO)
    for _ in range(int(random.integers(1, 4))):
        where = random.choice(["begin", "end", "anywhere"])
        span = 600 if where != "anywhere" else len(raw)
        at = int(random.integers(0, min(span, len(raw))))
        at = len(raw) - 1 - at if where == "end" else at
        kind = random.integers(0, 4)
        if kind == 0:
            raw[at] ^= 1 << int(random.integers(0, 8))
        elif kind == 1:
            raw[at] = int(random.integers(0, 256))
        elif kind == 2:
            del raw[at : at + int(random.integers(1, 9))]
        else:
            raw[at:at] = bytes(random.integers(0, 256, int(random.integers(1, 9)), dtype=np.uint8))
    return bytes(raw)


@pytest.mark.parametrize("case", range(200))
def test_damaged_model(case: int) -> None:
    raw = mutate(np.random.default_rng([SEED, case]))
    message = "[] it ran"
    try:
        module = neo.compile(raw)
        inputs = {
            t.name: np.zeros([d if isinstance(d, int) else 1 for d in t.shape or ()], t.dtype) for t in module.inputs
        }
        if sum(x.nbytes for x in inputs.values()) < 1 << 24:
            module.run(inputs)
    except neo.InternalError as error:
        pytest.fail(f"case {case}: {error}")
    except neo.Error as error:
        message = str(error)
    assert message.startswith("["), f"case {case}"


@pytest.mark.parametrize("length", [0, 1, 7, 100, len(DEMO) // 2, len(DEMO) - 1])
def test_truncated_model(length: int) -> None:
    with pytest.raises(neo.ModelError):
        neo.compile(DEMO[:length])

"""Damaged models: the check names the node; models that are right: it names none."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import neo
import numpy as np
import onnx
import pytest

from tests.accuracy.damages import KINDS, Damaged, damage, inputs_of, wrong_routines
from tests.accuracy.networks import NETWORKS
from tests.models.inputs import models_folder
from tests.models.zoo import MODELS

# Models of the shared folder whose check takes under a second.
REAL = (
    *("autoencoder1d", "dtln-2", "fastestdet", "gtcrn", "kws-dscnn", "kws-dscnn-qdq", "mediapipe-face-detection"),
    *("micro-kws", "ppocr-cls", "resnet8", "resnet8-qdq", "silero-vad-16k", "tinyvit", "ultraface", "yunet"),
)


@functools.cache
def _real() -> list[Any]:
    if not models_folder().is_dir():
        return []
    return [m for m in MODELS if m.name in REAL and m.path.exists()]


@dataclass(frozen=True)
class Case:
    """A damaged model with the inputs on which it shows."""

    name: str
    seed: int
    kind: str
    feeds: dict[str, Any]
    damaged: Damaged


def cases(count: int) -> Iterator[Case]:
    """Yield damaged models; a damage that changes no output is drawn again."""
    for seed in range(count):
        kind = KINDS[seed % len(KINDS)]
        random = np.random.default_rng(seed)
        while True:
            real = _real()
            if real and random.random() < 0.4:
                chosen = real[random.integers(len(real))]
                name, model, feeds = chosen.name, onnx.load(chosen.path), dict(chosen.cases()[0].feeds)
            else:
                build = NETWORKS[random.integers(len(NETWORKS))]
                name, model = build.__name__, build(int(random.integers(1 << 30)))
                feeds = inputs_of(model, seed)
            damaged = damage(model, kind, random, feeds)
            if damaged is not None:
                break
        yield Case(name, seed, kind, feeds, damaged)


def _is_found(case: Case, cause: neo.accuracy.AccuracyCause | None) -> bool:
    if cause is None:
        return False
    return cause.node in case.damaged.nodes or (case.damaged.value != "" and cause.value == case.damaged.value)


def _assert_avoids(case: Case, cause: neo.accuracy.AccuracyCause) -> None:
    """Assert that the model compiled with the pin does not use what is wrong."""
    pinned = neo.compile(case.damaged.model, routines=cause.pin, threads=1)
    steps = {step.node: step.routine for step in pinned.steps if step.op != "neo.Adapt"}
    for node, routine in cause.pin.items():
        assert steps.get(node, routine).split("{")[0] == routine
    assert cause.cost_ms is not None


needs_wrong_routines = pytest.mark.skipif(
    wrong_routines() is None, reason="the extension that makes routines wrong was not built"
)


@needs_wrong_routines
@pytest.mark.parametrize(
    ("count", "fewest"), [pytest.param(100, 95, marks=pytest.mark.slow, id="100"), pytest.param(15, 14, id="15")]
)
def test_the_node_is_found_in_95_of_100_damaged_models(count, fewest, capsys):
    found, missed, fixed, seconds = dict.fromkeys(KINDS, 0), [], 0, []
    for case in cases(count):
        start = time.perf_counter()
        report = neo.check_accuracy(
            case.damaged.model, against=case.damaged.against, module=case.damaged.module, inputs=case.feeds
        )
        seconds.append(time.perf_counter() - start)
        cause = report.cause
        if _is_found(case, cause):
            found[case.kind] += 1
            if case.kind == "routine" and cause.pin:
                fixed += 1
                _assert_avoids(case, cause)
        else:
            told = "nothing" if cause is None else f"{cause.node} ({cause.kind}: {cause.cause})"
            missed.append(f"seed {case.seed}, {case.name}, {case.kind}: {case.damaged.text}; named: {told}")
    total = sum(found.values())
    with capsys.disabled():
        kinds = ", ".join(f"{kind} {count}" for kind, count in found.items())
        print(f"\ncauses: {total} of {count} found ({kinds}; {fixed} wrong routines with a pin), ", end="")
        print(f"{np.median(seconds):.2f} s each, at most {max(seconds):.2f} s")
        print("\n".join(missed))
    assert total >= fewest, "\n".join(missed)

"""Every operator: ONNX's own cases give the same bits after they were saved and loaded, by Python and by C."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import neo
import pytest

from tests.capi.libneo import answers_of
from tests.conformance.backend_cases import Case, all_cases
from tests.conformance.exceptions import RANDOM, REFUSED
from tests.conformance.test_backend import is_listed
from tests.saved.same_bits import assert_same

PARTS = 16


@cache
def cases() -> list[Case]:
    return [c for c in all_cases() if not is_listed(c.name, [*REFUSED, *RANDOM])]


@pytest.mark.parametrize("part", range(PARTS))
def test_loaded_gives_the_same_bits(part: int, tmp_path: Path) -> None:
    failed = []
    saved: list[tuple[Path, list[list[Any]]]] = []
    expected: list[tuple[str, list[dict[str, Any]]]] = []
    for number, case in enumerate(cases()[part::PARTS]):
        path = tmp_path / f"{number}.neo"
        model, folder, sets = case.load()
        module = neo.compile(model if folder is None else folder / "model.onnx")
        names = [t.name for t in module.inputs]
        try:
            module.save(path)
            loaded = neo.load(path)
            answers = []
            for inputs, _ in sets:
                feeds = dict(zip(names, inputs, strict=True))
                answers.append(module.run(feeds))
                got = loaded.run(feeds)
                assert list(got) == list(answers[-1])
                for name, value in answers[-1].items():
                    assert_same(got[name], value, name)
            saved.append((path, [list(inputs) for inputs, _ in sets]))
            expected.append((case.name, answers))
        except (neo.Error, AssertionError) as error:
            failed.append(f"{case.name}: {error}")
    for (name, answers), got_in_c in zip(expected, answers_of(saved, tmp_path), strict=True):
        try:
            for answer, in_c in zip(answers, got_in_c, strict=True):
                for value, got in zip(answer.values(), in_c, strict=True):
                    assert_same(got, value, "in C")
        except AssertionError as error:
            failed.append(f"{name}: {error}")
    assert not failed, "\n".join(failed)

"""Every operator: ONNX's own cases give the same bits after they were saved and loaded."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import neo
import pytest

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
    path = tmp_path / "m.neo"
    failed = []
    for case in cases()[part::PARTS]:
        model, folder, sets = case.load()
        module = neo.compile(model if folder is None else folder / "model.onnx")
        names = [t.name for t in module.inputs]
        try:
            module.save(path)
            loaded = neo.load(path)
            for inputs, _ in sets:
                feeds = dict(zip(names, inputs, strict=True))
                expected, got = module.run(feeds), loaded.run(feeds)
                assert list(got) == list(expected)
                for name, value in expected.items():
                    assert_same(got[name], value, name)
        except (neo.Error, AssertionError) as error:
            failed.append(f"{case.name}: {error}")
    assert not failed, "\n".join(failed)

"""Files of the formats before this one, which call a step's spec by another key, are read all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import neo
import pytest

from tests.saved.parts import MODELS, Variants, feeds_of
from tests.saved.same_bits import assert_same

KEYS = ("neo.plan", "neo.plan.0", "neo.plan.1")
OLDER = {"4": "1", "5": "2"}


def as_older(file: bytes) -> bytes:
    """The same file as the formats 1 and 2 have it."""

    def rename(plan: dict[str, Any]) -> None:
        for block in plan["blocks"]:
            for item in (item for region in block["regions"] for item in region["items"]):
                if "spec" in item:
                    item["recipe"] = item.pop("spec")

    parts = Variants.of(file)
    parts.metadata["neo.format"] = OLDER[parts.metadata["neo.format"]]
    for key in KEYS:
        if key in parts.metadata:
            parts.change(key, rename)
    return parts.join()


@pytest.mark.parametrize("shapes", [{"N": 2}, {"N": [2, (1, 4)]}], ids=["one", "variants"])
def test_a_file_of_an_older_format_gives_the_same_bits(shapes: dict[str, Any], tmp_path: Path) -> None:
    module = neo.compile(MODELS["network"], threads=1, shapes=shapes)
    module.save(tmp_path / "m.neo")
    older = as_older((tmp_path / "m.neo").read_bytes())
    assert b'"recipe"' in older.replace(b"\\", b"")
    feeds = feeds_of("network")
    for name, value in module.run(feeds).items():
        assert_same(neo.load(older).run(feeds)[name], value, name)

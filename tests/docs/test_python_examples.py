"""The programs of examples/python: short, described, and right on what they make themselves (others: tests/models)."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "python" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_short_and_has_its_section(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
    assert f"python/{path.name})" in (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


def test_a_table_is_classified():
    example = load("classify_table")
    module = example.neo.compile(example.forest(*example.table(300)))
    x, y = example.table(400)
    label, votes = module(x)
    assert (label == y).mean() > 0.9
    assert votes.shape == (400, 2)

"""Each row of the audit of the papers is filled, and its command is one that runs."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from neo.cli import make_parser

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
PAPERS = ("NeoCPU", "SoftNeuro", "ModelCompiler", "The unified iGPU paper", "Graphi")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith("| section")
]
COMMANDS = sorted({command for row in ROWS for command in re.findall(r"^`(.*)`$", row[4])})


def test_every_paper_has_a_table():
    assert re.findall(r"^## (.*)$", TEXT, re.MULTILINE) == list(PAPERS)
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1][:30]}")
def test_rows_are_filled(row):
    section, asks, where, figure, command = row
    assert section
    assert asks
    assert figure
    if figure != "open":
        assert where
        assert command


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_there(command):
    program, *arguments = shlex.split(command)
    if program == "neo":
        make_parser().parse_args(arguments)
    elif program == "pytest":
        assert all((ROOT / path).exists() for path in arguments)
    else:
        assert (program, arguments[0]) == ("python", "-m")
        spec = importlib.util.find_spec(arguments[1])
        assert spec is not None
        source = Path(spec.origin).read_text(encoding="utf-8")
        assert 'if __name__ == "__main__":' in source
        for option in (a for a in arguments[2:] if a.startswith("--")):
            assert f'"{option}"' in source or "environment" in source, option

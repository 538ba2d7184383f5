"""The site is built without a warning, and holds the whole public face."""

import subprocess
import sys
from pathlib import Path

import neo
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "tree", ROOT / "docs", folder]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder


def test_the_reference_has_every_public_name(site):
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in sorted(set(neo.__all__) - {"__version__", "testing"}):
        described = getattr(neo, name)
        assert any(f'id="{home}.{name}"' in page for home in ("neo", described.__module__)), name


def test_the_reference_has_every_command_and_knob(site):
    page = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for word in ("neo compile", "neo check", "--accuracy", "NEO_MAX_ISA"):
        assert word in page, word


def test_every_document_is_a_page_of_the_index(site):
    index = (site / "index.html").read_text(encoding="utf-8")
    for document in sorted((ROOT / "docs").glob("*.md")):
        assert f'href="{document.stem}.html"' in index or document.stem == "index", document.name


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text, page
        assert '<link rel="stylesheet" type="text/css" href="http' not in text, page

"""The notebooks run from top to bottom, and show what they promise."""

import base64
from pathlib import Path

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
PICTURES = {"quickstart.ipynb": 2}


def pictures(notebook):
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                yield base64.b64decode(output["data"]["image/png"])


def texts(notebook):
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield output.get("text", "") or output.get("data", {}).get("text/plain", "")


def test_every_notebook_is_executed_here():
    assert {path.name for path in FOLDER.glob("*.ipynb")} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_a_notebook_is_kept_without_outputs(name):
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


@pytest.mark.parametrize("name", PICTURES)
def test_a_notebook_runs_and_draws_its_pictures(name, tmp_path):
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    drawn = list(pictures(notebook))
    assert len(drawn) == PICTURES[name]
    for number, picture in enumerate(drawn):
        (tmp_path / f"{number}.png").write_bytes(picture)
    printed = "\n".join(texts(notebook))
    assert "64 of 64 right" in printed
    assert "chosen" in printed
    assert "selection's total" in printed
    assert printed.rstrip().endswith("True")

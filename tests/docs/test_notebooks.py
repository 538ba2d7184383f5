"""The notebooks run from top to bottom, and show what they promise."""

import base64
import os
from pathlib import Path

import neo
import pytest
from neo import _native

pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
PICTURES = {"quickstart.ipynb": 2, "mali.ipynb": 1}
SHOWN = {
    "quickstart.ipynb": ("64 of 64 right", "chosen", "selection's total"),
    "mali.ipynb": (
        "64 of 64 right",
        "{'copies': 2, 'opencl': 10}",
        "estimates: Arm Mali through OpenCL; the figures of a T860 MP4",
        "step, us (estimate)",
        "0 of 12 steps run on the CPU",
        "__kernel",
        "steps: 3 copies, 8 opencl",
        "5 boxes of 5; the same as on the CPU: True",
        "times measured",
    ),
}
NEEDS = {"mali.ipynb": "opencl"}


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
    if name in NEEDS and not any(kind["devices"] for kind in _native.devices() if kind["kind"] == NEEDS[name]):
        pytest.skip(f"a device of kind {NEEDS[name]} is needed")
    notebook = nbformat.read(FOLDER / name, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**os.environ, "PYTHONPATH": str(Path(neo.__file__).resolve().parents[1])})
    drawn = list(pictures(notebook))
    assert len(drawn) == PICTURES[name]
    for number, picture in enumerate(drawn):
        (tmp_path / f"{number}.png").write_bytes(picture)
    printed = "\n".join(texts(notebook))
    for text in SHOWN[name]:
        assert text in printed
    assert printed.rstrip().endswith("True")

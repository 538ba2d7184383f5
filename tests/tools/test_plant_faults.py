"""The list of faults, and the parts of the script that plants them."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEAST = 30


def _load(name):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "tools"))


faults = _load("faults")
plant_faults = _load("plant_faults")


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault):
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    assert plant_faults.replaced(fault, text) != text
    assert fault.breaks.endswith(".")
    assert fault.tests or fault.cpp
    for test in fault.tests:
        path, _, function = test.partition("::")
        assert (ROOT / path).exists()
        assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


def test_the_faults_are_many_and_of_many_folders():
    names = {fault.name for fault in faults.FAULTS}
    assert "none" not in names
    assert len(names) == len(faults.FAULTS) >= LEAST
    folders = {"/".join(fault.file.split("/")[:2]) for fault in faults.FAULTS}
    assert len(folders) >= 10
    tiers = {fault.file for fault in faults.FAULTS if "/simd/vec_" in fault.file}
    assert len(tiers) >= 3


def test_a_planted_fault_is_taken_out_again(tmp_path):
    fault = faults.Fault("f", "a.txt", "one", "two", "It is wrong.", ())
    path = tmp_path / "a.txt"
    path.write_text("one and\n")

    def build_fails():
        assert path.read_text() == "two and\n"
        raise RuntimeError

    with pytest.raises(RuntimeError), plant_faults.planted(fault, tmp_path):
        build_fails()
    assert path.read_text() == "one and\n"


@pytest.mark.parametrize("text", ["none\n", "one and one\n"])
def test_a_fault_without_a_place_of_its_own_is_refused(text):
    fault = faults.Fault("f", "a.txt", "one ", "two ", "It is wrong.", ())
    with pytest.raises(SystemExit, match="its text must occur once in a.txt. Got"):
        plant_faults.replaced(fault, text + "one one ")


SUITE = """
import os, time, pytest

def test_passes():
    pass

@pytest.mark.parametrize("n", range(4))
def test_cases(n):
    assert n != 2

def test_ends_the_process():
    os._exit(3)

def test_hangs():
    time.sleep(600)

def test_comes_last():
    assert False
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a checkout of one file of tests, with no core to build."""
    (tmp_path / "build").mkdir()
    (tmp_path / "python").mkdir()
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: long\n")
    monkeypatch.setattr(plant_faults, "PLUGINS", ("plant_faults",))
    monkeypatch.setattr(plant_faults, "TEST_SECONDS", 3)
    return tmp_path


@pytest.mark.slow
def test_names_the_tests_that_fail_hang_or_end_the_process(checkout):
    (checkout / "test_it.py").write_text(SUITE)
    assert plant_faults.failing_tests(checkout, ["test_it.py"]) == [
        "test_it.py::test_cases[2]",
        "test_it.py::test_comes_last",
        "test_it.py::test_ends_the_process",
        "test_it.py::test_hangs",
    ]


def test_a_file_that_cannot_be_imported_fails_as_a_whole(checkout):
    (checkout / "test_it.py").write_text("import nothing_of_this_name\n")
    assert plant_faults.failing_tests(checkout, ["test_it.py"]) == ["test_it.py"]


def test_what_fails_without_a_fault_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(plant_faults, "FOLDER", tmp_path)
    monkeypatch.setattr(plant_faults, "FAULTS", [faults.Fault("f", "a.txt", "one", "two", "It is wrong.", ())])
    plant_faults.record("f", {"tests": ["a", "b"], "cpp": ["C"]})
    plant_faults.record("none", {"tests": ["b"], "cpp": []})
    assert plant_faults.read_found() == {"f": {"tests": ["a"], "cpp": ["C"]}}


def test_computes_which_samples_find_a_fault():
    order = {"test_a.py::test": [f"test_a.py::test[{i}]" for i in range(3)]}
    assert plant_faults.finds({"test_a.py::test[1]"}, order, {"test_a.py::test": [0, 1]})
    assert not plant_faults.finds({"test_a.py::test[2]"}, order, {"test_a.py::test": [0, 1]})

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ["bash", "dirname", "mkdir", "printf", "cat", "sed", "grep", "head", "find", "sort", "xargs", "sha256sum"]


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "neo"
    (root / "tools").mkdir(parents=True)
    for name in ("demo", "test", "tools/environment.sh"):
        shutil.copy(ROOT / name, root / name)
    return root


@pytest.fixture
def tools(tmp_path):
    """A folder for PATH with what every system has, but neither Python nor a compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED:
        (folder / name).symlink_to(shutil.which(name))
    return folder


def write_tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(script: Path, path: Path) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name not in {"CXX", "NEO_PYTHON"}}
    return subprocess.run(
        [script], env={**variables, "PATH": str(path)}, cwd="/", capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("script", ["demo", "test"])
def test_names_the_missing_compiler(checkout, tools, script):
    write_tool(tools, "python3", "exit 0")
    result = run(checkout / script, tools)
    assert result.returncode == 1
    assert result.stderr == "neo: a C++20 compiler is missing. Install one: apt install g++\n"


def test_names_a_compiler_that_is_too_old(checkout, tools):
    write_tool(tools, "python3", "exit 0")
    write_tool(tools, "g++", "exit 1")
    result = run(checkout / "demo", tools)
    assert result.returncode == 1
    assert result.stderr.startswith("neo: a C++20 compiler is needed, g++ is not one.")


def test_names_the_missing_python(checkout, tools):
    write_tool(tools, "g++", "exit 0")
    result = run(checkout / "demo", tools)
    assert result.returncode == 1
    assert result.stderr == "neo: Python >= 3.10 is missing. Install it: apt install python3 python3-venv\n"


def test_names_a_python_that_is_too_old(checkout, tools):
    write_tool(tools, "g++", "exit 0")
    write_tool(tools, "python3", 'case "$1" in -V) echo "Python 3.9.2" ;; *) exit 1 ;; esac')
    result = run(checkout / "demo", tools)
    assert result.returncode == 1
    assert result.stderr.startswith("neo: Python >= 3.10 is needed, python3 is Python 3.9.2.")


def test_names_the_missing_venv_module(checkout, tools):
    write_tool(tools, "g++", "exit 0")
    write_tool(tools, "python3", 'case "$2" in *ensurepip*) exit 1 ;; esac')
    result = run(checkout / "demo", tools)
    assert result.returncode == 1
    assert result.stderr == "neo: Python's venv module is missing. Install it: apt install python3-venv\n"


@pytest.mark.parametrize(
    ("python", "message"),
    [
        (
            "cp399-x86_64",
            "PYTHON must be an interpreter, or cp311, cp313 or cp314 of x86_64 or aarch64. Got cp399-x86_64",
        ),
        ("cp314-riscv64", "PYTHON must end in -x86_64 or -aarch64. Got cp314-riscv64"),
    ],
)
def test_wheels_names_a_python_that_it_cannot_unpack(tmp_path, python, message):
    command = [ROOT / "tools" / "wheels.sh", tmp_path / "wheels", python]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, f"wheels: {message}\n")

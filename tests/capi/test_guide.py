"""The deployment guide holds word for word, in an empty directory; so does what the wheel brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import neo
import pytest

from tests.capi.libneo import ROOT, build_folder, cmake, configure, prefix, run, sanitizers

GUIDE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def copy_package(folder: Path) -> None:
    """Copy the package without libneo."""
    leave_out = shutil.ignore_patterns("__pycache__", "lib*", "include")
    shutil.copytree(Path(neo.__file__).parent, folder / "neo", ignore=leave_out)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the package out as the wheel does; return what goes on the path."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_package(folder)
    run([cmake(), "--install", build_folder(), "--component", "wheel", "--prefix", folder])
    return folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory after sections 1 to 3 of the guide, and libneo where section 2 installs it."""
    if sanitizers():
        pytest.skip("the guide's programs are compiled without sanitizers")
    folder = tmp_path_factory.mktemp("guide")
    (folder / "save.py").write_text(blocks("python")[0])
    (folder / "classify.c").write_text(blocks("c")[0])
    (folder / "neo").symlink_to(prefix())
    return folder


def config(staged: Path, *arguments: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(staged)}
    return run([sys.executable, "-m", "neo.config", *arguments], env=environment).split()


def saved(folder: Path) -> str:
    package = Path(neo.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    return run([sys.executable, "save.py"], cwd=folder, env=environment)


def test_the_guide(empty: Path) -> None:
    said = re.fullmatch(r"python: (\d)\n", saved(empty))
    assert said is not None
    build, shared, archive, arm = blocks("sh")
    assert "--component runtime --prefix" in build
    assert "aarch64" in arm
    for block in (shared, archive):
        assert run(["bash", "-euc", block], cwd=empty) == f"c: {said[1]}\n"


def test_what_the_wheel_brings(staged: Path, empty: Path) -> None:
    assert run(["ls", staged / "neo" / "include"]).split() == ["neo.h", "neo.hpp"]
    flags = config(staged, "--cflags", "--libs")
    run(["cc", "classify.c", "-o", "from_wheel", *flags], cwd=empty)
    assert config(staged, "--prefix") == [str(staged / "neo")]
    build = empty / "build"
    (cmake_dir,) = config(staged, "--cmakedir")
    configure(ROOT / "examples" / "c", build, f"-Dneo_DIR={cmake_dir}")
    run([cmake(), "--build", build])
    best = run([build / "classify", "digits.neo", "image.raw"], cwd=empty)
    assert run([empty / "from_wheel"], cwd=empty) == f"c: {best[0]}\n"


def test_an_installation_without_libneo_says_so(tmp_path: Path) -> None:
    copy_package(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "neo.config", "--libs"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("[config] an installation must have libneo. Got none in ")

"""What a build leaves beside neo's own extension and an installation may lack."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from neo import _native


def find(pattern: str) -> list[Path]:
    """Return the files of a pattern: those beside neo's extension, else those of the folder where ./test builds."""
    beside = _native.library_path().resolve().parent.glob(pattern)
    return sorted(beside) or sorted(Path(__file__).resolve().parents[1].glob(f"build/venv/{pattern}"))


def libraries() -> Path:
    """Return the folder of the static libraries; the test is skipped where there is an installation alone."""
    found = find("libneo_base.a")
    if not found:
        pytest.skip("an installation has no static libraries")
    return found[0].parent


def load_extension(name: str) -> ModuleType:
    """Return an extension that only tests have.

    Raises
    ------
    ModuleNotFoundError
        It was not built.
    """
    found = find(f"{name}.*so")
    if not found:
        raise ModuleNotFoundError(f"{name} was not built", name=name)
    spec = importlib.util.spec_from_file_location(name, found[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

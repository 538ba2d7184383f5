"""The extensions that only tests have."""

import importlib.util
from pathlib import Path
from types import ModuleType

from neo import _native


def load_extension(name: str) -> ModuleType:
    """Return an extension that lies beside neo's own, or in the folder where ./test builds."""
    found = sorted(_native.library_path().resolve().parent.glob(f"{name}*"))
    if not found:
        found = sorted(Path(__file__).resolve().parents[2].glob(f"build/venv/{name}*.so"))
    spec = importlib.util.spec_from_file_location(name, found[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

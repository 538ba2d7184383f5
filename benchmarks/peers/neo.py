"""neo itself."""

from __future__ import annotations

import importlib.metadata

from benchmarks.environment import commit
from benchmarks.peers import Run, Task


def version() -> str:
    """Return neo's version and the commit of this repository."""
    import neo

    found = getattr(neo, "__version__", None)
    if found is None:
        owners = importlib.metadata.packages_distributions().get("neo", [])
        found = importlib.metadata.version(owners[0]) if owners else "source tree"
    return f"neo {found} ({commit()})"


def load(task: Task) -> Run:
    """Compile without tuning."""
    import neo

    module = neo.compile(str(task.path), threads=task.threads)
    return lambda: list(module.run(task.inputs).values())

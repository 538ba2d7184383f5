"""Cases in a process of their own: one that ends its process is reported by its name, and the rest go on in a new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

__all__ = ["Note", "run_cases"]

_ROOT = Path(__file__).parents[2]

#: Called by a case to say what it is at, for the report of a process that ended there.
Note = Callable[[str], None]


def run_cases(function: str, names: Sequence[str], seconds: float = 600.0) -> dict[str, str]:
    """What came of each case, empty where it is as it should be.

    Parameters
    ----------
    function : str
        ``module:name`` of a function that takes a case's name and a `Note` and returns what is wrong with it, or "".
    names : sequence of str
    seconds : float
        How long one process may take.
    """
    outcomes: dict[str, str] = {}
    left = list(names)
    while left:
        done, at, how = _run_process(function, left, seconds)
        outcomes.update(done)
        left = left[len(done) :]
        if left and how:
            outcomes[left[0]] = f"{how} at: {at or 'its start'}"
            left = left[1:]
    return outcomes


def _run_process(function: str, names: Sequence[str], seconds: float) -> tuple[dict[str, str], str, str]:
    """The cases that ended, what the one after them was at, and how the process ended."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, sys.path)]),
        "NEO_VERIFY": "1",  # graphs after passes and plans after lowering hold to their specifications
    }
    command = [sys.executable, "-m", "tests.edges.batch", function]
    how = ""
    with tempfile.TemporaryFile("w+") as answers, tempfile.TemporaryFile("w+") as complaints:
        try:
            process = subprocess.run(
                command,
                input=json.dumps(list(names)),
                text=True,
                stdout=answers,
                stderr=complaints,
                cwd=_ROOT,
                env=environment,
                timeout=seconds,
                check=False,
            )
            if process.returncode:
                complaints.seek(0)
                how = f"the process ended with {process.returncode}: {complaints.read()[-3000:].strip()}"
        except subprocess.TimeoutExpired:
            how = f"the process took more than {seconds:g} s"
        answers.seek(0)
        lines = [json.loads(line) for line in answers.read().splitlines()]
    done = {line["name"]: line["failure"] for line in lines if "failure" in line}
    last = lines[-1] if lines else {}
    return done, last.get("at", ""), how or ("" if len(done) == len(names) else "the process ended early")


def _main() -> None:
    module, _, name = sys.argv[1].partition(":")
    case = getattr(import_module(module), name)

    def tell(**what: str) -> None:
        print(json.dumps(what), flush=True)

    for one in json.load(sys.stdin):
        tell(at="")
        try:
            failure = case(one, lambda at: tell(at=at))
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        tell(name=one, failure=failure)


if __name__ == "__main__":
    _main()

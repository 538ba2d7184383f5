"""A pytest plugin (``-p pytest_ring``): everything cheap, and of what is dear a sample that the commit's hash draws.

A run of the whole suite is sampled; a run of named files, or with ``-k``, is not, unless ``--seed`` is given.

- A test function with one case runs, unless it is marked ``slow``.
- A function whose cases together take less than ``CHEAP_SECONDS`` runs whole, and so does one that the record of
  seconds (``tests/seconds.json``) does not know yet.
- Of every other function one case in ``PERIOD`` is drawn, spread evenly over the list of its cases, and at least so many
  that each value of its short axes (tier, number of threads, mode ...) occurs.
- Of the functions with one case that are marked ``slow`` one in ``PERIOD`` is drawn, and of single cases that are.

``--about N`` draws about N tests from those, where each takes longer: under sanitizers, on an emulated processor. One of
a folder that ``--fuller`` names is four times as likely as another. Smaller networks of the same graph
stand in for the largest. ``--all`` runs everything. With ``--all --record-seconds FILE`` the record is written anew.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "seconds.json"

#: A function whose cases take less than this in all is not worth sampling, in seconds of one core.
CHEAP_SECONDS = 0.3
#: One case in this many is drawn: 20 seeds leave (7/8)**20 = 7 % of them out, and nothing of the half that is cheap.
PERIOD = 8


def commit() -> str:
    """Return the hash of the checkout's commit, or "0" where there is none."""
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else "0"


def number(*texts: str) -> int:
    """Return the same large number for the same texts on every machine."""
    return int.from_bytes(hashlib.blake2b("\0".join(texts).encode(), digest_size=8).digest(), "big")


def draw(axes: Sequence[Mapping[str, int]], seed: str) -> list[int]:
    """Draw cases of one function.

    Parameters
    ----------
    axes : sequence of mappings
        For each case the index of its value on every axis.
    seed : str
        Decides which cases are drawn, and nothing else does.

    Returns
    -------
    list of int
        Indices of cases, ascending: one in ``PERIOD`` at equal distances, and more where a value would not occur of an
        axis that is no longer than that share.
    """
    count = len(axes)
    share = -(-count // PERIOD)
    residues = sorted(range(PERIOD), key=lambda residue: number(seed, str(residue)))
    order = [index for residue in residues for index in range(residue, count, PERIOD)]
    missing = {(name, value) for case in axes for name, value in case.items()}
    lengths: dict[str, int] = defaultdict(int)
    for name, _ in missing:
        lengths[name] += 1
    missing = {(name, value) for name, value in missing if lengths[name] <= share}
    drawn = set(order[:share])
    for index in drawn:
        missing -= set(axes[index].items())
    for index in order[share:]:
        if found := missing & set(axes[index].items()):
            drawn.add(index)
            missing -= found
    return sorted(drawn)


def ring(
    functions: Mapping[str, Sequence[Mapping[str, int]]],
    slow: Mapping[str, set[int]],
    seconds: Mapping[str, float],
    seed: str,
) -> dict[str, list[int]]:
    """Return which cases of every function run.

    Parameters
    ----------
    functions : mapping
        Name of a function -> for each of its cases the index of its value on every axis.
    slow : mapping
        Name of a function -> which of its cases are marked ``slow``.
    seconds : mapping
        Name of a function -> what all its cases took, in seconds of one core.
    seed : str
        Decides what is drawn.
    """
    chosen = {}
    for name, axes in functions.items():
        marked = slow.get(name, set())
        if len(axes) == 1 or len(marked) < len(axes):
            drawn = [case for case in sorted(marked) if number(seed, name, str(case)) % PERIOD == 0]
            usual = [case for case in range(len(axes)) if case not in marked]
        else:
            drawn, usual = [], list(range(len(axes)))
        if len(usual) > 1 and seconds.get(name, 0.0) >= CHEAP_SECONDS:
            usual = [usual[case] for case in draw([axes[case] for case in usual], seed + name)]
        chosen[name] = sorted(drawn + usual)
    return chosen


def function_of(item: pytest.Item) -> str:
    """Return the name of a test's function: its file and what follows, without the case."""
    return item.nodeid.partition("[")[0]


class Ring:
    """Samples the collected tests and says so."""

    def __init__(self, seed: str, about: int | None, fuller: Sequence[str]) -> None:
        self.seed = seed
        self.about = about
        self.fuller = tuple(f"{folder}/" for folder in fuller)
        self.drawn = f"drawn by --seed {seed}" + ("" if about is None else f" --about {about}")
        # Where others collect the tests for this process, it does not know how many there are.
        self.text = f"neo: a sample of the tests, {self.drawn}; --all runs all"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        functions: dict[str, list[Mapping[str, int]]] = defaultdict(list)
        slow: dict[str, set[int]] = defaultdict(set)
        for item in items:
            cases = functions[function_of(item)]
            if item.get_closest_marker("slow"):
                slow[function_of(item)].add(len(cases))
            cases.append(getattr(getattr(item, "callspec", None), "indices", {}))
        chosen = {name: set(cases) for name, cases in ring(functions, slow, read_record(), self.seed).items()}
        kept: list[pytest.Item] = []
        counts: dict[str, int] = defaultdict(int)
        for item in items:
            name = function_of(item)
            if counts[name] in chosen[name]:
                kept.append(item)
            counts[name] += 1
        if self.about is not None:
            kept = self.thinned(kept, self.about)
        self.text = f"neo: {len(kept)} of {len(items)} tests, {self.drawn}; --all runs all"
        stay = set(kept)
        left = [item for item in items if item not in stay]
        items[:] = kept
        if left:
            config.hook.pytest_deselected(items=left)

    def thinned(self, items: Sequence[pytest.Item], about: int) -> list[pytest.Item]:
        """Return about so many of the items."""
        weights = [4 if item.nodeid.startswith(self.fuller) else 1 for item in items]
        bound = about * 2**64 // max(sum(weights), 1)
        return [
            item for item, weight in zip(items, weights, strict=True) if number(self.seed, item.nodeid) < weight * bound
        ]

    def pytest_report_collectionfinish(self) -> str:
        return self.text

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(self.text)


def read_record() -> dict[str, float]:
    """Return the record of seconds, without a function where there is none."""
    if not RECORD.is_file():
        return {}
    record: dict[str, float] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


class Seconds:
    """Adds up what the cases of every function took."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spent: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.spent[report.nodeid.partition("[")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        dear = {name: round(spent, 2) for name, spent in sorted(self.spent.items()) if spent >= CHEAP_SECONDS}
        self.path.write_text(json.dumps(dear, indent=0) + "\n", encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the ring."""
    group = parser.getgroup("neo")
    group.addoption("--all", action="store_true", dest="ring_all", help="run every test")
    group.addoption("--seed", dest="ring_seed", metavar="TEXT", help="draw the sample of this seed (the commit's hash)")
    group.addoption("--about", type=int, dest="ring_about", metavar="N", help="about so many tests of the sample")
    group.addoption("--fuller", default="", dest="ring_fuller", metavar="FOLDERS", help="of these four times as many")
    group.addoption("--record-seconds", type=Path, metavar="FILE", help="write what each function of tests took")


def pytest_configure(config: pytest.Config) -> None:
    """Register what the options ask for."""
    option = config.option
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not option.keyword
    if option.ring_seed is None and whole and not option.ring_all:
        option.ring_seed = commit()  # the processes that xdist starts take it from here
    if option.ring_seed is not None and not option.ring_all:
        os.environ["NEO_TEST_SAMPLE"] = "1"  # smaller networks stand in for large ones: tests/models/zoo.py
        fuller = [folder for folder in option.ring_fuller.split(",") if folder]
        config.pluginmanager.register(Ring(option.ring_seed, option.ring_about, fuller), "ring")
    if option.record_seconds and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Seconds(option.record_seconds), "seconds")


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Let Python look for garbage only after collecting: it would follow all tests again and again and find none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep what was collected, which lives as long as the run, out of every later search for garbage."""
    gc.freeze()
    gc.enable()

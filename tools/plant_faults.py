"""Plants the faults of ``tools/faults.py`` one by one and records which tests fail with each.

Usage::

    python tools/plant_faults.py check [NAME...]
    python tools/plant_faults.py rings --seeds 1000

``check`` works in a copy of the checkout below ``build/faults``: it replaces the fault's text, builds, runs the tests
that the fault names (all their cases) and writes the ids of those that fail into ``build/faults/found/NAME.json``.
``check none``, the last one where no name is given, runs all those without a fault: what fails then does not count.
``rings`` computes from these files, without running a test, which faults the sample of each seed finds
(``tools/pytest_ring.py``); its exit code is 1 where a fault is found by no test, or a seed misses more than one fault in
ten.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import pytest_ring  # type: ignore[import-not-found]  # noqa: E402
from faults import FAULTS, Fault  # type: ignore[import-not-found]  # noqa: E402

FOLDER = ROOT / "build" / "faults"
MARKERS = "not gpu and not bench"
PLUGINS = ("pytest_poison", "plant_faults")
#: A test that takes longer is stopped and counts as failing, in seconds.
TEST_SECONDS = 120.0
#: The tests of one fault together, in seconds.
RUN_SECONDS = 1800
#: After a test that ends the process the others are run again, at most this many times.
CRASHES = 4
#: The share of the faults that the sample of every seed must find.
LEAST_SHARE = 0.9

# As a pytest plugin (-p plant_faults): events go to the file that this variable names, line by line, since the process
# may end at any time.
_EVENTS = "NEO_FAULT_EVENTS"


def _note(kind: str, value: Any) -> None:
    with Path(os.environ[_EVENTS]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([kind, value]) + "\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test begins."""
    _note("start", nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Note the end of each part of a test."""
    if report.failed:
        _note("failed", report.nodeid)
    if report.when == "teardown":
        _note("end", report.nodeid)


def pytest_collectreport(report: Any) -> None:
    """Note a file that cannot be imported."""
    if report.failed:
        _note("failed", report.nodeid)


def pytest_collection_finish(session: Any) -> None:
    """Note every test with the index of its value on each axis."""
    for item in session.items:
        axes = getattr(getattr(item, "callspec", None), "indices", {})
        _note("item", [item.nodeid, axes, item.get_closest_marker("slow") is not None])


def pytest_unconfigure() -> None:
    """End the process, in which a fault may have left a call that never ends."""
    os._exit(0)


def replaced(fault: Fault, text: str) -> str:
    """Return the text of the fault's file with the fault in it."""
    count = text.count(fault.old)
    if count != 1:
        raise SystemExit(f"{fault.name}: its text must occur once in {fault.file}. Got {count} times")
    return text.replace(fault.old, fault.new)


@contextlib.contextmanager
def planted(fault: Fault, root: Path) -> Iterator[None]:
    """Hold the fault in the checkout at `root`."""
    path = root / fault.file
    text = path.read_text(encoding="utf-8")
    path.write_text(replaced(fault, text), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def copy_checkout(copy: Path) -> None:
    """Bring a copy up to date with this checkout; files that are the same keep their times."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0"):
        source, target = ROOT / name, copy / name
        if not name or not source.is_file():
            target.unlink(missing_ok=True) if name else None
            continue
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def build(copy: Path, targets: Sequence[str] = ()) -> None:
    """Build the extension module and what else is named."""
    folder = copy / "build" / "release"
    if not (folder / "build.ninja").is_file():
        # One source per object: a fault changes one, and the others are found by ccache.
        options = ["-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", "-DNEO_UNITY=OFF"]
        subprocess.run(["cmake", "--preset", "release", *options], cwd=copy, check=True, capture_output=True)
    done = subprocess.run(
        ["cmake", "--build", str(folder), "-j2", "--target", "_neo", *targets],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit("the build must succeed. Got:\n" + done.stdout[-3000:])
    for library in folder.glob("_neo.*.so"):
        link = copy / "python" / "neo" / library.name
        link.unlink(missing_ok=True)
        link.symlink_to(library)


def run_pytest(copy: Path, arguments: Sequence[str]) -> list[list[Any]]:
    """Run pytest in a copy of the checkout and return its events: kind and value."""
    events = copy / "build" / "events"
    events.unlink(missing_ok=True)
    paths = f"{copy / 'python'}:{copy / 'tools'}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKERS, *arguments]
    command += [part for plugin in PLUGINS for part in ("-p", plugin)]
    command += ["-o", f"faulthandler_timeout={TEST_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
    with contextlib.suppress(subprocess.TimeoutExpired), (copy / "build" / "pytest.log").open("w") as log:
        subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": paths, _EVENTS: str(events)},
            stdout=log,
            stderr=log,
            timeout=RUN_SECONDS,
            check=False,
        )
    return [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()] if events.is_file() else []


def failing_tests(copy: Path, tests: Sequence[str]) -> list[str]:
    """Return the ids of the tests that fail, hang or end the process."""
    failing: set[str] = set()
    stopped: list[str] = []
    for _ in range(1 + CRASHES):
        arguments = [*tests, *(part for name in stopped for part in ("--deselect", name))]
        events = run_pytest(copy, arguments)
        failing.update(value for kind, value in events if kind == "failed")
        ended = {value for kind, value in events if kind == "end"}
        cut = [value for kind, value in events if kind == "start" and value not in ended]
        if not cut:
            if not events and not failing:
                raise SystemExit("pytest must run. Got:\n" + (copy / "build" / "pytest.log").read_text()[-3000:])
            break
        failing.update(cut)
        stopped += cut
    return sorted(failing)


def failing_cpp_tests(copy: Path, tests: str) -> list[str]:
    """Return the names of the GoogleTests, of those that a filter names, that fail; ``cpp`` where the process ends."""
    command = [str(copy / "build" / "release" / "neo_cpp_tests"), f"--gtest_filter={tests}", "--gtest_brief=1"]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=TEST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ["cpp"]
    names = {line.split("]")[1].split()[0].rstrip(",") for line in done.stdout.splitlines() if "  FAILED  ] " in line}
    names = {name for name in names if not name.isdigit()}
    return sorted(names) or (["cpp"] if done.returncode else [])


def record(name: str, found: Mapping[str, Sequence[str]]) -> None:
    """Write which tests and which C++ tests fail with a fault."""
    path = FOLDER / "found" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def read_records() -> dict[str, dict[str, list[str]]]:
    """Return by fault what was recorded, under "none" what fails without one."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("found/*.json")}


def check(fault: Fault, copy: Path) -> None:
    """Record which of its tests fail with a fault."""
    start = time.monotonic()
    with planted(fault, copy):
        build(copy, [*fault.builds, *(["neo_cpp_tests"] if fault.cpp else [])])
        built = time.monotonic()
        found = {
            "tests": failing_tests(copy, fault.tests) if fault.tests else [],
            "cpp": failing_cpp_tests(copy, fault.cpp) if fault.cpp else [],
        }
    seconds = f"built in {built - start:.0f} s, tested in {time.monotonic() - built:.0f} s"
    print(f"{fault.name}: {len(found['tests'])} tests and {len(found['cpp'])} C++ tests fail; {seconds}", flush=True)
    record(fault.name, found)


def check_none(copy: Path) -> None:
    """Record which of the tests that fail with a fault fail without one."""
    records = [one for name, one in read_records().items() if name != "none"]
    tests = sorted({name for one in records for name in one["tests"]})
    cpp = sorted({name for one in records for name in one["cpp"]} - {"cpp"})
    build(copy, sorted({target for fault in FAULTS for target in fault.builds} | {"neo_cpp_tests"}))
    listed = copy / "build" / "tests"
    listed.write_text("\n".join(tests) + "\n", encoding="utf-8")
    found = {
        "tests": failing_tests(copy, [f"@{listed}"]) if tests else [],
        "cpp": failing_cpp_tests(copy, ":".join(cpp)) if cpp else [],
    }
    print(f"none: {len(found['tests'])} tests and {len(found['cpp'])} C++ tests fail", flush=True)
    record("none", found)


def read_found() -> dict[str, dict[str, list[str]]]:
    """Return by fault what was found, without the tests that fail anyway."""
    found = read_records()
    anyway = found.pop("none", {})
    return {
        fault.name: {kind: sorted({*ids} - {*anyway.get(kind, [])}) for kind, ids in found[fault.name].items()}
        for fault in FAULTS
        if fault.name in found
    }


def finds(ids: set[str], order: Mapping[str, Sequence[str]], chosen: Mapping[str, Sequence[int]]) -> bool:
    """Return whether one of the tests that fail is among the chosen cases of the functions in `order`."""
    return any(name in ids for function, cases in chosen.items() for name in (order[function][i] for i in cases))


def rings(copy: Path, seeds: int) -> int:
    """Print by fault the share of seeds that find it, and the least number of faults that a seed finds."""
    found = read_found()
    if not found:
        raise SystemExit("faults must be checked first. Got none in " + str(FOLDER / "found"))
    files = sorted({name.partition("::")[0] for one in found.values() for name in one["tests"]})
    order: dict[str, list[str]] = defaultdict(list)
    functions: dict[str, list[Mapping[str, int]]] = defaultdict(list)
    slow: dict[str, set[int]] = defaultdict(set)
    for kind, value in run_pytest(copy, ["--collect-only", *files]) if files else []:
        if kind == "item":
            name, axes, is_slow = value
            function = name.partition("[")[0]
            if is_slow:
                slow[function].add(len(order[function]))
            order[function].append(name)
            functions[function].append(axes)
    seconds = pytest_ring.read_record()
    failing = {fault: {*one["tests"]} for fault, one in found.items()}
    for ids in failing.values():  # a file that cannot be imported fails in every sample
        ids.update(name for names in order.values() for name in names if name.partition("::")[0] in ids)
    touched = {
        fault: {function: axes for function, axes in functions.items() if ids & {*order[function]}}
        for fault, ids in failing.items()
    }
    shares = dict.fromkeys(found, 0)
    counts = []
    for seed in range(seeds):
        hit = [
            fault
            for fault, one in found.items()
            if one["cpp"]
            or finds(failing[fault], order, pytest_ring.ring(touched[fault], slow, seconds, f"seed{seed}"))
        ]
        counts.append(len(hit))
        for fault in hit:
            shares[fault] += 1
    width = max(map(len, found))
    for fault, one in found.items():
        tests = f"{len(one['tests']):5} tests {len(one['cpp']):3} C++"
        print(f"{fault:{width}} {tests}  {shares[fault] / seeds:7.1%} of the seeds find it")
    lost = [fault for fault, one in found.items() if not one["tests"] and not one["cpp"]]
    left = [fault.name for fault in FAULTS if fault.name not in found]
    print(f"of {len(found)} faults --all finds {len(found) - len(lost)}, a seed at least {min(counts)}")
    if left:
        print("not checked: " + ", ".join(left))
    return int(bool(lost or left) or min(counts) < LEAST_SHARE * len(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copy", type=Path, default=FOLDER / "copy", help="folder of the copy of the checkout")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="plant faults and record which tests fail")
    checking.add_argument("names", nargs="*", help="faults; none: the tests without a fault; default: all")
    checking.add_argument("--seconds", type=float, default=TEST_SECONDS, help="a test that takes longer is stopped")
    sampling = commands.add_parser("rings", help="compute what the samples find")
    sampling.add_argument("--seeds", type=int, default=1000)
    options = parser.parse_args(arguments)
    copy_checkout(options.copy)
    if options.command == "rings":
        build(options.copy)
        return rings(options.copy, options.seeds)
    globals()["TEST_SECONDS"] = options.seconds
    by_name = {fault.name: fault for fault in FAULTS}
    names = options.names or [*by_name, "none"]
    if unknown := [name for name in names if name != "none" and name not in by_name]:
        parser.error(f"a name must be a fault's. Got {', '.join(unknown)}")
    for name in names:
        if name == "none":
            check_none(options.copy)
        else:
            check(by_name[name], options.copy)
    return 0


if __name__ == "__main__":
    sys.exit(main())

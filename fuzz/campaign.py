"""Runs a fuzz target over many seeds: ``python -m fuzz.campaign module --inputs 200000``.

The targets are built by ``cmake --preset fuzz && cmake --build --preset fuzz`` (clang). A seed is one process, which
runs the corpus and then mutations of it. Every finished seed is a line of the log in the build folder; a campaign that
was stopped goes on where it was. `--report` writes the table of docs/fuzzing.md from the logs.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
REPORT = ROOT / "docs" / "fuzzing.md"
BEGIN, END = "<!-- begin: fuzz.campaign -->\n", "<!-- end: fuzz.campaign -->\n"


@dataclass(frozen=True)
class Target:
    """What is fuzzed: folders of its corpus, and inputs per seed."""

    corpus: tuple[str, ...]
    inputs: int


TARGETS = {
    "module": Target(("module", "found"), 5000),
    "safetensors": Target(("safetensors", "module"), 20_000),
    "json": Target(("json",), 50_000),
    "capi": Target(("module",), 5000),
}


@dataclass(frozen=True)
class Seed:
    """One finished process. Counts are of inputs whose furthest step that was."""

    target: str
    seed: int
    nothing: int
    envelope: int
    loaded: int
    ran: int
    seconds: float
    revision: str
    compiler: str
    finding: str = ""

    @property
    def inputs(self) -> int:
        """How many were run."""
        return self.nothing + self.envelope + self.loaded + self.ran


@dataclass(frozen=True)
class Limits:
    """Of one input."""

    seconds: int = 20
    megabytes: int = 1024


def run_seed(target: str, seed: int, inputs: int, programs: Path, limits: Limits, facts: tuple[str, str]) -> Seed:
    """Run one seed to its end or to its first finding."""
    findings = programs / "campaign" / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts, seeds, found = folder / "counts", folder / "seeds", folder / "found"
        seeds.mkdir()
        found.mkdir()
        for part in TARGETS[target].corpus:
            for path in sorted((CORPUS / part).glob("*")):
                (seeds / f"{part}-{path.name}").symlink_to(path)
        prefix = findings / f"{target}-{seed}-"
        command = [
            str(programs / f"neo_fuzz_{target}"),
            f"-seed={seed}",
            f"-runs={inputs}",
            f"-timeout={limits.seconds}",
            f"-rss_limit_mb={limits.megabytes}",
            f"-artifact_prefix={prefix}",
            "-max_len=32768",
            "-len_control=0",
            "-mutate_depth=2",  # more changes on top of each other are refused at the first
            "-verbosity=0",
            "-reload=0",
            str(found),
            str(seeds),
        ]
        sanitizers = "halt_on_error=1:abort_on_error=1:print_stacktrace=1:"
        environment = {
            **os.environ,
            "NEO_FUZZ_COUNTS": str(counts),
            "NEO_NUM_THREADS": "1",
            "ASAN_OPTIONS": sanitizers + "detect_leaks=1:quarantine_size_mb=32:handle_abort=1",
            "UBSAN_OPTIONS": sanitizers,
        }
        start = time.monotonic()
        done = subprocess.run(
            ["nice", "-n", "19", *command],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        seconds = time.monotonic() - start
        finding = ""
        if done.returncode != 0:
            log = findings / f"{target}-{seed}.log"
            log.write_text(done.stdout + done.stderr, encoding="utf-8")
            finding = log.name
        nothing, envelope, loaded, ran = struct.unpack("<4Q", counts.read_bytes()) if counts.exists() else (0, 0, 0, 0)
        return Seed(target, seed, nothing, envelope, loaded, ran, round(seconds, 1), *facts, finding)


def logged(programs: Path, target: str) -> list[Seed]:
    """What the log of a target has."""
    path = programs / "campaign" / f"{target}.jsonl"
    return [Seed(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def facts_of(programs: Path) -> tuple[str, str]:
    """Revision of the checkout and compiler of the build."""
    git = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    cache = (programs / "CMakeCache.txt").read_text()
    compiler = next(line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_CXX_COMPILER:"))
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return git.stdout.strip(), version.stdout.splitlines()[0]


def campaign(target: str, inputs: int, first_seed: int, processes: int, programs: Path, console: Console) -> list[Seed]:
    """Run seeds until there are so many inputs; those that the log has count."""
    per_seed = min(TARGETS[target].inputs, inputs)
    facts = facts_of(programs)
    count = -(-inputs // per_seed)
    numbers = range(first_seed, first_seed + count)
    results = [s for s in logged(programs, target) if s.seed in numbers]
    known = {s.seed for s in results}
    log = programs / "campaign" / f"{target}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    columns = ("{task.description}", "{task.fields[state]}")
    with (
        Progress(
            TextColumn(columns[0]),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn(columns[1]),
            console=console,
        ) as progress,
        ThreadPoolExecutor(processes) as pool,
    ):
        task = progress.add_task(target, total=count * per_seed, completed=len(known) * per_seed, state="")
        started = [
            pool.submit(run_seed, target, seed, per_seed, programs, Limits(), facts)
            for seed in numbers
            if seed not in known
        ]
        for future in as_completed(started):
            result = future.result()
            results.append(result)
            with log.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
            found = [s for s in results if s.finding]
            progress.update(task, advance=per_seed, state=f"{len(found)} findings")
            if result.finding:
                console.print(f"seed {result.seed}: {programs / 'campaign' / 'findings' / result.finding}")
    return results


def rows(programs: Path) -> Iterator[str]:
    """The lines of the table, one for each target and revision."""
    yield "| target | inputs | seeds | envelope refused | plan refused | loaded | ran | past the envelope | findings | "
    yield "inputs/s and process | revision | compiler |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    for target in TARGETS:
        results = logged(programs, target)
        for facts in dict.fromkeys((s.revision, s.compiler) for s in results):
            of = [s for s in results if (s.revision, s.compiler) == facts]
            total = max(sum(s.inputs for s in of), 1)
            nothing, envelope, loaded, ran = (
                sum(getattr(s, key) for s in of) for key in ("nothing", "envelope", "loaded", "ran")
            )
            seeds = sorted(s.seed for s in of)
            cells = [
                target,
                f"{total:,}",
                f"{seeds[0]} to {seeds[-1]}",
                f"{nothing:,}",
                f"{envelope:,}",
                f"{loaded:,}",
                f"{ran:,}",
                f"{100 * (total - nothing) / total:.0f} %",
                str(sum(bool(s.finding) for s in of)),
                f"{total / max(sum(s.seconds for s in of), 0.1):.0f}",
                *facts,
            ]
            yield f"| {' | '.join(cells)} |\n"


def write_report(programs: Path) -> None:
    """Put the table between its marks."""
    text = REPORT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    REPORT.write_text(before + BEGIN + "".join(rows(programs)) + END + after, encoding="utf-8")


def main() -> int:
    """Run the campaigns of the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.campaign", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="target", help=f"of {', '.join(TARGETS)}; all where none is named"
    )
    parser.add_argument("--inputs", type=int, default=20_000, help="of each target")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--programs", type=Path, default=ROOT / "build" / "fuzz", help="the build folder")
    parser.add_argument("--report", action="store_true", help="write docs/fuzzing.md")
    arguments = parser.parse_args()
    unknown = [t for t in arguments.targets if t not in TARGETS]
    if unknown:
        parser.error(f"a target must be one of {', '.join(TARGETS)}. Got {unknown[0]}")
    console = Console()
    findings = 0
    programs = arguments.programs.resolve()
    for target in arguments.targets or TARGETS:
        results = campaign(target, arguments.inputs, arguments.seed, arguments.processes, programs, console)
        total = max(sum(s.inputs for s in results), 1)
        found = sum(bool(s.finding) for s in results)
        past = 100 * (total - sum(s.nothing for s in results)) / total
        ran, loaded, refused = (sum(getattr(s, key) for s in results) for key in ("ran", "loaded", "envelope"))
        console.print(
            f"{target}: {total} inputs, {past:.0f} % past the envelope ({refused} refused after it, {loaded} loaded, "
            f"{ran} ran), {found} findings"
        )
        findings += found
    if arguments.report:
        write_report(programs)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

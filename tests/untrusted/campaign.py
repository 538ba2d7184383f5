"""Thousands of damaged models: ``python -m tests.untrusted.campaign --seeds 0:100000 --processes 2 --work DIR``.

Worker processes try the damaged model of each number, many in one process. Each writes the number down before it tries
it, so whatever ends the process is found by its number. What was done is kept in DIR: the same command goes on where it
was stopped. ``--show N`` writes one damaged model and what came of it. The summary is DIR/summary.json and summary.md;
``--report`` puts it into docs/fuzzing.md.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.untrusted.seeds import load_seeds, save_seeds

__all__ = ["main"]

_ROOT = Path(__file__).parents[2]
_REPORT = _ROOT / "docs" / "fuzzing.md"
_BEGIN, _END = "<!-- begin: untrusted.campaign -->\n", "<!-- end: untrusted.campaign -->\n"
_CHUNK = 250
_MOST_PER_PROCESS = 5000
_HANG_SECONDS = 40.0
_MOST_RSS = 3 << 30
_MOST_ADDRESSES = 12 << 30  # without a sanitizer, which maps terabytes


class _Worker:
    """A process that tries ranges of numbers, and what it is at."""

    def __init__(self, work: Path, slot: int) -> None:
        self.folder = work / f"worker{slot}"
        self.folder.mkdir(exist_ok=True)
        self.now = self.folder / "now"
        self.stderr = self.folder / "stderr"
        self.range: tuple[int, int] | None = None
        self.done = 0
        self.process: subprocess.Popen[str] | None = None
        self._since: tuple[str, float] = ("", 0.0)

    def start(self, work: Path) -> None:
        command = [sys.executable, "-m", "tests.untrusted.campaign", "--worker", str(self.folder), "--work", str(work)]
        self.now.write_text("")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr.open("w"), text=True, cwd=_ROOT
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.range, self.done = None, 0

    def give(self, first: int, last: int) -> None:
        self.range = (first, last)
        self.process.stdin.write(f"{first} {last}\n")
        self.process.stdin.flush()

    def has_finished(self) -> bool:
        try:
            return bool(self.process.stdout.read())
        except (TypeError, BlockingIOError):  # nothing yet; the latter from Python 3.14 on
            return False

    def stuck(self) -> str:
        """Why the process must be ended; empty where it need not."""
        text = self.now.read_text()
        if text != self._since[0]:
            self._since = (text, time.monotonic())
        if text and time.monotonic() - self._since[1] > _HANG_SECONDS:
            return f"hang: more than {_HANG_SECONDS:.0f} s"
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        except OSError:
            return ""
        rss = pages * resource.getpagesize()
        return f"memory: {rss >> 20} MiB" if rss > _MOST_RSS else ""

    def last_words(self) -> str:
        text = self.stderr.read_text(errors="replace")
        at = max(text.find("ERROR: AddressSanitizer"), text.find("runtime error"), text.find("Fatal Python error"))
        return text[text.rfind("\n", 0, at) + 1 :][:6000] if at >= 0 else text[-3000:]


def _work(folder: Path, work: Path) -> None:
    """The worker: ranges from stdin, a line of JSON per number to a log."""
    faulthandler.enable()
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    from tests.untrusted.attempt import Attempts

    attempts = Attempts(load_seeds(work / "seeds.zip"), folder)
    now = os.open(folder / "now", os.O_WRONLY | os.O_CREAT)
    crash = os.environ.get("NEO_CAMPAIGN_CRASH")  # for the test of this runner
    with (folder / "log.jsonl").open("a", buffering=1 << 14) as log:
        for line in sys.stdin:
            first, last = map(int, line.split())
            for number in range(first, last):
                os.pwrite(now, b"%-20d" % number, 0)
                log.flush()
                if str(number) == crash:
                    os.abort()
                log.write(json.dumps(attempts.run(number)) + "\n")
            os.pwrite(now, b" " * 20, 0)
            log.flush()
            print("done", flush=True)


def _read_logs(work: Path) -> dict[int, list[Any]]:
    rows = {}
    for path in sorted(work.glob("worker*/log.jsonl")):
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:  # cut off by the end of its process
                continue
            rows[row[0]] = row
    return rows


def _run(work: Path, first: int, last: int, processes: int) -> int:
    """Try what is missing of a range; the number of numbers tried."""
    done = _read_logs(work)
    missing = [n for n in range(first, last) if n not in done]
    ranges: list[tuple[int, int]] = []
    for n in missing:
        if ranges and ranges[-1][1] == n and n - ranges[-1][0] < _CHUNK:
            ranges[-1] = (ranges[-1][0], n + 1)
        else:
            ranges.append((n, n + 1))
    ranges.reverse()
    workers = [_Worker(work, slot) for slot in range(processes)]
    while ranges or any(w.range for w in workers):
        for w in workers:
            if w.process is None or w.process.poll() is not None or w.stuck():
                _bury(w, ranges)
                if ranges:
                    w.start(work)
                    w.give(*ranges.pop())
                continue
            if w.range and w.has_finished():
                w.done += w.range[1] - w.range[0]
                w.range = None
            if not w.range:
                if w.done >= _MOST_PER_PROCESS or not ranges:
                    w.process.stdin.close()
                    w.process.wait()
                    w.process = None
                    if not ranges:
                        continue
                    w.start(work)
                w.give(*ranges.pop())
        if not ranges and all(w.range is None for w in workers):
            break
        time.sleep(0.05)
    return len(missing)


def _bury(worker: _Worker, ranges: list[tuple[int, int]]) -> None:
    """Note what ended a process, and give back the rest of its range."""
    process = worker.process
    if process is None:
        return
    why = "" if process.poll() is not None else worker.stuck()
    if why:
        process.send_signal(signal.SIGABRT)  # faulthandler says where it was
    process.wait()
    worker.process = None
    at = worker.now.read_text().strip()
    if not worker.range:
        return
    if at:
        finding = f"{why or f'crash: exit status {process.returncode}'}\n{worker.last_words()}"
        row = [int(at), "file", "ended", finding, 0.0, ""]
        with (worker.folder / "log.jsonl").open("a") as log:
            log.write("\n" + json.dumps(row) + "\n")
        if int(at) + 1 < worker.range[1]:
            ranges.append((int(at) + 1, worker.range[1]))
    else:
        raise SystemExit(f"campaign: a worker does not start\n{worker.last_words()}")
    worker.range = None


def _summary(work: Path, first: int, last: int, seconds: float) -> dict[str, Any]:
    from tests.untrusted.stages import STAGES

    rows = [row for n, row in sorted(_read_logs(work).items()) if first <= n < last]
    reached = collections.Counter(row[1] for row in rows)
    at_least = {stage: sum(reached[s] for s in STAGES[i:]) for i, stage in enumerate(STAGES)}
    times = sorted(row[4] for row in rows)
    return {
        "seeds": [first, last],
        "tried": len(rows),
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "sanitizer": "address, undefined" if "libasan" in os.environ.get("LD_PRELOAD", "") else "none",
        "reached": {stage: at_least[stage] for stage in STAGES},
        "results": dict(collections.Counter(f"{row[1]}: {row[2]}" for row in rows).most_common()),
        "median_ms": times[len(times) // 2] if times else 0,
        "slowest_ms": times[-1] if times else 0,
        "findings": [{"seed": row[0], "how": row[5], "what": row[3]} for row in rows if row[3]],
    }


def _markdown(summary: dict[str, Any]) -> str:
    total = max(1, summary["tried"])
    lines = [
        f"Seeds {summary['seeds'][0]} to {summary['seeds'][1]}, {summary['tried']} damaged models tried, "
        f"sanitizer: {summary['sanitizer']}.",
        "",
        "| reached at least | models | share |",
        "|---|---|---|",
    ]
    lines += [f"| {stage} | {n} | {100 * n / total:.1f} % |" for stage, n in summary["reached"].items()]
    lines += ["", "| stage: result | models |", "|---|---|"]
    lines += [f"| {what} | {n} |" for what, n in summary["results"].items()]
    lines += ["", f"Findings: {len(summary['findings'])}."]
    for finding in summary["findings"]:
        what = finding["what"].split("\n")[0][:160]
        lines.append(f"- {finding['seed']} ({finding['how']}): {what}")
    return "\n".join(lines) + "\n"


def _write_report(text: str) -> None:
    """Put the summary between its marks."""
    revision = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    page = _REPORT.read_text(encoding="utf-8")
    before, rest = page.split(_BEGIN)
    made = f"Revision {revision}. {text}"
    _REPORT.write_text(before + _BEGIN + made + _END + rest.split(_END)[1], encoding="utf-8")


def _show(work: Path, number: int) -> None:
    from tests.untrusted.attempt import Attempts

    attempts = Attempts(load_seeds(work / "seeds.zip"), work)
    raw, *_ = attempts.make(number)
    path = work / f"{number}.onnx"
    path.write_bytes(raw)
    print(path, flush=True)
    print(*attempts.run(number), sep="\n")


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign; 1 where there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:1000", help="A:B, the numbers from A up to B")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--work", type=Path, required=True, help="a folder for seeds, logs and the summary")
    parser.add_argument("--show", type=int, metavar="N", help="write the model of a number and try it here")
    parser.add_argument("--report", action="store_true", help="write docs/fuzzing.md")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    given.work = given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.worker:
        _work(given.worker, given.work)
        return 0
    if not (given.work / "seeds.zip").exists():
        save_seeds(given.work / "seeds.new")
        (given.work / "seeds.new").rename(given.work / "seeds.zip")
    if given.show is not None:
        _show(given.work, given.show)
        return 0
    first, last = map(int, given.seeds.split(":"))
    start = time.monotonic()
    _run(given.work, first, last, given.processes)
    summary = _summary(given.work, first, last, time.monotonic() - start)
    (given.work / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    text = _markdown(summary)
    (given.work / "summary.md").write_text(text)
    print(text)
    if given.report:
        _write_report(text)
    return 1 if summary["findings"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

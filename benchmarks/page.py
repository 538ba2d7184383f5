"""The page of all results, in Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neo.bench import Interval, ratio_interval

from benchmarks.peers import ENGINES, OURS
from benchmarks.suites import SUITES

if TYPE_CHECKING:
    from benchmarks.results import Cell, Row, Section, Table

#: A load average this much above the number of threads means that other programs were running.
BUSY_LOAD = 1.5
#: A model is shown not to be slower than its best peer where the lower bound of the speed-up is at least this.
NOT_SLOWER = 0.98


@dataclass(frozen=True)
class SpeedUp:
    """How many times faster than its best peer; ``bounded`` where both were measured in turn, in several rounds."""

    peer: str
    ratio: Interval
    bounded: bool

    @property
    def not_slower(self) -> bool:
        """Say whether the lower bound of the speed-up keeps to the limit."""
        return self.ratio.low >= NOT_SLOWER


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean, or None of nothing."""
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def speed_up(row: Row, ours: str = "neo") -> SpeedUp | None:
    """Return the speed-up of neo over the peer with the least median, None where one of both is missing.

    Parameters
    ----------
    row : Row
        A model.
    ours : str
        Which of neo's columns.
    """
    peers = {name: cell for name, cell in row.cells.items() if name not in OURS and cell.median_ms is not None}
    mine = row.cells.get(ours)
    if mine is None or mine.median_ms is None or not peers:
        return None
    name, best = min(peers.items(), key=lambda item: item[1].median_ms or 0.0)
    bounded = bool(mine.rounds_ms) and mine.stamp == best.stamp and len(mine.rounds_ms) == len(best.rounds_ms)
    if bounded:
        return SpeedUp(name, ratio_interval(best.rounds_ms, mine.rounds_ms), True)
    assert best.median_ms is not None
    ratio = best.median_ms / mine.median_ms
    return SpeedUp(name, Interval(ratio, ratio, ratio), False)


def number(value: float | None) -> str:
    """Print three significant digits without an exponent."""
    if value is None:
        return ""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{digits}f}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


#: Errors of an engine that is not installed, or that has no way to run a model.
_NOT_THERE = ("ModuleNotFoundError", "ImportError", "NotImplementedError")


def _reasons(table: Table, names: list[str], engines: list[str]) -> list[str]:
    """Return why cells are empty: one line for an engine that has one reason everywhere, else one for each model."""
    lines = []
    for engine in engines:
        cells = {name: table.rows[name].cells[engine] for name in names if engine in table.rows[name].cells}
        errors = {cell.error for cell in cells.values()}
        if len(cells) > 1 and len(errors) == 1 and None not in errors:
            lines.append(f"- {engine}: {errors.pop()}")
        else:
            lines += [f"- {name}, {engine}: {cell.error}" for name, cell in cells.items() if cell.error]
    return lines


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.median_ms is None or cell.low_ms is None or cell.high_ms is None:
        return "n/a" if (cell.error or "").startswith(_NOT_THERE) else "failed"
    spread = (cell.high_ms - cell.low_ms) / cell.median_ms / 2
    return f"{number(cell.median_ms)} ± {spread:.0%} ({number(cell.best_ms)})"


def _speed_up_text(found: SpeedUp | None) -> str:
    if found is None:
        return ""
    if not found.bounded:
        return f"{found.ratio.median:.2f}"
    return f"{found.ratio.median:.2f} [{found.ratio.low:.2f}, {found.ratio.high:.2f}]"


def share_of_limit(row: Row, engine: str) -> float | None:
    """Return the part of an engine's time that the limit of the model is."""
    cell = row.cells.get(engine)
    if cell is None or cell.median_ms is None or not row.limit_ms:
        return None
    return row.limit_ms / cell.median_ms


def sorted_names(table: Table) -> list[str]:
    """Return the models of a table in the order of its suite."""
    order = [entry.name for entry in SUITES[table.suite][1]()]
    return sorted(table.rows, key=lambda name: (order.index(name) if name in order else len(order), name))


def engines_of(table: Table) -> list[str]:
    """Return the engines of a table in the order of the table of engines."""
    return [engine for engine in ENGINES if any(engine in row.cells for row in table.rows.values())]


def title_of(table: Table) -> str:
    """Return the heading of a table."""
    return f"{SUITES[table.suite][0]}: {table.threads} thread" + ("s" if table.threads > 1 else "")


def _summary(table: Table, ours: str) -> list[str]:
    """Return the line on all models together."""
    found = {name: speed_up(row, ours) for name, row in table.rows.items()}
    ups = {name: up for name, up in found.items() if up is not None}
    if not ups:
        return []
    mean = geometric_mean([up.ratio.median for up in ups.values()])
    slower = sorted(name for name, up in ups.items() if not up.not_slower)
    worst = min(ups, key=lambda name: ups[name].ratio.median)
    text = f"Speed-up of {ours} over the best peer: geometric mean {mean:.2f} of {len(ups)} models; "
    text += f"not shown to be at least {NOT_SLOWER} (lower bound below): {len(slower)}" + (
        f" ({', '.join(slower)})" if slower else ""
    )
    text += f"; worst {ups[worst].ratio.median:.2f} ({worst})."
    unbounded = sum(not up.bounded for up in ups.values())
    if unbounded:
        text += (
            f" {unbounded} without an interval, as they were not measured in turn: their ratio stands for the bound."
        )
    return ["", text]


def _costs(table: Table, names: list[str], engines: list[str]) -> list[str]:
    """Return the table of first answers and memory, nothing where none was measured."""
    told = [
        engine
        for engine in engines
        if any((cell := row.cells.get(engine)) and cell.first_answer_ms is not None for row in table.rows.values())
    ]
    if not told:
        return []
    head = ["model", *[f"{engine}, ms" for engine in told], *[f"{engine}, MiB" for engine in told]]
    rows = []
    for name in names:
        cells = [table.rows[name].cells.get(engine) for engine in told]
        times = [number(cell.first_answer_ms) if cell else "" for cell in cells]
        peaks = [number(cell.peak_bytes / 2**20) if cell and cell.peak_bytes is not None else "" for cell in cells]
        rows.append([name, *times, *peaks])
    text = "From the engine's file to the first answer, and the most memory that the engine and the model took:"
    lines = ["", text, "", *markdown(head, rows)]
    imports = []
    for engine in told:
        cells = [row.cells[engine] for row in table.rows.values() if engine in row.cells]
        if times := [cell.import_ms for cell in cells if cell.import_ms is not None]:
            imports.append(f"{engine} {number(statistics.median(times))}")
    return [*lines, "", f"Of that the import of the engine took, median, ms: {', '.join(imports)}."]


def render(table: Table, pictures: Path | None = None) -> str:
    """Return one table, with what it was measured on and the reasons of what failed.

    Parameters
    ----------
    table : Table
        What was measured.
    pictures : Path, optional
        The folder of the pictures, beside the page; those that exist are shown.
    """
    engines = engines_of(table)
    ours = [engine for engine in OURS if engine in engines]
    lines = [f"## {title_of(table)}", ""]
    head = ["model", "GMAC", *[f"{engine}, ms" for engine in engines], "best peer"]
    head += [f"{'speed-up' if name == 'neo' else f'speed-up, {name}'} [95 %]" for name in ours]
    head += ["limit, ms", *[f"{name}, share of limit" for name in ours]]
    names, rows = sorted_names(table), []
    for name in names:
        row = table.rows[name]
        ups = [speed_up(row, engine) for engine in ours]
        fields = [name, f"{'' if row.complete else '≥ '}{number(row.gmac)}"]
        fields += [_cell(row.cells.get(engine)) for engine in engines]
        fields += [next((up.peer for up in ups if up), ""), *[_speed_up_text(up) for up in ups], number(row.limit_ms)]
        shares = [share_of_limit(row, engine) for engine in ours]
        fields += ["" if share is None else f"{share:.0%}" for share in shares]
        rows.append(fields)
    lines += markdown(head, rows)
    for engine in ours:
        lines += _summary(table, engine)
    for path in sorted(pictures.glob(f"*-{table.key}.svg")) if pictures else []:
        lines += ["", f"![{path.stem.replace('-', ' ').replace('_', ' ')}]({path.parent.name}/{path.name})"]
    lines += _costs(table, names, engines)
    disturbed = [name for name in names if table.rows[name].load > BUSY_LOAD + table.threads]
    if disturbed:
        lines += ["", f"Measured while other programs ran, so of little worth: {', '.join(disturbed)}."]
    if reasons := _reasons(table, names, engines):
        lines += ["", "Not measured:", "", *reasons]
    versions = sorted({cell.version for row in table.rows.values() for cell in row.cells.values() if cell.version})
    lines += ["", "Measured on " + "; ".join(f"{key}: {value}" for key, value in table.environment.items()) + "."]
    if table.limits:
        caches = ", ".join(f"{speed:.0f}" for _, speed in table.limits.get("caches", ()))
        text = f"Limits: {table.limits['gflops']:.0f} GFLOP/s, {table.limits['gbytes']:.0f} GB/s from memory"
        lines.append(text + (f", {caches} GB/s from the levels of the caches." if caches else "."))
    lines += [f"Engines: {'; '.join(versions)}.", f"Last command: `{table.command}`.", ""]
    return "\n".join(lines)


def scalability(one: Table, several: Table) -> list[str]:
    """Return the table of how many times faster several threads are than one, nothing where no model has both.

    Parameters
    ----------
    one, several : Table
        The same suite with one and with several threads.
    """
    engines = [engine for engine in engines_of(several) if engine in engines_of(one)]
    rows = []
    columns: dict[str, list[float]] = {engine: [] for engine in engines}
    for name in sorted_names(several):
        row = [name]
        for engine in engines:
            cells = [table.rows[name].cells.get(engine) for table in (one, several) if name in table.rows]
            times = [cell.median_ms for cell in cells if cell is not None and cell.median_ms is not None]
            row.append(f"{times[0] / times[1]:.2f}" if len(times) == 2 else "")
            columns[engine] += [times[0] / times[1]] if len(times) == 2 else []
        rows += [row] if any(row[1:]) else []
    if not rows:
        return []
    rows.append(["geometric mean", *[number(geometric_mean(columns[engine])) for engine in engines]])
    title = f"## {SUITES[several.suite][0]}: {several.threads} threads over one"
    return [title, "", "Time with one thread / time with several.", "", *markdown(["model", *engines], rows), ""]


def _section(section: Section) -> str:
    lines = [f"## {section.title}", "", section.text]
    if section.head:
        lines += ["", *markdown(section.head, section.rows)]
    if section.notes:
        lines += ["", *section.notes]
    return "\n".join([*lines, ""])


_HEAD = """# Results

Written by `python -m benchmarks.run`, `benchmarks.ablation`, `benchmarks.pool` and `benchmarks.exhaustive`; do not edit. Each table
names its machine; [README.md](../README.md) beside this folder has a line for each table of every machine. Every engine runs in a
process of its own with the same number of threads, float models in float32, quantized ones as their
files say. A table has the engines that were measured for it. Inputs change with every call. Rounds are
interleaved: in each round every engine is measured in turn while the others are stopped. A cell is the median of the
rounds' medians of single calls, from arrays in memory to arrays in memory, with half the range of the rounds and, in
parentheses, the least time of all calls.

"Speed-up" is the median over the rounds of best peer / neo of the same round, with its 95 % interval by order
statistics; the best peer is the one with the least median. "Limit" is the time of all convolutions, matrix products
and recurrent layers done directly at the measured peak of this machine, or at the speed their weights arrive where
these exceed 12 MiB; every step of a recurrent layer waits for the one before and reads its weights again, from the
caches that hold them, at their measured speed. It leaves out everything else, and fast algorithms such as Winograd's
may pass it. The first answer counts from the file (for ncnn, MNN and LiteRT the converted one), read once before and
memory of twice its size written, for which a virtual machine's host would make the first to start wait. Nothing is
cached, and the process has imported numpy and not yet the engine, for engines differ in what they import at once and
what with the first model; it is the median of three starts unless the command says how many, in which the engines take
turns. Memory is the peak of the process after loading and all runs, less what it held before the engine
was imported.

"""


def page(tables: dict[str, Table], sections: dict[str, Section], pictures: Path | None = None) -> str:
    """Return the whole page.

    Parameters
    ----------
    tables : dict of str to Table
        The record.
    sections : dict of str to Section
        What other scripts recorded.
    pictures : Path, optional
        The folder of the pictures, beside the page.
    """
    parts = [render(tables[key], pictures) for key in sorted(tables)]
    for key in sorted(tables):
        one = tables.get(f"{tables[key].suite}-1")
        if one is not None and tables[key].threads > 1:
            parts += ["\n".join(lines)] if (lines := scalability(one, tables[key])) else []
    parts += [_section(sections[key]) for key in sorted(sections)]
    return _HEAD + "\n".join(parts)

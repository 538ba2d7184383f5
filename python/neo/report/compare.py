"""Two profiles of a model side by side: what runs where they differ, and what it takes."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from neo.report.page import fill_page
from neo.report.table import counted, render_sizes, render_table
from neo.report.write import write_whole

if TYPE_CHECKING:
    from neo.report.profile import Profile

__all__ = ["Comparison", "Row", "Unit"]


@dataclass(frozen=True)
class Unit:
    """What runs as one step, or the same step in several iterations.

    Attributes
    ----------
    label : str
        The operators: ``Conv + Relu``, ``conversion``.
    routine : str
        For a conversion the layouts.
    time_us : float
        Microseconds in a call.
    """

    label: str
    routine: str
    time_us: float


@dataclass(frozen=True)
class Row:
    """The units of both modules that compute the same nodes; a node that only one fuses draws its neighbours in.

    Attributes
    ----------
    nodes : tuple of str
        Names of the model's nodes, or of the value that a conversion is of.
    first, second : tuple of Unit
        Empty where a module has none.
    """

    nodes: tuple[str, ...]
    first: tuple[Unit, ...]
    second: tuple[Unit, ...]

    @property
    def times_us(self) -> tuple[float, float]:
        """Microseconds of the first and of the second module."""
        return sum(u.time_us for u in self.first), sum(u.time_us for u in self.second)


@dataclass(frozen=True)
class Comparison:
    """Two profiles by the nodes of the model: a table when printed, and one HTML file.

    Attributes
    ----------
    rows : tuple of Row
        The largest difference of times first.
    totals_us : tuple of float
        The median time of a call of each module.
    names : tuple of str
        What the modules are called.
    """

    rows: tuple[Row, ...]
    totals_us: tuple[float, float]
    names: tuple[str, str]
    _about: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, first: Profile, second: Profile, names: tuple[str, str]) -> Comparison:
        """Match the units of two profiles by the nodes that they compute."""
        groups = _Groups()
        units: list[tuple[int, str, Unit]] = []
        for side, profile in enumerate((first, second)):
            data = profile.data
            times = {step["id"]: step["time_us"] or 0.0 for step in data["steps"] if not step["control"]}
            for node in data["graph"]["nodes"]:
                steps = [s for s in node["steps"] if s in times]
                if not steps:
                    continue
                kind = node["kind"]
                keys = [f"{kind == 'conversion'}{m['name']}" for m in node["members"]] or [
                    f"{kind == 'conversion'}{node['name'] or node['label']}"
                ]
                groups.join(keys)
                routine = f"{node['from']} -> {node['schema']}" if kind == "conversion" else node["routine"]
                units.append((side, keys[0], Unit(node["label"], routine, sum(times[s] for s in steps))))
        found: dict[str, tuple[list[Unit], list[Unit]]] = {}
        for side, key, unit in units:
            found.setdefault(groups.root(key), ([], []))[side].append(unit)
        rows = [
            Row(tuple(k.removeprefix("True").removeprefix("False") for k in groups.members(root)), tuple(a), tuple(b))
            for root, (a, b) in found.items()
        ]
        rows.sort(key=lambda row: -abs(row.times_us[1] - row.times_us[0]))
        about = tuple(f"{counted(p.threads, 'thread')}{render_sizes(p.measured_sizes)}" for p in (first, second))
        return cls(tuple(rows), (first.total_us, second.total_us), names, (about[0], about[1]))

    def table(self, limit: int | None = None) -> str:
        """Rows as text, the largest difference first, at most `limit`."""
        rows = []
        for row in self.rows[:limit]:
            a, b = row.times_us
            rows.append(
                (
                    _short(row.nodes),
                    _routines(row.first),
                    f"{a:.1f}",
                    _routines(row.second),
                    f"{b:.1f}",
                    f"{b - a:+.1f}",
                )
            )
        first, second = self.names
        table = render_table(("node", first, "us", second, "us", "difference"), rows, right=(2, 4, 5))
        return f"{table}\n{self.summary()}"

    def summary(self, unit: str = "us") -> str:
        """Both times in a sentence; `unit` is how microseconds are written."""
        a, b = self.totals_us
        same = sum(_routines(r.first) == _routines(r.second) for r in self.rows)
        return (
            f"{self.names[0]} {a:.1f} {unit} on {self._about[0]}, {self.names[1]} {b:.1f} {unit} on {self._about[1]}: "
            f"{b / max(a, 1e-9):.2f} times; {same} of {len(self.rows)} rows run the same"
        )

    def __str__(self) -> str:
        return self.table()

    def html(self, path: str | PathLike[str]) -> None:
        """Write one HTML file with a row for each group of nodes. It needs no network and runs no script but its own."""
        most = max((max(row.times_us) for row in self.rows), default=0.0)
        rows = "\n".join(_table_row(row, most) for row in self.rows)
        fields = {
            "title": f"{html.escape(self.names[0][:80])} and {html.escape(self.names[1][:80])} · neo",
            "first": html.escape(self.names[0]),
            "second": html.escape(self.names[1]),
            "summary": html.escape(self.summary("µs")),
            "rows": rows,
        }
        write_whole(path, fill_page("comparison.html", fields, ("theme.js", "comparison.js")))


class _Groups:
    """Names that belong together."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def root(self, key: str) -> str:
        """The name that stands for a group."""
        parent = self._parents.setdefault(key, key)
        while parent != self._parents[parent]:
            parent = self._parents[parent]
        self._parents[key] = parent
        return parent

    def join(self, keys: Sequence[str]) -> None:
        """Make one group of what the names belong to."""
        for key in keys:
            self._parents[self.root(key)] = self.root(keys[0])

    def members(self, root: str) -> list[str]:
        """Every name of a group, in the order in which they came."""
        return [key for key in self._parents if self.root(key) == root]


def _short(nodes: Sequence[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} and {len(nodes) - 1} more"


def _routines(units: Sequence[Unit]) -> str:
    return ", ".join(dict.fromkeys(u.routine for u in units)) or "-"


def _cell(units: Sequence[Unit], time_us: float, most_us: float) -> str:
    lines = "".join(
        f'<span class="mono">{html.escape(u.routine)}</span><span class="quiet-line">{html.escape(u.label)}</span>'
        for u in units
    )
    share = 0.0 if most_us <= 0 else 100 * time_us / most_us
    bar = f'<meter min="0" max="100" value="{share:.1f}">{time_us:.1f} µs</meter>' if units else ""
    time = f"{time_us:.1f}" if units else ""
    return f'<td class="units">{lines or "none"}</td><td class="number">{time}{bar}</td>'


def _table_row(row: Row, most_us: float) -> str:
    a, b = row.times_us
    changed = ' class="changed"' if _routines(row.first) != _routines(row.second) else ""
    names = "<br>".join(html.escape(n) for n in row.nodes)
    return (
        f'<tr{changed}><td><span class="name">{names}</span></td>{_cell(row.first, a, most_us)}{_cell(row.second, b, most_us)}'
        f'<td class="number">{b - a:+.1f}</td></tr>'
    )

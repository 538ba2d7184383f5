"""Pictures of a table: speed-ups with their intervals, and how much of the time the physical limit is.

``python -m benchmarks.pictures`` draws those of the record again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import page, results
from benchmarks.peers import OURS
from benchmarks.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#1f77b4", "#ff7f0e")
_PEER_COLOUR = "#9e9e9e"


def _ours(table: Table) -> list[str]:
    return [engine for engine in OURS if any(page.speed_up(row, engine) for row in table.rows.values())]


def _bars(axes: Axes, names: list[str], series: list[tuple[str, list[Any], str]]) -> None:
    """Draw horizontal bars, one group per model; a value of None leaves its place empty."""
    height = 0.8 / len(series)
    for index, (label, values, colour) in enumerate(series):
        places = [place + (index - (len(series) - 1) / 2) * height for place in range(len(names))]
        axes.barh(places, [value or 0 for value in values], height, label=label, color=colour)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def draw_speed_up(axes: Axes, table: Table, names: list[str]) -> None:
    """Draw the speed-up over the best peer of each model, with its interval.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to.
    table : Table
        What was measured.
    names : list of str
        Models that have a speed-up.
    """
    ours = _ours(table)
    ups = {engine: [page.speed_up(table.rows[name], engine) for name in names] for engine in ours}
    _bars(
        axes,
        names,
        [
            (engine, [up.ratio.median if up else None for up in ups[engine]], colour)
            for engine, colour in zip(ours, _COLOURS, strict=False)
        ],
    )
    height = 0.8 / len(ours)
    for index, engine in enumerate(ours):
        for place, up in enumerate(ups[engine]):
            if up is None:
                continue
            at = place + (index - (len(ours) - 1) / 2) * height
            ratio = up.ratio
            if up.bounded:
                error = [[ratio.median - ratio.low], [ratio.high - ratio.median]]
                axes.errorbar(ratio.median, at, xerr=error, color="black", capsize=2, linewidth=1)
            axes.annotate(
                f"{ratio.median:.2f} ({up.peer})",
                (ratio.high, at),
                (5, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.15)
    axes.set_xlim(left=0)
    axes.set_xlabel("times faster than the best peer, with the 95 % interval")
    if len(ours) > 1:
        axes.legend(fontsize=8)


def draw_limit_share(axes: Axes, table: Table, names: list[str]) -> None:
    """Draw how much of neo's and of the best peer's time the direct limit is.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to.
    table : Table
        What was measured.
    names : list of str
        Models that have a speed-up.
    """
    rows = [table.rows[name] for name in names]
    series = [
        (engine, [100 * (page.share_of_limit(row, engine) or 0) for row in rows], colour)
        for engine, colour in zip(_ours(table), _COLOURS, strict=False)
    ]
    peers = [next((up.peer for engine in OURS if (up := page.speed_up(row, engine))), "") for row in rows]
    shares = [100 * (page.share_of_limit(row, peer) or 0) for row, peer in zip(rows, peers, strict=True)]
    _bars(axes, names, [*series, ("best peer", shares, _PEER_COLOUR)])
    axes.axvline(100, color="black", linewidth=1)
    axes.set_xlabel("limit of direct products / time, %")
    axes.legend(fontsize=8)


def draw(table: Table, folder: Path = results.PAGE_PATH.parent / "pictures") -> list[Path]:
    """Write the pictures of a table and return their files; none where it compares nothing.

    Parameters
    ----------
    table : Table
        What was measured.
    folder : Path
        Where to.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "neo"
    names = [name for name in page.sorted_names(table) if any(page.speed_up(table.rows[name], item) for item in OURS)]
    limited = [name for name in names if table.rows[name].limit_ms]
    pictures: list[tuple[str, list[str], Callable[[Any, Table, list[str]], None]]] = [
        ("speed_up", names, draw_speed_up),
        ("limit_share", limited, draw_limit_share),
    ]
    written = []
    for kind, shown, make in pictures:
        if not shown:
            continue
        figure, axes = pyplot.subplots(
            figsize=(8, 1.2 + 0.15 * (1 + len(_ours(table))) * len(shown)), layout="constrained"
        )
        make(axes, table, shown)
        axes.set_title(page.title_of(table), fontsize=10)
        path = folder / f"{kind}-{table.key}.svg"
        folder.mkdir(exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
        written.append(path)
    return written


def main() -> None:
    """Draw the pictures of all tables of a record and write its page again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description="Draw the tables again.")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    page_path = parser.parse_args().results
    record = results.json_beside(page_path)
    tables = results.read_tables(record)
    for table in tables.values():
        for path in draw(table, page_path.parent / "pictures"):
            print(path)
    if tables:
        results.write_page(record, page_path)


if __name__ == "__main__":
    main()

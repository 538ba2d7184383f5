"""How the cost model ranks workloads that it was not trained on: ``python -m benchmarks.cost_model.check``.

With ``--seconds`` more held-out workloads are measured first. Of every group, the best of the ten points that the model
ranks first stands beside the best of all points that were measured, most of them drawn at random. The least of two
hundred times is that of a fast point or of a lucky one: ``--confirm`` times the ten and the ten that were fastest again,
all in one benchmark, and the new times count.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

import numpy as np
from neo.report.progress import LateProgress
from neo.report.table import render_table
from neo.tune.cost_model import CostModel
from neo.tune.trees import Trees
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.cost_model import record
from benchmarks.cost_model.record import Machine, files, read
from benchmarks.cost_model.train import MODEL, Group, load
from benchmarks.cost_model.workloads import Workload

TOP = 10
CLOSE = 0.05
#: Of the benchmark that confirms.
ROUNDS = 25
HEAD = (
    "workloads",
    "groups",
    "within 5 %",
    "mean loss of ten",
    "largest",
    "mean loss of the first",
    "its time is off by",
)


def confirm(group: Group, order: NDArray[np.intp]) -> NDArray[np.float64]:
    """Benchmark the first of the order and the fastest of the group again: their new times, infinite for all others."""
    bench = Workload.parse(group.workload).bench(group.threads)
    spaces = {routine: space for space, routine in bench.spaces.items()}
    timed = sorted({*order[:TOP].tolist(), *np.argsort(group.times_us)[:TOP].tolist()})
    indices = []
    for member in timed:
        space = spaces[group.routines[member]]
        point = bench.native.find(space, group.candidates[member])
        assert point is not None
        indices += bench.native.extend(space, [point])
    times = np.full(len(group.times_us), np.inf)
    for member, (time_us, *_) in zip(
        timed, bench.native.measure(indices, group.cache_level, None, ROUNDS), strict=True
    ):
        if time_us is not None:
            times[member] = time_us
    return times


def kind_of(text: str) -> str:
    """What a workload is listed under."""
    words = text.split()
    if words[0] == "gemm":
        return "gemm"
    return f"{words[4]}{' depthwise' if words[1] == words[6] != '1' else ''}"


def table(model: CostModel, groups: list[Group], *, confirmed: bool) -> list[tuple[str, ...]]:
    """A row for every kind of workload: how much slower than the best the model's first points are."""
    kinds: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    with LateProgress("measuring again" if confirmed else "ranking", len(groups)) as progress:
        for group in groups:
            scores = model.predict(group.rows)
            order = np.argsort(-scores, kind="stable")
            times = confirm(group, order) if confirmed else group.times_us
            ten, first = (float(times[order[:top]].min() / times.min() - 1) for top in (TOP, 1))
            off = abs(float(np.exp2(-scores[order[0]])) / float(times[order[0]]) - 1)
            for key in (kind_of(group.workload), f"{group.threads} threads, {group.cache_level}", "all"):
                kinds[key].append((ten, first, off))
            progress.advance(1)
    rows = []
    for key, values in sorted(kinds.items(), key=lambda item: (item[0] == "all", item[0])):
        best, first_loss, off = np.array(values).T
        close = f"{np.mean(best <= CLOSE):.1%}"
        losses = (f"{loss:.1%}" for loss in (best.mean(), best.max(), first_loss.mean(), np.median(off)))
        rows.append((key, str(len(values)), close, *losses))
    return rows


def main() -> None:
    """Print the table of every machine; that of this one's confirmed times goes to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="measure more held-out workloads here first, for so long")
    parser.add_argument("--confirm", action="store_true", help="time the best points of this machine's again")
    options = parser.parse_args()
    if options.seconds is not None:
        sys.argv = [sys.argv[0], "--held-out", "--seconds", str(options.seconds)]
        record.main()
    here = Machine.here().file(held_out=True)
    if options.confirm and not here.exists():
        parser.error("nothing was measured on a machine of this kind: --seconds does it")
    model = CostModel(Trees.load(MODEL))
    notes, section = [], None
    for path in files(held_out=True):
        points = read([path])
        confirmed = options.confirm and path == here
        rows = table(model, load(points), confirmed=confirmed)
        known = f"{len(points)} times of {len({p.workload for p in points})} workloads on {points[0].machine.cpu}"
        print(known)
        print(render_table(HEAD, rows, right=(1, 2, 3, 4, 5, 6)))
        if not confirmed:
            groups, close, mean = rows[-1][1:4]
            notes.append(f"{known}, by the times as they were: {close} of {groups} within 5 %, mean loss {mean}.")
            continue
        title = "The shipped cost model on workloads that it was not trained on"
        text = (
            f"{known}, none of which was trained on. Every point of these is one schedule of one routine; the model "
            "ranks them all. The ten that it ranks first and the ten that were fastest were timed again, 25 rounds "
            "each; the loss is how much slower than the best of them the best of the model's ten is."
        )
        section = results.Section(title, text, list(HEAD), [list(row) for row in rows], notes)
    if section is not None:
        notes.append("`python -m benchmarks.cost_model.check --confirm`")
        results.record_section("cost model", section)


if __name__ == "__main__":
    main()

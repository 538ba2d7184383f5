"""How the cost model ranks workloads that it was not trained on: ``python -m benchmarks.cost_model.check``.

With ``--seconds`` more held-out workloads are measured first. Of every group, the best of the ten points that the model
ranks first stands beside the best of all points that were measured, which are most of them drawn at random.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

import numpy as np
from neo.report.table import render_table
from neo.tune.trees import Trees

from benchmarks.cost_model import record
from benchmarks.cost_model.record import HELD_OUT, read
from benchmarks.cost_model.train import MODEL, Group, load

TOP = 10
CLOSE = 0.05


def losses(trees: Trees, group: Group, top: int) -> float:
    """How much slower than the best of a group the best of the model's first points is."""
    order = np.argsort(-trees.predict(group.rows), kind="stable")[:top]
    return float(group.times_us[order].min() / group.times_us.min() - 1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="measure more held-out workloads first, for so long")
    options = parser.parse_args()
    if options.seconds is not None:
        sys.argv = [sys.argv[0], "--held-out", "--seconds", str(options.seconds)]
        record.main()
    trees = Trees.load(MODEL)
    points = read(HELD_OUT)
    groups = load(points)
    kinds: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for group in groups:
        lost = losses(trees, group, TOP), losses(trees, group, 1)
        words = group.name[0].split()
        kind = "gemm" if words[0] == "gemm" else f"{words[4]}{' depthwise' if words[1] == words[6] != '1' else ''}"
        for key in (kind, f"{group.name[1]} threads, {group.name[2]}", "all"):
            kinds[key].append(lost)
    rows = []
    for key, values in sorted(kinds.items(), key=lambda item: (item[0] == "all", item[0])):
        best, first = np.array(values).T
        close = f"{np.mean(best <= CLOSE):.1%}"
        rows.append((key, len(values), close, f"{best.mean():.1%}", f"{best.max():.1%}", f"{first.mean():.1%}"))
    head = ("workloads", "groups", "within 5 %", "mean loss of ten", "largest", "mean loss of the first")
    print(f"{len(points)} times of {len({p.workload for p in points})} workloads, none of which was trained on")
    print(render_table(head, rows, right=(1, 2, 3, 4, 5)))


if __name__ == "__main__":
    main()

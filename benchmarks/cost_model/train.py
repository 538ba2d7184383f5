"""Train the cost model that comes with neo: ``python -m benchmarks.cost_model.train``.

From what ``record`` measured, without the workloads that are held out, and without any that a model below ``--avoid``
has: those are what neo is measured on.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from neo.tune import cost_model, xgboost_library
from neo.tune.features import feature_names, point_features
from neo.tune.trees import Trees
from numpy.typing import NDArray

from benchmarks.cost_model.record import Machine, Point, files, read
from benchmarks.cost_model.workloads import Workload, fingerprint, fingerprints

MODEL = Path(cost_model.__file__).with_name("cost_model.trees")
MOST_BYTES = 1 << 20
ROUNDS = 400
PARAMETERS = {
    "max_depth": 7,
    "eta": 0.12,
    "subsample": 0.8,
    "colsample_bytree": 0.7,
    "min_child_weight": 4,
}
#: What the slowest points count beside the fastest: which of those is better matters little.
LEAST_WEIGHT = 0.1
#: Points that are so many times slower than the best are all the same.
SLOWEST = 2.0


@dataclass(frozen=True)
class Group:
    """What was measured of one workload under the same conditions on one kind of machine."""

    machine: Machine
    workload: str
    threads: int
    cache_level: str
    routines: tuple[str, ...]
    candidates: tuple[str, ...]
    rows: NDArray[np.float32]
    times_us: NDArray[np.float64]


def load(points: Iterable[Point]) -> list[Group]:
    """The groups, with the features of every point."""
    by_group: dict[tuple[Machine, str, int, str], list[Point]] = defaultdict(list)
    for p in points:
        by_group[p.machine, p.workload, p.threads, p.cache_level].append(p)
    groups = []
    for key, members in by_group.items():
        machine, text, threads, cache_level = key
        bench = Workload.parse(text).bench(threads, machine.caches)
        rows, times, routines, candidates = [], [], [], []
        for space, routine in bench.spaces.items():
            mine = [p for p in members if p.routine == routine]
            found = [(bench.native.find(space, p.candidate), p) for p in mine]
            numbers = [n for n, _ in found if n is not None]
            if not numbers:
                continue
            rows.append(point_features(bench.native, space, routine, cache_level, numbers))
            times += [p.time_us for n, p in found if n is not None]
            candidates += [p.candidate for n, p in found if n is not None]
            routines += [routine] * len(numbers)
        if len(times) > 1:
            groups.append(Group(*key, tuple(routines), tuple(candidates), np.vstack(rows), np.array(times)))
    return groups


def weights_of(times_us: NDArray[np.float64]) -> NDArray[np.float32]:
    """Of the points of a group: the closer to the best, the more."""
    closeness = np.clip((times_us.min() / times_us - 1 / SLOWEST) / (1 - 1 / SLOWEST), 0, 1)
    return (LEAST_WEIGHT + closeness).astype(np.float32)


def train(groups: list[Group], rounds: int = ROUNDS) -> Trees:
    """A model of these groups: by which power of two their times differ from the estimates."""
    rows = np.vstack([g.rows for g in groups])
    names = feature_names()
    model = xgboost_library.train(
        rows,
        np.log2(np.concatenate([g.times_us for g in groups])) - rows[:, names.index("estimate")],
        weights=np.concatenate([weights_of(g.times_us) for g in groups]),
        rounds=rounds,
        parameters=PARAMETERS,
    )
    return Trees.from_xgboost(model, names, np.unique(rows[:, names.index("lanes")]).astype(int).tolist())


def overlap(workloads: Iterable[str], folders: Iterable[Path]) -> list[str]:
    """Those that a model of the folders has too."""
    seen = set().union(*(fingerprints(folder) for folder in folders))
    both = []
    for text in sorted(set(workloads)):
        native = Workload.parse(text).bench(1).native
        if any(fingerprint(trial["workload"]) in seen for trial in native.trials):
            both.append(text)
    return both


def main() -> None:
    """Train, and write the model where the package has it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--avoid", type=Path, nargs="*", default=[], help="folders of models whose workloads go")
    parser.add_argument("--output", type=Path, default=MODEL)
    options = parser.parse_args()
    points = read(files(held_out=False))
    held_out = {p.workload for p in read(files(held_out=True))}
    known = overlap({p.workload for p in points}, options.avoid)
    print(f"{len(known)} workloads of the models are left out: {', '.join(known) or 'none'}")
    groups = load(p for p in points if p.workload not in held_out and p.workload not in known)
    trees = train(groups)
    trees.save(options.output)
    size = options.output.stat().st_size
    assert size <= MOST_BYTES, size
    print(
        f"{sum(len(g.times_us) for g in groups)} times of {len(groups)} groups: {len(trees.roots)} trees, {size} bytes"
    )


if __name__ == "__main__":
    main()

"""Fit the constants of estimates to records: ``python -m benchmarks.estimates.fit``.

Writes ``csrc/routines/cost/step_constants.inc``, a row for each family of kernels, and ``product_rows.inc``, what
products take within a plan beyond what trees expect of them. The records are what
``python -m benchmarks.estimates --record`` measured; each family's constants are those with the least mean distance
between the logarithms of measured and estimated times.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from neo import _native
from numpy.typing import NDArray

from benchmarks.estimates.record import RECORDS, Step, read

ROOT = Path(__file__).parent.parent.parent / "csrc/routines/cost"
STEPS, PRODUCTS = ROOT / "step_constants.inc", ROOT / "product_rows.inc"
#: Families of fewer records keep the constants that they have.
FEWEST = 12
#: Shorter starts of products, in microseconds, are none.
SHORTEST = 0.05
#: What takes longer is no start.
LONGEST = 1.0
#: Starting points of a fit: cycles, cycles of a run, traffic, microseconds.
STARTS = ((1.0, 5.0, 1.0, 0.05), (0.3, 30.0, 0.5, 0.2), (3.0, 1.0, 2.0, 0.02))
BOUNDS = ((0.0, 500.0), (0.0, 1000.0), (0.7, 3.0), (0.0, 20.0))

Row = tuple[float, ...]


def descend(loss: Callable[[Row], float], start: Row, bounds: Sequence[tuple[float, float]]) -> tuple[float, Row]:
    """Change one constant at a time, by ever smaller factors, while that makes the loss less."""
    best, least = start, loss(start)
    step = 1.6
    while step > 1.01:
        improved = False
        for i, (low, high) in enumerate(bounds):
            for value in (best[i] * step, best[i] / step, 0.0 if best[i] < 1e-3 else best[i], best[i] + 1e-2):
                changed = (*best[:i], float(np.clip(value, low, high)), *best[i + 1 :])
                if (found := loss(changed)) < least - 1e-6:
                    best, least, improved = changed, found, True
        if not improved:
            step = 1 + (step - 1) / 2
    return least, best


def distance(expected: NDArray[np.float64], measured: NDArray[np.float64]) -> float:
    """The mean distance of logarithms; beyond a factor of two it counts twice."""
    far = np.abs(np.log2(measured / np.maximum(expected, 1e-3)))
    return float(np.mean(far + np.maximum(far - 1, 0)))


def fit_family(steps: Sequence[Step], target: str) -> tuple[float, Row]:
    """The constants of one family's row, and the distance that is left."""
    parts = []
    for threads in sorted({s.threads for s in steps}):
        members = [s for s in steps if s.threads == threads]
        loads = [s.load for s in members]
        parts.append((threads, loads, np.array([s.time_us for s in members])))
    counted = [max(s.load[i] for s in steps if s.load) > 0 for i in (1, 2)]
    bounds = [b if used else (0.0, 0.0) for b, used in zip(BOUNDS, (*counted, True, True), strict=True)]

    def loss(row: Row) -> float:
        expected = [np.array(_native.step_times(loads, target, threads, row)) for threads, loads, _ in parts]
        return distance(np.concatenate(expected), np.concatenate([times for *_, times in parts]))

    found = []
    for start in STARTS:
        inside = tuple(float(np.clip(x, *b)) for x, b in zip(start, bounds, strict=True))
        found.append(descend(loss, inside, bounds))
    return min(found)


def fit_product(steps: Sequence[Step]) -> tuple[float, Row]:
    """Microseconds on top of what was expected of a product by itself."""
    alone = np.array([s.alone_us for s in steps])
    measured = np.array([s.time_us for s in steps])
    return descend(lambda row: distance(alone + row[0], measured), (0.05,), ((0.0, LONGEST),))


def _rows(path: Path) -> dict[str, Row]:
    found = re.findall(r"^NEO_\w+\(\"?([^\",]+)\"?((?:, [-\d.e]+)+)\)", path.read_text(), re.MULTILINE)
    return {name: tuple(map(float, numbers.split(",")[1:])) for name, numbers in found}


def _write(path: Path, macro: str, rows: dict[str, Row], *, quoted: bool) -> None:
    head = [line for line in path.read_text().splitlines() if line.startswith("//")]
    quote = '"' if quoted else ""
    lines = [f"{macro}({quote}{name}{quote}, {', '.join(f'{x:.3g}' for x in row)})" for name, row in rows.items()]
    path.write_text("\n".join([*head, *lines]) + "\n")


def main() -> None:
    """Fit, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, nargs="*", help="the default: all that were recorded")
    parser.add_argument("--target", default="cpu", help="whose machine the records are of")
    options = parser.parse_args()
    steps = [s for path in options.records or sorted(RECORDS.glob("*.csv.gz")) for s in read(path)]
    families, products = defaultdict(list), defaultdict(list)
    for s in steps:
        if s.load is not None:
            families[s.load[0]].append(s)
        elif ":" in s.routine:
            products[s.routine.partition("{")[0]].append(s)
    fitted = _rows(STEPS)
    rows = {name: fitted.get(name, row) for name, row in _native.step_families()}
    for number, (name, _) in enumerate(_native.step_families()):
        members = families[number]
        if len(members) >= FEWEST:
            left, rows[name] = fit_family(members, options.target)
            print(f"{name:16} {len(members):5} steps, distance {left:.2f}: {', '.join(f'{x:.3g}' for x in rows[name])}")
    _write(STEPS, "NEO_STEP_CONSTANTS", rows, quoted=False)
    known = _rows(PRODUCTS)
    for name, members in products.items():
        if len(members) >= FEWEST:
            left, known[name] = fit_product(members)
            print(
                f"{name:40} {len(members):5} steps, distance {left:.2f}: {', '.join(f'{x:.3g}' for x in known[name])}"
            )
    starts = {name: row for name, row in sorted(known.items()) if row[0] >= SHORTEST}
    _write(PRODUCTS, "NEO_PRODUCT_ROW", starts, quoted=True)


if __name__ == "__main__":
    main()

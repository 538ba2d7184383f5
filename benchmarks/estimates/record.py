"""Times of the steps of drawn networks beside what was expected of them."""

from __future__ import annotations

import csv
import gzip
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neo
from neo import _native
from neo.tune.compare import synthetic_inputs
from neo.tune.old_names import current_candidate

from benchmarks import environment
from benchmarks.estimates.networks import KINDS, draw

__all__ = ["RECORDS", "Step", "family_of", "read", "record", "write"]

#: A file per kind of machine.
RECORDS = Path(__file__).parent / "records"
#: Calls of a module: at least so many, and more until so many seconds have passed; the least time of a step counts.
ROUNDS = 20
SECONDS = 0.4

#: Family, cycles, runs, tasks, bytes that are read and written (csrc/routines/cost/step_cost.h).
Load = tuple[int, float, float, float, float, float]


@dataclass(frozen=True)
class Step:
    """One step of a drawn network.

    Attributes
    ----------
    network : str
        Its kind and seed.
    threads : int
        Of the module.
    routine, op : str
        What ran, with its schedule, and the model's operator.
    load : tuple or None
        What the estimate was made of; None for products.
    alone_us : float
        Of a product: expected without its start (product_rows.inc). Else what was expected.
    estimate_us, time_us : float
        Expected, and the least time of the calls.
    """

    network: str
    threads: int
    routine: str
    op: str
    load: Load | None
    alone_us: float
    estimate_us: float
    time_us: float

    @property
    def family(self) -> str:
        """What a row of the table is about."""
        return family_of(self.routine, self.op)

    @property
    def ratio(self) -> float:
        """Measured over estimated time."""
        return self.time_us / max(self.estimate_us, 1e-3)


def family_of(routine: str, op: str) -> str:
    """The routine without its schedule; copies and references, which serve many operators, with the operator."""
    name = re.sub(r"\{.*", "", routine)
    if ":adapt/" in name:
        return "conversions"
    return f"{name} {op}" if name in ("cpu/copy", "cpu/reference") else name


def record(
    count: int, seed: int, kinds: Iterable[str] = (), threads: int | None = None, seconds: float = SECONDS
) -> Iterator[list[Step]]:
    """The steps of `count` networks of each kind, network by network.

    Parameters
    ----------
    count : int
        Networks of each kind.
    seed : int
        The first seed; the others follow.
    kinds : iterable of str
        Keys of ``networks.KINDS``; none: all.
    threads : int, optional
        Of the modules; the default is one and two in turn.
    seconds : float
        Of calls of a module.
    """
    for number in range(seed, seed + count):
        for kind in kinds or KINDS:
            module = neo.compile(draw(kind, number), threads=threads or 1 + number % 2)
            yield _steps(f"{kind} {number}", module, seconds)


def _loads(module: neo.Module) -> dict[tuple[str, str], list[Load]]:
    """What the estimates of the chosen candidates and of all conversions were made of, by node and routine."""
    selection = module._selection
    assert selection is not None
    loads: dict[tuple[str, str], list[Load]] = {}
    for variable, (node, choice) in enumerate(zip(selection.problem.nodes, selection.choice, strict=False)):
        if (load := _native.load_of_choice(selection.problem, variable, int(choice))) is not None:
            loads.setdefault((node["name"], node["choices"][choice]["routine"]), []).append(load)
    for routine, sizes, load in _native.loads_of_conversions(selection.problem):
        loads.setdefault((sizes, routine), []).append(load)
    return loads


def _steps(network: str, module: neo.Module, seconds: float) -> list[Step]:
    arrays = synthetic_inputs(module.inputs)
    least: dict[int, float] = {}
    first: dict[int, dict[str, Any]] = {}
    end = time.perf_counter() + seconds
    calls = 0
    while calls < ROUNDS or time.perf_counter() < end:
        of_call: dict[int, float] = {}
        for e in module._native.trace(arrays)[1]:
            first.setdefault(e["item"], e)
            of_call[e["item"]] = of_call.get(e["item"], 0) + (e["end_ns"] - e["start_ns"]) / 1e3
        for item, us in of_call.items():
            least[item] = min(us, least.get(item, us))
        calls += 1
    loads, plan = _loads(module), module._native.plan
    steps = []
    for item, e in first.items():
        written = plan["items"][item]["writes"]
        slot = plan["blocks"][plan["items"][item]["block"]]["slots"][written[0]] if written else None
        place = slot["type"] if slot and ":adapt/" in e["routine"] else e["node"]
        found = loads.get((place, e["routine"]), [None])
        load = found[0] if len(set(found)) == 1 else None
        start_us = _native.product_start_us(e["routine"].partition("{")[0])
        times = e["estimate_us"] - start_us, e["estimate_us"], least[item]
        steps.append(Step(network, module.threads, e["routine"], e["op"], load, *times))
    return steps


def machine_name() -> str:
    """What the records of this machine are called."""
    return "-".join(re.findall(r"[a-z]+|\d+", environment.cpu_name().lower().replace("family/model/stepping", "")))


def write(path: Path, steps: Iterable[Step]) -> None:
    """Replace a file of records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as file:
        rows = csv.writer(file)
        for s in steps:
            load = () if s.load is None else s.load
            times = (f"{us:.4g}" for us in (s.alone_us, s.estimate_us, s.time_us))
            rows.writerow((s.network, s.threads, s.routine, s.op, *times, *load))


def read(path: Path) -> list[Step]:
    """What :func:`write` wrote, by the names that routines have now."""
    steps = []
    with gzip.open(path, "rt", newline="") as file:
        for network, threads, routine, op, alone, estimate, measured, *fields in csv.reader(file):
            load: Load | None = None
            if fields:
                family, *numbers = fields
                cycles, runs, tasks, reads, writes = map(float, numbers)
                load = (int(family), cycles, runs, tasks, reads, writes)
            times = float(alone), float(estimate), float(measured)
            steps.append(Step(network, int(threads), current_candidate(routine), op, load, *times))
    return steps

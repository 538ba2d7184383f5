"""Branch and bound, level by level, on what elimination leaves.

Variables are assigned in the reverse of an elimination order. All partial choices of a level are extended at once;
each carries lower bounds of its completions' cost, read from (mini-)bucket tables (Kask and Dechter, Mini-bucket
heuristics for improved search, 1999), and of their usage. Those that cannot beat the best known choice or cannot meet a
limit go; of those that agree on all variables the rest still depends on, only the best stay. A level wider than allowed
drops its worst: then what was dropped bounds the optimum, and the search runs again wider.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neo.select.bound import pass_messages, price_resources, price_violations, value_of
from neo.select.certificate import Trace
from neo.select.elimination import Array, Elimination, Factor, eliminate, linear_order, merge, relabel
from neo.select.problem import LIMIT_TOLERANCE

Indices = npt.NDArray[np.intp]

TABLE_LIMIT = 1 << 16
FIRST_WIDTH = 1 << 6
LAST_WIDTH = 1 << 15
LAST_WIDTH_LIMITED = 1 << 13
LAST_WIDTH_TIMED = 1 << 19
MESSAGE_ROUNDS = 8
TOLERANCE = 1e-9


@dataclass
class Core:
    """What is searched.

    Attributes
    ----------
    sizes : list of int
        Choices per variable.
    costs : list of Factor
        Summed to the cost.
    usage : list of list of Factor
        Per resource.
    limits : array
        Per resource.
    """

    sizes: list[int]
    costs: list[Factor]
    usage: list[list[Factor]]
    limits: Array


@dataclass
class Outcome:
    """What a search found.

    Attributes
    ----------
    choice : list of int or None
        The best one found; None where none was.
    value : float
        Its cost.
    bound : float
        No choice within the limits costs less.
    complete : bool
        Nothing was dropped: the choice is the best, and where there is none, none exists.
    """

    choice: list[int] | None
    value: float
    bound: float
    complete: bool


@dataclass
class _Level:
    """One assigned variable: for every state of the level its parent in the level before and its choice."""

    parents: Indices
    values: Indices


class _Objective:
    """Bounds of one sum at partial choices, and the most it may be."""

    def __init__(self, tables: Elimination, cutoff: float, offset: float = 0.0) -> None:
        self.tables = tables
        self.cutoff = cutoff
        self.offset = offset

    def extend(self, v: int, bounds: Array, columns: dict[int, Indices]) -> Array:
        """Bounds of every state with every choice of v, choices x states."""
        total = bounds[None, :]
        for group in self.tables.groups[v]:
            size = group.joined.shape[0]
            if len(group.scope) == 1:
                total = total + (group.joined - group.message)[:, None]
                continue
            index = np.ravel_multi_index(tuple(columns[u] for u in group.scope[1:]), group.message.shape)
            flat = group.joined.reshape(size, -1)
            with np.errstate(invalid="ignore"):
                step = flat[:, index] - group.message.reshape(-1)[index]
            total = total + step
        return total


def branch_and_bound(
    core: Core,
    *,
    accept: Callable[[list[int]], bool],
    starts: Sequence[Sequence[int]] = (),
    deadline: float = math.inf,
    table_limit: int = TABLE_LIMIT,
    trace: Trace | None = None,
) -> Outcome:
    """Find the best choice within the limits, or the best found with a bound.

    Parameters
    ----------
    core : Core
        What is searched.
    accept : callable
        Whether a choice really is within the limits; bounds here carry rounding errors.
    starts : sequence of choices
        Known choices; those that are accepted bound the search.
    deadline : float
        Of `time.perf_counter`. At least one narrow search always ends.
    table_limit : int
        Cells of a table, from where buckets are split.
    trace : Trace, optional
        Takes up what proves the bound.
    """
    scopes = [s for s, _ in core.costs] + [s for parts in core.usage for s, _ in parts]
    order = linear_order(core.sizes, scopes)
    position = [0] * len(order)
    for p, v in enumerate(order):
        position[v] = p
    sizes = [core.sizes[v] for v in order]
    costs = merge(relabel(core.costs, position))
    usage = [merge(relabel(parts, position)) for parts in core.usage]
    limits = core.limits

    best: list[int] | None = None
    value = math.inf

    def offer(choice: Sequence[int]) -> bool:
        nonlocal best, value
        cost = value_of(costs, choice)
        if math.isinf(cost) or not accept([choice[p] for p in position]):
            return False
        if cost < value:
            best, value = list(choice), cost
        return True

    for start in starts:
        offer([start[v] for v in order])

    plain = eliminate(sizes, costs, limit=table_limit, keep=True)
    shifted = costs
    if not plain.exact:
        shifts = None if trace is None else trace.shifts
        shifted = pass_messages(sizes, costs, rounds=MESSAGE_ROUNDS, deadline=deadline, shifts=shifts)
        plain = eliminate(sizes, shifted, limit=table_limit, keep=True)
    bound = plain.bound
    if math.isinf(bound):
        return Outcome(None, math.inf, math.inf, True)
    choice = [0] * len(sizes)
    if plain.decode(choice):
        offer(choice)
    objectives = [_Objective(plain, math.inf)]
    if trace is not None:
        trace.order = order
        trace.relaxed(plain, prices=np.zeros(0), shifted=True)
    if usage:
        forbidden = [(s, np.where(np.isinf(t), np.inf, 0.0)) for s, t in costs if np.isinf(t).any()]
        priced = price_resources(sizes, shifted, usage, limits, table_limit=table_limit, deadline=deadline)
        for choice in priced.choices:
            offer(choice)
        if best is None and len(usage) > 1:
            wanted = price_violations(sizes, costs, usage, limits, table_limit=table_limit, deadline=deadline)
            if wanted.bound > TOLERANCE:
                return Outcome(None, math.inf, math.inf, True)
            for choice in wanted.choices:
                offer(choice)
        bound = max(bound, priced.bound)
        factors = shifted + [
            (s, p * t) for p, parts in zip(priced.prices, usage, strict=True) if p > 0 for s, t in parts
        ]
        tables = eliminate(sizes, merge(factors), limit=table_limit, keep=True)
        objectives.append(_Objective(tables, math.inf, -float(priced.prices @ limits)))
        if trace is not None:
            trace.relaxed(tables, prices=priced.prices, shifted=True)
        for k, (limit, parts) in enumerate(zip(limits, usage, strict=True)):
            tables = eliminate(sizes, merge(forbidden + parts), limit=table_limit, keep=True)
            objectives.append(_Objective(tables, limit + 10 * LIMIT_TOLERANCE * max(1.0, abs(limit))))
            if trace is not None:
                trace.relaxed(tables, prices=np.zeros(0), resource=k, shifted=False)
            choice = [0] * len(sizes)
            if tables.decode(choice):
                offer(choice)

    search = _Search(sizes, [s for s, _ in costs] + [s for parts in usage for s, _ in parts], objectives, len(usage))
    width = FIRST_WIDTH
    last = LAST_WIDTH_LIMITED if usage else LAST_WIDTH
    if not math.isinf(deadline):
        last = LAST_WIDTH_TIMED
    complete = _closed(value, bound)
    while not complete:
        found, floor, dropped = search.run(value, width, deadline if width > FIRST_WIDTH else math.inf)
        for choice in found:
            if offer(choice):
                break
        bound = max(bound, min(floor, value))
        complete = not dropped or _closed(value, bound)
        if width >= last or time.perf_counter() > deadline:
            break
        width = min(width * 8, last)
    if complete:
        bound = value
    return Outcome(None if best is None else [best[p] for p in position], value, min(bound, value), complete)


def _closed(value: float, bound: float) -> bool:
    return value < math.inf and value - bound <= TOLERANCE * max(1.0, abs(value))


class _Search:
    def __init__(
        self, sizes: list[int], scopes: Sequence[tuple[int, ...]], objectives: list[_Objective], resources: int
    ) -> None:
        self.sizes = sizes
        self.objectives = objectives
        # The limits' objectives come last; those before bound the cost.
        self.resources = resources
        self.needed_until = list(range(len(sizes)))
        for scope in scopes:
            for v in scope:
                self.needed_until[v] = min(self.needed_until[v], scope[0])

    def run(self, value: float, width: int, deadline: float) -> tuple[list[list[int]], float, bool]:
        """Whole choices that beat `value`, cheapest first; the least bound of what was dropped; whether any was."""
        objectives = self.objectives
        costing = objectives[: len(objectives) - self.resources]
        beat = value - TOLERANCE * max(1.0, abs(value)) if value < math.inf else math.inf
        bounds = np.array([[o.tables.bound] for o in objectives])
        columns: dict[int, Indices] = {}
        levels: list[_Level] = []
        floor, dropped = math.inf, False
        for v in range(len(self.sizes) - 1, -1, -1):
            states = bounds.shape[1]
            extended = [o.extend(v, b, columns) for o, b in zip(objectives, bounds, strict=True)]
            fits = np.ones((self.sizes[v], states), dtype=bool)
            for o, b in zip(objectives, extended, strict=True):
                most = min(o.cutoff, beat - o.offset) if o in costing else o.cutoff
                fits &= (b < most) if o in costing else (b <= most)
            kept = np.flatnonzero(fits)
            if not kept.size:
                return [], floor, dropped
            bounds = np.stack([np.broadcast_to(b, fits.shape).reshape(-1)[kept] for b in extended])
            values, parents = np.divmod(kept, states)
            columns = {u: column[parents] for u, column in columns.items() if self.needed_until[u] < v}
            if self.needed_until[v] < v:
                columns[v] = values
            rank = bounds[0]
            for i in range(1, len(costing)):
                rank = np.maximum(rank, bounds[i] + costing[i].offset)
            chosen = self._undominated(columns, bounds, rank)
            if len(chosen) > width:
                by_rank = np.argpartition(rank[chosen], width)
                floor = min(floor, float(rank[chosen[by_rank[width:]]].min()))
                dropped = True
                chosen = np.sort(chosen[by_rank[:width]])
            if len(chosen) < len(kept):
                bounds, values, parents = bounds[:, chosen], values[chosen], parents[chosen]
                columns = {u: column[chosen] for u, column in columns.items()}
            levels.append(_Level(parents, values))
            if time.perf_counter() > deadline:
                return [], min(floor, float(rank[chosen].min())), True
        ends = np.argsort(bounds[0], kind="stable")[:64]
        if self.resources and len(bounds[0]) > 64:
            dropped, floor = True, min(floor, float(bounds[0].min()))
        return [self._trace(levels, int(end)) for end in ends], floor, dropped

    def _trace(self, levels: list[_Level], end: int) -> list[int]:
        choice = [0] * len(self.sizes)
        for v, level in enumerate(reversed(levels)):
            choice[v] = int(level.values[end])
            end = int(level.parents[end])
        return choice

    def _undominated(self, columns: dict[int, Indices], bounds: Array, rank: Array) -> Indices:
        """States for which no other one agrees on the columns, costs no more and uses no more."""
        key = np.zeros(len(rank), dtype=np.int64)
        room = 1
        for u, column in columns.items():
            if room * self.sizes[u] >= 1 << 62:
                _, key = np.unique(key, return_inverse=True)
                room = len(rank)
            key = key * self.sizes[u] + column
            room *= self.sizes[u]
        cost, used = bounds[0], bounds[len(bounds) - self.resources :]
        order = np.lexsort((*used[::-1], cost, key))
        key = key[order]
        if not self.resources:
            return order[np.concatenate(([True], key[1:] != key[:-1]))]
        starts = np.concatenate(([True], key[1:] != key[:-1]))
        group = np.cumsum(starts) - 1
        beaten = np.zeros(len(order), dtype=bool)
        if self.resources == 1:
            # Within a group, in order of cost, only a new least usage stays.
            _, level = np.unique(used[0][order], return_inverse=True)
            falling = level - group * (int(level.max()) + 1)
            beaten[1:] = falling[1:] >= np.minimum.accumulate(falling)[:-1]
            beaten &= ~starts
            return order[~beaten]
        used = used[:, order]
        for lag in (1, 2, 3, 4, 6, 8, 12, 16):
            if lag >= len(order):
                break
            same = group[lag:] == group[:-lag]
            beaten[lag:] |= same & (used[:, :-lag] <= used[:, lag:]).all(axis=0)
        first = np.flatnonzero(starts)[group]
        beaten |= ~starts & (used[:, first] <= used).all(axis=0)
        return order[~beaten]

"""Variable elimination on factor graphs: orders, tables, mini-buckets.

A factor is a scope, a strictly increasing tuple of variables, and a table with one axis per variable of it. Variables
are numbered by their place in the elimination order, so the variable a factor is eliminated by is the first of its
scope, and tables of one bucket broadcast against each other without transposing.

Elimination in a tree's or a chain's order is the dynamic programming of NeoCPU 3.3.2 (Algorithm 2) and of SoftNeuro IV
(DPRS, whose relaxed branch conditions are the scopes here); R0, R1 and R2 of PBQP are the buckets of degree 0, 1 and 2.
Mini-buckets (Dechter and Rish, Mini-buckets: a general scheme for bounded inference, 2003) keep tables small and give a
lower bound; costs of the eliminated variable are first evened out between the parts of a split bucket.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Scope = tuple[int, ...]
Factor = tuple[Scope, Array]
Split = tuple[list[Scope], Array]


@dataclass
class Order:
    """An elimination order.

    Attributes
    ----------
    eliminated : list of int
        In this order.
    rest : list of int
        Those whose tables would exceed the limit.
    cells : int
        Sum of the sizes of the joined tables.
    largest : int
        The largest of them.
    """

    eliminated: list[int]
    rest: list[int]
    cells: int
    largest: int


def adjacency(count: int, scopes: Iterable[Scope]) -> list[set[int]]:
    """Neighbours of each variable: those it shares a scope with."""
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(scope)
    for v, around in enumerate(neighbours):
        around.discard(v)
    return neighbours


def greedy_order(
    sizes: Sequence[int],
    scopes: Iterable[Scope],
    *,
    limit: int,
    rule: str = "weight",
    allowed: Iterable[int] | None = None,
) -> Order:
    """Eliminate the cheapest variable first, as long as its joined table has at most `limit` cells.

    Parameters
    ----------
    sizes : sequence of int
        Choices per variable.
    scopes : iterable of tuple
        Scopes of the factors.
    limit : int
        Largest joined table, in cells.
    rule : {"weight", "fill"}
        Cheapest by the joined table's cells, or by the cells of the pairs that become neighbours (min-fill).
    allowed : iterable of int, optional
        Variables that may be eliminated; by default all.
    """
    count = len(sizes)
    neighbours = adjacency(count, scopes)
    weight = [math.prod([sizes[a] for a in around], start=sizes[v]) for v, around in enumerate(neighbours)]

    def fill(v: int) -> float:
        around = neighbours[v]
        if weight[v] > limit:
            return math.inf
        return sum(sizes[a] * sizes[b] for a in around for b in around - neighbours[a] if a < b)

    by_fill = rule == "fill"
    key = [(fill(v), weight[v]) if by_fill else (weight[v], 0) for v in range(count)]
    waiting = set(range(count)) if allowed is None else set(allowed)
    heap = [(key[v], v) for v in sorted(waiting)]
    heapq.heapify(heap)
    order = Order([], [], 0, 0)
    while heap:
        k, v = heapq.heappop(heap)
        if v not in waiting or k != key[v] or weight[v] > limit:
            continue
        waiting.discard(v)
        order.eliminated.append(v)
        order.cells += weight[v]
        order.largest = max(order.largest, weight[v])
        around = neighbours[v]
        for a in around:
            near = neighbours[a]
            near |= around
            near.discard(a)
            near.discard(v)
            weight[a] = math.prod([sizes[b] for b in near], start=sizes[a])
        changed = around.union(*(neighbours[a] for a in around)) if by_fill else around
        for a in changed:
            new = (fill(a), weight[a]) if by_fill else (weight[a], 0)
            if new != key[a] and a in waiting:
                key[a] = new
                heapq.heappush(heap, (new, a))
    gone = set(order.eliminated)
    order.rest = [v for v in range(count) if v not in gone]
    return order


def linear_order(sizes: Sequence[int], scopes: Iterable[Scope]) -> list[int]:
    """Sweep each connected part from one end, keeping the variables on the boundary few.

    A search that assigns variables in the reverse of this order meets partial choices that agree on a small boundary,
    and needs only the best of them.
    """
    neighbours = adjacency(len(sizes), scopes)
    logs = [math.log2(n) + 1e-3 for n in sizes]
    left = set(range(len(sizes)))
    order: list[int] = []
    while left:
        start = _far_end(neighbours, min(left))
        boundary = {start: 0}
        age = 0
        while boundary:

            def grown(v: int, boundary: dict[int, int] = boundary) -> tuple[float, int]:
                return sum(logs[a] for a in neighbours[v] if a in left and a not in boundary) - logs[v], boundary[v]

            v = min(boundary, key=grown)
            del boundary[v]
            left.discard(v)
            order.append(v)
            age += 1
            for a in sorted(neighbours[v]):
                if a in left:
                    boundary.setdefault(a, age)
    return order


def _far_end(neighbours: Sequence[set[int]], start: int) -> int:
    for _ in range(2):
        seen = {start}
        level = [start]
        while level:
            last = level
            level = sorted({a for v in level for a in neighbours[v] if a not in seen})
            seen.update(level)
        start = min(last, key=lambda v: (len(neighbours[v]), v))
    return start


def relabel(factors: Iterable[Factor], position: Sequence[int]) -> list[Factor]:
    """Rename variable v to position[v] in all factors, axes in increasing order."""
    out = []
    for scope, table in factors:
        new = [position[v] for v in scope]
        axes = sorted(range(len(new)), key=new.__getitem__)
        if axes != list(range(len(new))):
            table = table.transpose(axes)
        out.append((tuple(new[a] for a in axes), table))
    return out


def merge(factors: Iterable[Factor]) -> list[Factor]:
    """Factors of the same scope summed into one."""
    merged: dict[Scope, Array] = {}
    for scope, table in factors:
        merged[scope] = merged[scope] + table if scope in merged else table
    return list(merged.items())


def join(scope: Scope, sizes: Sequence[int], factors: Sequence[Factor]) -> Array:
    """Sum of factors as one table over `scope`."""
    total: Array | None = None
    for s, table in factors:
        if s != scope:
            table = table.reshape([sizes[v] if v in s else 1 for v in scope])
        total = table if total is None else total + table
    shape = tuple(sizes[v] for v in scope)
    if total is None:
        return np.zeros(shape)
    return total if total.shape == shape else np.broadcast_to(total, shape)


@dataclass
class Group:
    """A part of a bucket: a joined table, its first axis the eliminated variable, and its minimum over that axis."""

    scope: Scope
    joined: Array
    message: Array


@dataclass
class Elimination:
    """Tables of an elimination.

    Attributes
    ----------
    sizes : list of int
        Choices per variable; variable 0 was eliminated first.
    count : int
        How many were eliminated.
    bound : float
        Minimum of the sum of all factors where nothing is left and no bucket was split; a lower bound of it where one
        was; the constant beside `rest` where variables are left.
    exact : bool
        No bucket was split.
    buckets : list
        Per eliminated variable, the factors that decide it: exact ones in parts, split ones joined.
    groups : list
        Per eliminated variable its groups, where they are kept.
    splits : list
        Per eliminated variable and part of its bucket: the scopes it has, and what was added along the variable.
    rest : list of Factor
        On the variables that are left.
    """

    sizes: list[int]
    count: int
    bound: float = 0.0
    exact: bool = True
    buckets: list[list[Factor]] = field(default_factory=list)
    groups: list[list[Group]] = field(default_factory=list)
    splits: list[list[Split]] = field(default_factory=list)
    rest: list[Factor] = field(default_factory=list)

    def decode(self, choice: list[int]) -> bool:
        """Fill in the eliminated variables, last eliminated first; the best completion where nothing was split.

        Parameters
        ----------
        choice : list of int
            One entry per variable; those that were not eliminated are given.

        Returns
        -------
        bool
            False where every completion found is forbidden.
        """
        for v in range(self.count - 1, -1, -1):
            total = np.zeros(self.sizes[v])
            for scope, table in self.buckets[v]:
                index: tuple[slice | int, ...] = (slice(None), *[choice[u] for u in scope[1:]])
                total += table[index]
            best = int(total.argmin())
            if math.isinf(total[best]):
                return False
            choice[v] = best
        return True


def eliminate(
    sizes: Sequence[int],
    factors: Iterable[Factor],
    *,
    count: int | None = None,
    limit: int | None = None,
    keep: bool = False,
) -> Elimination:
    """Eliminate variables 0 to `count` - 1 in this order.

    Parameters
    ----------
    sizes : sequence of int
        Choices per variable.
    factors : iterable of Factor
        What is summed.
    count : int, optional
        By default all variables.
    limit : int, optional
        Split buckets whose joined table would exceed this many cells.
    keep : bool
        Keep the joined tables and messages, for searching.
    """
    count = len(sizes) if count is None else count
    out = Elimination(list(sizes), count)
    waiting: list[list[Factor]] = [[] for _ in sizes]

    def place(scope: Scope, table: Array) -> None:
        if scope:
            waiting[scope[0]].append((scope, table))
        else:
            out.bound += float(table)

    for scope, table in factors:
        place(scope, table)
    for v in range(count):
        bucket = merge(waiting[v])
        if not bucket:
            bucket = [((v,), np.zeros(sizes[v]))]
        waiting[v] = []
        parts = _split_bucket(bucket, sizes, limit)
        if len(parts) == 1:
            scope, members = parts[0]
            joined = join(scope, sizes, members)
            tables = [(scope, joined)]
            out.buckets.append(bucket)
            out.splits.append([])
        else:
            out.exact = False
            tables, shifts = _even_out([(scope, join(scope, sizes, members)) for scope, members in parts])
            out.buckets.append(tables)
            out.splits.append([([s for s, _ in p], a) for (_, p), a in zip(parts, shifts, strict=True)])
        groups = []
        for scope, joined in tables:
            message = np.minimum.reduce(joined, axis=0)
            place(scope[1:], message)
            if keep:
                groups.append(Group(scope, joined, np.asarray(message)))
        if keep:
            out.groups.append(groups)
    out.rest = merge(f for bucket in waiting[count:] for f in bucket)
    return out


def _union(scopes: Iterable[Scope]) -> Scope:
    return tuple(sorted({v for scope in scopes for v in scope}))


def _split_bucket(bucket: list[Factor], sizes: Sequence[int], limit: int | None) -> list[tuple[Scope, list[Factor]]]:
    scope = bucket[0][0] if len(bucket) == 1 else _union(s for s, _ in bucket)
    if limit is None or math.prod([sizes[v] for v in scope]) <= limit:
        return [(scope, bucket)]
    parts: list[tuple[Scope, list[Factor]]] = []
    for factor in sorted(bucket, key=lambda f: -len(f[0])):
        for i, (have, members) in enumerate(parts):
            both = _union((have, factor[0]))
            if math.prod([sizes[v] for v in both]) <= limit:
                parts[i] = (both, [*members, factor])
                break
        else:
            parts.append((factor[0], [factor]))
    return parts


def _even_out(tables: list[Factor]) -> tuple[list[Factor], Array]:
    """Move costs of the first variable between tables until each has the same minimum per choice of it.

    Returns the tables and, for each, what was added per choice; infinite for choices that some table forbids.
    """
    lows = np.stack([table.reshape(table.shape[0], -1).min(axis=1) for _, table in tables])
    dead = np.isinf(lows).any(axis=0)
    lows[:, dead] = 0.0
    shifts = lows.mean(axis=0) - lows
    shifts[:, dead] = np.inf
    even = [
        (scope, table + shift.reshape(-1, *[1] * (table.ndim - 1)))
        for (scope, table), shift in zip(tables, shifts, strict=True)
    ]
    return even, shifts

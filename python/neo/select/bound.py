"""Lower bounds: messages that move costs between factors, and multipliers that price resources."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neo.select.elimination import Array, Factor, eliminate, merge


def value_of(factors: Sequence[Factor], choice: Sequence[int]) -> float:
    """Sum of the factors at a choice of every variable."""
    terms = [float(table[tuple([choice[v] for v in scope])]) for scope, table in factors]
    return math.inf if math.inf in terms else math.fsum(terms)


def pass_messages(
    sizes: Sequence[int],
    factors: Sequence[Factor],
    *,
    rounds: int,
    deadline: float,
    shifts: list[tuple[tuple[int, ...], int, Array]] | None = None,
) -> list[Factor]:
    """Equivalent factors whose separate minima sum to a better bound.

    Sequential sweeps there and back: each variable collects the minima of its factors and hands equal shares of them
    to the factors ahead (TRW-S: Kolmogorov, Convergent tree-reweighted message passing, 2006; for longer scopes:
    Kolmogorov, A new look at reweighted message passing, 2015). `shifts` takes up what each longer factor was given
    along each of its axes, and its variable alone has lost.
    """
    count = len(sizes)
    unary = [np.zeros(n) for n in sizes]
    scopes: list[tuple[int, ...]] = []
    tables: list[Array] = []
    for scope, table in merge(factors):
        if len(scope) == 1:
            unary[scope[0]] = unary[scope[0]] + table
        else:
            scopes.append(scope)
            tables.append(np.array(table))
    given: list[list[Array]] = [[np.zeros(sizes[v]) for v in scope] for scope in scopes]
    touching: list[list[tuple[int, int, tuple[int, ...]]]] = [[] for _ in range(count)]
    for f, scope in enumerate(scopes):
        for axis, v in enumerate(scope):
            touching[v].append((f, axis, tuple(a for a in range(len(scope)) if a != axis)))

    def sweep(forward: bool) -> None:
        for v in range(count) if forward else range(count - 1, -1, -1):
            total = unary[v]
            spread: list[tuple[int, int, tuple[int, ...]]] = []
            behind = 0
            for f, axis, others in touching[v]:
                low = tables[f].min(axis=others)
                shape = tuple(-1 if a == axis else 1 for a in range(len(scopes[f])))
                total = total + low
                taken = np.where(np.isinf(low), 0.0, low)
                tables[f] -= taken.reshape(shape)
                given[f][axis] -= taken
                first, last = axis == 0, axis == len(scopes[f]) - 1
                if not (last if forward else first):
                    spread.append((f, axis, shape))
                behind += not (first if forward else last)
            if not spread:
                unary[v] = total
                continue
            share = total / max(len(spread), behind)
            for f, axis, shape in spread:
                tables[f] += share.reshape(shape)
                given[f][axis] += share
            dead = np.isinf(total)
            unary[v] = np.where(dead, np.inf, total - len(spread) * np.where(dead, 0.0, share))

    def bound() -> float:
        return sum(float(t.min()) for t in tables) + sum(float(t.min()) for t in unary)

    before = bound()
    for i in range(rounds):
        sweep(True)
        sweep(False)
        if i % 4 == 3:
            now = bound()
            if not now - before > 1e-5 * abs(now) or time.perf_counter() > deadline:
                break
            before = now
    if shifts is not None:
        for scope, parts in zip(scopes, given, strict=True):
            shifts.extend((scope, axis, added) for axis, added in enumerate(parts))
    return [((v,), t) for v, t in enumerate(unary)] + list(zip(scopes, tables, strict=True))


@dataclass
class Priced:
    """A lower bound from prices on resources.

    Attributes
    ----------
    prices : array
        One per resource, at least 0.
    bound : float
        Of the cost of any choice within the limits.
    choices : list of list of int
        Choices met on the way; they may exceed limits.
    """

    prices: Array
    bound: float
    choices: list[list[int]]


def price_resources(
    sizes: Sequence[int],
    costs: Sequence[Factor],
    usage: Sequence[Sequence[Factor]],
    limits: Array,
    *,
    table_limit: int,
    deadline: float,
) -> Priced:
    """Maximise the Lagrangian bound min over choices of cost + prices x (usage - limits) over prices >= 0.

    One price at a time, exactly along its line (each is concave and piecewise linear, so intersecting two tangents
    converges in a few steps); with several resources then subgradient steps.
    """
    best = Priced(np.zeros(len(limits)), -math.inf, [])

    def at(prices: Array) -> tuple[float, Array]:
        factors = list(costs)
        for price, parts in zip(prices, usage, strict=True):
            if price > 0:
                factors.extend((scope, price * table) for scope, table in parts)
        tables = eliminate(sizes, factors, limit=table_limit)
        bound = tables.bound - float(prices @ limits)
        if bound > best.bound:
            best.prices, best.bound = prices.copy(), bound
        choice = [0] * len(sizes)
        if not tables.decode(choice):
            return bound, np.zeros(len(limits))
        if choice not in best.choices:
            best.choices.append(choice)
        return bound, np.array([value_of(parts, choice) for parts in usage]) - limits

    prices = np.zeros(len(limits))
    for sweep in range(1 if len(limits) == 1 else 3):
        before = best.bound
        for k in range(len(limits)):
            prices = _climb(at, prices, k, deadline)
        if sweep and not best.bound - before > 1e-6 * abs(best.bound):
            break
    if len(limits) > 1:
        _subgradient(at, best, deadline)
    return best


def price_violations(
    sizes: Sequence[int],
    costs: Sequence[Factor],
    usage: Sequence[Sequence[Factor]],
    limits: Array,
    *,
    table_limit: int,
    deadline: float,
    rounds: int = 100,
) -> Priced:
    """Look only at the limits: a bound above 0 proves that they cannot be met together.

    Weights on the resources follow their violations (Plotkin, Shmoys and Tardos, Fast approximation algorithms for
    fractional packing and covering problems, 1995); the bound is of the weighted sum of the violations.
    """
    forbidden = [(s, np.where(np.isinf(t), np.inf, 0.0)) for s, t in costs if np.isinf(t).any()]
    scale = np.maximum(np.abs(limits), 1e-9 + np.array([sum(float(np.ptp(t)) for _, t in p) for p in usage]))
    best = Priced(np.zeros(len(limits)), -math.inf, [])
    grown = np.zeros(len(limits))
    for i in range(rounds):
        weights = np.exp(grown - grown.max())
        prices = weights / weights.sum() / scale
        factors = forbidden + [(s, p * t) for p, parts in zip(prices, usage, strict=True) for s, t in parts]
        tables = eliminate(sizes, merge(factors), limit=table_limit)
        bound = tables.bound - float(prices @ limits)
        if bound > best.bound:
            best.prices, best.bound = prices, bound
        choice = [0] * len(sizes)
        if best.bound > 1e-9 or not tables.decode(choice) or time.perf_counter() > deadline:
            break
        best.choices.append(choice)
        violation = (np.array([value_of(parts, choice) for parts in usage]) - limits) / scale
        if violation.max() <= 0:
            break
        grown += violation / np.abs(violation).max() / math.sqrt(1 + i / 4)
    return best


Evaluate = Callable[[Array], tuple[float, Array]]


def _climb(at: Evaluate, prices: Array, k: int, deadline: float) -> Array:
    """Best prices when only price k may change."""

    def on_line(price: float) -> tuple[float, float]:
        point = prices.copy()
        point[k] = price
        bound, slope = at(point)
        return bound, float(slope[k])

    def moved(price: float) -> Array:
        point = prices.copy()
        point[k] = price
        return point

    low, (low_bound, low_slope) = 0.0, on_line(0.0)
    if low_slope <= 0:
        return moved(0.0)
    high = prices[k] if prices[k] > 0 else max(abs(low_bound), 1.0) / low_slope * 1e-3
    for _ in range(60):
        high_bound, high_slope = on_line(high)
        if high_slope <= 0:
            break
        low, low_bound, low_slope = high, high_bound, high_slope
        high *= 4
    else:
        return moved(low)
    for _ in range(30):
        if time.perf_counter() > deadline:
            break
        crossing = (high_bound - low_bound + low_slope * low - high_slope * high) / (low_slope - high_slope)
        top = low_bound + low_slope * (crossing - low)
        if not low < crossing < high:
            break
        bound, slope = on_line(crossing)
        if bound >= top - 1e-9 * max(1.0, abs(top)):
            return moved(crossing)
        if slope > 0:
            low, low_bound, low_slope = crossing, bound, slope
        else:
            high, high_bound, high_slope = crossing, bound, slope
    return moved(low if low_bound > high_bound else high)


def _subgradient(at: Evaluate, best: Priced, deadline: float) -> None:
    prices = best.prices.copy()
    step = 0.05
    for _ in range(40):
        if time.perf_counter() > deadline:
            return
        before = best.bound
        _, slope = at(prices)
        scale = float(np.abs(slope).max())
        if scale == 0:
            return
        norm = float(slope @ slope)
        prices = np.maximum(0.0, prices + step * max(abs(best.bound), 1.0) * slope / norm)
        if best.bound <= before:
            step *= 0.8
            prices = np.maximum(0.0, 0.5 * (prices + best.prices))

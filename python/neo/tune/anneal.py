"""Simulated annealing over the points of several spaces, by a predicted score."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Point", "anneal", "pick_batch"]

#: A space and a point of it.
Point = tuple[int, int]
Score = Callable[[Sequence[Point]], NDArray[np.floating]]
Mutate = Callable[[Sequence[Point]], list[Point]]


def anneal(
    start: Sequence[Point],
    score: Score,
    mutate: Mutate,
    random: np.random.Generator,
    *,
    steps: int,
    temperature: float = 1.0,
) -> dict[Point, float]:
    """Walk from every start towards higher scores, in parallel chains, as AutoTVM does.

    Parameters
    ----------
    start : sequence of Point
        Where chains begin.
    score : callable
        Predicted scores of points; higher is better.
    mutate : callable
        A random neighbour of each point.
    random : Generator
        Decides which worse neighbours are accepted.
    steps : int
        Of every chain.
    temperature : float
        At which a neighbour worse by as much is accepted with probability 1/e in the beginning; it falls to 0.

    Returns
    -------
    dict
        Every point seen, with its score.
    """
    here = list(start)
    if not here:
        return {}
    seen: dict[Point, float] = {}

    def scores_of(points: Sequence[Point]) -> NDArray[np.float64]:
        fresh = [p for p in dict.fromkeys(points) if p not in seen]
        if fresh:
            seen.update(zip(fresh, (float(s) for s in score(fresh)), strict=True))
        return np.array([seen[p] for p in points])

    scores = scores_of(here)
    for step in range(steps):
        heat = temperature * (1 - step / steps)
        there = mutate(here)
        new = scores_of(there)
        with np.errstate(over="ignore"):
            accept = random.random(len(here)) < np.exp(np.minimum(new - scores, 0) / max(heat, 1e-9))
        here = [b if yes else a for a, b, yes in zip(here, there, accept, strict=True)]
        scores = np.where(accept, new, scores)
    return seen


def pick_batch(
    predicted: dict[Point, float],
    count: int,
    epsilon: float,
    sample: Callable[[], Point],
    random: np.random.Generator,
    *,
    known: Collection[Point],
) -> list[Point]:
    """The points to measure next: most by prediction, a share of `epsilon` at random; none twice.

    Parameters
    ----------
    predicted : dict
        Points with their scores.
    count : int
        How many; fewer where there are no more.
    epsilon : float
        The share that is drawn by `sample`, which explores what the model does not believe in.
    sample : callable
        A random point.
    random : Generator
        Rounds the share.
    known : collection of Point
        What was measured.
    """
    explore = min(count, math.floor(count * epsilon + random.random()))
    chosen: dict[Point, None] = {}
    for point in sorted(predicted, key=lambda p: (-predicted[p], p)):
        if len(chosen) >= count - explore:
            break
        if point not in known:
            chosen[point] = None
    for _ in range(8 * explore):
        if len(chosen) >= count:
            break
        point = sample()
        if point not in known:
            chosen[point] = None
    return list(chosen)

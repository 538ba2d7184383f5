"""Annealing over predictions, and the batches taken from them."""

import numpy as np
from neo.tune.anneal import anneal, pick_batch

SIZE = 400


def mutate(points, random):
    return [(s, int(np.clip(p + random.choice([-7, -1, 1, 7]), 0, SIZE - 1))) for s, p in points]


def hill(points):
    """The higher the closer to 333 of space 1, with a lower hill in space 0."""
    return np.array([-abs(p - 333) / 10 if s else -3 - abs(p - 60) / 10 for s, p in points])


def test_the_chains_find_the_highest_hill():
    random = np.random.default_rng(0)
    start = [(s, p) for s in (0, 1) for p in range(0, SIZE, 40)]
    seen = anneal(start, hill, lambda points: mutate(points, random), random, steps=60)
    assert max(seen, key=seen.get) == (1, 333)
    assert len(seen) < 2 * SIZE, "without looking at every point"


def test_heat_leads_out_of_a_dead_end():
    def score(points):
        return np.array([0.0 if p == 0 else (5.0 if p == 3 else -0.5) for _, p in points])

    def step(points):
        return [(s, p + (1 if p < 3 else 0)) for s, p in points]

    hot = anneal([(0, 0)] * 8, score, step, np.random.default_rng(1), steps=40, temperature=1.0)
    assert (0, 3) in hot
    cold = anneal([(0, 0)] * 8, score, step, np.random.default_rng(1), steps=40, temperature=1e-9)
    assert (0, 3) not in cold


def test_no_point_is_scored_twice():
    scored = []

    def score(points):
        scored.extend(points)
        return hill(points)

    random = np.random.default_rng(2)
    anneal([(0, 5), (0, 5), (1, 9)], score, lambda points: mutate(points, random), random, steps=50)
    assert len(scored) == len(set(scored))


def test_nothing_to_start_from_finds_nothing():
    assert anneal([], hill, list, np.random.default_rng(0), steps=5) == {}


def test_a_batch_has_the_best_that_is_not_known_and_some_at_random():
    predicted = {(0, p): float(p) for p in range(100)}
    known = {(0, 99), (0, 97)}
    random = np.random.default_rng(3)
    batch = pick_batch(predicted, 4, 0.0, lambda: (1, 1), random, known=known)
    assert batch == [(0, 98), (0, 96), (0, 95), (0, 94)]
    mixed = pick_batch(predicted, 8, 0.25, lambda: (1, int(random.integers(50))), random, known=known)
    assert len(set(mixed)) == 8
    assert sum(space == 1 for space, _ in mixed) == 2


def test_a_batch_ends_where_there_are_no_more_points():
    random = np.random.default_rng(4)
    assert pick_batch({(0, 0): 1.0}, 8, 0.5, lambda: (0, 0), random, known={(0, 0)}) == []

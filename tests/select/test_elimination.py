import itertools

import numpy as np
import pytest
from neo.select.bound import pass_messages, price_resources, price_violations, value_of
from neo.select.elimination import eliminate, greedy_order, join, linear_order, merge, relabel

INF = np.inf


def random_factors(rng, variables=6, factors=8, forbid=0.1, least=1):
    sizes = [int(n) for n in rng.integers(least, 4, variables)]
    out = []
    for _ in range(factors):
        scope = tuple(sorted(int(v) for v in rng.permutation(variables)[: rng.integers(1, 4)]))
        table = rng.random([sizes[v] for v in scope])
        table[rng.random(table.shape) < forbid] = INF
        out.append((scope, table))
    return sizes, out


def values_of(sizes, factors):
    return np.array([value_of(factors, c) for c in itertools.product(*(range(n) for n in sizes))])


@pytest.mark.parametrize("seed", range(40))
def test_elimination_finds_the_minimum(seed):
    sizes, factors = random_factors(np.random.default_rng(seed))
    least = values_of(sizes, factors).min()
    tables = eliminate(sizes, factors)
    assert tables.exact
    assert tables.bound == pytest.approx(least)
    choice = [0] * len(sizes)
    assert tables.decode(choice) == np.isfinite(least)
    if np.isfinite(least):
        assert value_of(factors, choice) == pytest.approx(least)


@pytest.mark.parametrize("seed", range(40))
def test_split_buckets_bound_from_below(seed):
    sizes, factors = random_factors(np.random.default_rng(seed), factors=14, least=2)
    least = values_of(sizes, factors).min()
    tables = eliminate(sizes, factors, limit=4, keep=True)
    assert not tables.exact
    assert tables.bound <= least + 1e-12
    assert len(tables.groups) == len(sizes)


@pytest.mark.parametrize("seed", range(20))
def test_partial_elimination_leaves_an_equivalent_rest(seed):
    sizes, factors = random_factors(np.random.default_rng(seed), forbid=0.0)
    tables = eliminate(sizes, factors, count=3)
    assert all(min(scope) >= 3 for scope, _ in tables.rest)
    for rest in itertools.product(*(range(n) for n in sizes[3:])):
        choice = [0, 0, 0, *rest]
        assert tables.decode(choice)
        assert tables.bound + value_of(tables.rest, choice) == pytest.approx(value_of(factors, choice))
        best = min(value_of(factors, [*c, *rest]) for c in itertools.product(*(range(n) for n in sizes[:3])))
        assert value_of(factors, choice) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(20))
def test_messages_keep_every_value_and_raise_the_bound(seed):
    sizes, factors = random_factors(np.random.default_rng(seed), factors=12, forbid=0.05)
    shifted = pass_messages(sizes, factors, rounds=10, deadline=INF)
    before, after = values_of(sizes, factors), values_of(sizes, shifted)
    # A choice that no allowed combination has may become forbidden, nothing else changes.
    allowed = np.isfinite(before)
    np.testing.assert_allclose(after[allowed], before[allowed], atol=1e-9)
    assert not np.isfinite(after[~allowed]).any()
    assert sum(t.min() for _, t in shifted) >= sum(t.min() for _, t in factors) - 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_prices_bound_what_limits_allow(seed):
    rng = np.random.default_rng(seed)
    sizes, costs = random_factors(rng, forbid=0.0)
    usage = [random_factors(rng, forbid=0.0)[1] for _ in range(1 + seed % 2)]
    usage = [[(s, rng.random([sizes[v] for v in s])) for s, _ in parts] for parts in usage]
    values, used = values_of(sizes, costs), np.array([values_of(sizes, parts) for parts in usage])
    limits = used.min(axis=1) + 0.3 * np.ptp(used, axis=1)
    fits = (used <= limits[:, None]).all(axis=0)
    priced = price_resources(sizes, costs, usage, limits, table_limit=1 << 16, deadline=INF)
    assert (priced.prices >= 0).all()
    if fits.any():
        assert values.min() - 1e-9 <= priced.bound <= values[fits].min() + 1e-9
    violations = price_violations(sizes, costs, usage, limits, table_limit=1 << 16, deadline=INF)
    if violations.bound > 1e-9:
        assert not fits.any()


@pytest.mark.parametrize("rule", ["weight", "fill"])
@pytest.mark.parametrize("seed", range(10))
def test_orders_predict_the_tables(rule, seed):
    sizes, factors = random_factors(np.random.default_rng(seed), variables=9)
    order = greedy_order(sizes, [s for s, _ in factors], limit=1 << 20, rule=rule)
    assert sorted(order.eliminated) == list(range(9))
    assert order.rest == []
    position = np.argsort(order.eliminated)
    tables = eliminate([sizes[v] for v in order.eliminated], relabel(factors, list(position)), keep=True)
    cells = [group.joined.size for groups in tables.groups for group in groups]
    # The order counts neighbours; factors of zero width in between can only be smaller.
    assert max(cells) <= order.largest
    assert sum(cells) <= order.cells


def test_order_stops_at_the_limit_and_at_what_is_allowed():
    clique = [tuple(sorted(p)) for p in itertools.combinations(range(6), 2)]
    order = greedy_order([4] * 8, [*clique, (5, 6), (6, 7)], limit=100)
    assert sorted(order.eliminated) == [6, 7]
    assert order.rest == [0, 1, 2, 3, 4, 5]
    order = greedy_order([4] * 3, [(0, 1), (1, 2)], limit=100, allowed=[0])
    assert (order.eliminated, order.rest) == ([0], [1, 2])


def test_linear_order_sweeps():
    # A ladder: its boundary never needs more than two variables.
    rungs = [(2 * i, 2 * i + 1) for i in range(10)]
    rails = [(i, i + 2) for i in range(18)]
    order = linear_order([3] * 20, rungs + rails)
    assert sorted(order) == list(range(20))
    done = set()
    for v in order:
        done.add(v)
        boundary = {a for e in rungs + rails for a in e if a not in done and set(e) & done}
        assert len(boundary) <= 3


def test_join_and_merge_and_relabel():
    a, b = np.arange(2.0), np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(join((0, 1), [2, 3], [((0,), a), ((0, 1), b)]), b + a[:, None])
    assert join((0, 1), [2, 3], [((0,), a)]).shape == (2, 3)
    ((scope, table),) = relabel([((0, 1), b)], [1, 0])
    assert scope == (0, 1)
    np.testing.assert_array_equal(table, b.T)
    ((_, table),) = merge([((0,), a), ((0,), a)])
    np.testing.assert_array_equal(table, 2 * a)

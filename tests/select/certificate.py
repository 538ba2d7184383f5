"""Checks the proof of a bound against a problem's arrays, with none of the solver's code.

Every step of a certificate is a claim about what the steps before it leave of the problem; each is checked here, and
carried out. What a search proves is seen by searching again below the bound it claims, with the relaxations it names.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

DROP, BEYOND, FORGET, FLAT, FIX, FOLLOW, ELIMINATE = range(7)

ROUNDING = 1e-9


class InvalidCertificateError(Exception):
    """A claim of a certificate does not hold."""


def require(condition, claim, *at):
    if not condition:
        raise InvalidCertificateError(f"{claim}: {', '.join(map(str, at))}")


def slack(*values):
    return ROUNDING * max([1.0, *(abs(float(x)) for x in values if math.isfinite(x))])


def check(problem, certificate):
    """Raise unless no choice within the limits costs less than the certificate's bound, up to rounding."""
    state = _State(problem, certificate.limits)
    steps = [int(x) for x in certificate.steps]
    place = 0
    while place < len(steps):
        kind, a, b, c = steps[place : place + 4]
        place += 4
        if kind == FOLLOW:
            state.follow(a, b, steps[place : place + c])
            place += c
            continue
        require(0 <= kind < len(state.rules) and state.rules[kind], "a step is known", kind)
        state.rules[kind](a, b, c)
    if certificate.search is None:
        require(not state.left, "the steps decide every variable", *sorted(state.left))
        proven = state.costs.constant
    else:
        require(sorted(certificate.search.order) == sorted(state.left), "the search covers what the steps leave")
        _Search(state, certificate.search).require_none_below(certificate.bound - state.costs.constant)
        proven = certificate.bound
    require(certificate.bound <= proven + slack(proven), "the bound is proven", certificate.bound, proven)


class _Sum:
    """A sum of tables over scopes (increasing tuples of variables)."""

    def __init__(self):
        self.constant = 0.0
        self.tables = {}
        self.touching = {}

    def add(self, scope, table):
        order = sorted(range(len(scope)), key=scope.__getitem__)
        scope = tuple(scope[i] for i in order)
        table = np.transpose(np.asarray(table, dtype=float), order)
        if not scope:
            self.constant += float(table)
            return
        self.tables[scope] = self.tables[scope] + table if scope in self.tables else table
        for v in scope:
            self.touching.setdefault(v, set()).add(scope)

    def of(self, v):
        """The tables that v is in, its axis first."""
        for scope in sorted(self.touching.get(v, ())):
            rest = tuple(u for u in scope if u != v)
            yield rest, np.moveaxis(self.tables[scope], scope.index(v), 0)

    def take(self, v):
        """Remove and return them."""
        found = list(self.of(v))
        for scope in list(self.touching.get(v, ())):
            self.remove(scope)
        return found

    def remove(self, scope):
        for v in scope:
            self.touching[v].discard(scope)
        return self.tables.pop(scope)

    def keep(self, v, stays):
        for scope in self.touching.get(v, ()):
            self.tables[scope] = np.compress(stays, self.tables[scope], axis=scope.index(v))


class _State:
    """What the steps so far leave."""

    def __init__(self, problem, limits):
        self.alive = {v: list(range(n)) for v, n in enumerate(problem.sizes)}
        self.left = set(self.alive)
        self.costs = _Sum()
        for v, cost in enumerate(problem.costs):
            self.costs.add((v,), cost)
        for scope, matrix in problem.edges.items():
            self.costs.add(scope, matrix)
        heeded = [r for r in problem.resources if math.isfinite(r.limit)]
        require(set(limits) <= {r.name for r in heeded}, "limits are the problem's", limits)
        self.names = [r.name for r in heeded if r.name in limits]
        self.limits = {r.name: r.limit for r in heeded if r.name in limits}
        self.usage = {}
        for r in heeded:
            if r.name not in limits:
                continue
            used = self.usage[r.name] = _Sum()
            for v, vector in enumerate(r.vectors):
                used.add((v,), vector)
            for scope, matrix in r.matrices.items():
                used.add(scope, matrix)
        self.rules = [self.drop, self.beyond, self.forget, self.flat, self.fix, None, self.eliminate]

    @property
    def sums(self):
        return [self.costs, *self.usage.values()]

    def index(self, v, a):
        require(v in self.left and a in self.alive[v], "a step speaks of a choice that is left", v, a)
        return self.alive[v].index(a)

    def remove(self, v, i):
        stays = np.arange(len(self.alive[v])) != i
        require(stays.any(), "a choice is left", v)
        del self.alive[v][i]
        for total in self.sums:
            total.keep(v, stays)

    def drop(self, v, a, b):
        i = self.index(v, a)
        if b < 0:
            forbidden = any(np.isinf(table[i]).all() for _, table in self.costs.of(v))
            require(forbidden, "a choice without support is forbidden", v, a)
        else:
            j = self.index(v, b)
            require(i != j, "a choice is dropped for another one", v, a)
            for total in self.sums:
                gap, size = 0.0, 0.0
                for _, table in total.of(v):
                    allowed = np.isfinite(table[i])
                    if not allowed.any():
                        gap = -math.inf
                        break
                    worst = float((table[j][allowed] - table[i][allowed]).max())
                    gap += worst
                    size = max(size, abs(worst)) if math.isfinite(worst) else size
                require(gap <= slack(size), "a dropped choice is dominated", v, a, b, gap)
        self.remove(v, i)

    def beyond(self, v, a, k):
        i = self.index(v, a)
        name = self.names[k]
        used = self.usage[name]
        least = used.constant + sum(float(table.min()) for table in used.tables.values())
        own = used.tables[(v,)]
        least += float(own[i] - own.min())
        limit = self.limits[name]
        require(least > limit + 1e-13 * max(1.0, abs(limit)), "a choice exceeds the limit", v, a, least, limit)
        self.remove(v, i)

    def forget(self, k, _b, _c):
        name = self.names[k]
        used = self.usage.pop(name)
        most = used.constant + sum(float(table.max()) for table in used.tables.values())
        require(most <= self.limits[name] + slack(self.limits[name]), "no choice exceeds the limit", name, most)

    def flat(self, v, other, _c):
        scope = (min(v, other), max(v, other))
        for total in self.sums:
            if scope not in total.tables:
                continue
            table = np.moveaxis(total.remove(scope), scope.index(v), 0)
            require((table == table[:, :1]).all(), "a flat pair depends on one end", v, other)
            total.add((v,), table[:, 0])

    def fix(self, v, a, _c):
        require(self.alive.get(v) == [a], "a fixed variable has one choice", v, a)
        for total in self.sums:
            for rest, table in total.take(v):
                total.add(rest, table[0])
        self.left.discard(v)

    def follow(self, v, u, chosen):
        require({v, u} <= self.left and v != u, "a variable follows another one", v, u)
        link = self.costs.tables[min(v, u), max(v, u)]
        link = link if v < u else link.T
        rows = []
        for j, choice in enumerate(self.alive[u]):
            i = self.index(v, chosen[choice])
            others = np.arange(len(self.alive[v])) != i
            require(np.isinf(link[others, j]).all(), "the other choices are forbidden", v, u, choice)
            rows.append(i)
        for total in self.sums:
            for rest, table in total.take(v):
                moved = table[rows]
                if u in rest:
                    moved = np.moveaxis(moved, 1 + rest.index(u), 1)
                    moved = moved[np.arange(len(rows)), np.arange(len(rows))]
                    rest = tuple(w for w in rest if w != u)
                total.add((u, *rest), moved)
        self.left.discard(v)

    def eliminate(self, v, _b, _c):
        require(v in self.left, "a variable is eliminated once", v)
        for name, used in self.usage.items():
            for rest, table in used.take(v):
                require(not rest and (table == table[0]).all(), "what is eliminated uses the same", v, name)
                used.constant += float(table[0])
        parts = self.costs.take(v)
        scope, joined = _join(parts, len(self.alive[v]))
        self.costs.add(scope, joined.min(axis=0))
        self.left.discard(v)


def _join(parts, size):
    """Sum of tables whose first axis is shared; the other axes by variable."""
    sizes = {u: n for rest, table in parts for u, n in zip(rest, table.shape[1:], strict=True)}
    scope = tuple(sorted(sizes))
    joined = np.zeros((size, *(sizes[u] for u in scope)))
    for rest, table in parts:
        joined += table.reshape(size, *(sizes[u] if u in rest else 1 for u in scope))
    return scope, joined


def _add(factors, others, weight):
    for scope, table in others.items():
        factors[scope] = factors.get(scope, 0.0) + weight * table


@dataclass
class _Tables:
    """A relaxation: per variable its parts (scope of the rest, joined table, message), and the bound without choices."""

    bound: float = 0.0
    parts: list = field(default_factory=list)


class _Search:
    def __init__(self, state, search):
        self.place = {v: p for p, v in enumerate(search.order)}
        self.sizes = [len(state.alive[v]) for v in search.order]
        costs = self.factors(state.costs)
        used = {name: self.factors(total) for name, total in state.usage.items()}
        self.limits = {n: state.limits[n] - total.constant for n, total in state.usage.items()}
        self.relaxed = []  # (tables, resource or None, what is taken off)
        require(search.relaxations and not search.relaxations[0].prices, "the first relaxation is of the cost")
        for relaxation in search.relaxations:
            factors = dict(costs)
            if relaxation.resource is not None:
                factors = {s: np.where(np.isinf(t), np.inf, 0.0) for s, t in costs.items() if np.isinf(t).any()}
                _add(factors, used[relaxation.resource], 1.0)
            self.shift(factors, relaxation.shifts)
            offset = 0.0
            for name, price in relaxation.prices.items():
                require(price >= 0, "a price is not negative", name, price)
                if price > 0:
                    _add(factors, used[name], price)
                offset += price * self.limits[name]
            self.relaxed.append((self.eliminate(factors, relaxation.splits), relaxation.resource, offset))
        require({r for _, r, _ in self.relaxed} == {None, *used}, "each limit has its relaxation")
        scopes = [s for s in itertools.chain(costs, *used.values()) if s]
        self.needed_until = list(range(len(self.sizes)))
        for scope in scopes:
            for v in scope:
                self.needed_until[v] = min(self.needed_until[v], scope[0])

    def factors(self, total):
        renamed = _Sum()
        for scope, table in total.tables.items():
            renamed.add(tuple(self.place[v] for v in scope), table)
        return renamed.tables

    def shift(self, factors, shifts):
        for scope, axis, added in shifts:
            scope = tuple(scope)
            require(len(scope) > 1 and scope in factors, "a shift is of a factor", scope)
            added = np.where(np.isfinite(added), added, 0.0)
            shape = [1] * len(scope)
            shape[axis] = -1
            factors[scope] = factors[scope] + added.reshape(shape)
            own = (scope[axis],)
            factors[own] = factors.get(own, np.zeros(len(added))) - added
        # A choice without support is forbidden, which the parts of a split bucket would not see of each other.
        changed = True
        while changed:
            changed = False
            for scope, table in list(factors.items()):
                for axis, v in enumerate(scope):
                    dead = np.isinf(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)).all(axis=1)
                    own = factors.get((v,), np.zeros(table.shape[axis]))
                    if (dead & np.isfinite(own)).any():
                        factors[v,] = np.where(dead, np.inf, own)
                        changed = True
                    shape = [1] * len(scope)
                    shape[axis] = -1
                    gone = np.isinf(factors.get((v,), own)).reshape(shape)
                    if (gone & np.isfinite(table)).any():
                        factors[scope] = table = np.where(gone, np.inf, table)
                        changed = True

    def eliminate(self, factors, splits):
        buckets = [{} for _ in self.sizes]
        out = _Tables()
        for scope, table in factors.items():
            buckets[scope[0]][scope] = table
        for v, bucket in enumerate(buckets):
            bucket.setdefault((v,), np.zeros(self.sizes[v]))
            groups = [(list(bucket), np.zeros(self.sizes[v]))]
            if v in splits:
                groups = [([tuple(s) for s in scopes], np.asarray(added)) for scopes, added in splits[v]]
                given = [s for scopes, _ in groups for s in scopes]
                if (v,) in bucket and (v,) not in given:
                    require(not bucket[v,].any(), "the parts have the whole bucket", v)
                    del bucket[v,]
                require(
                    set(bucket) <= set(given) and len(set(given)) == len(given), "the parts have all of it, once", v
                )
                for scope in set(given) - set(bucket):
                    require(scope[0] == v and list(scope) == sorted(set(scope)), "a scope increases", v)
                    bucket[scope] = np.zeros([self.sizes[u] for u in scope])
                total = sum(np.where(np.isfinite(added), added, 0.0) for _, added in groups)
                require(
                    (total <= 1e-9 * np.max([np.abs(a[np.isfinite(a)]).max(initial=1) for _, a in groups])).all(),
                    "what is added to the parts sums to nothing",
                    v,
                )
            joined = []
            for scopes, added in groups:
                rest, table = _join([(s[1:], bucket[s]) for s in scopes], self.sizes[v])
                added = np.where(np.isfinite(added), added, 0.0)
                joined.append((rest, table + added.reshape(-1, *[1] * (table.ndim - 1))))
            dead = np.any([np.isinf(t.reshape(len(t), -1)).all(axis=1) for _, t in joined], axis=0)
            parts = []
            for rest, table in joined:
                table[dead] = np.inf
                message = table.min(axis=0)
                parts.append((rest, table, message))
                if rest:
                    into = buckets[rest[0]]
                    into[rest] = into[rest] + message if rest in into else message
                else:
                    out.bound += float(message)
            out.parts.append(parts)
        return out

    def require_none_below(self, bound):
        """Every choice within the limits reaches the bound, up to rounding."""
        bound -= 2 * slack(bound)
        values = np.array([[t.bound] for t, _, _ in self.relaxed])
        columns = {}
        for v in range(len(self.sizes) - 1, -1, -1):
            count = values.shape[1]
            choice = np.repeat(np.arange(self.sizes[v]), count)
            parent = np.tile(np.arange(count), self.sizes[v])
            values = values[:, parent]
            columns = {u: c[parent] for u, c in columns.items()} | {v: choice}
            with np.errstate(invalid="ignore"):
                for row, (tables, _, _) in zip(values, self.relaxed, strict=True):
                    for rest, joined, message in tables.parts[v]:
                        at = tuple(columns[u] for u in rest)
                        row += joined[(choice, *at)] - message[at]
            fits = np.ones(values.shape[1], dtype=bool)
            for row, (_, resource, offset) in zip(values, self.relaxed, strict=True):
                if resource is None:
                    fits &= row - offset < bound
                else:
                    fits &= row <= self.limits[resource] + slack(self.limits[resource])
            columns = {u: c[fits] for u, c in columns.items() if self.needed_until[u] < v}
            values = values[:, fits]
            if not values.shape[1]:
                return
            stays = self.best(values, columns)
            values, columns = values[:, stays], {u: c[stays] for u, c in columns.items()}
        require(False, "no choice costs less than the bound", float(values[0].min()), bound)

    def best(self, values, columns):
        """Of states that agree on the columns, those that no other one beats in cost and in every usage."""
        key = np.zeros(values.shape[1], dtype=np.int64)
        for column in columns.values():
            _, key = np.unique(key * (int(column.max()) + 1) + column, return_inverse=True)
        ranked = [values[0], *(row for row, (_, r, _) in zip(values, self.relaxed, strict=True) if r is not None)]
        order = np.lexsort((*ranked[::-1], key))
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        if len(ranked) == 1:
            return order[starts]
        stays = []
        for group in np.split(order, starts[1:]):
            front = []
            for state in group:
                if not any(all(row[other] <= row[state] for row in ranked) for other in front):
                    front.append(state)
            stays.extend(front)
        return np.array(stays)

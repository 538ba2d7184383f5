"""Reductions that keep an optimum: forbidden and dominated choices go, decided variables fold into their neighbours.

With resources every step keeps a best choice for every limit: a choice only dominates another when it uses no more of
anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from neo.select.elimination import Factor
from neo.select.problem import LIMIT_TOLERANCE, Array, InfeasibleError, Pair, Problem, Resource

Indices = npt.NDArray[np.intp]


class Reduction:
    """A shrinking copy of a problem that can turn a choice of what is left into a choice of the whole.

    Arrays carry the cost first and then one plane per resource with a limit. An edge without resource matrices has the
    cost plane only.

    Attributes
    ----------
    limited : list of Resource
        The resources that have a finite limit.
    constant : array
        Cost and usage of what is decided.
    unary : dict of int -> array
        Per variable that is left, planes x choices.
    pairs : dict of (u, v) -> array
        Planes x choices of u x choices of v, u < v.
    """

    def __init__(self, problem: Problem) -> None:
        self.limited: list[Resource] = [r for r in problem.resources if np.isfinite(r.limit)]
        planes = 1 + len(self.limited)
        self.constant: Array = np.zeros(planes)
        self.unary: dict[int, Array] = {}
        self.pairs: dict[Pair, Array] = {}
        self._neighbours: list[set[int]] = [set() for _ in problem.costs]
        self._alive: list[Indices] = [np.arange(c.size) for c in problem.costs]
        self._sizes = problem.sizes
        self._decided: list[tuple[int, int, Indices]] = []
        for v, cost in enumerate(problem.costs):
            self.unary[v] = (
                np.stack([cost, *(np.asarray(r.vectors[v]) for r in self.limited)]) if planes > 1 else cost[None]
            )
        for (u, v), matrix in problem.edges.items():
            self.pairs[u, v] = matrix[None]
            self._neighbours[u].add(v)
            self._neighbours[v].add(u)
        for k, resource in enumerate(self.limited):
            for (u, v), values in resource.matrices.items():
                self._widen(u, v, planes)[1 + k] += np.asarray(values)

    @property
    def sizes(self) -> dict[int, int]:
        """Choices left per variable that is left."""
        return {v: table.shape[1] for v, table in self.unary.items()}

    def fold_decided(self) -> None:
        """Drop forbidden choices and fold variables with one choice into their neighbours."""
        for v in list(self.unary):
            allowed = self.unary[v][0] < np.inf
            if not allowed.all():
                self._keep(v, allowed)
        self._fold([v for v, table in self.unary.items() if table.shape[1] == 1])

    def drop_beyond_limits(self) -> None:
        """Drop choices whose usage alone exceeds a limit, and limits that nothing left can exceed."""
        for k in range(len(self.limited), 0, -1):
            pairs = [planes[k] for planes in self.pairs.values() if planes.shape[0] > 1]
            limit = self.limited[k - 1].limit
            limit += LIMIT_TOLERANCE * max(1.0, abs(limit)) - float(self.constant[k])
            slack = limit - sum(float(m.min()) for m in pairs)
            slack -= sum(float(table[k].min()) for table in self.unary.values())
            if slack < 0:
                raise InfeasibleError("[select] every limit can be met", resource=self.limited[k - 1].name)
            rounding = LIMIT_TOLERANCE * max(1.0, abs(limit))
            for v in list(self.unary):
                used = self.unary[v][k]
                fits = used - used.min() <= slack + rounding
                if not fits.all():
                    self._keep(v, fits)
            most = sum(float(m.max()) for m in pairs) + sum(float(table[k].max()) for table in self.unary.values())
            if most <= limit - rounding:
                self._forget(k)
        self._fold([v for v, table in self.unary.items() if table.shape[1] == 1])

    def tighten(self) -> None:
        """Run every reduction until none applies: support, dominance, variables decided by a neighbour, flat edges."""
        queue = dict.fromkeys(self.unary)
        while queue:
            v = next(iter(queue))
            del queue[v]
            if v not in self.unary:
                continue
            changed = self._drop_unsupported(v) or self._drop_dominated(v)
            queue.update(dict.fromkeys(self._drop_flat_edges(v)))
            if self.unary[v].shape[1] == 1:
                around = self._neighbours[v].copy()
                self._fold([v])
                queue.update(dict.fromkeys(a for a in around if a in self.unary))
                continue
            by = self._decider(v)
            if by is not None:
                around = self._neighbours[v].copy()
                self._absorb(v, *by)
                queue.update(dict.fromkeys(around))
            elif changed:
                queue.update(dict.fromkeys(self._neighbours[v]))
                queue[v] = None

    def factors(self, position: Sequence[int] | dict[int, int]) -> tuple[list[Factor], list[list[Factor]]]:
        """Cost factors and, per resource, its factors, with variable v renamed to position[v]."""
        costs: list[Factor] = []
        usage: list[list[Factor]] = [[] for _ in self.limited]
        for v, table in self.unary.items():
            p = position[v]
            costs.append(((p,), table[0]))
            for k in range(len(self.limited)):
                usage[k].append(((p,), table[1 + k]))
        for (u, v), planes in self.pairs.items():
            p, q = position[u], position[v]
            scope = (p, q) if p < q else (q, p)
            costs.append((scope, planes[0] if p < q else planes[0].T))
            for k in range(planes.shape[0] - 1):
                usage[k].append((scope, planes[1 + k] if p < q else planes[1 + k].T))
        return costs, usage

    def restore(self, choice: dict[int, int]) -> list[int]:
        """Turn a choice of each variable that is left, by index among those left, into one of the whole problem."""
        whole = [0] * len(self._sizes)
        for v, i in choice.items():
            whole[v] = int(self._alive[v][i])
        for v, by, original in reversed(self._decided):
            whole[v] = int(original[whole[by] if by >= 0 else 0])
        return whole

    def _forget(self, k: int) -> None:
        del self.limited[k - 1]
        self.constant = np.delete(self.constant, k)
        self.unary = {v: np.delete(table, k, axis=0) for v, table in self.unary.items()}
        self.pairs = {e: np.delete(p, k, axis=0) if p.shape[0] > 1 else p for e, p in self.pairs.items()}

    def _widen(self, u: int, v: int, planes: int) -> Array:
        have = self.pairs.get((u, v))
        if have is None or have.shape[0] < planes:
            wide = np.zeros((planes, self.unary[u].shape[1], self.unary[v].shape[1]))
            if have is not None:
                wide[: have.shape[0]] = have
            self.pairs[u, v] = wide
            self._neighbours[u].add(v)
            self._neighbours[v].add(u)
        return self.pairs[u, v]

    def _view(self, v: int, other: int) -> Array:
        """Turn the edge so that its rows are for v."""
        return self.pairs[v, other] if v < other else self.pairs[other, v].transpose(0, 2, 1)

    def _add(self, v: int, other: int, planes: Array) -> None:
        key, planes = ((v, other), planes) if v < other else ((other, v), planes.transpose(0, 2, 1))
        have = self.pairs.get(key)
        if have is None:
            self.pairs[key] = planes
            self._neighbours[v].add(other)
            self._neighbours[other].add(v)
            return
        if have.shape[0] < planes.shape[0]:
            have, planes = planes, have
        have = have.copy()
        have[: planes.shape[0]] += planes
        self.pairs[key] = have

    def _cut(self, v: int, other: int) -> None:
        del self.pairs[(v, other) if v < other else (other, v)]
        self._neighbours[v].discard(other)
        self._neighbours[other].discard(v)

    def _keep(self, v: int, mask: npt.NDArray[np.bool_]) -> None:
        if not mask.any():
            raise InfeasibleError(
                "[select] every variable needs a choice that fits some choice of each neighbour. "
                f"Got none left of its {self._sizes[v]} - at variable {v}"
            )
        self._alive[v] = self._alive[v][mask]
        self.unary[v] = self.unary[v][:, mask]
        for other in self._neighbours[v]:
            if v < other:
                self.pairs[v, other] = self.pairs[v, other][:, mask, :]
            else:
                self.pairs[other, v] = self.pairs[other, v][:, :, mask]

    def _fold(self, single: Iterable[int]) -> None:
        stack = list(single)
        while stack:
            v = stack.pop()
            if v not in self.unary:
                continue
            for other in list(self._neighbours[v]):
                row = self._view(v, other)[:, 0, :]
                table = self.unary[other].copy()
                table[: row.shape[0]] += row
                self.unary[other] = table
                self._cut(v, other)
                allowed = table[0] < np.inf
                if not allowed.all():
                    self._keep(other, allowed)
                    if self.unary[other].shape[1] == 1:
                        stack.append(other)
            self.constant = self.constant + self.unary.pop(v)[:, 0]
            self._decided.append((v, -1, self._alive[v]))

    def _drop_unsupported(self, v: int) -> bool:
        allowed = self.unary[v][0] < np.inf
        for other in self._neighbours[v]:
            allowed &= self._view(v, other)[0].min(axis=1) < np.inf
        if allowed.all():
            return False
        self._keep(v, allowed)
        return True

    def _drop_dominated(self, v: int) -> bool:
        """Drop a where b costs no more than a whatever the neighbours choose, and uses no more of anything."""
        table = self.unary[v]
        count = table.shape[1]
        if count == 1:
            return False
        worse = table[:, :, None] - table[:, None, :]
        for other in self._neighbours[v]:
            rows = self._view(v, other)
            with np.errstate(invalid="ignore"):
                gap = rows[:, :, None, :] - rows[:, None, :, :]
                gap[np.isnan(gap)] = -np.inf
                worse[: rows.shape[0]] += gap.max(axis=3)
        dominates: npt.NDArray[np.bool_] = np.all(worse <= 0, axis=0)  # [b, a]: b is never worse than a
        np.fill_diagonal(dominates, False)
        if not dominates.any():
            return False
        # One at a time, so that of choices that dominate each other one stays.
        stays = np.ones(count, dtype=bool)
        for a in range(count - 1, -1, -1):
            stays[a] = not (dominates[:, a] & stays).any()
        self._keep(v, stays)
        return True

    def _drop_flat_edges(self, v: int) -> set[int]:
        """Remove edges that differ only by the choice of one end; returns the ends whose costs took them up."""
        changed: set[int] = set()
        for other in list(self._neighbours[v]):
            planes = self._view(v, other)
            if (planes == planes[:, :, :1]).all():
                end, shift = v, planes[:, :, 0]
            elif (planes == planes[:, :1, :]).all():
                end, shift = other, planes[:, 0, :]
            else:
                continue
            table = self.unary[end].copy()
            table[: shift.shape[0]] += shift
            self.unary[end] = table
            self._cut(v, other)
            changed.add(end)
        return changed

    def _decider(self, v: int) -> tuple[int, Indices] | None:
        """Find a neighbour each of whose choices allows one choice of v, and which.

        Where v has more neighbours than another one, only a neighbour that v decides in turn: else the edges that move
        could make elimination harder.
        """
        few = len(self._neighbours[v]) <= 2
        for other in sorted(self._neighbours[v]):
            allowed = self._view(v, other)[0] < np.inf
            if not few and allowed.shape[0] != allowed.shape[1]:
                continue
            if (allowed.sum(axis=0) == 1).all() and (few or (allowed.sum(axis=1) == 1).all()):
                return other, allowed.argmax(axis=0)
        return None

    def _absorb(self, v: int, by: int, chosen: Indices) -> None:
        """Replace v by the choice of it that `by` implies; v's edges move to `by`."""
        link = self._view(v, by)
        table = self.unary[by] + self.unary[v][:, chosen]
        table[: link.shape[0]] += link[:, chosen, np.arange(len(chosen))]
        self.unary[by] = table
        for other in list(self._neighbours[v]):
            planes = self._view(v, other)
            self._cut(v, other)
            if other != by:
                self._add(by, other, planes[:, chosen, :])
        del self.unary[v]
        original = np.zeros(self._sizes[by], dtype=np.intp)
        original[self._alive[by]] = self._alive[v][chosen]
        self._decided.append((v, by, original))

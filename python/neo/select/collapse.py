"""Everything of a problem that can be decided exactly and cheaply: reductions, then elimination (csrc/select)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neo import _native
from neo.select.branch_and_bound import TABLE_LIMIT, Core
from neo.select.problem import Array, InfeasibleError, Problem, Resource

# Cells of an exact elimination: its largest table, all of them, and all up to which no other order is tried. What
# exceeds them is searched, and only tables of at most TABLE_LIMIT cells are made before.
LARGEST = 1 << 22
MOST = 1 << 25
ENOUGH = 1 << 16


class Collapse:
    """A problem after reductions and exact elimination.

    Support, dominance, decided variables and pairs that depend on one end come first; elimination in a tree's or a chain's order is the dynamic programming of NeoCPU 3.3.2 and of SoftNeuro
    IV, in general that of a tree decomposition; R0, R1 and R2 of PBQP are its variables of degree 0, 1 and 2.

    Parameters
    ----------
    problem : Problem
        What is solved.
    limited : bool
        Whether to heed the resources' limits.

    Raises
    ------
    InfeasibleError
        Nothing is allowed; with limits the reason may be one of them.
    """

    def __init__(self, problem: Problem, *, limited: bool) -> None:
        self._limited = [r for r in problem.resources if limited and math.isfinite(r.limit)]
        self._native = _native.collapse(
            *problem.flat, [_flat_resource(r) for r in self._limited], (LARGEST, MOST, TABLE_LIMIT, ENOUGH)
        )
        if not self._native.allowed:
            v = self._native.empty
            if v >= 0:
                raise InfeasibleError(
                    "[select] every variable must have a choice that fits some choice of each neighbour. "
                    f"Got none left of its {problem.sizes[v]} - at variable {v}"
                )
            raise InfeasibleError(
                "[select] some combination of choices must be allowed. Got forbidden pairs that leave none"
            )

    @property
    def solved(self) -> bool:
        """Nothing is left to search."""
        return not self._native.sizes

    @property
    def eliminated(self) -> bool:
        """Elimination was needed; reductions did not decide everything."""
        return bool(self._native.eliminated)

    @property
    def steps(self) -> npt.NDArray[np.int32]:
        """The proof of every step, as numbers (docs/selection.md)."""
        return np.asarray(self._native.steps)

    @property
    def limits(self) -> tuple[str, ...]:
        """The resources whose limits are heeded."""
        return tuple(r.name for r in self._limited)

    @property
    def core_variables(self) -> list[int]:
        """The variables of the core by their number in the problem."""
        return list(self._native.core)

    @property
    def resources(self) -> list[Resource]:
        """Those whose limits matter to the core."""
        return [self._limited[k] for k in self._native.limited]

    @property
    def constant(self) -> float:
        """The cost of what is decided."""
        return float(self._native.constant[0])

    def core(self) -> Core:
        """What is left."""
        costs, *usage = self._native.factors
        limits = np.array(self._native.limits, dtype=np.float64) - self._native.constant[1:]
        return Core(self._native.sizes, costs, usage, limits)

    def complete(self, core_choice: Sequence[int]) -> list[int] | None:
        """A best choice of the whole problem with this choice of the core; None where every one is forbidden."""
        return self._native.complete(list(core_choice)) or (None if core_choice else [])


def _flat_resource(resource: Resource) -> tuple[float, Array, npt.NDArray[np.int64], Array]:
    def flat(tables: Sequence[npt.ArrayLike]) -> Array:
        return np.concatenate([np.ravel(t) for t in tables]) if tables else np.zeros(0)

    pairs = np.array(list(resource.matrices), dtype=np.int64).reshape(-1, 2)
    return resource.limit, flat(list(resource.vectors)), pairs, flat(list(resource.matrices.values()))

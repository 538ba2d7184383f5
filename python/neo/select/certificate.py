"""The proof of a lower bound: what a checker needs that does not trust the solver (docs/selection.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from neo.select.problem import Array

Scope = tuple[int, ...]
Shift = tuple[Scope, int, Array]
Split = tuple[list[Scope], Array]


@dataclass(frozen=True)
class Relaxation:
    """A lower bound for every partial choice of the core: bucket elimination, its large buckets in parts.

    Attributes
    ----------
    prices : dict of str to float
        What a resource's use beyond its limit costs.
    resource : str or None
        The resource whose usage this bounds; None: the cost, with the prices.
    shifts : list of (scope, axis, array)
        Added to the factor of that scope along that axis and taken from the axis's variable alone.
    splits : dict of int to list of (scopes, array)
        Per variable whose bucket is split: which factors each part has, and what is added to it along the variable.
        Scopes are in the order of elimination.
    """

    prices: dict[str, float]
    resource: str | None = None
    shifts: list[Shift] = field(default_factory=list)
    splits: dict[int, list[Split]] = field(default_factory=dict)


@dataclass(frozen=True)
class Search:
    """How to see that no choice of the core costs less than the bound.

    Assign the variables against the order of elimination; drop a partial choice that a relaxation puts at the bound or
    beyond a limit, and of those that agree on all that later costs depend on keep the cheapest (with limits, those
    that no other one beats in everything). None is left.

    Attributes
    ----------
    order : list of int
        The core's variables, by their number in the problem; scopes count from 0 in this order.
    relaxations : list of Relaxation
    """

    order: list[int]
    relaxations: list[Relaxation]


@dataclass(frozen=True)
class Certificate:
    """The proof that no choice within the limits costs less than `bound`, up to rounding (1e-9 of it).

    Attributes
    ----------
    bound : float
    steps : array of int
        Reductions and eliminations (csrc/select/problem.h, ProofStep); where they leave nothing, what they have decided
        costs `bound`.
    limits : tuple of str
        The resources whose limits the proof uses; without the others' the bound holds all the more.
    search : Search or None
        For what the steps leave.
    """

    bound: float
    steps: npt.NDArray[np.int32]
    limits: tuple[str, ...] = ()
    search: Search | None = None

    @property
    def numbers(self) -> int:
        """How many numbers it consists of."""
        count = 1 + len(self.steps)
        if self.search is not None:
            count += len(self.search.order)
            for relaxation in self.search.relaxations:
                count += sum(len(scope) + len(values) for scope, _, values in relaxation.shifts)
                parts = [part for split in relaxation.splits.values() for part in split]
                count += sum(sum(map(len, scopes)) + len(values) for scopes, values in parts)
        return count


def certificate_of(found: Mapping[str, Any], bound: float, limited: Sequence[str]) -> Certificate:
    """The certificate that the solver gives with a solution, of this bound, of a problem with these limited resources."""
    names = [limited[k] for k in found["limited"]]
    relaxations = [
        Relaxation(dict(zip(names, prices, strict=False)), None if k < 0 else names[k], shifts, splits)
        for prices, k, shifts, splits in found["relaxations"]
    ]
    search = Search(found["order"], relaxations) if relaxations else None
    return Certificate(bound, found["steps"], tuple(limited) if found["uses_limits"] else (), search)

"""Fewer packed forms of constants that several nodes read, where that takes hardly more time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neo.select.problem import Array, Flat, Integers, Problem
from neo.select.solver import Solution, solve

__all__ = ["share_forms"]

# The share of the time that fewer bytes may cost.
_MORE_TIME = 0.01
# Prices of all bytes together, as shares of the time, and how often a price is followed.
_PRICES = (0.2, 0.1, 0.05, 0.02)
_ROUNDS = 4
# Fewer bytes in forms that could be shared are not worth a word.
_LEAST_BYTES = 16 << 20


def share_forms(problem: Problem, solution: Solution, sizes: Array, forms: Integers) -> Solution:
    """A solution that holds fewer bytes of constants that several variables read, for at most 1 % more than a given one.

    The problem is solved again with a price on bytes, a form that others have chosen being free, and then once more by
    what was chosen. That is a local search: what it finds need not be the fewest bytes.

    Parameters
    ----------
    problem : Problem
    solution : Solution
        The one of the least total.
    sizes : array
        Bytes of constants that each choice of each variable holds, end to end.
    forms : array of int
        For each of these choices a number that is equal where choices hold the same bytes; -1 where one shares none.

    Returns
    -------
    Solution
        The given one where nothing better was found.
    """
    flat = problem.flat
    starts = np.cumsum(flat.sizes) - flat.sizes
    # Bytes that no choice exceeds.
    if len(starts) == 0 or np.maximum.reduceat(sizes, starts).sum() < _LEAST_BYTES:
        return solution
    variable = np.repeat(np.arange(len(flat.sizes)), flat.sizes)
    users = _distinct(forms * len(starts) + variable) // len(starts)  # of every form, once for each of its variables
    count_of_forms = int(forms.max(initial=0)) + 1
    shared = (forms >= 0) & (np.bincount(users[users >= 0], minlength=count_of_forms)[forms] > 1)

    def held(choice: Sequence[int]) -> float:
        """Bytes of the forms that could be shared, each once."""
        chosen = starts + np.asarray(choice, dtype=np.int64)
        taken = chosen[shared[chosen]]
        by_form = taken[np.argsort(forms[taken], kind="stable")]
        return float(sizes[by_form[_is_first(forms[by_form])]].sum())

    def priced(choice: Sequence[int], upwards: bool) -> Array:
        """Bytes that each choice is charged while the others stay.

        A variable's own form costs its part of it, one that nobody has chosen all of it, and one of others nothing. Two
        variables must not change places, so that only larger forms, or only smaller ones, are taken over in a round.
        """
        chosen = starts + np.asarray(choice, dtype=np.int64)
        form = np.where(shared[chosen], forms[chosen], -1)
        count = np.bincount(form[form >= 0], minlength=count_of_forms)
        own, bytes_of_own = form[variable], np.where(form >= 0, sizes[chosen], 0.0)[variable]
        larger = (sizes > bytes_of_own) | ((sizes == bytes_of_own) & (forms > own))
        taken_over = np.where(larger == upwards, 0.0, sizes + bytes_of_own)
        others = np.where(count[forms] > 0, taken_over, sizes)
        return np.where(shared, np.where(forms == own, sizes / np.maximum(count[forms], 1), others), 0.0)

    least = held(solution.choice)
    if least < _LEAST_BYTES or not solution.total > 0:
        return solution
    best, fewest = solution, least
    for share in _PRICES:
        choice: Sequence[int] = solution.choice
        for turn in range(_ROUNDS):
            costs = flat.costs + share * solution.total / least * priced(choice, upwards=turn % 2 == 0)
            again = Flat(flat.sizes, costs, flat.pairs, flat.matrices)
            choice = solve(Problem.from_flat(again, problem.resources, problem.places)).choice
            total, size = problem.evaluate(choice), held(choice)
            if total <= (1 + _MORE_TIME) * solution.total and size < fewest:
                best = Solution(list(choice), total, solution.lower_bound, solution.method, False, solution.seconds)
                fewest = size
    return best


def _is_first(ordered: Integers) -> npt.NDArray[np.bool_]:
    """Where numbers in order differ from the one before."""
    return np.concatenate([ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]])


def _distinct(numbers: Integers) -> Integers:
    """Each number once, in order; numpy.unique imports masked arrays, which takes longer than most problems."""
    ordered = np.sort(numbers)
    return ordered[_is_first(ordered)]

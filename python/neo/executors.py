"""How many executors run a module, and how many threads each of them has."""

from __future__ import annotations

from dataclasses import dataclass

from neo import _native
from neo.errors import DTypeError, ModelError

__all__ = [
    "MAX_EXECUTORS",
    "Executors",
    "Expected",
    "checked_executors",
    "choose_executors",
    "expected_times",
    "with_executors",
]

MAX_EXECUTORS = 1024

# The share of the time that several executors must promise before they take the place of all threads at each step, and
# the time of a call from which they may: handing steps over costs a microsecond or so each.
_CLEARLY_LESS = 0.88
_LEAST_US = 400.0
# Where all threads are expected to save less than this share of one thread's time, waking them costs it.
_WORTH_THREADS = 0.07

Executors = tuple[int, int]


@dataclass(frozen=True)
class Expected:
    """What estimates expect of some executors.

    Attributes
    ----------
    executors : (int, int)
        Their number, and the threads of each.
    time_us : float
        A call, scheduled in virtual time.
    bound_us : float
        No schedule of the same steps takes less: the longest way through the graph, or the work shared out evenly.
    """

    executors: Executors
    time_us: float
    bound_us: float


def checked_executors(
    executors: int | Executors | str | None, threads: int | None, area: str
) -> Executors | str | None:
    """Executors as a user gives them: None, ``"auto"``, or their number and the threads of each.

    Parameters
    ----------
    executors : int, (int, int), "auto" or None
        An int alone shares `threads`, or the default number of threads, out evenly.
    threads : int or None
        Of all executors.
    area : str
        For the message.

    Raises
    ------
    neo.DTypeError, neo.ModelError
        They are malformed, or more than the threads.
    """
    if executors is None or executors == "auto":
        return executors
    if isinstance(executors, tuple | list) and [_is_count(n) for n in executors] == [True, True]:
        count, each = executors
        if threads is not None and count * each != threads:
            msg = (
                f"[{area}] threads must be those of all executors. Got {threads} and {count} executors of {each}, "
                f"expected {count * each}"
            )
            raise ModelError(msg)
        return count, each
    if isinstance(executors, int) and _is_count(executors):
        every = _native.default_threads() if threads is None else threads
        if threads is not None and executors > threads:
            msg = f"[{area}] executors must have a thread each. Got {executors} executors of {threads} threads"
            raise ModelError(msg)
        return executors, max(every // executors, 1)
    if isinstance(executors, bool) or not isinstance(executors, int | tuple | list | str):
        msg = (
            f"[{area}] executors must be a number or two. Got {type(executors).__name__}, expected an int or (int, int)"
        )
        raise DTypeError(msg)
    msg = (
        f"[{area}] executors must be 'auto', their number, or that and the threads of each, 1 to {MAX_EXECUTORS}. "
        f"Got {executors!r}"
    )
    raise ModelError(msg)


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MAX_EXECUTORS


def expected_times(native: _native.Module, threads: int, estimated_at: int) -> list[Expected]:
    """What each symmetric configuration within so many threads is expected to take, the fastest first.

    Graphi (section 4.2) tries 1 executor of all threads, 2 of half of them, and so on. One thread alone is among them.

    Parameters
    ----------
    native : _native.Module
    threads : int
    estimated_at : int
        The team size that the steps' estimates are of.
    """
    counts = sorted({*range(1, min(threads, 8) + 1), *(threads // t for t in range(1, 9)), threads} - {0})
    tried: list[Executors] = [(1, 1)]
    tried += [(k, threads // k) for k in counts if (k, threads // k) not in tried]
    found = [Expected(e, *native.expected_makespan(*e, estimated_at)) for e in tried]
    return sorted(found, key=lambda e: (e.time_us, e.executors[0] * e.executors[1]))


def choose_executors(native: _native.Module, threads: int) -> Executors:
    """The executors that estimates clearly promise most of; one of all threads where they do not.

    Parameters
    ----------
    native : _native.Module
        Its steps were estimated at `threads`.
    threads : int
        That a call may use.
    """
    if threads == 1:
        return 1, 1
    expected = {e.executors: e.time_us for e in expected_times(native, threads, threads)}
    together, alone = expected[1, threads], expected[1, 1]
    several = min((e for e in expected if e[0] > 1), key=lambda e: expected[e])
    if _LEAST_US < expected[several] < _CLEARLY_LESS * min(together, alone):
        return several
    return (1, 1) if together > (1 - _WORTH_THREADS) * alone else (1, threads)


def with_executors(
    native: _native.Module, executors: Executors | str | None, threads: int, *, has_open_sizes: bool = False
) -> _native.Module:
    """The module on the executors that a user asks for, by estimates where that is left open.

    Parameters
    ----------
    native : _native.Module
        On one executor.
    executors : (int, int), "auto" or None
    threads : int
        That a call may use, at which the steps were estimated; of one executor where their number is given.
    has_open_sizes : bool
        Whether a call may be larger than the one that was estimated: then one thread alone is left to each step to choose.
    """
    if executors == "auto":
        executors = expected_times(native, threads, threads)[0].executors
    elif executors is None:
        executors = choose_executors(native, threads)
        if has_open_sizes and executors == (1, 1):
            executors = 1, threads
    assert isinstance(executors, tuple)
    return native if executors == native.executors else native.with_executors(*executors, oversubscribe=False)

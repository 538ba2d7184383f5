"""What other machines and builds measured: it says what to try first, and is never taken for a time of this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from neo.tune.database import Hint

__all__ = ["Hints", "by_hint", "hinted_trials", "mark_hints"]

#: By (workload, cache_level) and candidate.
Hints = Mapping[tuple[str, str], Mapping[str, Hint]]

# The fastest points of other machines that are measured with the candidates of a workload.
_MOST = 2


class HintBench(Protocol):
    """What hints need of ``_native.Bench``."""

    @property
    def spaces(self) -> Sequence[Mapping[str, Any]]: ...
    def trial(self, index: int) -> Mapping[str, Any]: ...
    def space_size(self, space: int) -> int: ...
    def find(self, space: int, candidate: str) -> int | None: ...
    def extend(self, space: int, points: Sequence[int]) -> list[int]: ...


def by_hint(indices: Iterable[int], trials: Sequence[Mapping[str, Any]], hints: Mapping[str, Hint]) -> tuple[int, ...]:
    """What was fast elsewhere first, what nobody measured last."""

    def time_us(index: int) -> float:
        hint = hints.get(trials[index]["candidate"])
        return float("inf") if hint is None else hint.time_us

    return tuple(sorted(indices, key=time_us))


def hinted_trials(
    bench: HintBench, spaces: Sequence[Mapping[str, Any]], workload: str, hints: Mapping[str, Hint], known: set[str]
) -> list[int]:
    """Make trials of the points that were fastest elsewhere, those that are `known` aside."""
    found: list[int] = []
    for candidate in sorted(hints, key=lambda c: hints[c].time_us)[:_MOST]:
        if candidate in known:
            continue
        for space, entry in enumerate(spaces):
            if entry["workload"] != workload or not candidate.startswith(entry["routine"]):
                continue
            # The only point of a space is a candidate.
            if bench.space_size(space) < 2:
                continue
            point = bench.find(space, candidate)
            if point is None:
                continue
            (index,) = bench.extend(space, [point])
            # The same schedule may stand for other layouts.
            if bench.trial(index)["candidate"] == candidate:
                found.append(index)
                break
    return found


def mark_hints(nodes: Iterable[Any], hints: Mapping[tuple[str, str], Hint]) -> None:
    """Give the choices of a selection's nodes what other machines measured, by (workload, candidate)."""
    for node in nodes:
        for choice in node["choices"]:
            if "routine" not in choice or choice["measured"]:
                continue
            takes = ", ".join(schema or "-" for schema in choice["inputs"])
            candidate = f"{choice['routine']} {takes} -> {', '.join(choice['outputs'])}"
            hint = hints.get((choice["workload"], candidate))
            if hint is not None:
                choice["hint"] = hint

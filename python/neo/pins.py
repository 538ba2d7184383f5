"""Which routines a user allows for which nodes."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence

from neo import _native
from neo.errors import ModelError

__all__ = ["Pins"]


class Pins:
    """The pins of a graph; every pattern must mean something.

    Parameters
    ----------
    routines : mapping of str to str or list of str
        As for :func:`neo.compile`.
    graph : _native.Graph
        The graph whose nodes they name.

    Raises
    ------
    neo.ModelError
        A pattern matches no node, or no routine.
    """

    def __init__(self, routines: Mapping[str, str | Sequence[str]], graph: _native.Graph) -> None:
        self._pins = {node: [r] if isinstance(r, str) else list(r) for node, r in routines.items()}
        self._offered: dict[str, list[str]] = {}
        self._left: set[str] = set()
        nodes = list(_node_names(graph))
        known = [*_native.routine_names(), *_native.expansion_names()]
        for pattern, allowed in self._pins.items():
            if not any(fnmatch.fnmatchcase(node, pattern) for node in nodes):
                listed = ", ".join(repr(n) for n in [n for n in nodes if n][:8])
                msg = (
                    f"[compile] a pin must match a node of the compiled graph. Got {pattern!r}, "
                    f"expected one of {listed}"
                )
                raise ModelError(msg)
            for routine in allowed:
                bare = routine.split("{")[0]
                if not any(fnmatch.fnmatchcase(name, bare) for name in known):
                    msg = (
                        f"[compile] a pin must match a routine. Got {routine!r} for {pattern!r}, "
                        f"expected one of {', '.join(known)}"
                    )
                    raise ModelError(msg)

    @property
    def names_schedules(self) -> bool:
        """Whether a pin asks for one schedule, which leaves nothing to search."""
        return any("{" in routine for allowed in self._pins.values() for routine in allowed)

    def allow(self, node: str, routine: str) -> bool:
        """Whether a node may be run by a routine, given as its whole text."""
        for pattern, allowed in self._pins.items():
            if fnmatch.fnmatchcase(node, pattern):
                self._offered.setdefault(node, []).append(routine)
                without_schedule = routine.split("{")[0]
                forms = (routine, without_schedule)
                if any(fnmatch.fnmatchcase(form, a) for form in forms for a in allowed):
                    self._left.add(node)
                    return True
                return False
        return True

    def complain_where_nothing_is_left(self) -> None:
        """Raise for the first pinned node that had routines but keeps none."""
        for node, offered in self._offered.items():
            if node not in self._left:
                names = ", ".join(sorted({o.split("{")[0] for o in offered}))
                msg = f"[compile] a pin must leave the node a routine. Got none for {node!r}, expected one of {names}"
                raise ModelError(msg)


def _node_names(graph: _native.Graph) -> Iterator[str]:
    for node in graph.nodes:
        yield node.name
        for body in node.bodies.values():
            yield from _node_names(body)

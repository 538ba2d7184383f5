"""The selection problem: variables with a cost per choice, edges with a cost per pair, additive resources."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neo.errors import ModelError

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Pair = tuple[int, int]
Places = Sequence[Sequence[int]]

LIMIT_TOLERANCE = 1e-12


class InfeasibleError(ModelError):
    """No choice meets the limits, or forbidden pairs leave none at all.

    Attributes
    ----------
    resource : str or None
        The resource whose limit cannot be met alone; None where it is no single one.
    limit : float or None
        Its limit.
    smallest : float or None
        The smallest value of it that any allowed choice reaches (a lower bound where that is not proven).
    """

    def __init__(
        self,
        message: str,
        *,
        resource: str | None = None,
        limit: float | None = None,
        smallest: float | None = None,
    ) -> None:
        super().__init__(message)
        self.resource = resource
        self.limit = limit
        self.smallest = smallest


@dataclass(frozen=True)
class Resource:
    """An additive quantity beside the cost.

    Attributes
    ----------
    name : str
        For messages and reports.
    limit : float
        A solution's usage is at most this; infinite: only reported.
    vectors : sequence of array
        Per variable, the usage of each of its choices; finite.
    matrices : mapping, optional
        Per edge (u, v) with u < v, the usage of each pair of choices; finite.
    """

    name: str
    limit: float
    vectors: Sequence[npt.ArrayLike]
    matrices: Mapping[Pair, npt.ArrayLike] = field(default_factory=dict)


class Flat(NamedTuple):
    """A problem's arrays end to end: what solvers read.

    Attributes
    ----------
    sizes : array of int
        Choices per variable.
    costs : array
        Of all variables.
    pairs : array of int, n x 2
        The edges, each once, u < v.
    matrices : array
        Of all edges, row-major.
    """

    sizes: Integers
    costs: Array
    pairs: Integers
    matrices: Array


class Problem:
    """Arrays of a selection problem. Immutable once built; arrays given as float64 are not copied.

    Parameters
    ----------
    costs : sequence of 1-D arrays
        Per variable, the cost of each choice; infinite: forbidden.
    edges : mapping (u, v) -> 2-D array, or iterable of (u, v, array)
        Cost of each pair of choices, rows for u; infinite: forbidden. Parallel edges are summed, and an edge with
        u > v is transposed.
    resources : sequence of Resource
        May be empty.
    places : sequence of sequence of int, optional
        Where several devices are at hand: for each variable that is a node, those come first, and each of its choices
        the devices that run it, a bit each; 1 is the CPU, 0 anywhere.

    Attributes
    ----------
    costs : list of array
    edges : dict
        (u, v) with u < v to the matrix of that pair.
    resources : list of Resource
        Their vectors and matrices as float64 arrays.
    places : sequence of sequence of int, or None
        None where all of them are the CPU.

    Examples
    --------
    >>> problem = Problem([[1.0, 3.0], [2.0, 1.0]], {(0, 1): [[5.0, 9.0], [4.0, 0.0]]})
    >>> problem.evaluate([1, 1])
    4.0
    """

    def __init__(
        self,
        costs: Sequence[npt.ArrayLike],
        edges: Mapping[Pair, npt.ArrayLike] | Iterable[tuple[int, int, npt.ArrayLike]] = (),
        resources: Iterable[Resource] = (),
        places: Places | None = None,
    ) -> None:
        self.places = _several(places)
        self._costs: list[Array] | None = [np.asarray(c, dtype=np.float64) for c in costs]
        for i, c in enumerate(self.costs):
            if c.ndim != 1 or c.size == 0:
                raise ModelError(
                    f"[select] a variable must have at least one choice. Got costs of shape {c.shape}, "
                    f"expected (n,) with n >= 1 - at variable {i}"
                )
        triples: Iterable[tuple[int, int, npt.ArrayLike]]
        triples = ((u, v, m) for (u, v), m in edges.items()) if isinstance(edges, Mapping) else edges
        self._edges: dict[Pair, Array] | None = self._pairs(triples, "edge")
        self.flat = Flat(
            np.array([c.size for c in self._costs], dtype=np.int64),
            _flat(self._costs),
            np.array(list(self._edges), dtype=np.int64).reshape(-1, 2),
            _flat(self._edges.values()),
        )
        self._set_resources(resources)

    @classmethod
    def from_flat(cls, flat: Flat, resources: Iterable[Resource] = (), places: Places | None = None) -> Problem:
        """Arrays that lie end to end already, each edge once; views of them are made when they are asked for."""
        problem = cls.__new__(cls)
        problem.places = _several(places)
        problem.flat = flat
        problem._costs = problem._edges = None
        problem._set_resources(resources)
        return problem

    @property
    def costs(self) -> list[Array]:
        """Per variable, the cost of each choice."""
        if self._costs is None:
            self._costs = _split(self.flat.costs, [(n,) for n in self.sizes])
        return self._costs

    @property
    def edges(self) -> dict[Pair, Array]:
        """(u, v) with u < v to the matrix of that pair."""
        if self._edges is None:
            self._edges = _matrices(self.flat.pairs, self.flat.matrices, self.sizes)
        return self._edges

    @property
    def sizes(self) -> list[int]:
        """Number of choices per variable."""
        return list(map(int, self.flat.sizes))

    def restricted(self, allowed: Sequence[npt.NDArray[np.bool_]]) -> Problem:
        """The same problem, without limits, with fewer choices: per variable which stay, the others forbidden."""
        mask = np.concatenate(list(allowed)) if len(allowed) else np.zeros(0, dtype=bool)
        return Problem.from_flat(self.flat._replace(costs=np.where(mask, self.flat.costs, np.inf)), places=self.places)

    def evaluate(self, choice: Sequence[int]) -> float:
        """Sum of the costs of a choice per variable; infinite where a choice or a pair is forbidden."""
        self._check_choice(choice)
        terms = np.concatenate(self.terms(np.asarray(choice, dtype=np.int64)))
        return math.inf if np.isinf(terms).any() else math.fsum(terms)

    def terms(self, choice: Integers) -> tuple[Array, Array]:
        """What a choice costs, variable by variable and edge by edge."""
        sizes, costs, pairs, matrices = self.flat
        starts = np.cumsum(sizes) - sizes
        u, v = pairs.T
        cells = sizes[u] * sizes[v]
        return costs[starts + choice], matrices[np.cumsum(cells) - cells + choice[u] * sizes[v] + choice[v]]

    def usage(self, choice: Sequence[int]) -> dict[str, float]:
        """Usage of each resource, by name."""
        self._check_choice(choice)
        return {r.name: self._usage(r, choice) for r in self.resources}

    def is_feasible(self, choice: Sequence[int]) -> bool:
        """Whether nothing forbidden is chosen and every resource is within its limit, up to rounding (1e-12 of it)."""
        if math.isinf(self.evaluate(choice)):
            return False
        return all(self._usage(r, choice) <= r.limit + LIMIT_TOLERANCE * max(1.0, abs(r.limit)) for r in self.resources)

    def save(self, path: str | Path) -> None:
        """Write the arrays to `path`: JSON where it ends in .json, else NumPy's .npz."""
        path = Path(path)
        if path.suffix == ".json":
            path.write_text(json.dumps(self._as_json(), indent=1) + "\n", encoding="utf-8")
            return
        arrays: dict[str, npt.NDArray[Any]] = {
            "sizes": self.flat.sizes,
            "costs": self.flat.costs,
            "edges": self.flat.pairs,
            "matrices": self.flat.matrices,
            "names": np.asarray([r.name for r in self.resources], dtype=np.str_),
            "limits": np.asarray([r.limit for r in self.resources], dtype=np.float64),
        }
        for k, r in enumerate(self.resources):
            arrays[f"vectors{k}"] = _flat(r.vectors)
            arrays[f"edges{k}"] = np.asarray(list(r.matrices), dtype=np.int64).reshape(-1, 2)
            arrays[f"matrices{k}"] = _flat(r.matrices.values())
        with path.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> Problem:
        """Read what `save` wrote."""
        from zipfile import BadZipFile

        path = Path(path)
        try:
            if path.suffix == ".json":
                return cls._from_json(json.loads(path.read_text(encoding="utf-8")))
            with np.load(path, allow_pickle=False) as arrays:
                sizes = [int(n) for n in arrays["sizes"]]
                resources = [
                    Resource(
                        str(name),
                        float(limit),
                        _split(arrays[f"vectors{k}"], [(n,) for n in sizes]),
                        _matrices(arrays[f"edges{k}"], arrays[f"matrices{k}"], sizes),
                    )
                    for k, (name, limit) in enumerate(zip(arrays["names"], arrays["limits"], strict=True))
                ]
                costs = _split(arrays["costs"], [(n,) for n in sizes])
                return cls(costs, _matrices(arrays["edges"], arrays["matrices"], sizes), resources)
        except (KeyError, TypeError, IndexError, ValueError, EOFError, BadZipFile) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(
                f"[select] a problem file must hold the arrays that Problem.save writes. Got {error!r} - at {path}"
            ) from error

    def _as_json(self) -> dict[str, Any]:
        return {
            "costs": [_finite_or_null(c) for c in self.costs],
            "edges": [[u, v, _finite_or_null(m)] for (u, v), m in self.edges.items()],
            "resources": [
                {
                    "name": r.name,
                    "limit": r.limit if math.isfinite(r.limit) else None,
                    "vectors": [_finite_or_null(v) for v in r.vectors],
                    "edges": [[u, v, _finite_or_null(m)] for (u, v), m in r.matrices.items()],
                }
                for r in self.resources
            ],
        }

    @classmethod
    def _from_json(cls, data: dict[str, Any]) -> Problem:
        resources = [
            Resource(
                r["name"],
                math.inf if r["limit"] is None else float(r["limit"]),
                [_null_to_inf(v) for v in r["vectors"]],
                {(u, v): _null_to_inf(m) for u, v, m in r["edges"]},
            )
            for r in data["resources"]
        ]
        costs = [_null_to_inf(c) for c in data["costs"]]
        return cls(costs, [(u, v, _null_to_inf(m)) for u, v, m in data["edges"]], resources)

    def _set_resources(self, resources: Iterable[Resource]) -> None:
        self.resources: list[Resource] = [self._resource(r) for r in resources]
        names = [r.name for r in self.resources]
        if len(set(names)) != len(names):
            raise ModelError(f"[select] resources must have different names. Got {names}")
        self._check_values()

    def _pairs(self, triples: Iterable[tuple[int, int, npt.ArrayLike]], what: str) -> dict[Pair, Array]:
        pairs: dict[Pair, Array] = {}
        count = len(self.costs)
        for u, v, values in triples:
            if not (0 <= u < count and 0 <= v < count) or u == v:
                raise ModelError(
                    f"[select] an edge must join two different variables. Got ({u}, {v}), "
                    f"expected two of 0 to {count - 1} - at {what} ({u}, {v})"
                )
            matrix = np.asarray(values, dtype=np.float64)
            expected = (self.costs[u].size, self.costs[v].size)
            if matrix.shape != expected:
                raise ModelError(
                    f"[select] an edge must have one cost per pair of choices. Got shape {matrix.shape}, "
                    f"expected {expected} - at {what} ({u}, {v})"
                )
            key = (u, v) if u < v else (v, u)
            if u > v:
                matrix = matrix.T
            pairs[key] = pairs[key] + matrix if key in pairs else matrix
        return pairs

    def _resource(self, resource: Resource) -> Resource:
        place = f"resource {resource.name!r}"
        if math.isnan(resource.limit):
            raise ModelError(f"[select] a limit must be a number. Got {resource.limit} - at {place}")
        vectors = [np.asarray(v, dtype=np.float64) for v in resource.vectors]
        if [v.shape for v in vectors] != [c.shape for c in self.costs]:
            raise ModelError(
                f"[select] a resource must have one value per choice of every variable. Got {len(vectors)} vectors of "
                f"sizes {[v.size for v in vectors]}, expected sizes {self.sizes} - at {place}"
            )
        triples = ((u, v, m) for (u, v), m in resource.matrices.items())
        matrices = self._pairs(triples, f"{place}, edge")
        return Resource(resource.name, float(resource.limit), vectors, matrices)

    def _check_values(self) -> None:
        # -inf and NaN are the values that are not greater than -inf.
        if not (np.all(self.flat.costs > -np.inf) and np.all(self.flat.matrices > -np.inf)):
            for place, array in [(f"variable {i}", c) for i, c in enumerate(self.costs)] + [
                (f"edge {key}", m) for key, m in self.edges.items()
            ]:
                bad = array[~(array > -np.inf)]
                if bad.size:
                    raise ModelError(
                        f"[select] a cost must be a number or +inf. Got {bad.flat[0]}, expected a cost - at {place}"
                    )
        for r in self.resources:
            flat = _flat([*map(np.asarray, r.vectors), *map(np.asarray, r.matrices.values())])
            if not np.all(np.isfinite(flat)):
                bad = flat[~np.isfinite(flat)]
                raise ModelError(
                    f"[select] a resource's values must be finite; costs forbid choices. Got {bad[0]} - "
                    f"at resource {r.name!r}"
                )

    def _check_choice(self, choice: Sequence[int]) -> None:
        given, sizes = np.asarray(choice, dtype=np.int64), self.flat.sizes
        if len(given) != len(sizes) or np.any(given < 0) or np.any(given >= sizes):
            raise ModelError(
                f"[select] a choice must name one choice of every variable. Got {list(choice)}, "
                f"expected an index below each of {self.sizes}"
            )

    @staticmethod
    def _usage(resource: Resource, choice: Sequence[int]) -> float:
        terms = [float(np.asarray(v)[i]) for v, i in zip(resource.vectors, choice, strict=True)]
        terms.extend(float(np.asarray(m)[choice[u], choice[v]]) for (u, v), m in resource.matrices.items())
        return math.fsum(terms)


def _several(places: Places | None) -> Places | None:
    return places if places and any(bits > 1 for choices in places for bits in choices) else None


def _flat(arrays: Iterable[npt.ArrayLike]) -> Array:
    parts = [np.asarray(a, dtype=np.float64).ravel() for a in arrays]
    return np.concatenate(parts) if parts else np.zeros(0)


def _split(flat: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    if len(flat) != (ends[-1] if ends else 0):
        raise ValueError(f"{len(flat)} values for shapes {shapes}")
    return [flat[a:b].reshape(s) for a, b, s in zip([0, *ends], ends, shapes, strict=False)]


def _matrices(pairs: npt.NDArray[np.int64], flat: Array, sizes: list[int]) -> dict[Pair, Array]:
    keys = [(int(u), int(v)) for u, v in pairs]
    return dict(zip(keys, _split(flat, [(sizes[u], sizes[v]) for u, v in keys]), strict=True))


def _finite_or_null(values: npt.ArrayLike) -> Any:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.array(None, dtype=object)).tolist()


def _null_to_inf(values: Any) -> Array:
    return np.array(
        [
            [math.inf if x is None else x for x in row] if isinstance(row, list) else (math.inf if row is None else row)
            for row in values
        ],
        dtype=np.float64,
    )

"""A cost model: boosted regression trees, evaluated by neo itself, so that ranking needs no library."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neo import _native
from neo.errors import Error, ResourceError

__all__ = ["Trees", "shipped_corrections", "shipped_model"]

_SHIPPED = Path(__file__).with_name("cost_model.trees")
_ARRAYS = (("roots", "<i4"), ("feature", "<i2"), ("threshold", "<f4"), ("left", "<i4"))


@dataclass(frozen=True)
class Trees:
    """An ensemble whose value for a row is the sum of one leaf per tree.

    Attributes
    ----------
    roots : array
        Node that each tree begins with.
    feature, threshold : array
        Of each node: a row goes left where its feature is below the threshold. A leaf has feature -1 and its value as
        threshold.
    left : array
        Of each node its left child; the right one follows it.
    names : tuple of str
        The columns it was trained on.
    lanes : tuple of int
        Of the vectors of the machines whose times it was trained on; empty where nobody asks.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    names: tuple[str, ...]
    lanes: tuple[int, ...] = ()

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The value of every row."""
        return self.native.predict(rows)

    @functools.cached_property
    def native(self) -> _native.RegressionTrees:
        """What evaluates it.

        Raises
        ------
        neo.ModelError
            Nodes lead outside.
        """
        return _native.make_trees(self.roots, self.feature, self.threshold, self.left, len(self.names))

    @classmethod
    def from_xgboost(cls, model: bytes | str, names: Sequence[str], lanes: Sequence[int] = ()) -> Trees:
        """Read what XGBoost writes as JSON.

        Raises
        ------
        neo.ResourceError
            It is no ensemble of numeric trees.
        """
        try:
            learner = json.loads(model)["learner"]
            trees = learner["gradient_booster"]["model"]["trees"]
            parsed = [_breadth_first(tree) for tree in trees]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            msg = f"[tune] a cost model must be trees in XGBoost's JSON. Got {type(error).__name__}: {error}"
            raise ResourceError(msg) from error
        roots, feature, threshold, left = [], [], [], []
        count = 0
        for f, t, children in parsed:
            roots.append(count)
            feature += f
            threshold += t
            left += [child + count for child in children]
            count += len(f)
        return cls(
            np.array(roots, np.int32),
            np.array(feature, np.int16),
            np.array(threshold, np.float32),
            np.array(left, np.int32),
            tuple(names),
            tuple(lanes),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write it: a line of JSON and the arrays as they are; the same model gives the same bytes."""
        arrays = [np.ascontiguousarray(getattr(self, name), dtype) for name, dtype in _ARRAYS]
        facts = {"names": self.names, "lanes": self.lanes, "sizes": [array.size for array in arrays]}
        Path(path).write_bytes(b"".join([json.dumps(facts).encode(), b"\n", *(array.tobytes() for array in arrays)]))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Trees:
        """Read what save() wrote.

        Raises
        ------
        neo.ResourceError
            The file is missing, or no cost model.
        """
        try:
            line, _, rest = Path(path).read_bytes().partition(b"\n")
            facts = json.loads(line)
            names, lanes = tuple(map(str, facts["names"])), tuple(map(int, facts["lanes"]))
            arrays: list[NDArray[Any]] = []
            at = 0
            for (_, dtype), size in zip(_ARRAYS, facts["sizes"], strict=True):
                arrays.append(np.frombuffer(rest, dtype, size, at))
                at += arrays[-1].nbytes
            roots, feature, threshold, left = arrays
            trees = cls(roots, feature, threshold, left, names, lanes)
        except (OSError, ValueError, KeyError, TypeError) as error:
            msg = f"[tune] a cost model must be a file that neo wrote. Got {error} - at {path}"
            raise ResourceError(msg) from error
        try:
            _ = trees.native
        except (Error, TypeError) as error:
            msg = f"{str(error).partition(chr(10))[0]} - at {path}"
            raise ResourceError(msg) from error
        return trees


def _breadth_first(tree: Mapping[str, Any]) -> tuple[list[int], list[float], list[int]]:
    """Nodes such that siblings are neighbours and children come after their parent."""
    lefts, rights = tree["left_children"], tree["right_children"]
    order = [0]
    feature, threshold, left = [], [], []
    for node in order:
        if lefts[node] < 0:
            feature.append(-1)
            threshold.append(float(tree["split_conditions"][node]))
            left.append(0)
        else:
            feature.append(int(tree["split_indices"][node]))
            threshold.append(float(tree["split_conditions"][node]))
            left.append(len(order))
            order += [lefts[node], rights[node]]
    return feature, threshold, left


def shipped_model() -> Trees:
    """Load the model that comes with neo: by which power of two a time differs from its routine's estimate.

    Trained on generated workloads by ``python -m benchmarks.cost_model.train``.
    """
    return Trees.load(_SHIPPED)


@functools.lru_cache
def shipped_corrections() -> _native.CostTrees | None:
    """The same for estimates of a selection problem; None where it is not of the features that neo has."""
    try:
        trees = shipped_model()
        return _native.make_cost_trees(trees.native, trees.names, trees.lanes)
    except Error:
        return None

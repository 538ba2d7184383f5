"""Which points of a workload are likely to be fast: the shipped trees, and what they learn while tuning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from neo.errors import ResourceError
from neo.tune import xgboost_library
from neo.tune.features import feature_names
from neo.tune.trees import Trees, shipped_model

__all__ = ["CostModel"]

# Trees that are trained again from all that was measured, whenever there is this share more of it.
_ROUNDS = 24
_LEAST = 64
_GROWTH = 1.5


class CostModel:
    """Scores of points: comparable within a workload, the higher the faster.

    Parameters
    ----------
    shipped : Trees, optional
        What is known beforehand: by which power of two times differ from estimates. The default: what comes with neo,
        where it is of these features.
    names : sequence of str, optional
        Of the features, "estimate" among them; the default are those of routines of the CPU. Of others nothing is known
        beforehand but the estimate.
    """

    def __init__(self, shipped: Trees | None = None, *, names: Sequence[str] | None = None) -> None:
        self.names = tuple(feature_names() if names is None else names)
        self._estimate = self.names.index("estimate")
        if shipped is None and names is None:
            try:
                shipped = shipped_model()
            except ResourceError:
                shipped = None
        self._shipped = shipped if shipped is not None and shipped.names == self.names else None
        self._learned: Trees | None = None
        self._rows: dict[str, list[NDArray[np.float32]]] = {}
        self._times: dict[str, list[float]] = {}
        self._count = 0
        self._next = _LEAST
        #: Why it does not learn; empty where it does.
        self.note = "" if xgboost_library.available() else "the cost model did not learn: there is no XGBoost library"

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """A score per row."""
        scores = self._base(rows)
        return scores if self._learned is None else scores + self._learned.predict(rows)

    def _base(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        expected = rows[:, self._estimate].astype(np.float32)  # as a power of two
        return -expected if self._shipped is None else -(expected + self._shipped.predict(rows))

    def add(self, group: str, rows: NDArray[np.float32], times_us: NDArray[np.float64]) -> bool:
        """Remember what points of a group took; whether predictions changed by it.

        Times are compared within a group only: one workload under the same conditions.
        """
        self._rows.setdefault(group, []).extend(rows)
        self._times.setdefault(group, []).extend(float(t) for t in times_us)
        self._count += len(times_us)
        if self.note or self._count < self._next:
            return False
        self._next = int(self._count * _GROWTH)
        return self._learn()

    def _learn(self) -> bool:
        """Trees on top of the shipped ones, from everything that was added."""
        groups = [g for g, times in self._times.items() if len(times) > 1]
        if not groups:
            return False
        rows = np.vstack([np.array(self._rows[g], np.float32) for g in groups])
        scores = np.concatenate([min(self._times[g]) / np.array(self._times[g]) for g in groups]).astype(np.float32)
        sizes = np.array([len(self._times[g]) for g in groups], np.uint32)
        try:
            trained = xgboost_library.train(rows, scores, sizes, rounds=_ROUNDS, margins=self._base(rows))
            self._learned = Trees.from_xgboost(trained, self.names)
        except ResourceError as error:
            self.note = f"the cost model did not learn: {str(error).partition(chr(10))[0]}"
            return False
        return True

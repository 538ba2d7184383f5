"""Random parameters of cases: sizes, axes, operands, from one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from benchmarks.models.operator_cases import Operand

__all__ = ["LARGEST", "Draw", "RandomCase"]

#: Elements of an operand.
_SMALLEST, LARGEST = 1 << 6, 1 << 19


@dataclass(frozen=True)
class RandomCase:
    """A model with its inputs, as a case of the atlas has them."""

    name: str
    family: str
    dtype: str
    make: Callable[[], tuple[onnx.ModelProto, dict[str, np.ndarray]]] = field(repr=False)

    def build(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """Return the model and its inputs."""
        return self.make()


class Draw:
    """Random parameters of one case."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng([41, seed])

    def number(self, low: int, high: int) -> int:
        """Return a number of [low, high]."""
        return int(self.random.integers(low, high + 1))

    def one(self, of: Sequence[Any]) -> Any:
        """Return one of some things."""
        return of[self.number(0, len(of) - 1)]

    def flag(self, probability: float = 0.5) -> bool:
        """Return whether something happens."""
        return bool(self.random.random() < probability)

    def dims(self, low: int = 1, high: int = 6, largest: int = LARGEST) -> list[int]:
        """Return sizes of some axes; most of them are no powers of two."""
        rank = self.number(low, high)
        if rank == 0:
            return []
        elements = np.exp(self.random.uniform(np.log(min(_SMALLEST, largest / 4)), np.log(largest)))
        shares = self.random.dirichlet(np.ones(rank))
        dims = [max(1, round(float(elements**s))) for s in shares]
        return [d + 1 if d > 8 and d % 16 == 0 and self.flag() else d for d in dims]

    def symbols(self, rank: int) -> tuple[str, ...]:
        """Return names for the first axes: for none, mostly."""
        return tuple(f"N{i}" for i in range(self.number(1, rank))) if rank and self.flag(0.25) else ()

    def axes(self, rank: int) -> list[int]:
        """Return some axes, counted from either end."""
        count = self.number(1, rank)
        chosen = sorted(self.random.permutation(rank)[:count])
        return [int(a) - (rank if self.flag(0.2) else 0) for a in chosen]

    def axis(self, rank: int) -> int:
        """Return an axis, counted from either end."""
        return self.axes(rank)[0]

    def tensor(self, dims: Sequence[int], dtype: str = "float32", low: float = -3, high: float = 3) -> Operand:
        """Return a run-time operand."""
        return Operand(tuple(dims), dtype, low, high, symbols=self.symbols(len(dims)))

    def broadcast(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Return sizes that broadcast to others."""
        cut = self.number(0, len(dims)) if self.flag(0.3) else 0
        keep = self.one((0.2, 0.5, 0.8, 1.0))
        return tuple(d if self.flag(keep) else 1 for d in dims[cut:])

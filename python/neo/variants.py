"""Modules of several variants: for other instruction sets, for other sizes of the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from neo import _native
from neo.errors import ModelError, ShapeError
from neo.memory import Memory
from neo.module import Module
from neo.signature import Signature, Tensor
from neo.values import Array, Input, Value

if TYPE_CHECKING:
    from neo.report.explain import Explanation
    from neo.report.profile import Profile
    from neo.report.step import Step

__all__ = ["VariantModule"]


class _Choice:
    """Calls the first variant whose sizes fit."""

    def __init__(self, variants: Sequence[Module], union: Signature) -> None:
        self._variants = tuple(variants)
        self._inputs = union.inputs
        self._tensors = [union.kinds[t.name] == "tensor" for t in union.inputs]
        self._ranges = [_native.input_ranges(m._native) for m in variants]

    def __call__(
        self,
        arranged: list[Value],
        token: _native.CancelToken | None = None,
        outputs: list[Array | None] | None = None,
    ) -> list[Value]:
        return self.of(arranged)._native.call(arranged, token, outputs)

    def of(self, arranged: Sequence[Value]) -> Module:
        shapes = [x.shape if is_tensor else None for x, is_tensor in zip(arranged, self._tensors, strict=True)]
        for variant, ranges in zip(self._variants, self._ranges, strict=True):
            if all(_inside(s, r) for s, r in zip(shapes, ranges, strict=True)):
                return variant
        got = ", ".join(
            f"{t.name}: [{','.join(map(str, s))}]" for t, s in zip(self._inputs, shapes, strict=True) if s is not None
        )
        expected = " or ".join(dict.fromkeys(map(self._told, self._ranges)))
        msg = f"[run] sizes must fit a variant of the module. Got {got}, expected {expected}"
        raise ShapeError(msg)

    def _told(self, ranges: Sequence[Sequence[tuple[int, int]] | None]) -> str:
        return ", ".join(
            f"{t.name}: [{','.join(_range_text(lo, hi) for lo, hi in r)}]"
            for t, r in zip(self._inputs, ranges, strict=True)
            if r is not None
        )


class VariantModule(Module):
    """Several modules of one model; a call runs the first whose sizes fit."""

    def __init__(self, variants: Sequence[Module], union: Signature, others: Sequence[Module] = ()) -> None:
        """Hold `variants`, which this machine runs best, and `others`, which are only saved.

        `union` has the names and the sizes of all.
        """
        first = variants[0]
        super().__init__(
            first._native,
            union,
            first._machine,
            selection=first._selection,
            tuning=first._tuning,
            provenance=first._provenance,
            chose_executors=first._chose_executors,
        )
        for variant in (*variants, *others):
            _check_covered(union, variant)
        self._variants = tuple(variants)
        self._others = tuple(others)
        self._choice = _Choice(variants, union)
        self._call = self._choice

    @property
    def variants(self) -> tuple[Module, ...]:
        """The variants that calls choose from, in the order in which they are tried."""
        return self._variants

    def with_threads(self, threads: int) -> Module:
        """The same selections, and the same bits, on another number of threads."""
        return VariantModule([m.with_threads(threads) for m in self._variants], self._signature, self._others)

    def with_executors(self, executors: int, threads: int) -> Module:
        """The same selections, and the same bits, on so many executors of so many threads each."""
        variants = [m.with_executors(executors, threads) for m in self._variants]
        return VariantModule(variants, self._signature, self._others)

    def _saved_parts(self) -> list[tuple[_native.Module, _native.Machine, dict[str, str], bool]]:
        parts = [part for m in (*self._variants, *self._others) for part in m._saved_parts()]
        union = {"neo.union": self._signature.to_json()}
        return [(native, machine, {**notes, **union}, chose) for native, machine, notes, chose in parts]

    def profile(self, inputs: Mapping[str, Input], *, repeat: int = 10) -> Profile:
        """Time every step of the variant that these inputs fit (docs/profiling.md)."""
        return self._choice.of(self._arrange(inputs)).profile(inputs, repeat=repeat)

    def explain(self, node: str | None = None, inputs: Mapping[str, Input] | None = None) -> Explanation:
        """Every routine for a node of the variant that the inputs fit; without inputs, of the first."""
        variant = self._variants[0] if inputs is None else self._choice.of(self._arrange(inputs))
        return variant.explain(node, inputs)

    @property
    def memory(self) -> Memory:
        """Bytes that the variants hold now, and those that a call of the one that takes most does."""
        parts = [m.memory for m in self._variants]
        return Memory(
            sum(m.constants for m in parts),
            sum(m.kept for m in parts),
            max(m.call for m in parts),
            sum(m.bound for m in parts),
        )

    def close(self) -> None:
        """Let go of the weights and the memory of all variants now."""
        super().close()
        for m in (*self._variants, *self._others):
            m.close()
        self._choice = cast(Any, self._native)

    @property
    def steps(self) -> list[Step]:
        """What runs in the first variant, in order."""
        return self._variants[0].steps

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {len(self._variants)} variants)"


def _inside(shape: Sequence[int] | None, ranges: Sequence[tuple[int, int]] | None) -> bool:
    if shape is None or ranges is None:
        return True
    return len(shape) == len(ranges) and all(lo <= n <= hi for n, (lo, hi) in zip(shape, ranges, strict=True))


_UNBOUNDED = 1 << 40


def _range_text(lo: int, hi: int) -> str:
    return str(lo) if lo == hi else f"{lo} to {hi}" if hi < _UNBOUNDED else f"{lo} or more" if lo else "any"


def _check_covered(union: Signature, variant: Module) -> None:
    """A variant must be of the same inputs and outputs, with sizes that the union has or leaves open."""
    pairs = [
        *zip(union.inputs, variant.inputs, strict=True),
        *zip(union.outputs, variant.outputs, strict=True),
    ]
    if not all(_covers(whole, part) for whole, part in pairs) or union.kinds != variant._signature.kinds:
        msg = "[load] a variant must have the inputs and outputs of the module. Got others"
        raise ModelError(msg)


def _covers(whole: Tensor, part: Tensor) -> bool:
    if (whole.name, whole.dtype) != (part.name, part.dtype):
        return False
    if whole.shape is None or part.shape is None:
        return whole.shape is None
    return len(whole.shape) == len(part.shape) and all(
        isinstance(w, str) or w == p for w, p in zip(whole.shape, part.shape, strict=True)
    )

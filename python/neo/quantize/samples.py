"""Calibration data: any iterable, or a folder of files, as the arguments of one call each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from neo.errors import DTypeError, Error, ModelError, ResourceError
from neo.signature import Tensor

__all__ = ["Samples", "read_samples"]

#: Samples that are kept for comparing plans, and the bytes that they may take.
KEPT, KEPT_BYTES = 256, 64 << 20


def read_samples(data: Any) -> Iterable[Any]:
    """Read `data` as an iterable of calls: itself, or the .npy and .npz files of a folder in the order of their names.

    Raises
    ------
    neo.DTypeError, neo.ResourceError
        It is no iterable of calls, or no such folder.
    """
    if isinstance(data, str | PathLike):
        folder = Path(data)
        files = sorted(p for p in folder.glob("*") if p.suffix in (".npy", ".npz"))
        if not files:
            found = "nothing of that name" if not folder.exists() else "none"
            msg = f"[quantize] a folder of calibration data must hold .npy or .npz files. Got {found} - at {folder}"
            raise ResourceError(msg)
        return _Files(files)
    if isinstance(data, np.ndarray | Mapping) or not isinstance(data, Iterable):
        kind = "one array" if isinstance(data, np.ndarray) else type(data).__name__
        msg = (
            f"[quantize] calibration data must be an iterable of calls. Got {kind}, expected arrays, tuples or dicts, "
            "one for each call\nHint: [x] is one call with the array x."
        )
        raise DTypeError(msg)
    return data


class _Files:
    """The arrays of files, read when they are asked for."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Any]:
        for path in self._files:
            try:
                stored = np.load(path, allow_pickle=False)
                yield stored if isinstance(stored, np.ndarray) else {name: stored[name] for name in stored.files}
            except (OSError, ValueError, EOFError, BadZipFile) as error:
                msg = f"[quantize] calibration data must be readable. Got {error} - at {path}"
                raise ResourceError(msg) from error


class Samples:
    """Calibration data as checked calls; some are kept, drawn evenly from all of them, in bounded memory.

    Parameters
    ----------
    data : iterable
        As :func:`read_samples` gives it; it is run through once.
    module : Module
        The model's; its inputs say what fits.
    most : int or None
        How many calls to take.
    seed : int
        What draws the kept calls (Vitter's algorithm R, 1985).
    """

    def __init__(self, data: Iterable[Any], module: Any, most: int | None, seed: int) -> None:
        self._data = data
        self._module = module
        self._most = most
        self._random = np.random.default_rng(seed)
        self.kept: list[dict[str, np.ndarray[Any, Any]]] = []
        self.count = 0

    @property
    def expected(self) -> int:
        """How many calls there may be; 0 where nobody knows."""
        length = len(self._data) if isinstance(self._data, Sized) else 0
        return min(length, self._most) if self._most and length else length or self._most or 0

    def __iter__(self) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
        for item in self._data:
            call = self._checked(item)
            self._keep(call)
            self.count += 1
            yield call
            if self._most is not None and self.count >= self._most:
                break
        if not self.count:
            msg = "[quantize] calibration data must hold a call or more. Got none"
            raise ModelError(msg)

    def _keep(self, call: dict[str, np.ndarray[Any, Any]]) -> None:
        size = max(1, sum(x.nbytes for x in call.values()))
        room = max(1, min(KEPT, KEPT_BYTES // size))
        if len(self.kept) < room:
            self.kept.append(call)
            return
        at = int(self._random.integers(self.count + 1))
        if at < room:
            self.kept[at] = call

    def _checked(self, item: Any) -> dict[str, np.ndarray[Any, Any]]:
        inputs: tuple[Tensor, ...] = self._module.inputs
        try:
            if isinstance(item, Mapping):
                named = dict(item)
            else:
                values = item if isinstance(item, tuple | list) else (item,)
                if len(values) != len(inputs):
                    msg = f"[quantize] a call must have an array for each input. Got {len(values)}, expected {len(inputs)}"
                    raise ModelError(msg)
                named = {spec.name: x for spec, x in zip(inputs, values, strict=True)}
            arranged = self._module._arrange(named)
        except Error as error:
            msg = f"{error} - in calibration sample {self.count}"
            raise type(error)(msg) from error
        call = {spec.name: np.array(x) for spec, x in zip(inputs, arranged, strict=True)}
        for name, x in call.items():
            if x.dtype.kind == "f" and not np.isfinite(x).all():
                found = "not-a-number" if np.isnan(x).any() else "infinity"
                msg = f"[quantize] calibration data must be finite. Got {found} in {name!r} - in calibration sample {self.count}"
                raise ModelError(msg)
        return call

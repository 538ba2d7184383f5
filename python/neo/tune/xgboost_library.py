"""XGBoost through its C API, opened at run time: training only, and only where the library is there."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neo.errors import ResourceError

__all__ = ["available", "train"]


@functools.cache
def _library() -> ctypes.CDLL | None:
    """The library of the installed xgboost package, or the system's; None where there is none."""
    places: list[str] = []
    try:
        # Finding the package does not import it.
        spec = importlib.util.find_spec("xgboost")
    except (ImportError, ValueError):
        spec = None
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        lib = Path(folder) / "lib"
        places += [str(lib / name) for name in ("libxgboost.so", "libxgboost.dylib", "xgboost.dll")]
    if system := ctypes.util.find_library("xgboost"):
        places.append(system)
    for place in places:
        if "/" in place and not Path(place).exists():
            continue
        try:
            library = ctypes.CDLL(place)
            library.XGBGetLastError.restype = ctypes.c_char_p
            _ = library.XGBoosterSaveModelToBuffer
        except (OSError, AttributeError):
            continue
        return library
    return None


def available() -> bool:
    """Whether there is a library to train with."""
    return _library() is not None


def _check(library: ctypes.CDLL, status: int) -> None:
    if status != 0:
        msg = f"[tune] XGBoost must accept what it is given. Got {library.XGBGetLastError().decode(errors='replace')}"
        raise ResourceError(msg)


def _array(values: NDArray[Any]) -> bytes:
    """An array as the interface of the C API wants it."""
    import json

    return json.dumps(
        {
            "data": [values.ctypes.data, True],
            "shape": list(values.shape),
            "typestr": values.dtype.str,
            "version": 3,
        }
    ).encode()


@contextmanager
def _matrix(
    library: ctypes.CDLL,
    rows: NDArray[np.float32],
    labels: NDArray[np.float32],
    **fields: NDArray[Any] | None,
) -> Iterator[ctypes.c_void_p]:
    handle = ctypes.c_void_p()
    config = b'{"missing": NaN, "nthread": 1}'
    _check(library, library.XGDMatrixCreateFromDense(_array(rows), config, ctypes.byref(handle)))
    try:
        for name, values in {"label": labels, **fields}.items():
            if values is not None:
                _check(library, library.XGDMatrixSetInfoFromInterface(handle, name.encode(), _array(values)))
        yield handle
    finally:
        library.XGDMatrixFree(handle)


def train(
    rows: NDArray[np.float32],
    labels: NDArray[np.float32],
    groups: NDArray[np.uint32] | None = None,
    *,
    rounds: int,
    weights: NDArray[np.float32] | None = None,
    margins: NDArray[np.float32] | None = None,
    parameters: Mapping[str, str | float] | None = None,
) -> bytes:
    """Train trees that rank rows within each group, or without groups give their labels, and write them as JSON.

    Parameters
    ----------
    rows : array
        Features, those of a group next to each other.
    labels : array
        Of each row; with groups in [0, 1]: the higher, the better it ranks.
    groups : array, optional
        How many rows each group has.
    rounds : int
        How many trees.
    weights : array, optional
        Of each row, where there are no groups.
    margins : array, optional
        What another model says of the rows already: the trees add to it.
    parameters : mapping, optional
        XGBoost's own, over the defaults of here.

    Raises
    ------
    neo.ResourceError
        There is no library, or it fails.
    """
    library = _library()
    if library is None:
        msg = "[tune] training must have XGBoost. Got no library\nHint: pip install xgboost"
        raise ResourceError(msg)
    ranks: dict[str, str | float] = {
        "objective": "rank:pairwise",
        "lambdarank_pair_method": "mean",
        "lambdarank_num_pair_per_sample": 8,
    }
    settings: dict[str, str | float] = {
        "objective": "reg:squarederror",
        **(ranks if groups is not None else {}),
        "tree_method": "hist",
        "max_depth": 6,
        "eta": 0.2,
        "nthread": 1,
        "verbosity": 0,
        "seed": 0,
        "base_score": 0.0,
        **(parameters or {}),
    }
    rows = np.ascontiguousarray(rows, np.float32)
    labels = np.ascontiguousarray(labels, np.float32)
    fields = {
        "group": None if groups is None else np.ascontiguousarray(groups, np.uint32),
        "weight": None if weights is None else np.ascontiguousarray(weights, np.float32),
        "base_margin": None if margins is None else np.ascontiguousarray(margins, np.float32),
    }
    with _matrix(library, rows, labels, **fields) as matrix:
        booster = ctypes.c_void_p()
        cache = (ctypes.c_void_p * 1)(matrix)
        _check(library, library.XGBoosterCreate(cache, ctypes.c_uint64(1), ctypes.byref(booster)))
        try:
            for name, value in settings.items():
                _check(library, library.XGBoosterSetParam(booster, name.encode(), str(value).encode()))
            for i in range(rounds):
                _check(library, library.XGBoosterUpdateOneIter(booster, i, matrix))
            size = ctypes.c_uint64()
            data = ctypes.POINTER(ctypes.c_char)()
            status = library.XGBoosterSaveModelToBuffer(
                booster, b'{"format": "json"}', ctypes.byref(size), ctypes.byref(data)
            )
            _check(library, status)
            return ctypes.string_at(data, size.value)
        finally:
            library.XGBoosterFree(booster)

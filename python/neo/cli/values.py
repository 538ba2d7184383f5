"""Values of calls as files: arrays as .npy and .npz, values of every kind as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neo.errors import ModelError
from neo.frontend.onnx.types import numpy_dtype
from neo.report.write import whole_file, write_whole

__all__ = ["check_output", "read_value", "save_outputs", "to_json"]


def read_value(path: str, kind: str | None) -> Any:
    """Read an input from a .npy file, or from a .json file where its type is known.

    Parameters
    ----------
    path : str
        The file.
    kind : str or None
        The input's type in neo's notation, ``seq(map(string,float32[]))``; of a tensor its dtype. None: not known.

    Raises
    ------
    OSError, ValueError
        The file cannot be read, or does not hold such a value.
    """
    if Path(path).suffix != ".json":
        with Path(path).open("rb") as file:
            array: np.ndarray[Any, Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array
    if kind is None:
        msg = "JSON, where no type of an input is known"
        raise ValueError(msg)
    try:
        return _from_json(json.loads(Path(path).read_text(encoding="utf-8")), kind)
    except (TypeError, AttributeError, RecursionError, OverflowError) as error:
        msg = f"no value of type {kind}: {error}"
        raise ValueError(msg) from error


def _from_json(value: Any, kind: str) -> Any:
    """A value as a call takes it: an array, a list, a dict, or None for an empty optional."""
    wrapper, _, rest = kind.partition("(")
    if wrapper == "optional":
        return None if value is None else _from_json(value, rest[:-1])
    if wrapper == "seq":
        return [_from_json(item, rest[:-1]) for item in value]
    if wrapper == "map":
        to_key: Callable[[str], str | int] = str if rest.startswith("string,") else int
        return {to_key(key): item for key, item in value.items()}
    dtype = kind.partition("[")[0]
    return np.array(value, object if dtype == "string" else numpy_dtype(dtype))


def to_json(outputs: Mapping[str, Any]) -> str:
    """Write outputs as one JSON object: arrays as nested lists, sequences as lists, maps as objects, else null.

    Raises
    ------
    neo.ModelError
        An output holds complex numbers.
    """
    return json.dumps({name: _plain(value, name) for name, value in outputs.items()})


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "c":
        msg = f"[cli] an output of complex numbers must be written to an .npz file. Got {name!r} for JSON"
        raise ModelError(msg)
    plain = value if value.dtype.kind in "fiubO" else value.astype(np.float64)
    return plain.tolist()


def check_output(path: str) -> None:
    """Refuse a file of a kind that outputs are not written to.

    Raises
    ------
    neo.ModelError
        `path` does not end in .npz or .json.
    """
    if Path(path).suffix not in (".npz", ".json"):
        msg = f"[cli] --output must be an .npz or .json file, or -. Got {path!r}"
        raise ModelError(msg)


def save_outputs(path: str, outputs: Mapping[str, Any]) -> None:
    """Write outputs to a file beside `path` and rename it: JSON where `path` ends in .json, else NumPy's .npz.

    Raises
    ------
    neo.ModelError
        A sequence, a map or an optional that is empty would have to go into an .npz file.
    """
    target = Path(path)
    if target.suffix == ".json":
        write_whole(target, to_json(outputs) + "\n")
        return
    for name, value in outputs.items():
        if not isinstance(value, np.ndarray):
            msg = f"[cli] an output that is no array must be written to a .json file. Got {name!r} for {path!r}"
            raise ModelError(msg)
    with whole_file(target) as file:
        np.savez(file, **outputs)

"""Kinds of devices that neo does not come with."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from neo import _native
from neo.errors import DTypeError

__all__ = ["load_devices"]


def load_devices(path: str | PathLike[str]) -> None:
    """Register the kinds of devices that a shared library has, for this process: each is a target by its name.

    The library's code runs; open only what you trust. docs/devices.md says how one is made.

    Parameters
    ----------
    path : path

    Raises
    ------
    neo.ResourceError
        The file is no library, or has no devices.
    neo.ModelError
        A kind of device of that name is there already.

    Examples
    --------
    >>> neo.load_devices("libmine.so")  # doctest: +SKIP
    >>> module = neo.compile("model.onnx", target="mine")  # doctest: +SKIP
    """
    if not isinstance(path, str | PathLike):
        msg = f"[devices] a library must be a path. Got {type(path).__name__}, expected a str or a PathLike"
        raise DTypeError(msg)
    _native.load_devices(str(Path(fspath(path)).absolute()))

"""What ONNX Runtime tells and sets for a whole process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from neo import _native
from neo.onnxruntime.errors import ExecutionError
from neo.onnxruntime.session import PROVIDER
from neo.version import __version__

__all__ = [
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def get_available_providers() -> list[str]:
    """The providers of this build: one for all processors."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """The providers of any build."""
    return [PROVIDER]


def get_device() -> str:
    """The kind of device: ``CPU``."""
    return "CPU"


def get_version_string() -> str:
    """Neo's release."""
    return __version__


def get_build_info() -> str:
    """The release, and the instruction set in use."""
    return f"neo {__version__}, cpu:{_native.host_isa()}"


def has_collective_ops() -> bool:
    """Whether operators over several processes are there: no."""
    return False


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Do nothing: neo's provider needs no library beside its own."""
    del cuda, cudnn, msvc, directory


def set_default_logger_severity(severity: int) -> None:
    """Let the logger "neo" pass what is at least as severe: 0 (all) to 4 (fatal).

    Raises
    ------
    RuntimeError
        The severity is none of these.
    """
    logging.getLogger("neo").setLevel(_level(severity))


def set_default_logger_callback(callback: Callable[[int, str, str, str, str], Any] | None, severity: int = 2) -> None:
    """Hand what the logger "neo" passes to a function, too.

    Parameters
    ----------
    callback : callable, or None
        Called with the severity (0 to 4), the name of the logger, an empty id, file and line, and the message. None
        ends it.
    severity : int
        As :func:`set_default_logger_severity` takes it; without effect where `callback` is None.

    Raises
    ------
    RuntimeError
        `callback` cannot be called, or the severity is none of these.
    """
    level = _level(severity)
    if callback is not None and not callable(callback):
        msg = f"[onnxruntime] a callback must be callable. Got {type(callback).__name__}"
        raise ExecutionError(msg)
    logger = logging.getLogger("neo")
    for handler in [h for h in logger.handlers if isinstance(h, _CallbackHandler)]:
        logger.removeHandler(handler)
    if callback is not None:
        logger.addHandler(_CallbackHandler(callback))
        logger.setLevel(level)


class _CallbackHandler(logging.Handler):
    """Calls a function with each record."""

    def __init__(self, callback: Callable[[int, str, str, str, str], Any]) -> None:
        super().__init__()
        self._callback = callback

    def emit(self, record: logging.LogRecord) -> None:
        """Call the function; what it raises goes the way of errors in logging."""
        severity = sum(level <= record.levelno for level in _LEVELS[1:])
        try:
            self._callback(severity, record.name, "", f"{record.filename}:{record.lineno}", record.getMessage())
        except Exception:
            self.handleError(record)


def _level(severity: int) -> int:
    if not 0 <= severity < len(_LEVELS):
        msg = f"[onnxruntime] a severity must be known. Got {severity}, expected 0 to 4"
        raise ExecutionError(msg)
    return _LEVELS[severity]


def set_default_logger_verbosity(verbosity: int) -> None:
    """Take a verbosity, which has no effect."""
    del verbosity


def set_seed(seed: int) -> None:
    """Take a seed: a random operator of a model has its own, or new numbers in each run."""
    del seed


def disable_telemetry_events() -> None:
    """Do nothing: neo sends nothing anywhere."""


def enable_telemetry_events() -> None:
    """Do nothing: neo sends nothing anywhere."""

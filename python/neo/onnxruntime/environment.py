"""What ONNX Runtime tells and sets for a whole process."""

from __future__ import annotations

import logging

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


def set_default_logger_severity(severity: int) -> None:
    """Let the logger "neo" pass what is at least as severe: 0 (all) to 4 (fatal)."""
    if not 0 <= severity < len(_LEVELS):
        msg = f"[onnxruntime] a severity must be known. Got {severity}, expected 0 to 4"
        raise ExecutionError(msg)
    logging.getLogger("neo").setLevel(_LEVELS[severity])


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

"""Options of sessions and runs: those that neo honours, and those that it takes and logs."""

from __future__ import annotations

import logging
import operator
import threading
from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import Any, Generic, TypeVar, overload

from neo import _native
from neo.onnxruntime.errors import ExecutionError, Fail
from neo.onnxruntime.ort_value import OrtValue

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]

T = TypeVar("T")


class _Choice(IntEnum):
    """A number with a name, which it prints."""

    __str__ = Enum.__str__


class GraphOptimizationLevel(_Choice):
    """How much a graph is rewritten; neo always does all it can."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Choice):
    """Whether nodes run in parallel; neo's steps share all threads of a call."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Choice):
    """The order of nodes; neo chooses it."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Option(Generic[T]):
    """An attribute of one type with a default; another type is a TypeError, as in ONNX Runtime.

    Numbers of other libraries are numbers, and what counts as true or false is a bool.
    """

    def __init__(self, default: T, *, honoured: bool = False) -> None:
        self.default = default
        self.honoured = honoured

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, options: None, owner: type) -> _Option[T]: ...
    @overload
    def __get__(self, options: _Options, owner: type) -> T: ...
    def __get__(self, options: _Options | None, owner: type) -> T | _Option[T]:
        return self if options is None else options._values.get(self.name, self.default)

    def __set__(self, options: _Options, value: T) -> None:
        kind = type(self.default)
        given: Any = value
        if kind is bool and hasattr(given, "__bool__"):
            given = bool(given)
        elif kind is int and hasattr(given, "__index__") and not isinstance(given, bool):
            given = operator.index(given)
        if not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
            msg = f"[onnxruntime] {self.name} must be its type. Got {value!r}, expected {kind.__name__}"
            raise TypeError(msg)
        options._values[self.name] = given


class _Options:
    """Attributes that are declared, and entries of a configuration."""

    __slots__ = ("_entries", "_values")
    _kind = ""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._entries: dict[str, str] = {}

    def _add_entry(self, key: str, value: str) -> None:
        for text in (key, value):
            if not isinstance(text, str):
                msg = f"[onnxruntime] entries of a configuration must be text. Got {text!r}, expected a str"
                raise TypeError(msg)
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            msg = f"[onnxruntime] {self._kind} must have the entry that is asked for. Got {key!r}"
            raise ExecutionError(msg)
        return self._entries[key]

    def log_ignored(self, log: logging.Logger) -> None:
        """Log what was set and has no effect in neo."""
        for name, value in self._values.items():
            option = getattr(type(self), name)
            if not option.honoured and value != option.default:
                log.info("%s.%s=%r has no effect in neo", self._kind, name, value)
        for key, value in self._entries.items():
            log.info("%s: the entry %r=%r has no effect in neo", self._kind, key, value)


class SessionOptions(_Options):
    """Options of a session.

    neo honours ``intra_op_num_threads``, ``enable_profiling``, ``profile_file_prefix``, ``optimized_model_filepath``, the overrides
    of free dimensions by name and added initializers. It takes the others, and logs at INFO that they have no effect.
    """

    __slots__ = ("_initializers", "_sizes", "_unnamed")
    _kind = "SessionOptions"

    enable_cpu_mem_arena = _Option(True)
    enable_mem_pattern = _Option(True)
    enable_mem_reuse = _Option(True)
    enable_profiling = _Option(False, honoured=True)
    execution_mode = _Option(ExecutionMode.ORT_SEQUENTIAL)
    execution_order = _Option(ExecutionOrder.DEFAULT)
    graph_optimization_level = _Option(GraphOptimizationLevel.ORT_ENABLE_ALL)
    inter_op_num_threads = _Option(0)
    intra_op_num_threads = _Option(0, honoured=True)
    log_severity_level = _Option(-1)
    log_verbosity_level = _Option(0)
    logid = _Option("")
    optimized_model_filepath = _Option("", honoured=True)
    profile_file_prefix = _Option("onnxruntime_profile_", honoured=True)
    use_deterministic_compute = _Option(False, honoured=True)  # neo's bits do not depend on threads or runs
    use_per_session_threads = _Option(True)

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[str, int] = {}
        self._unnamed: list[str] = []
        self._initializers: dict[str, OrtValue] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry of the configuration."""
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Return an entry; a RuntimeError where there is none."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a symbolic size."""
        self._sizes[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Take the size of a denotation, which neo does not read."""
        self._unnamed.append(f"{denotation}={size}")

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Replace the data of an initializer of the model."""
        self._initializers[name] = ort_value

    def add_external_initializers(self, names: Sequence[str], ort_values: Sequence[OrtValue]) -> None:
        """Replace the data of initializers of the model."""
        self._initializers |= dict(zip(names, ort_values, strict=True))

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """Take a provider; neo has one for all processors."""
        self._unnamed.append(f"add_provider({name!r}, {options!r})")

    def has_providers(self) -> bool:
        """Whether providers were added that count; never in neo."""
        return False

    def register_custom_ops_library(self, path: str) -> None:
        """Refuse a library of operators: neo does not run code of ONNX Runtime's interface."""
        msg = f"[onnxruntime] operators must be neo's or functions of the model. Got a library of operators, {path!r}"
        raise Fail(msg)

    def log_ignored(self, log: logging.Logger) -> None:
        """Log what was set and has no effect in neo."""
        super().log_ignored(log)
        for what in self._unnamed:
            log.info("SessionOptions: %s has no effect in neo", what)


class RunOptions(_Options):
    """Options of a run. Setting ``terminate`` ends the runs that use them, and those that are started later."""

    __slots__ = ("_lock", "_terminate", "_tokens")
    _kind = "RunOptions"

    log_severity_level = _Option(-1)
    log_verbosity_level = _Option(0)
    logid = _Option("")
    only_execute_path_to_fetches = _Option(False)

    def __init__(self) -> None:
        super().__init__()
        self._terminate = False
        self._tokens: set[_native.CancelToken] = set()
        self._lock = threading.Lock()

    @property
    def terminate(self) -> bool:
        """Whether runs with these options end with an error."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        with self._lock:
            self._terminate = bool(value)
            if self._terminate:
                for token in self._tokens:
                    token.cancel()

    def start(self) -> _native.CancelToken:
        """Begin a run that these options may end."""
        token = _native.CancelToken()
        with self._lock:
            if self._terminate:
                msg = "[onnxruntime] terminate must not be set. Got RunOptions.terminate=True"
                raise Fail(msg)
            self._tokens.add(token)
        return token

    def finish(self, token: _native.CancelToken) -> None:
        """End a run."""
        with self._lock:
            self._tokens.discard(token)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry of the configuration."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Return an entry; a RuntimeError where there is none."""
        return self._entry(key)

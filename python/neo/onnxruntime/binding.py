"""Inputs and outputs that stay bound between runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from neo.onnxruntime.errors import ExecutionError
from neo.onnxruntime.node_arg import NodeArg
from neo.onnxruntime.ort_value import OrtValue, array_at, check_device

__all__ = ["IOBinding"]


class Bindable(Protocol):
    """A session, as far as bindings know it."""

    def get_inputs(self) -> Sequence[NodeArg]:
        """The inputs."""

    def get_outputs(self) -> Sequence[NodeArg]:
        """The outputs."""


class IOBinding:
    """Inputs and outputs by name for :meth:`InferenceSession.run_with_iobinding`; made by ``session.io_binding()``."""

    def __init__(self, session: Bindable) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def _check_input(self, name: str) -> None:
        names = [arg.name for arg in self._session.get_inputs()]
        if name not in names:
            msg = f"[onnxruntime] a bound input must be the model's. Got {name!r}, expected {', '.join(names)}"
            raise ExecutionError(msg)

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray[Any, Any]) -> None:
        """Bind an input to an array, which is read at each run."""
        self._check_input(name)
        if not isinstance(arr_on_cpu, np.ndarray):
            msg = f"[onnxruntime] a bound input must be a NumPy array. Got {type(arr_on_cpu).__name__}"
            raise ExecutionError(msg)
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Bind an input to dense memory of the caller's at an address."""
        del device_id
        check_device(device_type)
        self._check_input(name)
        self._inputs[name] = array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to a value."""
        self._check_input(name)
        self._inputs[name] = ortvalue.value()

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Bind an output to dense memory of the caller's, or ask for it where there is none."""
        del device_id
        check_device(device_type)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        if element_type is None or shape is None:
            msg = "`element_type` and `shape` are to be provided if pre-allocated memory is provided"
            raise ValueError(msg)
        self._outputs[name] = OrtValue(array_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to a value, which is written at each run."""
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Wait for copies of inputs, of which neo has none."""

    def synchronize_outputs(self) -> None:
        """Wait for copies of outputs, of which neo has none."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return the outputs of the last run as arrays of their own."""
        return [v.numpy().copy() if v.is_tensor() else v.value() for v in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs, and what the last run gave."""
        self._outputs.clear()
        self._results.clear()

"""The result of :func:`neo.quantize`."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from neo.errors import DTypeError, ModelError, ResourceError
from neo.module import Module
from neo.quantize.report import QuantizeReport
from neo.report.write import whole_file

if TYPE_CHECKING:
    from neo.front import Front
    from neo.quantize.study import Builder, Study

__all__ = ["Quantized"]


class Quantized:
    """A quantized model: an ONNX model, what was decided, and the way to a module.

    Attributes
    ----------
    report : QuantizeReport
        What each layer gained and cost.
    """

    def __init__(
        self, proto: onnx.ModelProto, report: QuantizeReport, build: Builder, study: Study | None = None
    ) -> None:
        self._proto = proto
        self._build = build
        self._study = study
        self.report = report

    @property
    def model(self) -> onnx.ModelProto:
        """The quantized model; a copy."""
        copy = onnx.ModelProto()
        copy.CopyFrom(self._proto)
        return copy

    @property
    def is_quantized(self) -> bool:
        """Whether any layer is; where quantizing gains nothing under the limit, the float model is the result."""
        return any(layer.precision != "float32" for layer in self.report.layers)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model as ONNX, which ONNX Runtime, OpenVINO and neo run. The same arguments give the same bytes.

        Raises
        ------
        neo.ResourceError
            The file cannot be written.
        """
        if not isinstance(path, str | PathLike):
            msg = f"[quantize] path must be a path. Got {type(path).__name__}, expected a str or a PathLike"
            raise DTypeError(msg)
        target = Path(os.fspath(path))
        try:
            with whole_file(target) as file:
                file.write(self._proto.SerializeToString(deterministic=True))
        except OSError as error:
            msg = f"[quantize] the file must be written. Got {error.strerror or error} - at {str(target)!r}"
            raise ResourceError(msg) from error

    def compile(self) -> Module:
        """Compile the quantized model for the target and threads that :func:`neo.quantize` was given."""
        return self._build(self._proto)

    def pareto(self, points: int = 10) -> Front:
        """Time against error, memory and file size: plans of more and more quantized layers, measured on this machine.

        :func:`neo.pareto` has float modules of less memory or error beside them.

        Parameters
        ----------
        points : int
            At most so many plans between the float model and the one whose layers are all quantized.

        Raises
        ------
        neo.ModelError
            The model was quantized without data.
        """
        from neo.front import measure_front
        from neo.quantize.front import candidates_of

        if self._study is None:
            msg = "[quantize] time against error must have calibration data to be measured on. Got none"
            raise ModelError(msg)
        if isinstance(points, bool) or not isinstance(points, int) or points < 2:
            msg = f"[quantize] points must be a number of 2 or more. Got {points!r}"
            raise ModelError(msg)
        return measure_front(candidates_of(self._study, points), self._study.calls[0])

    def __str__(self) -> str:
        return str(self.report)

    def __repr__(self) -> str:
        return f"<neo.Quantized: {self.report.summary().splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

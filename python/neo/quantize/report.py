"""The report of a quantization, as text and as HTML."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from neo.report.table import counted, render_table

__all__ = ["LayerReport", "QuantizeReport"]


@dataclass(frozen=True)
class LayerReport:
    """One node with weights.

    Attributes
    ----------
    name, op : str
        The node.
    precision : str
        ``"int8"``, ``"int8 weights"`` or ``"float32"``.
    reason : str
        Why it stays float; empty where it does not.
    low, high : float or None
        The range of its input that codes stand for.
    error : float or None
        The error of the outputs if only this layer is quantized; None where nobody had to know.
    gain_us : float or None
        Microseconds that its codes save, by estimate.
    """

    name: str
    op: str
    precision: str
    reason: str = ""
    low: float | None = None
    high: float | None = None
    error: float | None = None
    gain_us: float | None = None


@dataclass(frozen=True)
class QuantizeReport:
    """A model before and after. ``str()`` is a table and a summary; notebooks show HTML.

    Attributes
    ----------
    layers : tuple of LayerReport
        In the model's order.
    verdict : tuple of str
        What was decided and why, a sentence each.
    error : float or None
        Energy of the outputs' difference from the float model's over that of the outputs; None without data.
    agreement : float or None
        The share of rows with the same largest element, for classifiers.
    float_ms, quantized_ms : float or None
        Milliseconds of a call on this machine, measured in turns.
    float_bytes, quantized_bytes : int
        Sizes of the two models as files.
    samples : int
        Calibration samples.
    """

    layers: tuple[LayerReport, ...]
    verdict: tuple[str, ...]
    error: float | None
    agreement: float | None
    float_ms: float | None
    quantized_ms: float | None
    float_bytes: int
    quantized_bytes: int
    samples: int

    def summary(self) -> str:
        """A line or more without the table."""
        count = sum(layer.precision != "float32" for layer in self.layers)
        parts = [
            f"{count} of {len(self.layers)} layers quantized",
            f"{_size(self.float_bytes)} to {_size(self.quantized_bytes)}",
        ]
        if self.error is not None:
            parts.append(f"relative error of the outputs {_percent(math.sqrt(self.error))}")
        if self.agreement is not None:
            parts.append(f"top-1 agreement {_percent(self.agreement)}")
        if self.float_ms is not None and self.quantized_ms is not None:
            ratio = self.float_ms / self.quantized_ms if self.quantized_ms else math.inf
            parts.append(f"{self.float_ms:.3g} to {self.quantized_ms:.3g} ms ({ratio:.2f} times as fast)")
        if self.samples:
            parts.append(counted(self.samples, "calibration sample"))
        return "\n".join((", ".join(parts), *self.verdict))

    def _rows(self) -> tuple[list[str], list[tuple[str, ...]]]:
        header = ["node", "op", "precision", "input range", "error alone", "saved us", "why float"]
        rows = [
            (
                layer.name,
                layer.op,
                layer.precision,
                "" if layer.low is None or layer.high is None else f"{layer.low:.4g} to {layer.high:.4g}",
                "" if layer.error is None else f"{layer.error:.2e}",
                "" if layer.gain_us is None else f"{layer.gain_us:.1f}",
                layer.reason,
            )
            for layer in self.layers
        ]
        used = [i for i in range(len(header)) if i < 3 or any(row[i] for row in rows)]
        return [header[i] for i in used], [tuple(row[i] for i in used) for row in rows]

    def table(self) -> str:
        """A line for each layer."""
        header, rows = self._rows()
        right = [i for i, text in enumerate(header) if text in ("error alone", "saved us")]
        return render_table(header, rows, right=right)

    def __str__(self) -> str:
        return f"{self.table()}\n{self.summary()}"

    def _repr_html_(self) -> str:
        header, rows = self._rows()
        head = "".join(f"<th>{html.escape(text)}</th>" for text in header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows)
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.summary().split("\n"))
        return f"{lines}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if math.isfinite(share) else "without bound"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"

"""Counts and times of requests as Prometheus reads them.

https://prometheus.io/docs/instrumenting/exposition_formats/, the text format 0.0.4.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Times:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds


class Metrics:
    """What an application counts; used by one event loop."""

    def __init__(self) -> None:
        self.in_progress = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._times: dict[str, _Times] = {}
        self._batches: Counter[str] = Counter()
        self._batched: Counter[str] = Counter()

    def add_request(self, model: str, status: int, seconds: float) -> None:
        """Count a request for inference that was answered, or whose client went away (499)."""
        self._requests[model, status] += 1
        self._times.setdefault(model, _Times()).add(seconds)

    def add_batch(self, model: str, requests: int) -> None:
        """Count a call that served `requests` requests."""
        self._batches[model] += 1
        self._batched[model] += requests

    def text(self) -> str:
        """Every metric in the text format."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# HELP neo_requests_in_progress Requests for inference that are being answered."
        yield "# TYPE neo_requests_in_progress gauge"
        yield f"neo_requests_in_progress {self.in_progress}"
        yield "# HELP neo_requests_total Requests for inference, by the status of their answer."
        yield "# TYPE neo_requests_total counter"
        for (model, status), count in sorted(self._requests.items()):
            yield f'neo_requests_total{{model="{_escaped(model)}",status="{status}"}} {count}'
        yield "# HELP neo_batches_total Calls of a module."
        yield "# TYPE neo_batches_total counter"
        for model, count in sorted(self._batches.items()):
            yield f'neo_batches_total{{model="{_escaped(model)}"}} {count}'
        yield "# HELP neo_batched_requests_total Requests that the calls served."
        yield "# TYPE neo_batched_requests_total counter"
        for model, count in sorted(self._batched.items()):
            yield f'neo_batched_requests_total{{model="{_escaped(model)}"}} {count}'
        yield "# HELP neo_request_duration_seconds From the head of a request to its answer."
        yield "# TYPE neo_request_duration_seconds histogram"
        for model, times in sorted(self._times.items()):
            label = f'model="{_escaped(model)}"'
            count = 0
            for bound, more in zip((*_BOUNDS, "+Inf"), times.counts, strict=True):
                count += more
                yield f'neo_request_duration_seconds_bucket{{{label},le="{bound}"}} {count}'
            yield f"neo_request_duration_seconds_sum{{{label}}} {times.total:.9g}"
            yield f"neo_request_duration_seconds_count{{{label}}} {count}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

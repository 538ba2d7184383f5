"""A pytest plugin (``-p pytest_strict``) that fails a run in which anything was skipped.

What no installation can change is allowed: a test whose reason to skip begins with ``not on this processor``.
"""

from __future__ import annotations

import pytest

ALLOWED = "not on this processor"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why it was skipped; pytest keeps a file, a line and the text."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return text.removeprefix("Skipped: ")


class StrictSkips:
    """Collects the skips of a run and turns its success into a failure if there were any."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Remember a report that is a skip; an expected failure is none, nor is what the processor lacks."""
        if report.skipped and not hasattr(report, "wasxfail") and not _reason(report).startswith(ALLOWED):
            self.skipped.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, and this run is strict")
            for nodeid in self.skipped:
                terminalreporter.write_line(nodeid)


def pytest_configure(config: pytest.Config) -> None:
    """Register one collector per run."""
    config.pluginmanager.register(StrictSkips(), "strict_skips")

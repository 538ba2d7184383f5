"""One measurement at a time on a machine."""

import subprocess
import sys
import threading

import pytest
from neo.tune import alone as module
from neo.tune.alone import alone

HOLD = """
import sys
from neo.tune.alone import alone
with alone():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_another_process_is_waited_for_but_not_for_ever():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD], **pipes) as other:
        assert other.stdout.readline() == b"held\n"
        clock = Clock()
        with alone(5.0, clock, clock.sleep) as is_alone:
            assert not is_alone
        assert 5.0 <= clock.now < 5.1
        other.kill()
    with alone(0.0) as is_alone:
        assert is_alone, "a process that was killed holds nothing"


def test_it_works_in_itself_and_keeps_other_threads_out():
    order = []

    def other():
        with alone():
            order.append("other")

    with alone(), alone() as is_alone:
        assert is_alone
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_where_nobody_can_lock_it_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path / "missing"))
    with alone(0.0) as is_alone:
        assert is_alone

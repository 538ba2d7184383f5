"""A bench whose times are given, on a clock that only it moves."""

import pytest
from neo.tune import Context, Database, default_path

HERE = Context("a machine", "some kernels", "avx2", 2)


def trial(workload, candidate, estimate_us, *, weight=1.0, packed_bytes=0, unmeasurable=None, routine=None):
    return {
        "workload": workload,
        "candidate": candidate,
        "routine": routine or candidate.split("{")[0],
        "unmeasurable": unmeasurable,
        "estimate_us": estimate_us,
        "weight": weight,
        "packed_bytes": packed_bytes,
        "error": 0.0,
        "made": False,
    }


class FakeBench:
    """Measures what `times` says (None: fails), each at a cost of one second of its clock."""

    threads = 2

    def __init__(self, trials, times, cache_level="shared", seconds_each=1.0):
        self.trials = trials
        self.cache_level = cache_level
        self.times = times
        self.seconds_each = seconds_each
        self.now = 0.0
        self.calls = []
        self.priced = None

    def clock(self):
        return self.now

    def measure(self, indices, cache_level, seconds=None):
        self.calls.append(([self.trials[i]["candidate"] for i in indices], cache_level, seconds))
        out = []
        for i in indices:
            self.now += self.seconds_each
            time_us = self.times[self.trials[i]["candidate"]]
            out.append((time_us, 9 if time_us else 0, "" if time_us else "it failed", 0.0))
        return out

    def price(self, times_us, measured):
        self.priced = dict(
            zip([t["candidate"] for t in self.trials], zip(times_us, measured, strict=True), strict=True)
        )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tuning.db"


@pytest.fixture
def database(path):
    with Database(path) as opened:
        yield opened


@pytest.fixture
def model():
    from neo import demo

    return demo.model_bytes()


@pytest.fixture(autouse=True)
def no_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_path().is_relative_to(tmp_path)

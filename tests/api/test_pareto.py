"""Modules of one model against each other."""

import json

import neo
import numpy as np
import pytest
from neo.front import Point

from tests.api.test_kept_limits import convolutions


def is_beaten(p, q):
    """Whether `q` is no worse than `p` in any respect, and smaller in one."""
    a, b = ((x.time_ms, x.error, x.memory, x.file_bytes) for x in (p, q))
    return all(v <= u for u, v in zip(a, b, strict=True)) and b[1:] != a[1:]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, 24, 20, 20)).astype(np.float32) for _ in range(4)]


def test_float_modules(tmp_path):
    front = neo.pareto(convolutions(), threads=1, points=8)
    assert 2 <= len(front.points) <= 8
    assert any(p.error == 0 for p in front.points)
    for p in front.points:
        assert not any(is_beaten(p, q) for q in front.points)
        assert 0 < p.bound_ms <= p.estimate_ms * (1 + 1e-9)
        if "memory" in p.arguments:
            module = neo.compile(convolutions(), threads=1, **p.arguments)
            assert module.memory.bound <= p.memory
            module.save(tmp_path / "m.neo")
    assert [p.time_ms for p in front.points] == sorted(p.time_ms for p in front.points)
    assert "memory MB" in str(front)
    json.dumps(front.to_json())


def test_quantized_modules_stand_beside_float_ones(data):
    front = neo.pareto(convolutions(), data, threads=1, points=8)
    assert any(p.layers for p in front.points)
    assert any(not p.layers for p in front.points)
    smallest = min(front.points, key=lambda p: p.file_bytes)
    assert smallest.layers == 3
    assert smallest.error > 1e-8


def test_picture(data, tmp_path):
    pytest.importorskip("matplotlib")
    neo.pareto(convolutions(), data, threads=1, points=4).plot().savefig(tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 1000


def test_a_lead_that_may_be_chance_beats_nobody():
    p = Point(1.0, 0.0, 10, 10, 1.0, 1.0)
    assert not p.is_dominated_by(Point(0.999, 0.0, 10, 10, 1.0, 1.0))
    assert p.is_dominated_by(Point(0.9, 0.0, 10, 10, 1.0, 1.0))
    assert p.is_dominated_by(Point(1.0, 0.0, 9, 10, 1.0, 1.0))
    assert not p.is_dominated_by(Point(0.9, 1e-9, 10, 10, 1.0, 1.0))


def test_command(neo_command, digits_file, tmp_path):
    status, out, _ = neo_command(
        "pareto", digits_file, "--threads", "1", "--points", "3", "--json", tmp_path / "f.json"
    )
    assert status == 0
    assert "file MB" in out
    assert json.loads((tmp_path / "f.json").read_text())


def test_malformed(neo_command, digits_file):
    for points in (1, True, 2.5):
        with pytest.raises(neo.ModelError, match="points must be a number of 2 or more"):
            neo.pareto(convolutions(), points=points)
    with pytest.raises(neo.ModelError, match="there must be one target and one set of sizes. Got 2 variants"):
        neo.pareto(convolutions(batch="N"), shapes={"N": [1, 2]})
    status, _, err = neo_command("pareto", digits_file, "--picture", "no-such-folder/p.png")
    assert status == 1
    assert "--picture must lie in a folder that exists" in err

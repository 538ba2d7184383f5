"""A short campaign, and the runner that long ones need."""

from __future__ import annotations

import collections
import json
import zipfile
from pathlib import Path

import pytest
from neo import _native
from neo.frontend.onnx import read_model

from tests.untrusted import campaign
from tests.untrusted.attempt import Attempts
from tests.untrusted.seeds import built_seeds
from tests.untrusted.stages import STAGES


def test_damaged_models_are_refused_or_run(tmp_path: Path) -> None:
    attempts = Attempts(built_seeds(), tmp_path, call_seconds=0.2)
    outcomes = [attempts.run(number) for number in range(250)]
    assert [o for o in outcomes if o.finding] == []
    stages = collections.Counter(o.stage for o in outcomes)
    reached = {stage: sum(stages[s] for s in STAGES[i:]) / len(outcomes) for i, stage in enumerate(STAGES)}
    assert reached["import"] > 0.5
    assert reached["select"] > 0.2


def test_the_seeds_are_offered_every_routine() -> None:
    offered = set()
    for seed in built_seeds():
        graph, _ = read_model(seed.model)
        problem = _native.build_problem(_native.run_passes(graph), "cpu", 2)
        offered |= {c["routine"].split("{")[0] for entry in problem.nodes for c in entry["choices"] if "routine" in c}
    known = {name for name in _native.routine_names() if name.startswith("cpu")}
    assert known <= offered


def test_the_same_number_makes_the_same_model(tmp_path: Path) -> None:
    first, second = (Attempts(built_seeds(), tmp_path) for _ in range(2))
    assert [first.make(n)[0] for n in range(50)] == [second.make(n)[0] for n in range(50)]


def _save(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for seed in built_seeds()[:2]:
            file.writestr(f"{seed.name}.onnx", seed.model.SerializeToString())


def test_a_campaign_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _save(tmp_path / "seeds.zip")
    for last in (20, 30):
        assert campaign.main(["--seeds", f"0:{last}", "--processes", "2", "--work", str(tmp_path)]) == 0
        summary = json.loads((tmp_path / "summary.json").read_text())
        assert summary["tried"] == summary["reached"]["file"] == last
    logs = [line for p in tmp_path.glob("worker*/log.jsonl") for line in p.read_text().splitlines()]
    assert len(logs) == 30
    assert "30 damaged models tried" in capsys.readouterr().out


def test_what_ends_a_process_is_found_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(tmp_path / "seeds.zip")
    monkeypatch.setenv("NEO_CAMPAIGN_CRASH", "7")
    assert campaign.main(["--seeds", "0:12", "--work", str(tmp_path)]) == 1
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["tried"] == 12
    assert [f["seed"] for f in summary["findings"]] == [7]
    assert "crash: exit status -6" in summary["findings"][0]["what"]

"""The check for a machine with a GPU, run dry: no minute there is to be lost to a slip."""

import json
import os
import subprocess
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu_check import __main__ as check
from benchmarks.gpu_check import estimates, network, report
from benchmarks.gpu_check.context import Context
from tests.devices import emulated_cuda

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "gpu_check.sh"


def run(folder, *arguments, environment=None):
    command = [SCRIPT, "--few", "--out", folder, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    results = json.loads((folder / "results.json").read_text())
    assert {
        name: part["status"] for name, part in results.items() if part.get("status") not in ("done", "skipped")
    } == {}
    assert done.returncode == 0, done.stdout + done.stderr
    return results, done.stdout


def context_of(folder, seconds=60.0, few=True):
    return Context("null", folder, folder, few, time.time() + seconds)


def test_every_part_runs_on_the_null_device_and_is_not_run_again(tmp_path):
    results, _ = run(tmp_path, "--target", "null")
    assert list(results) == list(check.PARTS)
    assert results["smoke"]["steps"].get("cpu", 0) == 0
    assert results["dtypes"]["float16"]["verdict"]
    assert results["profiles"]["networks"]
    summary = (tmp_path / "summary.md").read_text()
    for name in check.PARTS:
        assert f"| {name} | " in summary
    with tarfile.open(tmp_path / "details.tar.gz") as archive:
        assert "parts/smoke.json" in archive.getnames()
    _, said = run(tmp_path, "--target", "null")
    assert said.count(" before") == len(check.PARTS)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_every_part_runs_and_agrees_on_a_device_that_computes(tmp_path, target):
    results, _ = run(tmp_path, "--target", target, environment=emulated_cuda.environment())
    assert max(results["smoke"]["differences of four calls"]) < 1e-5
    assert not results["conformance"]["failed"]
    assert results["conformance"]["with a step on the device"] > 0
    assert not results["models"]["failed"]
    assert not results["networks"].get("wrong")
    assert results["figures"]["launch_us"] > 0
    assert results["profiles"]["families"]
    assert results["profiles"]["slowest"][0]["files"]
    if "passed" in results["kernels"]:
        assert results["kernels"]["passed"] > 0
        assert not results["kernels"]["failed"]


def test_a_part_that_there_is_not_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        check.main(["--out", str(tmp_path), "--only", "smoke,nosuch"])
    assert "--only must name parts. Got nosuch" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_part_whose_time_is_over_ends_and_says_so(tmp_path):
    context = context_of(tmp_path)
    check.start_part("smoke", context, 0.05)
    assert context.load("smoke")["status"] == "failed"
    assert "its time was over" in context.load("smoke")["error"]
    report.write(context, list(check.PARTS))
    assert "its time was over" in (tmp_path / "summary.md").read_text()


def test_a_part_that_fails_keeps_what_it_found_and_its_error(tmp_path, monkeypatch):
    def fail(context):
        context.save("smoke", {"first": 1})
        raise RuntimeError("nothing works")

    context = context_of(tmp_path)
    monkeypatch.setitem(check.PARTS, "smoke", (fail, 10))
    assert check.run_part("smoke", context) == 1
    found = context.load("smoke")
    assert found["status"] == "failed"
    assert found["first"] == 1
    assert "nothing works" in found["error"]


def test_the_parts_fit_into_nine_minutes():
    assert (
        sum(seconds for name, (_, seconds) in check.PARTS.items() if name in ("environment", "smoke", "networks")) < 300
    )


def test_networks_are_listed_once_and_the_most_telling_first(tmp_path):
    listed = network.listed(context_of(tmp_path, few=False))
    assert listed[0] == ("resnet50", 1)
    assert len(listed) == len(set(listed))
    assert {batch for _, batch in listed} == set(network.BATCHES)


def test_a_family_is_fitted_by_scale_and_offset():
    steps = [{"family": "gpu/x", "us": 3.0 * us + 2, "estimate_us": float(us)} for us in range(1, 20)]
    (row,) = estimates.families(steps)
    assert row["steps"] == 19
    assert row["scale"] == pytest.approx(3)
    assert row["offset_us"] == pytest.approx(2)
    assert row["rank correlation"] == pytest.approx(1)


def test_ranks_of_equal_values_are_their_mean():
    np.testing.assert_array_equal(estimates.ranks([3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0])
    assert estimates.rank_correlation([1.0, 2.0, 3.0], [9.0, 5.0, 1.0]) == pytest.approx(-1)
    assert estimates.rank_correlation([1.0, 1.0, 1.0], [9.0, 5.0, 1.0]) is None


def test_how_far_ahead_neo_is_counts_the_same_precision_alone():
    found = {"ms": {"neo, fp32": 2.0, "torch eager, fp32": 5.0, "torch graph, fp32": 3.0, "torch graph, tf32": 1.0}}
    assert network.ratios(found, "fp32") == 1.5
    assert network.ratios(found, "tf32") is None


def test_without_what_is_carried_the_script_says_what_is_missing(tmp_path):
    environment = {**os.environ, "PYTHON": "/nonexistent/python"}
    done = subprocess.run([SCRIPT, "--target", "null"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode != 0

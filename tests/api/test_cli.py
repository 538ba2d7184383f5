"""The command neo: every subcommand, what it prints, and its exit status."""

import json
import re
import subprocess
import sys

import neo
import numpy as np
import onnx
import pytest
from neo import _native, demo
from onnx import TensorProto, helper

from tests.api.conftest import build, value


def test_run_prints_each_output_and_writes_them(neo_command, digits_file, digits, images, tmp_path):
    np.save(tmp_path / "in.npy", images[:3])
    status, out, err = neo_command(
        "run", digits_file, "--input", f"image={tmp_path / 'in.npy'}", "--output", tmp_path / "out.npz"
    )
    assert (status, err) == (0, "")
    assert re.search(r"probabilities +float32 +\[3, 10\]", out)
    with np.load(tmp_path / "out.npz") as written:
        assert list(written) == ["probabilities"]
        np.testing.assert_array_equal(written["probabilities"], digits(images[:3]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.npy", "out.npz"]


def test_run_prints_the_smallest_and_the_largest_element(neo_command, digits_file, digits, images, tmp_path):
    np.save(tmp_path / "in.npy", images[:3])
    _, out, _ = neo_command("run", digits_file, "--input", f"image={tmp_path / 'in.npy'}")
    x = digits(images[:3])
    (row,) = [line.split() for line in out.splitlines() if line.startswith("probabilities")]
    assert row[-2:] == [f"{x.min():.6g}", f"{x.max():.6g}"]


def test_run_makes_up_inputs_of_every_dtype_it_can(neo_command, tmp_path):
    dtypes = {"f": TensorProto.FLOAT16, "i": TensorProto.INT32, "b": TensorProto.BOOL, "s": TensorProto.STRING}
    model = build(
        [helper.make_node("Identity", [k], [f"{k}_out"]) for k in dtypes],
        [value(k, ["N", 2], d) for k, d in dtypes.items()],
        [value(f"{k}_out", ["N", 2], d) for k, d in dtypes.items()],
    )
    onnx.save(model, tmp_path / "m.onnx")
    status, out, err = neo_command("run", tmp_path / "m.onnx", "--shape", "N=3")
    assert (status, err) == (0, "")
    assert out.count("[3, 2]") == 4


@pytest.mark.parametrize("command", [["bench", "--seconds", "0.01"], ["profile"], ["explain"]])
def test_what_measures_takes_inputs(neo_command, digits_file, images, tmp_path, command):
    np.save(tmp_path / "in.npy", images[:5])
    name, *options = command
    status, out, err = neo_command(name, digits_file, *options, "--input", f"image={tmp_path / 'in.npy'}")
    assert (status, err) == (0, "")
    assert name == "bench" or " at N=5" in out


def test_a_file_of_several_arrays_is_no_input(neo_command, digits_file, images, tmp_path):
    np.savez(tmp_path / "in.npz", image=images)
    status, _, err = neo_command("run", digits_file, "--input", f"image={tmp_path / 'in.npz'}")
    assert status == 1
    assert err.startswith("[cli] the file of an input must hold its value, as .npy or .json. Got ")
    assert err.count("\n") == 1


def test_bench_prints_the_median(neo_command, digits_file):
    status, out, err = neo_command("bench", digits_file, "--seconds", "0.01", "--shape", "N=2", "--threads", "1")
    assert (status, err) == (0, "")
    assert re.fullmatch(
        r"[\d.]+ ms median, [\d.]+ ms least, [\d.]+ to [\d.]+ ms \(10 to 90 %\), \d+ calls, [\d.]+ items/s, 1 thread, cpu\n",
        out,
    )


def test_bench_beside_the_installed_engines(neo_command, digits_file):
    pytest.importorskip("onnxruntime", reason="no peer is installed")
    status, out, err = neo_command(
        "bench", digits_file, "--peers", "--rounds", "2", "--seconds", "0.02", "--shape", "N=2", "--threads", "1"
    )
    assert status == 0, err
    assert "1 thread, float32, 2 interleaved rounds" in out
    assert re.search(r"neo +│ +[\d.]+ │ +│", out)
    assert re.search(r"ort +│ +[\d.]+ │ +[\d.]+ \[[\d.]+, [\d.]+\] │", out)
    assert re.search(r"neo \d\S*; onnxruntime \S+, defaults", out)
    assert re.search(r"^(litert: NotImplementedError: no float TFLite|not installed: .*litert)", out, re.MULTILINE)


def test_bench_beside_peers_needs_rounds(neo_command, digits_file):
    status, _, err = neo_command("bench", digits_file, "--peers", "--rounds", "0")
    assert (status, err) == (1, "[cli] --rounds must be positive. Got 0, expected 1 or more\n")


def test_profile_prints_a_table_and_writes_json_and_a_picture(neo_command, digits_file, tmp_path):
    pytest.importorskip("matplotlib")
    status, out, err = neo_command(
        "profile", digits_file, "--top", "2", "--json", tmp_path / "p.json", "--timeline", tmp_path / "t.png"
    )
    assert (status, err) == (0, "")
    # Where steps are far from their estimates, a line says so.
    assert len([line for line in out.splitlines() if "tuning measures them" not in line]) == 2 + 2 + 1
    assert json.loads((tmp_path / "p.json").read_text())["steps"]
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_explain_prints_all_nodes_or_one(neo_command, digits_file):
    status, out, err = neo_command("explain", digits_file)
    assert (status, err) == (0, "")
    assert "block.conv" in out
    assert re.search(r"^selection's total [\d.]+ us.*; measured [\d.]+ us", out, re.MULTILINE)
    status, out, err = neo_command("explain", digits_file, "--no-measure")
    assert (status, err) == (0, "")
    assert "selection's total" in out
    assert "measured" not in out
    status, out, err = neo_command("explain", digits_file, "block.conv")
    assert (status, err) == (0, "")
    assert out.startswith("block.conv: Conv\n")
    assert "rejected" in out


def test_check_says_yes_or_lists_what_is_unsupported(neo_command, digits_file, unsupported_file):
    assert neo_command("check", digits_file) == (0, "neo runs every node of this model\n", "")
    status, out, err = neo_command("check", unsupported_file)
    assert (status, err) == (1, "")
    assert out.split()[:5] == ["node", "op", "opset", "dtype", "reason"]
    assert re.search(r'^node "odd" .*Nonsense', out, re.MULTILINE)


def test_info_prints_inputs_outputs_and_operators(neo_command, digits_file):
    status, out, err = neo_command("info", digits_file)
    assert (status, err) == (0, "")
    assert "input image: FLOAT" in out
    assert "output probabilities: FLOAT" in out
    assert re.search(r"^Conv +4$", out, re.MULTILINE)


def test_routines_of_a_workload_are_listed_with_their_schedules(neo_command):
    status, out, _ = neo_command("routines", "conv n1 c64 hw56 k64 f3 s1 p1 float32", "--threads", "2")
    assert status == 0
    rows = dict(line.split() for line in out.splitlines()[2:])
    assert rows["cpu/reference"] == "1"
    assert sum(map(int, rows.values())) >= 500
    assert "cpu:float32/gemm" not in rows


def test_routines_targets_and_knobs_list_what_there_is(neo_command):
    assert neo_command("routines") == (0, "\n".join(_native.routine_names()) + "\n", "")
    status, out, err = neo_command("targets")
    assert (status, err) == (0, "")
    assert all(re.search(rf"^{t['name']} ", out, re.MULTILINE) for t in _native.targets())
    assert f"cpu is cpu:{_native.host_isa()} here" in out
    for kind in _native.devices():
        for device in kind["devices"] or [{"name": "none"}]:
            assert re.search(rf"^{kind['kind']} +{re.escape(device['name'])} ", out, re.MULTILINE)
    status, out, err = neo_command("knobs")
    assert (status, err) == (0, "")
    assert all(re.search(rf"^{k['name']} ", out, re.MULTILINE) for k in _native.knobs())


def test_demo_recognises_the_digits(neo_command):
    status, out, err = neo_command("demo", "--threads", "1")
    assert (status, err) == (0, "")
    assert re.search(r"^6\d of 64 right$", out, re.MULTILINE)
    assert "Where the time goes" in out


def test_profile_and_explain_write_pages_and_traces(neo_command, digits_file, tmp_path):
    status, _, err = neo_command("profile", digits_file, "--html", tmp_path / "p.html", "--trace", tmp_path / "t.json")
    assert (status, err) == (0, "")
    assert "<title>digits · neo</title>" in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    status, out, err = neo_command("explain", digits_file, "block.conv", "--html", tmp_path / "e.html")
    assert (status, err) == (0, "")
    assert out.startswith("block.conv: Conv")
    assert "<title>digits · neo</title>" in (tmp_path / "e.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_one_line(neo_command, digits_file, tmp_path):
    status, _, err = neo_command("profile", digits_file, "--html", tmp_path / "missing" / "p.html")
    assert status == 1
    assert err.count("\n") == 1
    assert "--html must lie in a folder that exists" in err


@pytest.mark.parametrize("command", ["run", "bench", "profile", "explain", "check", "info"])
def test_a_file_that_is_not_there_is_one_line_on_the_error_stream(neo_command, command, tmp_path):
    status, out, err = neo_command(command, tmp_path / "absent.onnx")
    assert (status, out) == (1, "")
    assert err.startswith("[import] the model file must be readable. Got ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "tpu"], '[compile] target must be known. Got "tpu"'),
        (["--threads", "0"], "[cli] --threads must be 1 to 1024. Got 0"),
        (["--shape", "N"], "[cli] --shape must be SYMBOL=SIZE. Got 'N'"),
        (
            ["--input", "image=absent.npy"],
            "[cli] the file of an input must be readable. Got No such file or directory - at absent.npy",
        ),
        (["--input", "image"], "[cli] --input must be NAME=FILE. Got 'image'"),
    ],
)
def test_a_wrong_option_is_one_line_on_the_error_stream(neo_command, digits_file, arguments, message):
    status, out, err = neo_command("run", digits_file, *arguments)
    assert (status, out) == (1, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_an_unsupported_model_names_the_node(neo_command, unsupported_file):
    status, out, err = neo_command("run", unsupported_file)
    assert (status, out) == (1, "")
    assert err.startswith("[import] every node must be supported. Got 1 that are not:\n")
    assert "Nonsense" in err


@pytest.mark.parametrize("rank", [None, "sequence"])
def test_an_input_that_cannot_be_synthetic_must_be_given(neo_command, tmp_path, rank):
    x = value("x", None) if rank is None else helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])
    op = "Neg" if rank is None else "SequenceLength"
    y = value("y", None) if rank is None else value("y", [], TensorProto.INT64)
    onnx.save(build([helper.make_node(op, ["x"], ["y"])], [x], [y]), tmp_path / "m.onnx")
    status, out, err = neo_command("run", tmp_path / "m.onnx")
    assert (status, out) == (1, "")
    what, ending = ("unknown rank", "npy") if rank is None else ("type seq(float32[2])", "json")
    assert err == f"[cli] an input of {what} must be given. Got none for 'x'\nHint: --input x=FILE.{ending}\n"


def test_no_command_prints_the_commands_and_a_wrong_one_is_wrong_usage(neo_command):
    status, out, _ = neo_command()
    assert status == 2
    for name in ("run", "bench", "profile", "explain", "check", "info", "routines", "targets", "knobs", "demo"):
        assert re.search(rf"^ +{name} ", out, re.MULTILINE)
    status, out, err = neo_command("fly")
    assert (status, out) == (2, "")
    assert "invalid choice: 'fly'" in err


def test_python_m_neo_is_the_same_command(digits_file):
    done = subprocess.run(
        [sys.executable, "-m", "neo", "check", digits_file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "neo runs every node of this model\n", "")


def test_machine_prints_the_figures_of_estimates_and_what_it_measures_can_stand_in(neo_command, tmp_path, monkeypatch):
    status, out, err = neo_command("machine")
    assert (status, err) == (0, "")
    assert out == _native.machine_text("cpu")
    status, measured, err = neo_command("machine", "--measure", "--threads", "2")
    assert (status, err) == (0, "")
    assert [line.split(" = ")[0] for line in measured.splitlines()] == [x.split(" = ")[0] for x in out.splitlines()]
    file = tmp_path / "machine.txt"
    file.write_text(
        "# another one\n" + re.sub(r"^ghz = .*$", "ghz = 1.25", measured, flags=re.MULTILINE), encoding="utf-8"
    )
    monkeypatch.setenv("NEO_MACHINE", str(file))
    assert "ghz = 1.25\n" in _native.machine_text("cpu")
    slower = neo.compile(demo.model_bytes(), threads=1)._native.estimate_us
    monkeypatch.delenv("NEO_MACHINE")
    assert slower > neo.compile(demo.model_bytes(), threads=1)._native.estimate_us


def test_a_machine_file_that_is_missing_or_damaged_is_one_line(neo_command, digits_file, tmp_path, monkeypatch):
    monkeypatch.setenv("NEO_MACHINE", str(tmp_path / "none.txt"))
    status, _, err = neo_command("explain", digits_file)
    assert status == 1
    assert err.startswith("[machine] NEO_MACHINE must name a file that can be read. Got ")
    file = tmp_path / "machine.txt"
    file.write_text("ghz = fast\n", encoding="utf-8")
    monkeypatch.setenv("NEO_MACHINE", str(file))
    status, _, err = neo_command("machine")
    assert status == 1
    assert 'Got "ghz = fast" in ' in err

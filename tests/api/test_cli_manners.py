"""The command neo before anything is computed, quietly, as JSON, and from a shell."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import neo
import onnx
import pytest
from neo import cli

COMMANDS = ["run", "bench", "profile", "explain", "check", "info"]


@pytest.fixture
def module_file(neo_command, digits_file, tmp_path):
    path = tmp_path / "digits.neo"
    assert neo_command("compile", digits_file, "-o", path)[0] == 0
    return path


def test_a_size_that_no_memory_holds(neo_command, digits_file):
    for command in ("run", "bench", "profile"):
        status, _, err = neo_command(command, digits_file, "--shape", "N=1000000000")
        assert (status, err.count("\n")) == (1, 1)
        assert "must fit in memory. Got [1000000000, 1, 8, 8] for 'image'" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "MODEL", "--output", "none/out.npz"],
        ["compile", "MODEL", "-o", "none/out.neo"],
        ["optimize", "MODEL", "none/out.onnx"],
        ["profile", "MODEL", "--json", "none/out.json"],
        ["profile", "MODEL", "--html", "none/out.html"],
        ["profile", "MODEL", "--trace", "none/out.json"],
        ["explain", "MODEL", "--json", "none/out.json"],
        ["explain", "MODEL", "--html", "none/out.html"],
        ["bench", "MODEL", "--json", "none/out.json"],
        ["check", "MODEL", "--json", "none/out.json"],
        ["info", "MODEL", "--json", "none/out.json"],
        ["routines", "--json", "none/out.json"],
        ["targets", "--json", "none/out.json"],
        ["machine", "--json", "none/out.json"],
        ["db", "export", "none/out.jsonl"],
    ],
    ids=lambda a: f"{a[0]} {a[-2]}",
)
def test_a_folder_that_is_not_there(neo_command, digits_file, arguments):
    status, out, err = neo_command(*(digits_file if a == "MODEL" else a for a in arguments))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "must lie in a folder that exists. Got 'none/out." in err


@pytest.mark.parametrize("name", ["out.txt", "out", "out.npy"])
def test_outputs_of_a_kind_that_nobody_writes(neo_command, digits_file, tmp_path, name):
    status, _, err = neo_command("run", digits_file, "--output", tmp_path / name)
    assert status == 1
    assert "--output must be an .npz or .json file, or -" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["compile", "MODEL", "-o", "out.onnx"], "--output must be a .neo file. Got 'out.onnx'"),
        (["optimize", "MODEL", "out.neo"], "the output must be an .onnx file. Got 'out.neo'"),
        (["quantize", "MODEL", "-o", "out"], "--output must be an .onnx file. Got 'out'"),
        (["profile", "MODEL", "--html", "-"], "--html must be a file. Got '-'"),
        (["explain", "MODEL", "--html", "-"], "--html must be a file. Got '-'"),
        (["profile", "MODEL", "--trace", "-"], "--trace must be a file. Got '-'"),
        (["db", "export", "-"], "the file to export to must be a file. Got '-'"),
    ],
    ids=lambda a: f"{a[0]} {a[-1]}" if isinstance(a, list) else "",
)
def test_a_file_has_the_ending_of_its_kind(neo_command, digits_file, tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    status, out, err = neo_command(*(digits_file if a == "MODEL" else a for a in arguments))
    assert (status, out) == (1, "")
    assert text in err
    assert not list(tmp_path.iterdir())


PICTURES = [["profile", "MODEL", "--timeline"], ["pareto", "MODEL", "--picture"], ["quantize", "MODEL", "--pareto"]]


@pytest.mark.parametrize("command", PICTURES, ids=lambda a: a[0])
def test_a_picture_that_nobody_draws(neo_command, digits_file, tmp_path, monkeypatch, command):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    command = [digits_file if a == "MODEL" else a for a in command]
    status, out, err = neo_command(*command, "out.txt")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert f"{command[-1]} must end in a kind of picture. Got 'out.txt', expected .png, .svg, .pdf" in err
    assert "must lie in a folder that exists" in neo_command(*command, "none/out.png")[2]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", PICTURES, ids=lambda a: a[0])
def test_a_picture_without_matplotlib(neo_command, digits_file, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name in [m for m in sys.modules if m.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = neo_command(*(digits_file if a == "MODEL" else a for a in command), "out.png")
    assert (status, out) == (1, "")
    assert err == f"[cli] {command[-1]} must find matplotlib. Got none\nHint: pip install matplotlib\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["profile"], ["check", "--accuracy"]], ids=" ".join)
def test_rows_that_are_none(neo_command, digits_file, command):
    status, out, err = neo_command(*command, digits_file, "--top", "-5")
    assert (status, out, err) == (1, "", "[cli] --top must be positive. Got -5, expected 1 or more\n")


@pytest.mark.parametrize("command", ["run", "bench", "profile", "explain"])
def test_a_symbol_that_a_module_does_not_have(neo_command, module_file, command):
    status, out, err = neo_command(command, module_file, "--shape", "Q=3")
    assert (status, out) == (1, "")
    assert err == "[cli] --shape must name a symbol of the module. Got 'Q', expected 'N'\n"


@pytest.mark.parametrize("command", [["run"], ["check", "--accuracy"]], ids=" ".join)
@pytest.mark.parametrize(
    ("content", "ending"),
    [(b"", "npy"), (b"no array", "npy"), (b"PK\3\4no archive", "npy"), (b"\x93NUMPY\1\0", "npy"), (b"{", "json")],
)
def test_files_that_hold_no_value(neo_command, digits_file, tmp_path, command, content, ending):
    path = tmp_path / f"x.{ending}"
    path.write_bytes(content)
    status, out, err = neo_command(*command, digits_file, "--input", f"image={path}")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "must hold its value, as .npy or .json. Got" in err


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\3\4no archive"])
def test_archives_that_hold_no_inputs(neo_command, digits_file, tmp_path, content):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    status, out, err = neo_command("check", digits_file, "--accuracy", "--input", path)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "--input must be NAME=FILE or an .npz file" in err


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf"])
def test_seconds_that_are_none(neo_command, digits_file, seconds):
    status, _, err = neo_command("bench", digits_file, f"--seconds={seconds}")
    assert status == 1
    assert "--seconds must be positive" in err


@pytest.mark.parametrize("threads", ["0", "-1", "100000"])
@pytest.mark.parametrize("command", ["run", "bench", "compile", "check", "tune"])
def test_threads_that_no_machine_has(neo_command, digits_file, threads, command):
    status, _, err = neo_command(command, digits_file, f"--threads={threads}")
    assert (status, err) == (1, f"[cli] --threads must be 1 to 1024. Got {threads}\n")


def test_a_model_is_not_written_over(neo_command, digits_file, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(digits_file.read_bytes())
    (tmp_path / "link.onnx").symlink_to(path)
    for arguments in (
        ("optimize", path, path),
        ("optimize", path, tmp_path / "link.onnx"),
        ("compile", path, "-o", path),
    ):
        status, _, err = neo_command(*arguments)
        assert status == 1
        assert "must be another file than the model" in err
    status, _, err = neo_command("profile", "--json", path, path)
    assert status == 2
    assert "must not be a model" in err
    assert path.read_bytes() == digits_file.read_bytes()


def test_a_compiled_module_is_told_of_and_checked(neo_command, module_file):
    status, out, _ = neo_command("info", module_file)
    assert status == 0
    assert "compiled by neo" in out
    assert "input image: float32[N, 1, 8, 8]" in out
    assert "Softmax" in out
    status, out, _ = neo_command("check", module_file)
    assert status == 0
    assert "this machine runs the module: 7 steps" in out
    status, _, err = neo_command("check", module_file, "--accuracy")
    assert status == 1
    assert "must be given an ONNX file" in err


def json_of(neo_command, *arguments):
    status, out, err = neo_command(*arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_reports_as_json(neo_command, digits_file, module_file):
    info = json_of(neo_command, "info", digits_file)
    assert info["opsets"] == {"ai.onnx": 17}
    assert info["operators"]["Softmax"] == 1
    assert json_of(neo_command, "info", module_file)["provenance"]["model"] == "digits.onnx"
    assert json_of(neo_command, "check", digits_file)["runs"]
    assert json_of(neo_command, "check", module_file)["steps"] == 7
    times = json_of(neo_command, "bench", digits_file, "--seconds", "0.05", "--rounds", "2")
    assert times["min_ms"] <= times["p10_ms"] <= times["median_ms"] <= times["p90_ms"]
    assert len(times["round_medians_ms"]) == 2
    explained = json_of(neo_command, "explain", digits_file, "--no-measure")
    assert {c["node"] for c in explained["choices"]} >= {"logits"}
    assert json_of(neo_command, "profile", digits_file)["steps"]
    assert "cpu/reference" in json_of(neo_command, "routines")
    assert json_of(neo_command, "targets")["host"].startswith("cpu:")
    assert json_of(neo_command, "machine")["ghz"] > 0
    assert {k["name"] for k in json_of(neo_command, "knobs")} >= {"NEO_NUM_THREADS"}


def test_json_of_what_cannot_run(neo_command, unsupported_file):
    status, out, _ = neo_command("check", unsupported_file, "--json")
    report = json.loads(out)
    assert (status, report["runs"]) == (1, False)
    assert report["refusals"][0]["op"] == "their.domain.Nonsense"


def test_json_of_accuracy_and_databases(neo_command, digits_file, tmp_path):
    report = neo_command("check", digits_file, "--accuracy", "--json=-", "--shape", "N=2")[1]
    assert json.loads(report)["nodes"]
    database = tmp_path / "t.db"
    tuned = neo_command("tune", digits_file, "--budget", "2", "--database", database, "--json=-", "--shape", "N=1")
    assert tuned[0] == 0
    assert str(digits_file) in json.loads(tuned[1])
    status, out, _ = neo_command("db", "summary", database, "--json")
    assert status == 0
    assert json.loads(out)["contexts"]
    assert len(json.loads(neo_command("db", "list", database, "--json")[1])) > 0
    assert neo_command("db", "summary", database)[1] == neo_command("db", "summary", "--database", database)[1]
    assert neo_command("db", database, "summary", "--json") == (0, out, "")
    assert json_of(neo_command, "db", database, "list") == json_of(neo_command, "db", "list", database)


@pytest.mark.parametrize("words", [["summary", "FILE"], ["FILE", "summary"], ["FILE", "list"]], ids=" ".join)
def test_a_database_that_is_named_must_exist(neo_command, tmp_path, words):
    status, out, err = neo_command("db", *(tmp_path / "none.db" if w == "FILE" else w for w in words))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "a database must exist" in err


def test_a_file_that_cannot_be_read_is_named(neo_command, tmp_path):
    status, _, err = neo_command("db", "import", tmp_path / "none.jsonl", "--database", tmp_path / "t.db")
    assert status == 1
    assert (
        err
        == f"[cli] files must be readable and writable. Got No such file or directory - at {tmp_path / 'none.jsonl'}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["MODEL", "--port", "0"], "--port must be 1 to 65535. Got 0"),
        (["MODEL", "--port", "65536"], "--port must be 1 to 65535. Got 65536"),
        (["=MODEL"], "a model must have a name. Got '="),
        (["MODEL", "MODEL"], "names of models must differ. Got 'digits' twice"),
        (["MODEL", "--batch-delay", "nan"], "times must be positive. Got batch_delay=nan"),
        (["MODEL", "--timeout", "nan"], "times must be positive. Got batch_delay=0.002, timeout=nan"),
        (["MODEL", "--max-batch", "0"], "max_batch must be positive. Got 0"),
    ],
)
def test_what_cannot_be_served(neo_command, digits_file, arguments, text):
    pytest.importorskip("uvicorn")
    status, out, err = neo_command("serve", *(a.replace("MODEL", str(digits_file)) for a in arguments))
    assert (status, out) == (1, "")
    assert text in err


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
def test_an_address_that_cannot_be_listened_on(neo_command, digits_file, host):
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = neo_command("serve", digits_file, "--host", host, "--port", port)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "--host and --port must be an address of this machine that is free. Got " in err
    assert f" - at {host}:{port}" in err


def test_a_reader_that_has_enough_ends_the_command():
    command = [sys.executable, "-c", "from neo.cli import main; raise SystemExit(main(['routines']))"]
    environment = {**os.environ, "PYTHONPATH": str(Path(neo.__file__).parents[1])}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_profile_prints_its_json(neo_command, digits_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = neo_command("profile", digits_file, "--json", "-")
    assert status == 0
    assert json.loads(out)["events"]
    assert not list(tmp_path.iterdir())


def test_bench_says_least_median_and_items(neo_command, digits_file):
    status, out, _ = neo_command("bench", digits_file, "--seconds", "0.05", "--batch", "3", "--rounds", "2")
    assert status == 0
    for word in ("ms median", "ms least", "2 rounds", "items/s", "threads"):
        assert word in out


@pytest.mark.parametrize(("batch", "text"), [("0", "--batch must be positive"), ("-2", "--batch must be positive")])
def test_a_batch_that_is_none(neo_command, digits_file, batch, text):
    status, _, err = neo_command("bench", digits_file, f"--batch={batch}")
    assert status == 1
    assert text in err


def test_a_batch_of_a_model_of_fixed_sizes(neo_command, digits_file, tmp_path):
    model = onnx.load(digits_file)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 2
    onnx.save(model, tmp_path / "fixed.onnx")
    assert neo_command("bench", tmp_path / "fixed.onnx", "--batch", "2", "--seconds", "0.01")[0] == 0
    status, _, err = neo_command("bench", tmp_path / "fixed.onnx", "--batch", "3")
    assert status == 1
    assert "--batch needs an input whose first axis is a symbol" in err


def test_quiet_and_verbose(neo_command, digits_file):
    assert "[compile]" in neo_command("run", digits_file, "-v")[2]
    assert neo_command("run", digits_file)[2] == ""
    assert neo_command("run", digits_file, "--quiet")[2] == ""


def test_the_version_is_printed(neo_command):
    status, out, _ = neo_command("--version")
    assert status == 0
    assert out.startswith("neo 0.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_knows_every_command(neo_command, shell):
    status, out, _ = neo_command("completion", shell)
    assert status == 0
    for word in (*COMMANDS, "summary", "--seconds"):
        assert word in out


def test_bash_completes_commands_and_options(neo_command, tmp_path):
    script = tmp_path / "neo.bash"
    script.write_text(neo_command("completion", "bash")[1], encoding="utf-8")

    def complete(*words):
        line = " ".join(f"'{w}'" for w in words)
        text = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _neo; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout.split()

    assert complete("neo", "ben") == ["bench"]
    assert "--seconds" in complete("neo", "bench", "--se")
    assert complete("neo", "db", "summ") == ["summary"]


def test_explain_says_what_a_node_is_part_of(neo_command, digits_file):
    out = neo_command("explain", digits_file, "--no-measure")[1]
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert " absorbed" not in out
    held = [row for row in rows.values() if "  in " in row]
    for row in held:
        assert row.partition("  in ")[2].split()[0] in rows
    nodes = neo.compile(str(digits_file)).explain().nodes
    assert len(held) == sum(n.options[0].routine == "absorbed" for n in nodes)


def test_every_command_has_its_file():
    parser = cli.make_parser()
    commands = next(a for a in parser._actions if hasattr(a, "choices") and isinstance(a.choices, dict)).choices
    assert set(COMMANDS) <= set(commands)
    for name, command in commands.items():
        module = command.get_default("run").__module__
        assert module.removeprefix("neo.cli.").removesuffix("_file") == name

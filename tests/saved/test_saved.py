"""Saving and loading as a user does it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import neo
import numpy as np
import pytest
from neo import cli

from tests.saved.parts import MODELS, Parts, feeds_of
from tests.saved.same_bits import assert_same


@pytest.fixture(scope="module")
def network() -> neo.Module:
    return neo.compile(MODELS["network"].SerializeToString(), threads=2)


@pytest.fixture
def path(network: neo.Module, tmp_path: Path) -> Path:
    network.save(tmp_path / "m.neo")
    return tmp_path / "m.neo"


def test_path_bytes_and_file_object_give_the_same(network: neo.Module, path: Path) -> None:
    feeds = feeds_of("network")
    expected = network.run(feeds)["y"]
    sources = (path, str(path), path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes()))
    for source in (*sources, io.BytesIO(path.read_bytes())):
        assert_same(neo.load(source).run(feeds)["y"], expected, str(type(source)))
    with path.open("rb") as file:
        assert_same(neo.load(file)(feeds["x"]), expected, "file")


@pytest.mark.parametrize("source", [3, None, io.StringIO("text"), [b"x"]])
def test_other_sources_are_refused(source: object) -> None:
    with pytest.raises(neo.DTypeError, match="path, bytes or a binary file"):
        neo.load(source)


def test_a_pipe_is_written_where_it_stands(network: neo.Module, path: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        network.save(pipe)
        assert len(read.result(10)) == path.stat().st_size
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [path, pipe]


def test_what_is_no_file_is_a_resource_error(tmp_path: Path) -> None:
    with pytest.raises(neo.ResourceError, match=r"No such file.*absent\.neo"):
        neo.load(tmp_path / "absent.neo")
    with pytest.raises(neo.ResourceError, match="regular file"):
        neo.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(neo.ResourceError, match="regular file"):
        neo.load(tmp_path / "pipe")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_threads_must_be_a_positive_int(path: Path, threads: object) -> None:
    with pytest.raises(neo.ModelError, match="threads must be"):
        neo.load(path, threads=threads)


@pytest.mark.parametrize("model", MODELS)
def test_a_loaded_module_does_all_that_a_compiled_one_does(model: str, tmp_path: Path) -> None:
    module = neo.compile(MODELS[model], threads=2)
    module.save(tmp_path / "m.neo")
    loaded = neo.load(tmp_path / "m.neo", threads=2)
    feeds = feeds_of(model)
    expected = module.run(feeds)
    assert loaded.inputs == module.inputs
    assert loaded.outputs == module.outputs
    assert loaded.target == module.target
    assert loaded.threads == 2
    assert loaded.reduction_length == module.reduction_length
    assert [t.hints for t in loaded.inputs] == [t.hints for t in module.inputs]
    assert [(s.routine, s.estimate_us, s.flops, s.bytes) for s in loaded.steps] == [
        (s.routine, s.estimate_us, s.flops, s.bytes) for s in module.steps
    ]
    for answers in (loaded.run(feeds), loaded.run_async(feeds).result(), loaded.with_threads(3).run(feeds)):
        for name, value in expected.items():
            assert_same(answers[name], value, name)
    assert loaded.profile(feeds, repeat=1).total_us > 0
    assert loaded.steps[0].routine in str(loaded.explain())


def test_explain_tells_the_chosen_routine(path: Path) -> None:
    (node,) = neo.load(path).explain("skip").nodes[:1]
    assert [o.status for o in node.options] == ["chosen"]
    assert node.options[0].routine.startswith("cpu:float32/")
    with pytest.raises(neo.ModelError, match="node must be in the compiled graph"):
        neo.load(path).explain("absent")


def test_sizes_outside_the_compiled_range_are_refused_as_before(tmp_path: Path) -> None:
    module = neo.compile(MODELS["network"], shapes={"N": (1, 4)})
    module.save(tmp_path / "m.neo")
    x = np.zeros((5, 3, 12, 12), np.float32)
    for m in (module, neo.load(tmp_path / "m.neo")):
        with pytest.raises(neo.ShapeError, match=r"range\. Got N=5, expected 1 to 4"):
            m(x)


def test_saving_again_gives_the_same_file(path: Path, tmp_path: Path) -> None:
    neo.load(path).save(tmp_path / "again.neo")
    assert (tmp_path / "again.neo").read_bytes() == path.read_bytes()


def test_a_module_outlives_its_file_and_its_replacement(network: neo.Module, path: Path) -> None:
    feeds = feeds_of("network")
    loaded = neo.load(path)
    network.save(path)
    path.unlink()
    assert_same(loaded.run(feeds)["y"], network.run(feeds)["y"], "y")


def test_provenance_names_release_and_model(network: neo.Module, path: Path) -> None:
    loaded = neo.load(path)
    assert loaded.provenance == network.provenance
    assert loaded.provenance["version"] == neo.__version__
    assert len(loaded.provenance["model_sha256"]) == 64


def test_weights_are_saved_once_and_packed_ones_only_packed(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    text = """<ir_version: 8, opset_import: ["" : 18]>
    twice (float[4, 256] x) => (float[4, 256] y) { t = MatMul (x, w) y = MatMul (t, w) }"""
    import onnx

    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    neo.compile(model).save(tmp_path / "m.neo")
    assert len(Parts.of((tmp_path / "m.neo").read_bytes()).data) < 1.5 * weight.nbytes


def test_the_file_is_a_safetensors_file(path: Path) -> None:
    parts = Parts.of(path.read_bytes())
    at = 0
    for number in range(len(parts.header) - 1):
        begin, end = parts.header[str(number)]["data_offsets"]
        assert begin == at
        assert begin % 64 == 0
        at = end
    assert at == len(parts.data)
    assert (len(path.read_bytes()) - len(parts.data)) % 64 == 0


def test_many_threads_load_at_once(network: neo.Module, path: Path) -> None:
    feeds = feeds_of("network")
    expected = network.run(feeds)["y"]
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda _: neo.load(path).run(feeds)["y"], range(64)):
            assert_same(got, expected, "y")


def test_a_stronger_instruction_set_is_refused_in_one_line(path: Path) -> None:
    code = "import neo, sys\ntry: neo.load(sys.argv[1])\nexcept neo.UnsupportedError as e: print(e)"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, env={**os.environ, "NEO_MAX_ISA": "scalar"}, capture_output=True, text=True)
    isa = Parts.of(path.read_bytes()).plan["target"]["isa"]
    if isa == "scalar":
        pytest.skip("this machine has no stronger instruction set")
    assert f"instruction set that runs here. Got {isa}, expected scalar" in done.stdout.splitlines()[0]


def test_a_module_of_a_weaker_instruction_set_runs_here(tmp_path: Path) -> None:
    module = neo.compile(MODELS["network"], target="cpu:scalar")
    module.save(tmp_path / "m.neo")
    feeds = feeds_of("network")
    loaded = neo.load(tmp_path / "m.neo")
    assert loaded.target == "cpu:scalar"
    assert_same(loaded.run(feeds)["y"], module.run(feeds)["y"], "y")


def test_a_killed_save_leaves_the_old_file(path: Path) -> None:
    code = "import neo, sys\nm = neo.load(sys.argv[1])\nprint(flush=True)\nwhile True: m.save(sys.argv[1])"
    for i in range(5):
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.003 * i)
            process.send_signal(signal.SIGKILL)
        neo.load(path)


def test_a_save_that_fails_leaves_nothing(network: neo.Module, tmp_path: Path) -> None:
    with pytest.raises(neo.ResourceError, match="must be written"):
        network.save(tmp_path / "absent" / "m.neo")
    (tmp_path / "folder").mkdir()
    with pytest.raises(neo.ResourceError, match="must be written"):
        network.save(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(neo.DTypeError, match="target must be a path or a binary file"):
        network.save(3)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, saved = tmp_path / "m.onnx", tmp_path / "out.neo"
    model.write_bytes(MODELS["network"].SerializeToString())
    assert cli.main(["compile", str(model), "-o", str(saved)]) == 0
    assert "out.neo" in capsys.readouterr().out
    assert cli.main(["compile", str(model)]) == 0
    assert (tmp_path / "m.neo").exists()
    assert neo.load(saved).provenance["model"] == "m.onnx"
    assert cli.main(["run", str(saved), "--threads", "1"]) == 0
    assert "float32" in capsys.readouterr().out
    assert cli.main(["bench", str(saved), "--seconds", "0.01"]) == 0
    assert cli.main(["profile", str(saved)]) == 0
    assert cli.main(["explain", str(saved), "--no-measure"]) == 0
    assert "saved without the others" not in capsys.readouterr().err
    for wrong in (["run", str(saved), "--tune"], ["compile", str(saved)], ["bench", str(saved), "--peers"]):
        assert cli.main(wrong) == 1
        assert "[cli]" in capsys.readouterr().err

"""Exports are built and run as a user does it: the same bits as Python has, and nothing but what the model needs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import neo
import numpy as np
import pytest
from neo import cli, demo
from neo.standalone import export
from neo.standalone.sources import needed_files, root

from benchmarks.models.recurrent import recurrent_stack
from tests.capi.libneo import ROOT, run
from tests.capi.values import pack, unpack
from tests.saved.parts import MODELS, feeds_of
from tests.saved.same_bits import assert_same
from tests.standalone.build import answers, built, code_bytes, link
from tests.standalone.networks import depthwise, mobilenet_v2, recurrent

KIB = 1 << 10
random = np.random.default_rng(5)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's network, saved."""
    path = tmp_path_factory.mktemp("digits") / "digits.neo"
    neo.compile(demo.model_bytes(), threads=2).save(path)
    return path


@pytest.fixture(scope="module")
def library(digits: Path) -> Path:
    """The demo's network, exported and built."""
    built(digits, digits.parent / "out")
    return digits.parent / "out"


def same_from_c(module: neo.Module, folder: Path, cases: list[list[Any]], launcher: tuple[str, ...] = ()) -> None:
    names = [t.name for t in module.inputs]
    for case, got in zip(cases, answers(folder, cases, launcher), strict=True):
        expected = module.run(dict(zip(names, case, strict=True)))
        for name, value in zip(expected, got, strict=True):
            assert_same(value, expected[name], name)


def test_the_demo_gives_the_same_bits_with_the_program_that_libneo_has(digits: Path, library: Path) -> None:
    images = demo.images()[0]
    same_from_c(neo.load(digits), library, [[images], [images[:1]], [images[:7]]])
    assert "float32" in run([library / "build" / "example", digits])


def test_the_model_is_in_the_library(digits: Path, library: Path, tmp_path: Path) -> None:
    program = link(Path(__file__).parent / "embedded.c", library)
    images = demo.images()[0]
    (tmp_path / "given").write_bytes(images.tobytes())
    run([program, tmp_path / "given", tmp_path / "answered", str(len(images))])
    got = np.fromfile(tmp_path / "answered", np.float32)
    assert got.tobytes() == neo.load(digits)(images).tobytes()


def test_another_module_is_refused_in_one_line(digits: Path, library: Path, tmp_path: Path) -> None:
    whole = digits.read_bytes()
    other = tmp_path / "other.neo"
    neo.compile(MODELS["network"].SerializeToString()).save(other)
    changed, shorter = tmp_path / "changed.neo", tmp_path / "shorter.neo"
    changed.write_bytes(whole.replace(b'"neo.version"', b'"neo.Version"', 1))
    shorter.write_bytes(whole[:-64])
    for path in (other, changed, shorter):
        with pytest.raises(AssertionError, match=r"the module that it was exported from\. Got another - at .*\.neo"):
            run([library / "build" / "example", path])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["control", "words"])
def test_branches_loops_sequences_and_strings(name: str, tmp_path: Path) -> None:
    module = neo.compile(MODELS[name].SerializeToString(), threads=2)
    module.save(tmp_path / "m.neo")
    built(tmp_path / "m.neo", tmp_path / "out", "-DNEO_EXAMPLE=OFF")
    same_from_c(module, tmp_path / "out", [list(feeds_of(name).values())])


@pytest.mark.slow
def test_recurrent_layers_of_any_length(tmp_path: Path) -> None:
    module = neo.compile(recurrent(), threads=2)
    module.save(tmp_path / "m.neo")
    built(tmp_path / "m.neo", tmp_path / "out", "-DNEO_EXAMPLE=OFF")
    cases = [[random.standard_normal((steps, 3, 16)).astype(np.float32)] for steps in (1, 5, 40)]
    same_from_c(module, tmp_path / "out", cases)


@pytest.mark.slow
def test_a_pipeline_over_layers_and_the_states_of_all_of_them(tmp_path: Path) -> None:
    model, feeds = recurrent_stack("LSTM", 3, 7, 2, 24, states=True)
    pins = {"layer2": "cpu:float32/recurrent_stack{chunk=2 stages=2}"}
    module = neo.compile(model, threads=2, shapes={"t": 7}, routines=pins)
    module.save(tmp_path / "m.neo")
    built(tmp_path / "m.neo", tmp_path / "out", "-DNEO_EXAMPLE=OFF")
    same_from_c(module, tmp_path / "out", [[feeds["x"]]])


@pytest.mark.slow
def test_mobilenet_v2_is_small_and_the_same(tmp_path: Path) -> None:
    """Vectors of eight are what small machines have; code for AVX-512 is some 60 KB more."""
    small = "cpu:avx2" in {t["name"] for t in neo._native.targets() if t["runs_here"]}
    module = neo.compile(mobilenet_v2(), target="cpu:avx2" if small else "cpu", threads=2)
    module.save(tmp_path / "m.neo")
    built(tmp_path / "m.neo", tmp_path / "out")
    same_from_c(module, tmp_path / "out", [[random.standard_normal((1, 3, 224, 224)).astype(np.float32)]])
    assert code_bytes(tmp_path / "out" / "build" / "example") < 480 * KIB


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "stride", "dilation", "forms"), [(3, 1, 1, "0x8"), (7, 2, 1, "0x1"), (5, 1, 2, "0x1")]
)
def test_depthwise_forms_with_and_without_kernels_of_their_own(
    width: int, stride: int, dilation: int, forms: str, tmp_path: Path
) -> None:
    module = neo.compile(depthwise(width, stride, dilation), threads=2)
    module.save(tmp_path / "m.neo")
    built(tmp_path / "m.neo", tmp_path / "out", "-DNEO_EXAMPLE=OFF")
    assert f"NEO_DEPTHWISE_FORMS={forms}\n" in (tmp_path / "out" / "CMakeLists.txt").read_text()
    same_from_c(module, tmp_path / "out", [[random.standard_normal((1, 24, 9, 41)).astype(np.float32)]])


def test_sources_are_those_of_the_plan(digits: Path, tmp_path: Path) -> None:
    done = export(digits, tmp_path / "out")
    copied = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out" / "csrc").rglob("*.cpp")}
    assert "csrc/saved/compact_read.cpp" in copied
    for other in ("csrc/base/json.cpp", "csrc/ir/parse.cpp", "csrc/ops/registry.cpp", "csrc/routines/standard.cpp"):
        assert other not in copied
    assert not any(name.startswith(("csrc/routines/cpu/recurrent", "csrc/lower", "csrc/passes")) for name in copied)
    assert len(copied) == done.sources


def test_every_routine_and_every_family_has_its_sources() -> None:
    families = (root() / "csrc" / "ops" / "families.h").read_text()
    makers = (root() / "csrc" / "routines" / "families.h").read_text()

    def listed(text: str, macro: str) -> list[str]:
        rows = text.split(f"#define {macro}(X)")[1].split("\n\n")[0]
        return [row.split("(")[1].split(")")[0] for row in rows.splitlines() if "  X(" in row]

    devices = listed(makers.split("#else")[1], "NEO_DEVICE_ROUTINES")
    names = listed(makers, "NEO_ROUTINES")
    assert len(names) + len(devices) == len(neo._native.routine_names())
    for name in names:
        assert any("/routines/cpu/" in file for file in needed_files([name], []))
    for family in listed(families, "NEO_OP_FILES"):
        assert any(file.startswith("csrc/ops/") for file in needed_files([], [family]))


def test_a_folder_with_something_in_it_is_left_alone(digits: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(neo.ModelError, match=r"\[export\] the folder must be empty\. Got"):
        export(digits, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_damaged_module_leaves_nothing(digits: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.neo"
    damaged.write_bytes(digits.read_bytes()[:5000])
    with pytest.raises(neo.ModelError, match="damaged.neo"):
        export(damaged, tmp_path / "out")
    with pytest.raises(neo.ResourceError, match=r"^\[load\] .* - at \".*absent.neo\"$"):
        export(tmp_path / "absent.neo", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_onnx_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(neo.ModelError, match=r"a saved module must be given\. Got .*\nHint: neo compile"):
        export(tmp_path / "m.onnx", tmp_path / "out")


def test_command_line(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(digits), "--out", str(tmp_path / "out")]) == 0
    assert "routines: " in capsys.readouterr().out
    assert cli.main(["export", str(digits), "--out", str(tmp_path / "out")]) == 1
    assert "the folder must be empty" in capsys.readouterr().err


@pytest.mark.slow
def test_cross_compiled_for_arm(tmp_path: Path) -> None:
    compiler, emulator = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64")
    if not compiler or not emulator:
        pytest.skip("g++-aarch64-linux-gnu and qemu-user are not installed")
    module = neo.compile(MODELS["network"].SerializeToString(), target="cpu:scalar", threads=2)
    module.save(tmp_path / "m.neo")
    system = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
    compilers = ["-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc", f"-DCMAKE_CXX_COMPILER={compiler}"]
    built(tmp_path / "m.neo", tmp_path / "out", *system, *compilers, "-DNEO_EXAMPLE=OFF")
    program = tmp_path / "answer"
    sources = [ROOT / "tests" / "capi" / "answer.c", f"-I{tmp_path / 'out' / 'include'}"]
    library = [tmp_path / "out" / "build" / "libneo.a", "-Wl,--gc-sections", "-lstdc++", "-lm", "-lpthread", "-ldl"]
    run(["aarch64-linux-gnu-gcc", *sources, "-o", program, *library])
    case = list(feeds_of("network").values())
    (tmp_path / "given").write_bytes(pack([case]))
    files = [tmp_path / "m.neo", tmp_path / "given", tmp_path / "answered"]
    run([emulator, "-L", "/usr/aarch64-linux-gnu", program, "2", *files])
    (got,) = unpack((tmp_path / "answered").read_bytes())
    for value, expected in zip(got, module.run(feeds_of("network")).values(), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)

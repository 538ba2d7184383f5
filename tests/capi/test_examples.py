"""The examples, built as a user builds them, say what Python says."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import neo
import numpy as np
import pytest

from tests.capi.libneo import ROOT, c_compiler, cmake, configure, prefix, run, sanitizers, scratch, tool

DEMO = Path(neo.__file__).parent / "demo"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path], np.ndarray]:
    """Save the demo's network and some of its images; give both and the network's answers."""
    folder = tmp_path_factory.mktemp("digits")
    module = neo.compile(DEMO / "digits.onnx")
    module.save(folder / "digits.neo")
    images = (np.load(DEMO / "digits.npz")["images"][:8, None] / 16).astype(np.float32)
    paths = []
    for number, image in enumerate(images):
        paths.append(folder / f"{number}.raw")
        image.tofile(paths[-1])
    return folder / "digits.neo", paths, np.concatenate([module(image[None]) for image in images])


@functools.cache
def build(example: str) -> Path:
    folder = scratch() / example
    flags = " ".join(sanitizers())
    configure(
        *(ROOT / "examples" / example, folder, f"-DCMAKE_PREFIX_PATH={prefix()}"),
        *(f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}"),
    )
    run([cmake(), "--build", folder])
    return folder


def top_five(scores: np.ndarray) -> list[str]:
    return [f"{i} {scores[i]:.6f}" for i in np.argsort(-scores, kind="stable")[:5]]


def test_the_example_in_c(digits: tuple[Path, list[Path], np.ndarray]) -> None:
    module, images, answers = digits
    built = build("c")
    for program in ("classify", "classify_static"):
        for image, scores in zip(images, answers, strict=True):
            assert run([built / program, module, image]).splitlines() == top_five(scores)
    linked = run([tool("readelf"), "-d", built / "classify"])
    assert "libneo.so.0" in linked
    assert "libneo" not in run([tool("readelf"), "-d", built / "classify_static"])


def test_the_example_in_cpp(digits: tuple[Path, list[Path], np.ndarray]) -> None:
    module, images, answers = digits
    expected = [f"{path}: {scores.argmax()} {scores.max():.6f}" for path, scores in zip(images, answers, strict=True)]
    for program in ("classify", "classify_static"):
        assert run([build("cpp") / program, module, *images]).splitlines() == expected


def test_an_example_says_what_is_wrong(digits: tuple[Path, list[Path], np.ndarray], tmp_path: Path) -> None:
    program = build("cpp") / "classify"
    (tmp_path / "short.raw").write_bytes(bytes(8))
    shown = run([program, digits[0], tmp_path / "short.raw"])
    assert "bytes must be those of the shape. Got 8, expected 256 for float32[1,1,8,8] - at input 'image'" in shown
    done = subprocess.run([program, tmp_path / "none.neo", "x"], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(r"classify: \[load\] a saved module must be a file that can be read\..*\n", done.stderr)


@pytest.mark.parametrize("static", [False, True])
def test_pkg_config(static: bool, digits: tuple[Path, list[Path], np.ndarray], tmp_path: Path) -> None:
    module, images, answers = digits
    asked = ["--cflags", "--libs", *(["--static"] if static else []), "neo"]
    flags = run([tool("pkg-config"), *asked], env={"PKG_CONFIG_PATH": str(prefix() / "lib" / "pkgconfig")}).split()
    if static:
        flags = ["-l:libneo.a" if flag == "-lneo" else flag for flag in flags]
    program = tmp_path / "classify"
    run([c_compiler(), *sanitizers(), ROOT / "examples" / "c" / "classify.c", "-o", program, *flags])
    environment = {} if static else {"LD_LIBRARY_PATH": str(prefix() / "lib")}
    assert run([program, module, images[0]], env=environment).splitlines() == top_five(answers[0])

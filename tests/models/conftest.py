"""Parameters of the model tests: the models of the zoo, and the instruction-set tiers of this machine."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from . import answers, zoo

TIERS = {
    "scalar": frozenset[str](),
    "avx2": frozenset({"avx2", "fma"}),
    "avx512": frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    # Part of every 64-bit Arm; an emulator shows the flags of the machine it runs on.
    "neon": frozenset(),
}


def _cpu_features() -> frozenset[str]:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    words = [line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "features"))]
    return frozenset(words[0]) if words else frozenset()


def saturates_quantized_sums() -> bool:
    """Tell whether onnxruntime's products of uint8 and int8 saturate here: on x86-64 without VNNI it adds two as int16."""
    return platform.machine() == "x86_64" and not _cpu_features() & {"avx512_vnni", "avx_vnni"}


def tiers_of_this_machine() -> list[str]:
    """Return the tiers that this CPU can run, narrowest first."""
    features = _cpu_features()
    machine = platform.machine()
    names = ["scalar", "neon"] if machine in ("aarch64", "arm64") else ["scalar", "avx2", "avx512"]
    return [name for name in names if TIERS[name] <= features]


@pytest.fixture(params=tiers_of_this_machine())
def tier(request: pytest.FixtureRequest) -> str:
    """Name each tier of this machine in turn."""
    name: str = request.param
    return name


def require(model: zoo.Model) -> zoo.Model:
    """Return the model, or skip the test by the name of the file that is absent."""
    if not model.path.exists():
        pytest.skip(f"the model {model.file} is absent (set NEO_TEST_MODELS to the folder of the shared models)")
    return model


def require_answers(model: zoo.Model) -> zoo.Model:
    """Return the model, or skip the test where nothing says what it should answer."""
    if answers.folder() is None:
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    return require(model)


def each_model(condition: Callable[[zoo.Model], bool] = lambda model: True) -> pytest.MarkDecorator:
    """Return a mark that runs a test once for every model that takes part and that the condition holds for."""
    chosen = [
        pytest.param(model, id=model.name, marks=[pytest.mark.slow] if model.slow else [])
        for model in zoo.MODELS
        if answers.covers(model) and condition(model)
    ]
    return pytest.mark.parametrize("model", chosen)

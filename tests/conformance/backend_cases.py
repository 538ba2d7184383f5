"""ONNX's own backend test cases as (model, input sets, tolerance)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from tests.compiled import kept

__all__ = ["Case", "all_cases", "run_case"]

# Two units in the last place, as ONNX's own runner allows.
_BFLOAT16_RTOL = 2.0**-6


@dataclass(frozen=True)
class Case:
    """One case: a model, data sets beside it, and its own tolerance."""

    kind: str
    name: str
    folder: Path | None
    model: onnx.ModelProto | None
    sets: list[tuple[list[Any], list[Any]]] | None
    rtol: float
    atol: float

    def load(self) -> tuple[onnx.ModelProto, Path | None, list[tuple[list[Any], list[Any]]]]:
        """The model, the folder of its external data and pairs of inputs and expected outputs."""
        if self.folder is None:
            assert self.model is not None
            assert self.sets is not None
            return self.model, None, self.sets
        model = onnx.load(self.folder / "model.onnx", load_external_data=False)
        sets = []
        for folder in sorted(self.folder.glob("test_data_set_*")):
            inputs = _read(folder, "input", model.graph.input)
            outputs = _read(folder, "output", model.graph.output)
            sets.append((inputs, outputs))
        return model, self.folder, sets


def _read(folder: Path, stem: str, values: Any) -> list[Any]:
    arrays = []
    for i, value in enumerate(values):
        path = folder / f"{stem}_{i}.pb"
        if not path.exists():
            break
        raw = path.read_bytes()
        kind = value.type.WhichOneof("value")
        if kind == "sequence_type":
            arrays.append(numpy_helper.to_list(_parse(onnx.SequenceProto(), raw)))
        elif kind == "optional_type":
            arrays.append(numpy_helper.to_optional(_parse(onnx.OptionalProto(), raw)))
        else:
            arrays.append(numpy_helper.to_array(_parse(onnx.TensorProto(), raw)))
    return arrays


def _parse(proto: Any, raw: bytes) -> Any:
    proto.ParseFromString(raw)
    return proto


def all_cases() -> list[Case]:
    """Every case of the kinds node, simple, pytorch-converted and pytorch-operator.

    ONNX computes what the cases expect with its own operators, which takes seconds in every process of a run: kept.
    """
    parts = [
        "backend cases",
        onnx.__version__,
        np.__version__,
        Path(__file__).read_text(encoding="utf-8"),
        onnx.__file__,
    ]
    path = kept(parts, "cases.pickle", lambda made: (made / "cases.pickle").write_bytes(pickle.dumps(_make_cases())))
    cases: list[Case] = pickle.loads(path.read_bytes())
    return cases


def _make_cases() -> list[Case]:
    cases = []
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for c in load_model_tests(kind=kind):
            sets = None
            if c.data_sets is not None:
                sets = [([_array(x) for x in ins], [_array(x) for x in outs]) for ins, outs in c.data_sets]
            folder = None if c.model_dir is None else Path(c.model_dir)
            cases.append(Case(kind, c.name, folder, c.model, sets, c.rtol, c.atol))
    return cases


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def run_case(
    case: Case,
    compile_model: Callable[[Any], Any],
    compare_values: Callable[..., None] | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Compile a model or a path, run every data set and compare; raises AssertionError where it differs."""
    model, folder, sets = case.load()
    module = compile_model(model if folder is None else folder / "model.onnx")
    names = [t.name for t in module.inputs]
    for inputs, expected in sets:
        outputs = module.run(dict(zip(names, inputs, strict=True)))
        for (name, got), want in zip(outputs.items(), expected, strict=True):
            (compare_values or compare)(got, want, case.rtol if rtol is None else rtol, atol or case.atol, name)


def compare(got: Any, want: Any, rtol: float, atol: float, name: str) -> None:
    """As ONNX's runner does, for tensors, sequences and optionals."""
    if isinstance(want, (list, tuple)):
        assert isinstance(got, list), f"{name}: not a sequence"
        assert len(got) == len(want), f"{name}: {len(got)} items, expected {len(want)}"
        for g, w in zip(got, want, strict=True):
            compare(g, w, rtol, atol, name)
        return
    if want is None:
        assert got is None, f"{name}: not empty"
        return
    want = np.asarray(want)
    assert got is not None, f"{name}: empty"
    if want.dtype.kind in "OUS":
        assert got.shape == want.shape, f"{name}: shape {got.shape}, expected {want.shape}"
        assert [_text(x) for x in got.ravel()] == [_text(x) for x in want.ravel()], f"{name}: strings differ"
        return
    assert got.dtype == want.dtype, f"{name}: dtype {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{name}: shape {got.shape}, expected {want.shape}"
    if want.dtype.name == "bfloat16":
        rtol = max(rtol, _BFLOAT16_RTOL)
    if want.dtype.kind in "c":
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=name)
    elif want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, err_msg=name)
    else:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol, err_msg=name)


def _text(x: Any) -> str:
    return x.decode() if isinstance(x, bytes) else str(x)

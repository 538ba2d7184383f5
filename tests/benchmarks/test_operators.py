"""The atlas of operators: its cases, what counts as different, the page, and a run of two cases."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import pytest

from benchmarks.models.operators import cases
from benchmarks.models.random_operators import random_case
from benchmarks.models.random_subgraphs import KINDS, random_subgraph
from benchmarks.operators import REVIEWED, Found, differs, main, page, reviewed


def test_every_case_is_a_sound_model_with_a_name_of_its_own() -> None:
    everything = list(cases())
    assert len(everything) >= 1500
    assert len({case.name for case in everything}) == len(everything)
    for case in everything[::23]:
        model, feeds = case.build()
        assert [i.name for i in model.graph.input] == list(feeds), case.name
        onnx.shape_inference.infer_shapes(model, check_type=True)


@pytest.mark.parametrize(
    ("found", "expected", "dtype", "says"),
    [
        (np.float32([1, 2]), np.float32([1, 2 + 1e-5]), "float32", ""),
        (np.float32([1, 2]), np.float32([1, 2.1]), "float32", "1 of 2 differ, 0.05"),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), "float32", ""),
        (np.float32([np.nan, 1]), np.float32([1, 1]), "float32", "1 of 2 differ, 0"),
        (np.int64([1, 2, 3]), np.int64([1, 2, 4]), "int64", "1 of 3 differ"),
        (np.zeros([2, 1]), np.zeros([2]), "float64", "shape (2, 1), expected (2,)"),
        (np.float32([1.001]), np.float32([1.0]), "float16", ""),
    ],
)
def test_what_counts_as_different(found: np.ndarray, expected: np.ndarray, dtype: str, says: str) -> None:
    assert differs(found, expected, dtype) == says


def test_the_page_lists_what_is_slow_wrong_or_refused() -> None:
    found = [
        Found(
            "Add float32 same", "binary", "float32", {"neo": 1.0, "ort": 2.0}, ratio=2.0, routine="cpu:float32/eltwise"
        ),
        Found("Acos float64 large", "unary", "float64", {"neo": 8.0, "ort": 4.0}, ratio=0.5, routine="cpu/reference"),
        Found("Mod int8 same", "binary", "int8", errors={"neo": "UnsupportedError: no"}),
        Found("Not bool small", "unary", "bool", {"neo": 1.0, "ort": 1.0}, ratio=1.0, wrong="1 of 2 differ"),
    ]
    text = page(found, 2, ["cpu: one"])
    assert "| all | 4 | 3 | 1.00 | 0.50 | 1 | 1 |" in text
    assert "| Acos float64 large | 0.500 | 8.0 | 4.0 | 0% | cpu/reference |" in text
    assert "- Not bool small: 1 of 2 differ" in text
    assert "- Mod int8 same: UnsupportedError: no" in text
    assert "| Add float32 same |" not in text


def test_reasons_are_given_for_a_few_cases() -> None:
    names = [case.name for case in cases()]
    assert all(any(reviewed(name) == why for name in names) for why in REVIEWED.values())
    assert sum(bool(reviewed(name)) for name in names) <= 20
    slow = Found(
        "ReduceLogSumExp int64 all", "reduce", "int64", {"neo": 8.0, "ort": 4.0}, ratio=0.5, routine="cpu/reduce"
    )
    assert f"| cpu/reduce | {reviewed(slow.name)} |" in page([slow], 1, [])


def test_a_seed_gives_one_random_case() -> None:
    families = set()
    for seed in range(150):
        case, again = random_case(seed), random_case(seed)
        model, feeds = case.build()
        assert case.name == again.name
        assert [i.name for i in model.graph.input] == list(feeds), case.name
        assert all(np.array_equal(a, b) for a, b in zip(feeds.values(), again.build()[1].values(), strict=True))
        families.add(case.family)
    assert len(families) >= 12


@pytest.mark.parametrize("seed", range(900, 960))
def test_random_cases_agree_with_onnxruntime(seed: int) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    case = random_case(seed)
    model, feeds = case.build()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        expected = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    except Exception:
        expected = []  # it does not run all that ONNX defines
    found = list(neo.compile(model).run(feeds).values())
    # Images of bytes are rounded to the nearest in neo (docs/formats.md); a Cast between two operators rounds ties apart.
    if case.family != "resize" and not (case.family == "chain" and "Cast" in case.name):
        assert [why for a, b in zip(found, expected, strict=False) if (why := differs(a, b, case.dtype))] == [], (
            case.name
        )


def test_two_cases_run_once(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    record, result = tmp_path / "record.jsonl", tmp_path / "page.md"
    for _ in range(2):
        main(["--only", "^(Relu float32 small|BitwiseAnd int8 small)$", "--record", str(record), "--page", str(result)])
    assert len(record.read_text().splitlines()) == 2
    assert "| all | 2 | 2 |" in result.read_text()


def test_groups_of_operators_take_turns_and_are_the_same_again() -> None:
    for seed in range(len(KINDS)):
        case, again = random_subgraph(seed), random_subgraph(seed)
        model, feeds = case.build()
        assert case.name == again.name
        assert case.family == sorted(KINDS)[seed]
        assert [i.name for i in model.graph.input] == list(feeds), case.name
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        assert all(np.array_equal(a, b) for a, b in zip(feeds.values(), again.build()[1].values(), strict=True))


def test_some_groups_beside_onnx_runtime() -> None:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    for seed in range(100, 100 + len(KINDS)):
        case = random_subgraph(seed)
        model, feeds = case.build()
        try:
            session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            expected = session.run(None, feeds)
        except Exception as error:  # some float16 and float64 operators are not there
            if "NOT_IMPLEMENTED" in str(error) or "not supported" in str(error):
                continue
            raise
        found = neo.compile(model).run(feeds).values()
        notes = [differs(np.asarray(a), b, case.dtype) for a, b in zip(found, expected, strict=True)]
        assert not any(notes), f"{case.name}: {notes}"

"""Several instruction sets and shapes in one file: the same bits as one by one, the best that runs, blobs once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import neo
import numpy as np
import pytest
from neo import _native, cli

from tests.saved.parts import MODELS, Variants, feeds_of
from tests.saved.same_bits import assert_same

TIERS = [t["name"] for t in _native.targets() if t["runs_here"]]
BATCHES: list[int | tuple[int, int]] = [1, 4, (2, 16)]


def batch(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(n).standard_normal((n, 3, 12, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def module() -> neo.Module:
    return neo.compile(MODELS["network"], target=TIERS, threads=2, shapes={"N": BATCHES})


@pytest.fixture(scope="module")
def path(module: neo.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("variants") / "m.neo"
    module.save(path)
    return path


@pytest.fixture(scope="module")
def readable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of so few plans that they are not shortened."""
    path = tmp_path_factory.mktemp("variants") / "few.neo"
    module = neo.compile(MODELS["network"], target=sorted({TIERS[0], TIERS[-1]}), threads=2, shapes={"N": BATCHES[1:]})
    module.save(path)
    return path


def test_each_size_runs_the_first_variant_that_it_fits(module: neo.Module, path: Path) -> None:
    singles = [neo.compile(MODELS["network"], threads=2, shapes={"N": n}) for n in BATCHES]
    for variants in (module, neo.load(path, threads=2)):
        assert [v.inputs[0].shape for v in variants.variants] == [(1, 3, 12, 12), (4, 3, 12, 12), ("N", 3, 12, 12)]
        for n, single in ((1, 0), (4, 1), (2, 2), (16, 2)):
            x = batch(n)
            expected = singles[single](x)
            for got in (variants(x), variants.run({"x": x})["y"], variants.run_async({"x": x}).result()["y"]):
                assert_same(got, expected, str(n))
            assert_same(variants.with_threads(1)(x), expected, f"{n} on one thread")
            chosen = variants.variants[single].steps
            profiled = variants.profile({"x": x}, repeat=1)
            assert len(profiled.steps) == len(chosen)


def test_a_size_that_no_variant_takes_is_refused_in_one_line(module: neo.Module, path: Path) -> None:
    rule = (
        r"sizes must fit a variant of the module\. Got x: \[17,3,12,12\], "
        r"expected x: \[1,3,12,12\] or x: \[4,3,12,12\] or x: \[2 to 16,3,12,12\]$"
    )
    for variants in (module, neo.load(path)):
        with pytest.raises(neo.ShapeError, match=rule):
            variants(batch(17))
        with pytest.raises(neo.ShapeError, match=r"shape must be the input's\. Got \[1,3,12\], expected \[N,3,12,12\]"):
            variants(np.zeros((1, 3, 12), np.float32))


def test_the_face_of_a_loaded_file_is_that_of_the_compiled_module(module: neo.Module, path: Path) -> None:
    loaded = neo.load(path)
    assert loaded.inputs == module.inputs == neo.compile(MODELS["network"], shapes={"N": (1, 16)}).inputs
    assert loaded.outputs == module.outputs
    assert [t.hints for t in loaded.inputs] == [t.hints for t in module.inputs]
    assert loaded.provenance == module.provenance
    assert loaded.reduction_length == module.reduction_length
    assert loaded.target == module.target == TIERS[-1]
    assert [s.routine for s in loaded.steps] == [s.routine for s in module.variants[0].steps]
    assert str(loaded.explain(inputs={"x": batch(4)}))
    assert "3 variants" in repr(loaded)


def test_saving_what_was_loaded_keeps_the_variants_of_this_machine(path: Path, tmp_path: Path) -> None:
    neo.load(path).save(tmp_path / "again.neo")
    again = neo.load(tmp_path / "again.neo")
    assert len(again.variants) == 3
    assert_same(again(batch(4)), neo.load(path)(batch(4)), "y")


@pytest.mark.parametrize("tier", TIERS[:2])
def test_a_capped_machine_runs_its_own_part(path: Path, tier: str) -> None:
    code = """
import sys, neo, numpy as np
from tests.saved.test_variants import batch
module = neo.load(sys.argv[1], threads=2)
np.savez(sys.argv[2], **{str(n): module(batch(n)) for n in (1, 3, 4)})
print(module.target, len(module.variants))
"""
    capped = tier.removeprefix("cpu:")
    done = subprocess.run(
        [sys.executable, "-c", code, path, path.with_suffix(".npz")],
        env={**os.environ, "NEO_MAX_ISA": capped},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.split() == [tier, "3"], done.stderr
    for n, shape in ((1, 1), (3, (2, 16)), (4, 4)):
        single = neo.compile(MODELS["network"], target=tier, threads=2, shapes={"N": shape})
        with np.load(path.with_suffix(".npz")) as got:
            assert_same(got[str(n)], single(batch(n)), f"{tier}, {n}")


def test_equal_blobs_are_stored_once(path: Path, tmp_path: Path) -> None:
    sizes = []
    for target in TIERS:
        for n in BATCHES:
            neo.compile(MODELS["network"], target=target, threads=2, shapes={"N": n}).save(tmp_path / "one.neo")
            sizes.append(len(Variants.of((tmp_path / "one.neo").read_bytes()).data))
    together = len(Variants.of(path.read_bytes()).data)
    assert together <= sum(max(sizes[i : i + len(BATCHES)]) * 2 for i in range(0, len(sizes), len(BATCHES)))
    neo.compile(MODELS["network"], threads=2, shapes={"N": [4, (4, 5)]}).save(tmp_path / "two.neo")
    neo.compile(MODELS["network"], threads=2, shapes={"N": 4}).save(tmp_path / "one.neo")
    two, one = (Variants.of((tmp_path / f).read_bytes()) for f in ("two.neo", "one.neo"))
    assert len(two.data) < 1.5 * len(one.data)


def test_one_variant_alone_is_a_file_of_the_first_format(tmp_path: Path) -> None:
    neo.compile(MODELS["network"], target=["cpu"], shapes={"N": [2]}).save(tmp_path / "list.neo")
    neo.compile(MODELS["network"], target="cpu", shapes={"N": 2}).save(tmp_path / "plain.neo")
    assert (tmp_path / "list.neo").read_bytes() == (tmp_path / "plain.neo").read_bytes()


def test_several_targets_of_one_shape_load_as_a_plain_module(tmp_path: Path) -> None:
    feeds = feeds_of("control")
    targets = ["cpu:scalar", "cpu"]
    neo.compile(MODELS["control"], target=targets).save(tmp_path / "m.neo")
    loaded = neo.load(tmp_path / "m.neo")
    assert loaded.variants == (loaded,)
    for name, value in neo.compile(MODELS["control"]).run(feeds).items():
        assert_same(loaded.run(feeds)[name], value, name)


def test_inputs_that_are_no_tensors_fit(tmp_path: Path) -> None:
    feeds = feeds_of("words")
    module = neo.compile(MODELS["words"], shapes={"N": [1, 2]})
    module.save(tmp_path / "m.neo")
    expected = neo.compile(MODELS["words"]).run(feeds)
    for variants in (module, neo.load(tmp_path / "m.neo")):
        for name, value in expected.items():
            assert_same(variants.run(feeds)[name], value, name)


@pytest.mark.parametrize(
    ("arguments", "error", "rule"),
    [
        ({"target": []}, neo.DTypeError, "target must be a name or a list of names"),
        ({"target": ["cpu", 3]}, neo.DTypeError, "target must be a name or a list of names"),
        ({"target": ["cpu:scalar", "cpu:scalar"]}, neo.ModelError, "targets must differ. Got 'cpu:scalar' twice"),
        ({"target": ["cpu", "cpu:mmx"]}, neo.UnsupportedError, "must be a known one. Got 'mmx'"),
        ({"shapes": {"N": []}}, neo.ModelError, "must be one or more. Got none for 'N'"),
        ({"shapes": {"N": list(range(65))}}, neo.ModelError, "at most 64 variants. Got 65"),
        ({"shapes": {"N": [1, "2"]}}, neo.ModelError, "shapes must be sizes"),
        ({"shapes": {"M": [1, 2]}}, neo.ModelError, "shapes must name symbols of the model. Got 'M'"),
    ],
)
def test_arguments_that_make_no_variants_are_refused(arguments: Any, error: type[Exception], rule: str) -> None:
    with pytest.raises(error, match=rule):
        neo.compile(MODELS["network"], **arguments)


def test_the_command_line_makes_variants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(MODELS["network"].SerializeToString())
    targets = [option for tier in TIERS for option in ("--target", tier)]
    assert cli.main(["compile", "m.onnx", *targets, "--shape", "N=1,4,2:16", "-o", "m.neo"]) == 0
    assert f"{3 * len(TIERS)} variants" in capsys.readouterr().out
    assert [v.inputs[0].shape[0] for v in neo.load("m.neo").variants] == [1, 4, "N"]
    assert cli.main(["run", "m.neo", "--shape", "N=4"]) == 0


Lie = Callable[[Variants], object]
LIES: list[tuple[str, type[Exception], str, Lie]] = [
    ("no list", neo.ModelError, "entry neo.variants", lambda v: v.metadata.pop("neo.variants")),
    ("no variants", neo.ModelError, "1 to 64 variants. Got 0", lambda v: v.set_isas([])),
    ("too many", neo.ModelError, "1 to 64 variants. Got 65", lambda v: v.set_isas(["scalar"] * 65)),
    ("more than plans", neo.ModelError, r"entry neo.plan.\d", lambda v: v.set_isas([*v.isas, v.isas[0]])),
    ("unknown set", neo.UnsupportedError, "must be a known one", lambda v: v.set_isas(["mmx"])),
    ("absent set", neo.UnsupportedError, "a variant for an instruction set that runs", lambda v: v.set_isas(["neon"])),
    ("list of numbers", neo.ModelError, "string", lambda v: v.set_isas([1, 2])),
    ("no plan", neo.ModelError, "entry neo.plan.0", lambda v: v.metadata.pop("neo.plan.0")),
    ("no signature", neo.ModelError, "entry neo.signature.0", lambda v: v.metadata.pop("neo.signature.0")),
    ("no union", neo.ModelError, "signature of a saved module", lambda v: v.metadata.pop("neo.union")),
    (
        "a plan for a weaker set than the list says",
        neo.ModelError,
        "for the instruction set that the header says. Got scalar",
        lambda v: v.change_plan(0, lambda p: p["target"].update(isa="scalar")),
    ),
    (
        "other inputs",
        neo.ModelError,
        "variants must have the same inputs",
        lambda v: v.change_plan(1, lambda p: p.update(inputs=["other"])),
    ),
    (
        "a plan that lies",
        neo.ModelError,
        "must have a block",
        lambda v: v.change_plan(1, lambda p: p.update(blocks=[])),
    ),
    (
        "a union of other sizes",
        neo.ModelError,
        "must have the inputs and outputs of the module",
        lambda v: v.change_union(lambda u: u["inputs"][0].update(shape=[9, 3, 12, 12], hints=[9, 3, 12, 12])),
    ),
]


@pytest.mark.parametrize(("error", "rule", "lie"), [e[1:] for e in LIES], ids=[e[0] for e in LIES])
def test_a_header_that_lies_about_variants_is_refused(
    readable: Path, error: type[Exception], rule: str, lie: Lie
) -> None:
    variants = Variants.of(readable.read_bytes())
    lie(variants)
    with pytest.raises(error, match=rule):
        neo.load(variants.join())


def test_variants_of_other_machines_are_not_read(readable: Path) -> None:
    variants = Variants.of(readable.read_bytes())
    variants.set_isas([*variants.isas, "neon"])
    number = len(variants.isas) - 1
    variants.metadata[f"neo.plan.{number}"] = json.dumps({"blocks": []})
    variants.metadata[f"neo.signature.{number}"] = ""
    assert len(neo.load(variants.join()).variants) == 2

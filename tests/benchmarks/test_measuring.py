"""The benchmarks' own arithmetic: sizes of models, limits, merging of tables, engines that fail."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from neo.bench import EngineError, EngineProcess
from onnx import TensorProto, helper, numpy_helper

from benchmarks import page, results
from benchmarks.limits import Limits, measure_limits
from benchmarks.peers import ENGINES
from benchmarks.results import Cell, Row, Section, Table
from benchmarks.work import Product, Work, count_work


def save_model(path: Path, nodes: list[Any], shape: list[Any], weights: dict[str, np.ndarray]) -> Path:
    """Write a model with the float input ``x`` and the output ``y``."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def filled(*shape: int) -> np.ndarray:
    return np.full(shape, 0.5, dtype=np.float32)


@pytest.mark.parametrize(
    ("node", "shape", "weights", "macs"),
    [
        (helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4), [1, 3, 8, 10], {"w": filled(5, 3, 3, 3)}, 10800),
        (
            helper.make_node("Conv", ["x", "w"], ["y"], group=4, strides=[2, 2]),
            [1, 4, 8, 8],
            {"w": filled(4, 1, 2, 2)},
            256,
        ),
        (helper.make_node("ConvTranspose", ["x", "w"], ["y"]), [1, 3, 4, 4], {"w": filled(3, 5, 2, 2)}, 960),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), [2, 6, 7], {"w": filled(7, 9)}, 756),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transA=1), [7, 6], {"w": filled(7, 9)}, 378),
        (helper.make_node("Relu", ["x"], ["y"]), [7, 6], {}, 0),
    ],
    ids=["conv", "depthwise", "transposed", "batched product", "transposed gemm", "no product"],
)
def test_counts_multiply_adds(
    tmp_path: Path, node: onnx.NodeProto, shape: list[int], weights: dict[str, np.ndarray], macs: int
) -> None:
    work = count_work(save_model(tmp_path / "m.onnx", [node], shape, weights), {})
    assert work.complete
    assert sum(product.macs for product in work.products) == macs
    assert work.weight_bytes == (weights["w"].nbytes if weights else 0)


def test_counts_every_step_of_a_recurrent_layer(tmp_path: Path) -> None:
    weights = {"w": filled(2, 16, 3), "r": filled(2, 16, 4)}
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4, direction="bidirectional")
    work = count_work(save_model(tmp_path / "m.onnx", [node], [5, 2, 3], weights), {})
    assert sum(product.macs for product in work.products) == 5 * 2 * 2 * 16 * (3 + 4)


def test_symbols_take_the_sizes_of_the_inputs(tmp_path: Path) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = save_model(tmp_path / "m.onnx", [node], ["n", 7], {"w": filled(7, 9)})
    assert count_work(path, {"x": filled(4, 7)}).gmac == pytest.approx(4 * 7 * 9 / 1e9)
    assert not count_work(path, {}).complete


def test_limit_is_the_slower_of_arithmetic_and_arrival() -> None:
    limits = Limits(threads=1, gflops=100, gbytes=10)
    light = Product("a", "Conv", macs=10**9, weight_bytes=10**6)
    heavy = Product("b", "Gemm", macs=10**6, weight_bytes=10**8)
    assert limits.direct_ms(Work((light,), True)) == pytest.approx(20)
    assert limits.direct_ms(Work((light, heavy), True)) == pytest.approx(20 + 10)


def test_fast_algorithms_lower_the_limit_where_their_weights_arrive_in_time() -> None:
    limits = Limits(threads=1, gflops=100, gbytes=10)
    product = Product("a", "Conv", macs=10**9, weight_bytes=10**6, fast=((4 * 10**8, 2 * 10**6), (10**8, 2 * 10**8)))
    assert limits.direct_ms(Work((product,), True)) == pytest.approx(20)
    assert limits.fast_ms(Work((product,), True)) == pytest.approx(2)
    heavy = Product("b", "Gemm", macs=10**6, weight_bytes=10**8)
    assert limits.fast_ms(Work((product, heavy), True)) == pytest.approx(8 + 10)


@pytest.mark.parametrize(
    ("weight", "attributes", "fast"),
    [
        # F(2, 3), F(4, 3), F(6, 3) on 9 outputs along each axis: 4, 2 and 1 tiles of 4, 6 and 8 products, and 3, 3 and 5
        # of a smaller one.
        ([4, 3, 3, 3], {"pads": [1, 1, 1, 1]}, ((361 * 12, 16 * 48), (225 * 12, 9 * 48), (169 * 12, 64 * 48))),
        # Of stride 2 along one axis, 5 outputs: 2 and 1 tiles of 5 and 9 products and 3 of a smaller one, or 11; a single
        # tap along the other.
        ([4, 3, 3, 1], {"pads": [1, 0, 1, 0], "strides": [2, 1]}, ((117 * 12, 192), (108 * 12, 288), (99 * 12, 384))),
        # Seven products of quarters.
        ([4, 3, 1, 1], {}, ((81 * 12 * 7 // 8, 12 * 7),)),
        ([4, 3, 3, 3], {"dilations": [2, 2]}, ()),
        ([3, 1, 3, 3], {"group": 3}, ()),
        ([4, 3, 5, 5], {"strides": [2, 2]}, ()),
    ],
)
def test_counts_what_fast_algorithms_multiply(
    tmp_path: Path, weight: list[int], attributes: dict[str, object], fast: tuple[tuple[int, int], ...]
) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    path = save_model(tmp_path / "m.onnx", [node], [1, 3, 9, 9], {"w": filled(*weight)})
    (product,) = count_work(path, {}).products
    assert product.fast == fast


def test_a_recurrent_layer_reads_its_weights_in_every_step() -> None:
    limits = Limits(threads=2, gflops=100, gbytes=1, caches=((1000, 100), (10_000, 10)))
    assert limits.sweep_s(1500) == pytest.approx(1500 / 100e9)
    assert limits.sweep_s(12_000) == pytest.approx(2000 / 100e9 + 10_000 / 10e9)
    assert limits.sweep_s(22_000) == pytest.approx(2000 / 100e9 + 18_000 / 10e9 + 2000 / 1e9)
    layer = Product("a", "LSTM", macs=3 * 10**5, weight_bytes=44_000, sweeps=50, swept_bytes=22_000, swept_macs=10**5)
    assert limits.direct_ms(Work((layer,), True)) == pytest.approx(1e3 * (4e5 / 100e9 + 50 * limits.sweep_s(22_000)))


def test_steps_of_a_recurrent_layer_are_counted(tmp_path: Path) -> None:
    inputs = {"w": filled(2, 4 * 3, 5), "r": filled(2, 4 * 3, 3)}
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3, direction="bidirectional")
    path = save_model(tmp_path / "m.onnx", [node], [7, 2, 5], inputs)
    (layer,) = count_work(path, {}).products
    assert (layer.sweeps, layer.swept_bytes, layer.swept_macs) == (7, 4 * 2 * 12 * 3, 7 * 2 * 2 * 12 * 3)
    assert layer.macs == layer.swept_macs + 7 * 2 * 2 * 12 * 5


def cell(time: float, version: str = "engine 1") -> Cell:
    return Cell(median_ms=time, low_ms=time * 0.9, high_ms=time * 1.1, best_ms=time * 0.8, rounds=3, version=version)


def table(**rows: dict[str, Cell]) -> Table:
    return Table("networks", 2, {"cpu": "one"}, rows={name: Row(gmac=1.0, cells=cells) for name, cells in rows.items()})


def test_a_run_replaces_the_cells_that_it_measured(tmp_path: Path) -> None:
    files = (tmp_path / "r.json", tmp_path / "r.md")
    results.record(table(resnet18={"ort": cell(8), "neo": cell(10, "neo 1")}, vgg11={"ort": cell(30)}), *files)
    results.record(table(resnet18={"neo": cell(4, "neo 1")}), *files)
    rows = results.read_tables(files[0])["networks-2"].rows
    assert rows["resnet18"].cells["ort"].median_ms == 8
    assert rows["resnet18"].cells["neo"].median_ms == 4
    assert rows["vgg11"].cells["ort"].median_ms == 30
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.md"]


def test_cells_of_another_version_or_machine_are_dropped(tmp_path: Path) -> None:
    files = (tmp_path / "r.json", tmp_path / "r.md")
    results.record(table(resnet18={"neo": cell(10, "neo 1")}, vgg11={"neo": cell(30, "neo 1")}), *files)
    results.record(table(resnet18={"neo": cell(4, "neo 2")}), *files)
    assert "neo" not in results.read_tables(files[0])["networks-2"].rows["vgg11"].cells
    elsewhere = dataclasses.replace(table(vgg16={"neo": cell(9, "neo 2")}), environment={"cpu": "two"})
    results.record(elsewhere, *files)
    assert list(results.read_tables(files[0])["networks-2"].rows) == ["vgg16"]


def test_the_page_shows_times_speed_ups_and_reasons() -> None:
    text = page.render(
        table(
            resnet18={"neo": cell(4), "ort": cell(8), "ncnn": cell(5)},
            vgg11={"neo": cell(40), "ort": cell(20), "ncnn": Cell(error="no such layer")},
        )
    )
    lines = text.splitlines()
    assert (
        "| resnet18 | 1.00 | 4.00 ± 10% (3.20) | 8.00 ± 10% (6.40) | 5.00 ± 10% (4.00) | ncnn | 1.25 |  |  |" in lines
    )
    assert "| vgg11 | 1.00 | 40.0 ± 10% (32.0) | 20.0 ± 10% (16.0) | failed | ort | 0.50 |  |  |" in lines
    assert "- vgg11, ncnn: no such layer" in lines
    assert not any("other programs" in line for line in lines)
    summary = next(line for line in lines if line.startswith("Speed-up of neo over the best peer"))
    assert (
        "geometric mean 0.79 of 2 models; not shown to be at least 0.98 (lower bound below): 1 (vgg11); worst 0.50 (vgg11)."
        in summary
    )
    assert "2 without an interval" in summary


def in_turn(times: list[float], stamp: str = "now") -> Cell:
    middle = sorted(times)[len(times) // 2]
    low, high = min(times), max(times)
    return Cell(median_ms=middle, low_ms=low, high_ms=high, best_ms=low, rounds_ms=times, stamp=stamp)


def test_a_speed_up_is_the_median_of_the_ratios_of_each_round() -> None:
    # The machine is twice as slow in every other round; neo is 1.5 times as fast in each.
    drift = [1.0, 2.0] * 8
    row = Row(cells={"neo": in_turn([2 * x for x in drift]), "ort": in_turn([3 * x for x in drift])})
    found = page.speed_up(row)
    assert found is not None
    assert (found.peer, found.bounded, found.not_slower) == ("ort", True, True)
    assert (found.ratio.low, found.ratio.median, found.ratio.high) == (1.5, 1.5, 1.5)


def test_a_lower_bound_under_the_limit_is_slower() -> None:
    neo = [1.0] * 11 + [1.2] * 5
    row = Row(cells={"neo": in_turn(neo), "ort": in_turn([1.0] * 16)})
    found = page.speed_up(row)
    assert found is not None
    assert found.ratio.median == 1.0
    assert not found.not_slower


def test_cells_that_were_not_measured_in_turn_have_no_interval() -> None:
    row = Row(cells={"neo": in_turn([1.0] * 15), "ort": in_turn([2.0] * 15, "yesterday")})
    found = page.speed_up(row)
    assert found is not None
    assert not found.bounded
    assert found.ratio.median == 2.0


def test_the_page_shows_intervals_shares_first_answers_and_memory() -> None:
    neo, ort = in_turn([2.0] * 15), in_turn([3.0] * 15)
    neo.first_answer_ms, neo.peak_bytes, neo.import_ms = 50.0, 3 * 2**20, 7.0
    whole = table(resnet18={"neo": neo, "ort": ort})
    whole.rows["resnet18"].limit_ms = 1.0
    lines = page.render(whole).splitlines()
    assert "| resnet18 | 1.00 | 2.00 ± 0% (2.00) | 3.00 ± 0% (3.00) | ort | 1.50 [1.50, 1.50] | 1.00 | 50% |" in lines
    assert "| resnet18 | 50.0 | 3.00 |" in lines
    assert "Of that the import of the engine took, median, ms: neo 7.00." in lines


def test_scalability_compares_tables_of_one_suite() -> None:
    one = table(resnet18={"neo": cell(9), "ort": cell(8)}, vgg11={"neo": cell(32), "ncnn": cell(3)})
    one.threads = 1
    two = table(resnet18={"neo": cell(6), "ort": cell(4)}, vgg11={"neo": cell(20)})
    lines = page.page({"networks-1": one, "networks-2": two}, {}).splitlines()
    assert "| resnet18 | 1.50 | 2.00 |" in lines
    assert "| vgg11 | 1.60 |  |" in lines
    assert "| geometric mean | 1.55 | 2.00 |" in lines


def test_tuned_neo_is_no_peer() -> None:
    row = Row(cells={"neo": in_turn([2.0] * 15), "neo-tuned": in_turn([1.0] * 15), "ort": in_turn([3.0] * 15)})
    found = page.speed_up(row), page.speed_up(row, "neo-tuned")
    assert [up.ratio.median for up in found if up] == [1.5, 3.0]


def test_sections_of_other_scripts_stay_when_tables_are_recorded(tmp_path: Path) -> None:
    files = (tmp_path / "r.json", tmp_path / "r.md")
    results.record_section("pool", Section("The pool", "Why.", ["a", "b"], [["1", "2"]], ["Note."]), *files)
    results.record(table(resnet18={"ort": cell(8)}), *files)
    text = files[1].read_text()
    assert "## The pool\n\nWhy.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nNote.\n" in text
    assert "resnet18" in text


def test_pictures_of_a_table(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from benchmarks import pictures

    whole = table(
        resnet18={"neo": in_turn([2.0, 2.5, 2.2]), "ort": in_turn([3.0, 3.1, 3.2])},
        vgg11={"neo": in_turn([2.0])},
    )
    whole.rows["resnet18"].limit_ms = 1.0
    found = pictures.draw(whole, tmp_path)
    assert [path.name for path in found] == ["speed_up-networks-2.svg", "limit_share-networks-2.svg"]
    text = found[0].read_text()
    assert "resnet18" in text
    assert "vgg11" not in text
    results.record(whole, tmp_path / "r.json", tmp_path / "r.md")
    assert not pictures.draw(table(vgg11={"neo": cell(1)}), tmp_path)


def test_the_page_says_once_that_an_engine_is_not_installed() -> None:
    missing = "ModuleNotFoundError: No module named 'ncnn'"
    rows = {name: {"ort": cell(8), "ncnn": Cell(error=missing)} for name in ("resnet18", "vgg11")}
    lines = page.render(table(**rows)).splitlines()
    assert sum("| n/a |" in line for line in lines) == 2
    assert [line for line in lines if "ncnn: " in line] == [f"- ncnn: {missing}"]


def test_the_page_names_what_was_disturbed() -> None:
    busy = table(resnet18={"ort": cell(8)}, vgg11={"ort": cell(20)})
    busy.rows["vgg11"].load = 9.0
    assert "Measured while other programs ran, so of little worth: vgg11." in page.render(busy).splitlines()


def test_limits_of_this_machine_grow_with_threads() -> None:
    one, two = measure_limits(1), measure_limits(2)
    if one is None or two is None:
        pytest.skip("there is no C compiler")
    assert one.gflops > 1
    assert one.gbytes > 0.1
    assert two.gflops > 1.2 * one.gflops


def test_the_recorded_command_leaves_out_places_of_files() -> None:
    from benchmarks import run

    arguments = run.parse(["--engines", "ort,neo", "--threads", "2", "--models", "vgg11,resnet18", "--cache", "/tmp/x"])
    assert [entry.name for entry in arguments.entries] == ["vgg11", "resnet18"]
    assert run._command(arguments) == (
        "python -m benchmarks.run --suite networks --engines ort,neo --models vgg11,resnet18 --threads 2 "
        "--rounds 15 --slice 0.5"
    )


def test_an_unknown_engine_or_model_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import run

    for words in (["--engines", "ort,nobody"], ["--models", "nobody"]):
        with pytest.raises(SystemExit):
            run.parse(words)
        assert "'nobody'" in capsys.readouterr().err


@pytest.fixture
def relu(tmp_path: Path) -> dict[str, Any]:
    """Describe a model of one Relu with its input."""
    path = save_model(tmp_path / "relu.onnx", [helper.make_node("Relu", ["x"], ["y"])], [4], {})
    np.savez(tmp_path / "inputs.npz", a0=np.array([-1, 2, -3, 4], dtype=np.float32))
    return {
        "name": "relu",
        "path": str(path),
        "inputs": str(tmp_path / "inputs.npz"),
        "input_names": ["x"],
        "outputs": ["y"],
        "threads": 1,
        "cache": str(tmp_path),
        "network": None,
        "tflite": None,
        "options": {},
    }


def test_an_engine_answers_from_its_own_process(tmp_path: Path, relu: dict[str, Any]) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    engine = EngineProcess(ENGINES["ort"].adapter, 1)
    try:
        assert engine.ask({"do": "version"}, 60)["version"].startswith("onnxruntime")
        assert engine.ask({"do": "load", "task": relu}, 60)["load_ms"] > 0
        for variant, expected in ((0, [0, 2, 0, 4]), (1, [4, 0, 2, 0])):
            engine.ask({"do": "outputs", "path": str(tmp_path / "out.npz"), "variant": variant}, 60)
            np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["a0"], expected)
        engine.hold()
        with pytest.raises(EngineError, match="no answer to 'measure'"):
            engine.ask({"do": "measure", "seconds": 0.01}, 0.3)
        engine.release()
    finally:
        engine.close()


def test_a_failing_engine_says_why_and_lives_on(relu: dict[str, Any]) -> None:
    engine = EngineProcess(ENGINES["torch"].adapter, 1)
    try:
        with pytest.raises(EngineError, match="no model is loaded"):
            engine.ask({"do": "measure", "seconds": 0.01}, 60)
        with pytest.raises(EngineError, match=r"no PyTorch source of this model|No module named 'torch'"):
            engine.ask({"do": "load", "task": relu}, 60)
    finally:
        engine.close()


def test_a_dead_engine_is_told_from_a_silent_one() -> None:
    engine = EngineProcess(ENGINES["ort"].adapter, 1, python="/bin/false")
    try:
        with pytest.raises(EngineError, match="ended with 1"):
            engine.ask({"do": "load"}, 60)
    finally:
        engine.close()

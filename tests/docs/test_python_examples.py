"""The programs of examples/python: short, described, and right on what they make themselves (others: tests/models)."""

import importlib.util
import json
import os
import runpy
import signal
import sys
from pathlib import Path

import neo
import numpy as np
import pytest
from neo.cli import make_parser
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "python" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_short_and_has_its_section(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
    assert f"python/{path.name})" in (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path", [p for p in EXAMPLES if "sys.argv" in p.read_text(encoding="utf-8")], ids=lambda p: p.stem
)
def test_an_example_without_its_files_says_what_it_takes(path, monkeypatch):
    for name in ("PIL", "distributed", "pyarrow"):
        if name in path.read_text(encoding="utf-8"):
            pytest.importorskip(name)
    monkeypatch.setattr(sys, "argv", [path.name])
    with pytest.raises(SystemExit, match=f"``python {path.name} ") as ending:
        runpy.run_path(str(path), run_name="__main__")
    assert "\n" in ending.value.code


def test_a_table_is_classified():
    example = load("classify_table")
    module = example.neo.compile(example.forest(*example.table(300)))
    x, y = example.table(400)
    label, votes = module(x)
    assert (label == y).mean() > 0.9
    assert votes.shape == (400, 2)


def test_a_quantized_network_stands_beside_its_float_form(capsys):
    load("quantize_model").main()
    float_line, code_line = capsys.readouterr().out.splitlines()
    assert float_line.startswith("float32: 100% of 32 digits right")
    assert code_line.startswith("8 bits: ")


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sleep", "##s", "a", "dog", "run", ".", "cafe"]


def word_encoder():
    """Tokens [N, T] to rows [N, T, 13] of a table: one of its own for each word, zeros for the marks around a sentence."""
    rows = np.eye(len(WORDS), dtype=np.float32)
    rows[:4] = 0
    names = ("attention_mask", "input_ids")
    inputs = [helper.make_tensor_value_info(name, 7, ["batch", "sequence"]) for name in names]
    output = helper.make_tensor_value_info("last_hidden_state", 1, ["batch", "sequence", len(WORDS)])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["kept"], to=1),
        helper.make_node("Unsqueeze", ["kept", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["last_hidden_state"]),
    ]
    constants = [numpy_helper.from_array(rows, "table"), numpy_helper.from_array(np.array([-1]), "last")]
    graph = helper.make_graph(nodes, "words", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_sentences_are_embedded(capsys, tmp_path):
    example = load("embed_sentences")
    (tmp_path / "model.onnx").write_bytes(word_encoder().SerializeToString())
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    sentences = ["The cat sleeps.", "the  CAT sleeps .", "The dog sleeps.", "a zebra", "Caf\u00e9 cafe"]
    example.main(str(tmp_path / "model.onnx"), str(tmp_path / "vocab.txt"), *sentences)
    rows = capsys.readouterr().out.splitlines()
    assert [float(row[:6]) for row in rows] == [1, 1, 0.8, 0, 0]
    assert [row[8:] for row in rows] == sentences


def test_pieces_are_the_longest_and_unknown_words_are_marked():
    example = load("embed_sentences")
    ids = {word: i for i, word in enumerate(WORDS)}
    assert example.tokens("Sleeps, sleep zebra", ids) == [2, 6, 7, 1, 6, 1, 3]
    assert example.tokens("Caf\u00e9", ids) == [2, 12, 3]
    assert example.tokens("", ids) == [2, 3]
    assert len(example.tokens("cat " * 999, ids)) == example.LONGEST


def test_the_containers_command_is_one_of_neo():
    lines = (ROOT / "examples" / "serve" / "Containerfile").read_text(encoding="utf-8").splitlines()
    name, *arguments = json.loads(next(line.removeprefix("CMD ") for line in lines if line.startswith("CMD ")))
    options = make_parser().parse_args(arguments)
    assert name == "neo"
    assert f"EXPOSE {options.port}" in lines
    assert any(line.startswith("COPY ") and line.endswith(options.models[0]) for line in lines)


def linear(columns):
    """The sum of each row's columns, the first once, the second twice, ..."""
    weights = numpy_helper.from_array(np.arange(1, columns + 1, dtype=np.float32).reshape(columns, 1), "w")
    values = [helper.make_tensor_value_info(n, 1, ["N", d]) for n, d in (("x", columns), ("y", 1))]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "linear", values[:1], values[1:], [weights]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def die_once(module, path, group, mark, score):
    """Score a row group; the first worker that has the third one is killed."""
    if group == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return score(module, path, group)


@pytest.mark.slow
def test_a_large_table_is_scored_although_a_worker_dies(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    distributed = pytest.importorskip("distributed")
    cloudpickle = pytest.importorskip("cloudpickle")
    example = load("score_table")
    for module in (example, sys.modules[__name__]):  # workers have neither file on their path
        monkeypatch.setitem(sys.modules, module.__name__, module)
        cloudpickle.register_pickle_by_value(module)
    rows = np.random.default_rng(0).integers(0, 9, (1000, 3)).astype(np.float64)
    pq.write_table(pa.table({f"c{i}": rows[:, i] for i in range(3)}), tmp_path / "in.parquet", row_group_size=90)
    score, mark = example.score, tmp_path / "killed"
    monkeypatch.setattr(example, "score", lambda module, path, group: die_once(module, path, group, mark, score))
    package = str(Path(neo.__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        count = example.score_all(client, linear(3), tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert mark.exists()
    assert count == 1000
    scores = pq.read_table(tmp_path / "out.parquet")["score0"].to_numpy()
    np.testing.assert_array_equal(scores, rows @ [1, 2, 3])

"""Maps through Python and the command line: classifiers as exporters write them, and dicts as inputs."""

import json

import neo
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.saved.parts import MODELS, feeds_of
from tests.saved.same_bits import assert_same

LABELS = ["ant", "bee", "cat"]
RANDOM = np.random.default_rng(0)
COEFFICIENTS = RANDOM.standard_normal((3, 4)).astype(np.float32)


def classifier(labels=LABELS, rows="N"):
    """A linear classifier, normalized and put into maps: what scikit-learn's exporter writes by default."""
    words = isinstance(labels[0], str)
    key = "classlabels_strings" if words else "classlabels_int64s"
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["X"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=COEFFICIENTS.ravel().tolist(),
            intercepts=[0.0, 0.5, -0.5],
            multi_class=1,
            post_transform="SOFTMAX",
            **{"classlabels_strings" if words else "classlabels_ints": labels},
        ),
        helper.make_node("Normalizer", ["scores"], ["normal"], domain="ai.onnx.ml", norm="L1"),
        helper.make_node("Identity", ["label"], ["output_label"]),
        helper.make_node("ZipMap", ["normal"], ["output_probability"], domain="ai.onnx.ml", **{key: labels}),
    ]
    kind = TensorProto.STRING if words else TensorProto.INT64
    maps = onnx.TypeProto()
    element = maps.sequence_type.elem_type.map_type
    element.key_type = kind
    element.value_type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [rows, 4])],
        [
            helper.make_tensor_value_info("output_label", kind, [rows]),
            onnx.ValueInfoProto(name="output_probability", type=maps),
        ],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def softmax_rows(x, labels=LABELS):
    scores = x @ COEFFICIENTS.T.astype(np.float64) + np.array([0.0, 0.5, -0.5])
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    return [dict(zip(labels, row.tolist(), strict=True)) for row in chances]


@pytest.mark.parametrize("labels", [LABELS, [0, 1, 2], [7, -3, 5]])
def test_a_classifier_gives_a_dict_for_each_row(labels):
    module = neo.compile(classifier(labels))
    x = RANDOM.standard_normal((5, 4)).astype(np.float32)
    label, rows = module(x)
    want = softmax_rows(x, labels)
    assert len(rows) == 5
    for row, expected, best in zip(rows, want, label.tolist(), strict=True):
        assert list(row) == sorted(labels)
        assert all(type(value) is float for value in row.values())
        assert best == max(expected, key=expected.get)
        assert row == pytest.approx(expected, rel=1e-5)
    key = "string" if labels is LABELS else "int64"
    assert module.outputs[1].dtype == f"seq(map({key},float32[]))"
    assert module.run({"X": x})["output_probability"] == rows
    assert module(x[:0])[1] == []


def test_onnxruntime_gives_the_same_dicts():
    pytest.importorskip("onnxruntime")
    model = classifier()
    neo.testing.assert_close(neo.compile(model), model, sizes={"N": 4})


def test_differing_dicts_are_told():
    want = {"m": [{"a": 1.0, "b": 2.0}]}
    neo.testing.assert_close({"m": [{"b": 2.0, "a": 1.0}]}, want)
    with pytest.raises(AssertionError, match=r"\[m\[0\]\] maps must have the same keys"):
        neo.testing.assert_close({"m": [{"a": 1.0}]}, want)
    with pytest.raises(AssertionError, match=r"m\[0\]"):
        neo.testing.assert_close({"m": [{"a": 1.0, "b": 2.5}]}, want)


def test_dicts_are_inputs():
    module = neo.compile(MODELS["maps"])
    feeds = feeds_of("maps")
    row, same, rows, named, again = module(**feeds)
    np.testing.assert_array_equal(row, np.array([[0.5, 0, 2]], np.float32))
    assert same == feeds["counts"]
    assert again == feeds["many"]
    assert named == [{"x": 0.5, "y": 0.0, "z": 2.0}]
    assert [list(r) for r in rows] == [[1, 2, 3]] * 2
    assert rows[1][1] == -float(feeds["scores"][1, 1])
    numbers = {**feeds, "counts": {"a": 1, "b": np.float32(2), "c": np.int64(3)}}
    assert module(**numbers)[0].tolist() == [[1, 3, 2]]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"counts": [1]}, r"type map\(string,float32\[\]\) must be a dict. Got a list - at input 'counts'"),
        ({"counts": None}, r"type map\(string,float32\[\]\) must be a dict. Got None - at input 'counts'"),
        ({"counts": np.ones(2)}, r"must be a dict. Got an array - at input 'counts'"),
        ({"counts": {1: 2.0}}, r"every key of a map must be of dtype string. Got 1 - at input 'counts'"),
        ({"counts": {"a": "b"}}, r"every value of a map must be of dtype float32. Got 'b' - at input 'counts'"),
        ({"many": {"a": 1.0}}, r"must not be a dict. Got 1 entries - at input 'many'"),
        ({"many": [np.ones(2)]}, r"must be a dict. Got an array - at input 'many'"),
    ],
)
def test_what_is_no_map(given, rule):
    module = neo.compile(MODELS["maps"])
    with pytest.raises(neo.DTypeError, match=rule):
        module.run({**feeds_of("maps"), **given})


def test_an_array_is_no_map():
    with pytest.raises(neo.DTypeError, match="dtype must be the input's. Got object, expected float32"):
        neo.compile(MODELS["maps"]).run({**feeds_of("maps"), "scores": {"a": 1.0}})


def test_a_map_of_maps_is_refused():
    model = MODELS["maps"]
    broken = onnx.ModelProto()
    broken.CopyFrom(model)
    broken.graph.input[0].type.map_type.value_type.CopyFrom(model.graph.input[0].type)
    with pytest.raises(neo.ModelError, match="values of a map must be numbers or strings. Got map_type - at input"):
        neo.compile(broken)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_of_calls_do_not_share_memory(threads):
    module = neo.compile(classifier(), threads=threads)
    x = RANDOM.standard_normal((3, 4)).astype(np.float32)
    first = module(x)[1]
    kept = [dict(row) for row in first]
    module(-x)
    assert first == kept


# The command line


def test_run_writes_and_prints_json(neo_command, tmp_path):
    x = RANDOM.standard_normal((2, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    onnx.save(classifier([2, 0, 1]), tmp_path / "m.onnx")
    label, rows = neo.compile(classifier([2, 0, 1]))(x)
    given = ("run", tmp_path / "m.onnx", "--input", f"X={tmp_path / 'x.npy'}")
    status, out, err = neo_command(*given, "--output", tmp_path / "out.json")
    assert (status, err) == (0, "")
    assert "seq(map(int64,float32[]))  [2]" in out
    want = {"output_label": label.tolist(), "output_probability": [{str(k): v for k, v in r.items()} for r in rows]}
    assert json.loads((tmp_path / "out.json").read_text()) == want
    status, out, err = neo_command(*given, "--output", "-")
    assert (status, err) == (0, "")
    assert json.loads(out) == want
    status, _, err = neo_command(*given, "--output", tmp_path / "out.npz")
    assert status == 1
    assert err.startswith("[cli] an output that is no array must be written to a .json file. Got 'output_probability'")
    assert not (tmp_path / "out.npz").exists()


def test_inputs_from_json(neo_command, tmp_path):
    feeds = feeds_of("maps")
    module = neo.compile(MODELS["maps"])
    module.save(tmp_path / "m.neo")
    options = []
    for name, given in feeds.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(given.tolist() if isinstance(given, np.ndarray) else given))
        options += ["--input", f"{name}={path}"]
    status, out, err = neo_command("run", tmp_path / "m.neo", *options, "--output", "-")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["same"] == feeds["counts"]
    assert found["many_again"] == feeds["many"]
    assert found["row"] == [[0.5, 0.0, 2.0]]
    for name in ("profile", "explain"):
        status, out, err = neo_command(name, tmp_path / "m.neo", *options)
        assert (status, err) == (0, ""), name


def test_integer_keys_from_json(neo_command, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("CastMap", ["m"], ["y"], domain="ai.onnx.ml", map_form="SPARSE", max_map=4)],
        "g",
        [onnx.ValueInfoProto(name="m", type=_map_type(TensorProto.INT64, TensorProto.FLOAT))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), tmp_path / "m.onnx")
    (tmp_path / "m.json").write_text('{"2": 1.5, "0": 3}')
    status, out, err = neo_command("run", tmp_path / "m.onnx", "--input", f"m={tmp_path / 'm.json'}", "--output", "-")
    assert (status, err) == (0, "")
    assert json.loads(out) == {"y": [[3.0, 0.0, 1.5, 0.0]]}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[1]", "no value of type map(string,float32[])"),
        ("{", "Expecting property name"),
        ('{"a": "b"}', "every value of a map must be of dtype float32. Got 'b'"),
    ],
)
def test_json_that_is_no_map(neo_command, tmp_path, text, rule):
    neo.compile(MODELS["maps"]).save(tmp_path / "m.neo")
    (tmp_path / "m.json").write_text(text)
    (tmp_path / "many.json").write_text("[]")
    inputs = ["--input", f"counts={tmp_path / 'm.json'}", "--input", f"many={tmp_path / 'many.json'}"]
    status, _, err = neo_command("run", tmp_path / "m.neo", *inputs)
    assert status == 1
    assert rule in err


def test_a_map_cannot_be_synthetic(neo_command, tmp_path):
    neo.compile(MODELS["maps"]).save(tmp_path / "m.neo")
    status, _, err = neo_command("run", tmp_path / "m.neo")
    assert status == 1
    assert err == (
        "[cli] an input of type map(string,float32[]) must be given. Got none for 'counts'\n"
        "Hint: --input counts=FILE.json\n"
    )


def _map_type(key, value):
    proto = onnx.TypeProto()
    proto.map_type.key_type = key
    proto.map_type.value_type.tensor_type.elem_type = value
    return proto


def test_check_and_info_know_maps(neo_command, tmp_path):
    onnx.save(classifier(), tmp_path / "m.onnx")
    for command in (("check",), ("info",), ("check", "--accuracy", "--shape", "N=3")):
        name, *options = command
        status, out, err = neo_command(name, tmp_path / "m.onnx", *options)
        assert (status, err) == (0, ""), (command, out)


def test_an_optimized_model_gives_the_same_dicts(tmp_path):
    neo.optimize(classifier(), tmp_path / "o.onnx")
    x = RANDOM.standard_normal((2, 4)).astype(np.float32)
    for got, want in zip(neo.compile(tmp_path / "o.onnx")(x), neo.compile(classifier())(x), strict=True):
        assert_same(got, want, "output")

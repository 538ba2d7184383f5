"""What campaigns of damaged models found, as small as it gets."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.untrusted.test_attacks import LIMITS, graph_of, ints, model, node


def test_samples_of_a_region_are_bounded() -> None:
    align = node("RoiAlign", "x r b", sampling_ratio=1 << 40)
    regions = np.array([[0, 0, 4, 4]], np.float32)
    with pytest.raises(neo.ModelError, match="sampling_ratio must be 0 to 1024"):
        neo.compile(model([align], r=regions, b=ints(0)), limits=LIMITS)


def test_a_region_of_the_size_of_a_country_is_refused() -> None:
    align = model([node("RoiAlign", "x r b")], r=np.array([[0, 0, 9e5, 9e5]], np.float32), b=ints(0))
    with pytest.raises(neo.Error, match="samples per cell"):
        neo.compile(align, limits=LIMITS).run({"x": np.ones((1, 3, 8, 8), np.float32)})


def test_skips_beyond_the_row_take_no_time() -> None:
    tfidf = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1 << 62,
        ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_int64s=[1, 2, 1, 2],
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.INT64, [5])
    graph = helper.make_graph([tfidf], "g", [x], [onnx.ValueInfoProto(name="y")])
    module = neo.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), limits=LIMITS)
    np.testing.assert_array_equal(module(np.array([1, 5, 5, 2, 1])), [2, 1, 1])


def test_a_rank_found_behind_a_squeeze_without_axes() -> None:
    """The sizes of what a pass gave a rank are known only after it ran."""
    squeeze = model(
        [node("Squeeze", "x", "s"), node("GRU", "s w r", "_ y".replace("_", "all"), hidden_size=3)],
        x=["T", 1, "N", 4],
        w=np.ones((1, 9, 4), np.float32),
        r=np.ones((1, 9, 3), np.float32),
    )
    assert neo.compile(squeeze, limits=LIMITS)(np.ones((2, 1, 3, 4), np.float32)).shape == (1, 3, 3)


def test_small_things_that_a_loop_collects_count() -> None:
    scalar = helper.make_tensor_value_info
    body = graph_of(
        [node("Identity", "go", "go2"), node("Cast", "i", "t", to=TensorProto.INT8)],
        ["go2", "t"],
        [scalar("i", TensorProto.INT64, []), scalar("go", TensorProto.BOOL, [])],
    )
    loop = model([node("Loop", "n _", body=body)], n=np.array(1 << 40, np.int64))
    module = neo.compile(loop, limits=neo.Limits(memory=1 << 20))
    with pytest.raises(neo.OutOfMemoryError, match="expected at most 1048576 in all"):
        module.run({t.name: np.ones(t.shape or (), np.float32) for t in module.inputs})


def test_names_do_not_break_the_line_of_a_message() -> None:
    softmax = helper.make_node("Softmax", ["x"], ["y"], name="a\nHello\x1b[2J\u202e", axis=9)
    with pytest.raises(neo.ModelError) as caught:
        neo.compile(model([softmax]), limits=LIMITS)
    assert str(caught.value).isprintable()


def test_long_names_are_shortened() -> None:
    tensor = numpy_helper.from_array(np.ones(2, np.float32), "w")
    tensor.dims[:] = [-1] * 100_000
    with pytest.raises(neo.ModelError, match="sizes must not be negative") as caught:
        neo.compile(model([node("Add", "x w")], w=tensor), limits=LIMITS)
    assert len(str(caught.value)) < 2100


def test_a_cast_like_what_is_no_tensor() -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.INT8, [1]))
    like = helper.make_value_info("like", optional)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    cast = helper.make_node("CastLike", ["x", "like"], ["y"])
    graph = helper.make_graph([cast], "g", [x, like], [onnx.ValueInfoProto(name="y")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    with pytest.raises(neo.ModelError):
        neo.compile(made, limits=LIMITS).run({"x": np.ones(2, np.float32), "like": None})


def test_a_loss_of_a_sequence() -> None:
    nodes = [node("SequenceConstruct", "x", "s"), node("NegativeLogLikelihoodLoss", "s i")]
    made = model(nodes, x=[2, 3], i=ints(0, 1))
    with pytest.raises(neo.ModelError):
        neo.compile(made, limits=LIMITS).run({"x": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("ScatterND", ["x", "", "x"], ["y"])],
        [helper.make_node("Concat", ["", "x"], ["y"], axis=0)],
    ],
)
def test_an_input_that_must_be_there(nodes) -> None:
    with pytest.raises(neo.ModelError, match=r"input \d must not be left out"):
        neo.compile(model(nodes, x=[2, 3]), limits=LIMITS)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("Tile", "x n")], "must fit in 64 bits|must fit"),
        ([node("SplitToSequence", "x n", "s"), node("SequenceLength", "s")], "must add up to the axis"),
        ([helper.make_node("Split", ["x", "n"], ["a", "y"])], "must add up to the axis"),
    ],
)
def test_sums_and_products_of_run_time_sizes_do_not_wrap(nodes, words) -> None:
    made = model(nodes, x=[2, 3])
    made.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, [2]))
    module = neo.compile(made, limits=LIMITS)
    with pytest.raises(neo.Error, match=words):
        module.run({"x": np.ones((2, 3), np.float32), "n": np.array([2**62, 2**62], np.int64)})

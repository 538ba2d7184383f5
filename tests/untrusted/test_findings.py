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


@pytest.mark.parametrize(
    ("pads", "error", "words"),
    [
        ([2**62, 0], neo.ShapeError, "a pad must be at most 70368744177664 elements"),
        ([2**63 - 1, 2**63 - 1], neo.ShapeError, "a pad must be at most"),
        ([-(2**63), 0], neo.ShapeError, "a pad must be at most"),
        ([2**40, 0], neo.OutOfMemoryError, "must stay within its limit"),
    ],
)
def test_run_time_pads_of_any_size(pads, error, words) -> None:
    made = model([node("Pad", "x n")], x=[2])
    made.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, [2]))
    module = neo.compile(made, limits=LIMITS)
    with pytest.raises(error, match=words):
        module.run({"x": np.ones(2, np.float32), "n": np.array(pads, np.int64)})


@pytest.mark.parametrize("count", [2**28, 2**45])
def test_a_range_of_any_length(count) -> None:
    made = model([helper.make_node("Range", ["a", "n", "b"], ["y"])], x=[2], a=ints(0), b=ints(1))
    for tensor in made.graph.initializer:
        del tensor.dims[:]
    made.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, []))
    module = neo.compile(made, limits=LIMITS)
    with pytest.raises(neo.OutOfMemoryError, match="must stay within its limit"):
        module.run({"x": np.ones(2, np.float32), "n": np.array(count)})


@pytest.mark.parametrize("version", [2**40, 0, -1])
@pytest.mark.parametrize("domain", ["", "stranger"])
def test_an_opset_of_a_function(domain, version) -> None:
    made = model([helper.make_node("f", ["x"], ["y"], domain="own")], x=[2])
    inner = helper.make_node("Relu", ["a"], ["b"], domain=domain)
    function = helper.make_function("own", "f", ["a"], ["b"], [inner], [helper.make_opsetid(domain, version)])
    made.functions.append(function)
    made.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(neo.ModelError, match=f"opset must be known. Got {version}"):
        neo.compile(made, limits=LIMITS)


def test_an_empty_tensor_whose_other_sizes_are_huge() -> None:
    made = model([node("Expand", "x n")], x=[0, 1, 1])
    made.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, [3]))
    module = neo.compile(made, limits=LIMITS)
    with pytest.raises(neo.ShapeError, match="must have at most 70368744177664 elements"):
        module.run({"x": np.ones((0, 1, 1), np.float32), "n": np.array([0, 2**45, 2**45])})


def with_input(made, name, dtype, shape):
    made.graph.input.append(helper.make_tensor_value_info(name, dtype, shape))
    return neo.compile(made, limits=LIMITS)


@pytest.mark.parametrize("sizes", [[2**63 - 1, -14], [2**62, 2**62], [-1, 2**63 - 1], [-(2**63), 3], [-2, -3]])
def test_run_time_sizes_of_a_reshape(sizes) -> None:
    module = with_input(model([node("Reshape", "x n")], x=[2, 3]), "n", TensorProto.INT64, [2])
    with pytest.raises(neo.ShapeError):
        module.run({"x": np.ones((2, 3), np.float32), "n": np.array(sizes)})


def test_a_range_by_the_smallest_number() -> None:
    made = model([node("Range", "a n b")], x=[2], a=ints(0), n=ints(-1), b=ints(-(2**63)))
    for tensor in made.graph.initializer:
        del tensor.dims[:]
    np.testing.assert_array_equal(neo.compile(made, limits=LIMITS).run({"x": np.ones(2, np.float32)})["y"], [0])


def test_where_a_cache_is_written() -> None:
    made = model([node("TensorScatter", "x u n", axis=2)], x=[1, 2, 4], u=np.ones((1, 2, 2), np.float32))
    made.opset_import[0].version = 24
    module = with_input(made, "n", TensorProto.INT64, [1])
    with pytest.raises(neo.ShapeError, match="an index must lie inside the cache. Got 9223372036854775807"):
        module.run({"x": np.ones((1, 2, 4), np.float32), "n": np.array([2**63 - 1])})


def test_positions_beyond_every_vector() -> None:
    words = {"ngram_counts": [0], "ngram_indexes": [2**63 - 1], "pool_int64s": [1]}
    tfidf = node("TfIdfVectorizer", "n", mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, **words)
    with pytest.raises(neo.ModelError, match="ngram_indexes must be below"):
        neo.compile(model([tfidf], n=ints(1, 2)), limits=LIMITS)


def test_a_padding_of_another_dtype() -> None:
    made = model([node("Pad", "x p c")], x=[2], p=ints(1, 1), c=np.array([1], np.float16))
    with pytest.raises(neo.ModelError, match="constant_value must have the input's element type. Got float16"):
        neo.compile(made, limits=LIMITS)


def test_statistics_of_other_lengths() -> None:
    vectors = {name: np.ones(2, np.float32) for name in "abc"} | {"d": np.ones(1, np.float32)}
    made = model([node("BatchNormalization", "x a b c d")], x=["N", "C", 4], **vectors)
    with pytest.raises(neo.ShapeError):
        neo.compile(made, limits=LIMITS).run({"x": np.ones((1, 2, 4), np.float32)})


@pytest.mark.parametrize(
    ("op", "inputs", "sizes"), [("Det", "s", [6]), ("Det", "s", []), ("GRU", "s w s", [6]), ("RNN", "s w s", [])]
)
def test_ranks_that_only_a_call_tells(op, inputs, sizes) -> None:
    nodes = [node("Reshape", "x n", "s"), node(op, inputs, **({} if op == "Det" else {"hidden_size": 2}))]
    made = model(nodes, x=["N"], w=np.ones((1, 2 if op == "RNN" else 6, 4), np.float32))
    with pytest.raises(neo.Error, match="must have|must be"):
        with_input(made, "n", TensorProto.INT64, ["R"]).run(
            {"x": np.ones(int(np.prod(sizes)), np.float32), "n": np.array(sizes, np.int64)}
        )


def test_a_rank_of_a_million() -> None:
    module_of = model([node("Expand", "x n")], x=[3, 1])
    module_of.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, [1 << 20]))
    with pytest.raises(neo.ModelError, match="a tensor must have at most 1024 axes. Got 1048576"):
        neo.compile(module_of, limits=LIMITS)


def test_a_padding_of_what_nobody_knows() -> None:
    """A dtype without a size once filled a pattern without end."""
    made = model([node("Reshape", "q t", "r"), node("Pad", "r p")], x=[1], t=ints(1, -1), p=ints(0, 1, 0, 1))
    sequence = helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, ["N", 3])
    made.graph.input.append(sequence)
    with pytest.raises(neo.Error):
        neo.compile(made, limits=LIMITS).run({"x": np.ones(1, np.float32), "q": [np.ones((2, 3), np.float32)]})


def test_an_empty_constant_whose_other_sizes_are_huge() -> None:
    made = model([node("Identity", "x")], x=[3])
    made.graph.initializer.append(TensorProto(name="c", data_type=TensorProto.FLOAT, dims=[2**62, 0, 4]))
    with pytest.raises(neo.ModelError, match="fewer than 2.46 elements"):
        neo.compile(made, limits=LIMITS)


@pytest.mark.parametrize("axis", [2**31 - 1, 2**32 + 1, -(2**63)])
def test_an_axis_that_an_int_does_not_hold(axis) -> None:
    made = model([node("ReduceL2", "x a")], x=[2, 3, 4], a=np.full((1, 2), axis))
    with pytest.raises(neo.ModelError, match="must lie inside the rank"):
        neo.compile(made, limits=LIMITS).run({"x": np.ones((2, 3, 4), np.float32)})


def test_a_window_wider_than_every_tensor() -> None:
    with pytest.raises(neo.ModelError, match="attribute size must be 1 to 70368744177664"):
        neo.compile(model([node("LRN", "x", size=2**62)], x=[1, 4, 8, 8]), limits=LIMITS)


@pytest.mark.parametrize("known", [True, False])
def test_a_slice_that_cuts_an_axis_twice(known) -> None:
    made = model([node("Slice", "x s e a")], x=[4, 3], s=ints(2, 2), e=ints(4, 4), a=ints(0, -2))
    feeds = {"x": np.ones((4, 3), np.float32)}
    if not known:
        del made.graph.initializer[[t.name for t in made.graph.initializer].index("a")]
        made.graph.input.append(helper.make_tensor_value_info("a", TensorProto.INT64, [2]))
        feeds["a"] = np.array([0, -2])
    with pytest.raises(neo.ModelError, match="an axis must be listed once. Got -2 twice"):
        neo.compile(made, limits=LIMITS).run(feeds)


def test_a_tensor_of_a_sequence_whose_reader_needs_another_rank() -> None:
    nodes = [
        node("SequenceConstruct", "x", "q"),
        node("SequenceAt", "q i", "b"),
        node("NonMaxSuppression", "b s"),
    ]
    made = model(nodes, x=[4, 2], s=np.ones((1, 1, 1), np.float32), i=np.array(0))
    with pytest.raises(neo.Error) as caught:
        neo.compile(made, limits=LIMITS).run({"x": np.ones((4, 2), np.float32)})
    assert not isinstance(caught.value, neo.InternalError)


def test_more_axes_than_an_array_may_have() -> None:
    module = neo.compile(model([node("Reshape", "x n")], x=[1], n=ints(*[1] * 70)), limits=LIMITS)
    with pytest.raises(neo.UnsupportedError, match="an array must have at most 64 axes. Got a result of 70"):
        module.run({"x": np.ones(1, np.float32)})


@pytest.mark.parametrize(("size", "strides"), [((2, 2), (1500, 64)), ((1, 1), (2**31, 2**30))])
def test_a_transposed_convolution_of_a_huge_stride(size, strides) -> None:
    """A phase of the stride costs the same whichever it is, and those beyond the output cost nothing."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 2, *size)), rng.standard_normal((2, 3, 3, 3))
    made = model([node("ConvTranspose", "x w", strides=list(strides))], x=[1, 2, *size], w=w.astype(np.float32))
    (y,) = neo.compile(made, limits=LIMITS).run({"x": x.astype(np.float32)}).values()
    patches = np.einsum("chw,cokl->ohwkl", x[0], w)
    expected = np.zeros(y.shape)
    for h, v in np.ndindex(*size):
        at = h * strides[0], v * strides[1]
        expected[0, :, at[0] : at[0] + 3, at[1] : at[1] + 3] += patches[:, h, v]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [TensorProto.COMPLEX64, TensorProto.BOOL, TensorProto.STRING])
def test_resizing_what_has_no_mean(dtype) -> None:
    made = model([node("Resize", "x none s", mode="linear")], x=[1, 1, 4, 4], s=np.array([1, 1, 0.5, 0.5], np.float32))
    made.graph.node[0].input[1] = ""
    made.graph.input[0].type.tensor_type.elem_type = dtype
    with pytest.raises(neo.ModelError, match="input 0 must be of a number"):
        neo.compile(made, limits=LIMITS)

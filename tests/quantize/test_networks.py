"""Quantized networks beside their float selves and beside ONNX Runtime, which runs the same file."""

import neo
import numpy as np
import onnx
import pytest

from tests.quantize.networks import Net, calls_for, random_net, small_net

# Deeper networks may differ from another engine wherever a value lies on the edge between two codes.
_EDGE = 0.03


def run_peer(model: onnx.ModelProto, x: np.ndarray, name: str = "x") -> np.ndarray:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    # Fused, products of codes would saturate on processors without VNNI.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {name: x})
    return y


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_are_near_float_and_agree_with_onnxruntime(seed):
    model, shape = random_net(seed)
    data = calls_for(shape)
    quantized = neo.quantize(model, data, threads=2)
    onnx.checker.check_model(quantized.model, full_check=True)
    assert quantized.report.error < 0.02
    module, whole = quantized.compile(), neo.compile(model, threads=2)
    for x in data[:2]:
        y = module(x)
        largest = np.abs(whole(x)).max()
        assert y.shape == whole(x).shape
        np.testing.assert_allclose(y, run_peer(quantized.model, x), rtol=0, atol=_EDGE * largest)


def test_layers_run_on_codes():
    quantized = neo.quantize(small_net(), calls_for([2, 3, 12, 12]))
    routines = [step.routine for step in quantized.compile().steps]
    assert sum(routine.startswith("cpu:int8/") for routine in routines) >= 4
    assert not any(routine.startswith(("cpu:float32/direct", "cpu:float32/gemm")) for routine in routines)
    assert [layer.precision for layer in quantized.report.layers] == ["int8"] * 3


def test_the_same_arguments_give_the_same_bytes(tmp_path):
    model, data = small_net(), calls_for([1, 3, 12, 12], 80)
    for name in ("a", "b"):
        neo.quantize(model, (x for x in data), seed=3, threads=2).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_memory_does_not_grow_with_the_samples():
    from neo.quantize.samples import KEPT

    quantized = neo.quantize(small_net(), (x for x in calls_for([1, 3, 12, 12], KEPT + 50)))
    assert quantized.report.samples == KEPT + 50
    assert len(quantized._study.calls) == KEPT


@pytest.mark.parametrize(
    "options",
    [
        {"symmetric": True},
        {"per_channel": False},
        {"weight_bits": 7},
        {"ranges": "minmax"},
        {"ranges": "percentile"},
        {"correct_bias": False},
        {"equalize": True},
        {"skip": ["first"]},
        {"skip": ["s*"]},
        {"samples": 2},
    ],
    ids=str,
)
def test_options(options):
    data = calls_for([2, 3, 12, 12])
    quantized = neo.quantize(small_net(), data, **options)
    onnx.checker.check_model(quantized.model, full_check=True)
    assert 0 < quantized.report.error < 0.01
    module = quantized.compile()
    for x in data:
        np.testing.assert_allclose(
            module(x), run_peer(quantized.model, x), rtol=0, atol=_EDGE * np.abs(module(x)).max()
        )
    left = [layer.name for layer in quantized.report.layers if layer.precision == "float32"]
    assert left == {"first": ["first"], "s*": ["second"]}.get((options.get("skip") or [""])[0], [])


def test_symmetric_codes_are_signed():
    quantized = neo.quantize(small_net(), calls_for([2, 3, 12, 12]), symmetric=True)
    zeros = [t for t in quantized.model.graph.initializer if t.name.endswith("/zero")]
    assert {t.data_type for t in zeros} == {onnx.TensorProto.INT8}
    assert all(not onnx.numpy_helper.to_array(t).any() for t in zeros)


def test_fewer_weight_bits_make_larger_errors():
    data = calls_for([2, 3, 12, 12])
    errors = [neo.quantize(small_net(), data, weight_bits=bits).report.error for bits in (8, 6, 4)]
    assert errors[0] < errors[1] < errors[2]


def test_bias_correction_takes_the_mean_error_away():
    net = Net(3)
    model = net.model(["N", 64], net.dense("x", 64, 32))
    data = [np.abs(x) + 1 for x in calls_for([16, 64], 8)]
    whole = neo.compile(model)
    shifts = []
    for corrects in (False, True):
        module = neo.quantize(model, data, weight_bits=4, correct_bias=corrects).compile()
        shifts.append(np.abs(np.mean([module(x) - whole(x) for x in data], axis=(0, 1))).max())
    assert shifts[1] < 0.3 * shifts[0]


def test_equalizing_keeps_the_function_and_evens_channels():
    from neo.quantize.equalize import equalize
    from neo.quantize.float_model import prepare

    net = Net(5)
    a = net.conv("x", 3, 8, 3, name="a")
    first = net.constants[0]
    uneven = onnx.numpy_helper.to_array(first) * np.logspace(-2, 2, 8, dtype=np.float32).reshape(8, 1, 1, 1)
    net.constants[0] = onnx.numpy_helper.from_array(uneven.astype(np.float32), first.name)
    model = net.model(["N", 3, 9, 9], net.conv(net.node("Relu", a), 8, 4, 1, name="b"))
    x = calls_for([1, 3, 9, 9], 1)[0]
    even = equalize(prepare(model, None))
    np.testing.assert_allclose(neo.compile(even.proto)(x), neo.compile(model)(x), rtol=1e-4, atol=1e-4)
    w = {node.name: np.abs(even.array(node.input[1])) for node in even.nodes if node.op_type == "Conv"}
    made, read = w["a"].reshape(8, -1).max(axis=1), w["b"].max(axis=(0, 2, 3))
    np.testing.assert_allclose(made, read, rtol=1e-5)
    assert neo.quantize(model, [x], equalize=True, per_channel=False).report.error < 0.01


def test_dynamic_sizes():
    quantized = neo.quantize(small_net(), [*calls_for([1, 3, 12, 12], 2), *calls_for([5, 3, 12, 12], 2)])
    assert quantized.compile()(calls_for([7, 3, 12, 12], 1)[0]).shape == (7, 10)


def test_a_rounded_output_keeps_its_name():
    net = Net(1)
    a = net.node("Relu", net.conv("x", 3, 8, 3))
    b = net.conv(a, 8, 4, 1)
    model = net.model(["N", 3, 6, 6], a, b)
    data = calls_for([1, 3, 6, 6])
    quantized = neo.quantize(model, data)
    onnx.checker.check_model(quantized.model, full_check=True)
    assert [o.name for o in quantized.model.graph.output] == [o.name for o in neo.compile(model).outputs]
    for got, expected in zip(quantized.compile()(data[0]), neo.compile(model)(data[0]), strict=True):
        assert np.abs(got - expected).max() < 0.05 * np.abs(expected).max()


def test_values_read_in_bodies_are_rounded_too():
    net = Net(2)
    a = net.node("Relu", net.conv("x", 3, 8, 3))
    inner = onnx.helper.make_graph(
        [onnx.helper.make_node("Mul", [a, a], ["squared"])], "then", [], [onnx.ValueInfoProto(name="squared")]
    )
    other = onnx.helper.make_graph(
        [onnx.helper.make_node("Neg", [a], ["negative"])], "else", [], [onnx.ValueInfoProto(name="negative")]
    )
    total = net.node("ReduceSum", "x", keepdims=0)
    condition = net.node("Greater", total, net.constant(np.float32(0)))
    b = net.node("If", condition, then_branch=inner, else_branch=other)
    model = net.model([1, 3, 6, 6], net.conv(b, 8, 4, 1))
    data = calls_for([1, 3, 6, 6])
    quantized = neo.quantize(model, data)
    onnx.checker.check_model(quantized.model)
    assert quantized.report.error < 0.01
    assert np.isfinite(quantized.compile()(data[0])).all()


def test_matmul_with_a_bias_beside_it_and_attention_stays_float():
    net = Net(4)
    width = 32
    parts = [
        net.node(
            "Add", net.node("MatMul", "x", net.weights(width, width), name=n), net.constant(np.ones(width, np.float32))
        )
        for n in "qkv"
    ]
    scores = net.node(
        "Softmax", net.node("MatMul", parts[0], net.node("Transpose", parts[1], perm=[0, 2, 1]), name="scores")
    )
    mixed = net.node("MatMul", scores, parts[2], name="mixed")
    model = net.model([2, 7, width], net.node("MatMul", mixed, net.weights(width, width), name="out"))
    data = calls_for([2, 7, width])
    quantized = neo.quantize(model, data)
    assert {layer.name for layer in quantized.report.layers if layer.precision == "int8"} == {"q", "k", "v", "out"}
    np.testing.assert_allclose(quantized.compile()(data[0]), run_peer(quantized.model, data[0]), rtol=0, atol=0.05)


def test_several_inputs_and_outputs_sizes_and_equal_names():
    rng = np.random.default_rng(0)
    net = Net(9)
    a = net.node("Relu", net.conv("x", 4, 8, 3, name="n"), name="n")
    b = net.conv(a, 8, 8, 3, group=8, name="n")
    c = net.node("MatMul", "z", net.weights(6, 5), name="n")
    model = net.model(["N", 4, "H", "W"], b, c, net.node("ArgMax", c, axis=1, name="n"))
    model.graph.input.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["N", 6]))

    def call(size):
        return rng.standard_normal((2, 4, size, size + 3), np.float32), rng.standard_normal((2, 6), np.float32)

    quantized = neo.quantize(model, [call(7), list(call(11)), dict(zip("xz", call(5), strict=True))])
    onnx.checker.check_model(quantized.model, full_check=True)
    assert len({layer.name for layer in quantized.report.layers}) == 3
    given = call(9)
    found, expected = quantized.compile()(*given), neo.compile(model)(*given)
    for y, whole in zip(found[:2], expected[:2], strict=True):
        assert np.abs(y - whole).max() < 0.05 * np.abs(whole).max()
    np.testing.assert_array_equal(found[2], expected[2])


@pytest.mark.parametrize("space", [(13,), (5, 7, 6), (1, 1)])
def test_convolutions_of_one_and_three_axes(space):
    rng = np.random.default_rng(1)
    net = Net(2, opset=11)
    kernel = [3 if size > 1 else 1 for size in space]
    a = net.node("Conv", "x", net.weights(7, 3, *kernel), net.constant(np.ones(7, np.float32)), kernel_shape=kernel)
    y = net.node("Conv", net.node("LeakyRelu", a), net.weights(5, 7, *[1] * len(space)), kernel_shape=[1] * len(space))
    data = [rng.standard_normal((1, 3, *space), np.float32) for _ in range(3)]
    quantized = neo.quantize(net.model([1, 3, *space], y), data)
    onnx.checker.check_model(quantized.model, full_check=True)
    assert quantized.report.error < 0.001

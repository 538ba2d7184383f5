"""Models of half precision on a device: its memory holds halves, its kernels compute with float32."""

import ml_dtypes
import neo
import numpy as np
import onnx
import pytest
from neo import testing
from neo.kernels import write_kernels

from tests.kernel_ir.compilers import CAPABILITIES, CLANG, compile_cuda, compile_opencl

# Inputs, then the nodes from x to y; what begins with "w" is a constant. What each must run on the device.
MODELS = {
    "convolution": ("x[2,5,9,11] w[12,5,3,3] wb[12]", "y = Conv <pads = [1, 1, 1, 1]> (x, w, wb)"),
    "strided": ("x[1,8,10,13] w[16,8,3,3]", "a = Conv <strides = [2, 2]> (x, w)\n y = Relu (a)"),
    "pointwise": ("x[1,16,7,9] w[32,16,1,1]", "a = Conv (x, w)\n y = Sigmoid (a)"),
    "residual": (
        "x[1,8,6,7] w[8,8,3,3]",
        "a = Conv <pads = [1, 1, 1, 1]> (x, w)\n b = Add (a, x)\n y = Relu (b)",
    ),
    "depthwise": ("x[1,16,9,9] w[16,1,3,3] wb[16]", "y = Conv <group = 16, pads = [1, 1, 1, 1]> (x, w, wb)"),
    "grouped": ("x[1,6,9,9] w[9,2,3,3]", "y = Conv <group = 3> (x, w)"),
    "volume": ("x[1,3,5,6,7] w[4,3,2,2,2]", "y = Conv (x, w)"),
    "transposed": ("x[1,4,5,6] w[4,7,3,3]", "y = ConvTranspose <strides = [2, 2]> (x, w)"),
    "many channels": (
        "x[1,32,14,14] w[32,32,3,3] wv[32,32,3,3]",
        "a = Conv <pads = [1, 1, 1, 1]> (x, w)\n b = Relu (a)\n y = Conv <pads = [1, 1, 1, 1]> (b, wv)",
    ),
    "product": ("x[5,37] w[37,19] wb[19]", "y = Gemm (x, w, wb)"),
    "row": ("x[1,64] w[10,64]", "y = Gemm <transB = 1> (x, w)"),
    "scaled": ("x[6,8] w[8,12]", "y = Gemm <alpha = 0.5> (x, w)"),
    "two operands": ("x[2,3,5,7] z[2,3,7,11]", "y = MatMul (x, z)"),
    "largest": ("x[1,5,9,11]", "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)"),
    "average": ("x[1,5,9,11]", "y = AveragePool <kernel_shape = [2, 3]> (x)"),
    "global": ("x[2,7,9,11]", "y = GlobalAveragePool (x)"),
    "sum": ("x[3,5,41]", "y = ReduceSum <keepdims = 0> (x, axes)"),
    "exponents": ("x[3,5,41]", "y = ReduceLogSumExp <keepdims = 1> (x, axes)"),
    "softmax": ("x[3,5,41]", "y = Softmax (x)"),
    "layer": ("x[3,5,41] w[41] wb[41]", "y = LayerNormalization (x, w, wb)"),
    "instance": ("x[2,5,4,7] w[5] wb[5]", "y = InstanceNormalization (x, w, wb)"),
    "response": ("x[1,7,5,6]", "y = LRN <size = 3> (x)"),
    "resize": ("x[1,3,5,7]", 'y = Resize <mode = "linear"> (x, , factors)'),
    "sample": ("x[1,3,5,7] g[1,4,6,2]", "y = GridSample (x, g)"),
    "elements": ("x[3,5,7] z[5,1]", "a = Mul (x, z)\n b = Tanh (a)\n c = Sub (b, x)\n y = Gelu (c)"),
    "choice": ("x[3,5,7] z[5,7]", "a = Less (x, z)\n y = Where (a, x, z)"),
    "pieces": (
        "x[2,8,5,6]",
        "a, b = Split <axis = 1, num_outputs = 2> (x)\n c = Concat <axis = 1> (b, a)\n y = Transpose (c)",
    ),
    "padding": ("x[2,3,5]", "y = Pad (x, amounts)"),
    "rows": ("x[7,5]", "y = Gather (x, rows)"),
    "recurrent": (
        "x[6,2,5] w[1,32,5] wr[1,32,8] wb[1,64]",
        "y, h, c = LSTM <hidden_size = 8> (x, w, wr, wb)",
    ),
    "gated": ("x[6,2,5] w[1,24,5] wr[1,24,8] wb[1,48]", "y = GRU <hidden_size = 8> (x, w, wr, wb)"),
}
WHOLE = {
    "axes": np.array([2]),
    "factors": np.array([1, 1, 2, 1.5], "f4"),
    "amounts": np.array([0, 1, 2, 1, 0, 1]),
    "rows": np.array([3, 0, 6, 3]),
}
HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def model_of(name, half):
    """A model of this dtype throughout, and inputs for it."""
    operands, nodes = MODELS[name]
    random = np.random.default_rng(len(name))
    graph_inputs, feeds, constants = [], {}, []
    for operand in operands.split():
        label, _, dims = operand[:-1].partition("[")
        shape = [int(d) for d in dims.split(",")]
        value = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) if label.startswith("w") else 1)
        value = np.asarray(value, HALVES[half])
        if label.startswith("w"):
            constants.append(onnx.numpy_helper.from_array(value, label))
        else:
            graph_inputs.append(f"{half}{shape} {label}")
            feeds[label] = value
    for label, value in WHOLE.items():
        if label in nodes:
            constants.append(onnx.numpy_helper.from_array(value, label))
    text = f'<ir_version: 10, opset_import: ["" : 20]> halves ({", ".join(graph_inputs)}) => ({half} y) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(constants)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model, feeds


CASES = [
    *((name, "float16") for name in MODELS),
    *((name, "bfloat16") for name in ("residual", "product", "softmax", "pieces")),
]


@pytest.mark.parametrize(("name", "half"), CASES)
def test_agrees_with_the_cpu(name, half):
    model, feeds = model_of(name, half)
    expected = np.asarray(neo.compile(model).run(feeds)["y"])
    module = neo.compile(model, target="opencl")
    actual = np.asarray(module.run(feeds)["y"])
    assert actual.dtype == expected.dtype
    testing.assert_arrays_close(actual, expected, depth=testing.longest_reduction(model))
    assert not [step.op for step in module.steps if step.device == "cpu"]
    casts = [step.op for step in module.steps if step.op == "Cast"]
    assert bool(casts) == (name == "sum" and half == "float16")  # sums stay float32


# Halves beside other dtypes: inputs, then the nodes from them to y.
BESIDE_OTHERS = {
    "from integers": ("int32[3,5] x, float16[3,5] z", "a = Cast <to = 10> (x)\n y = Mul (a, z)"),
    "from truth": ("bool[3,5] x, float16[3,5] z", "a = Cast <to = 10> (x)\n b = Sub (z, a)\n y = Exp (b)"),
    "from float32": ("float[3,5] x, float16[3,5] z", "a = Cast <to = 10> (x)\n b = Mul (z, a)\n y = Softmax (b)"),
    "compared": ("float16[3,5] x, float16[3,5] z", "a = Less (x, z)\n b = Cast <to = 10> (a)\n y = Mul (b, x)"),
    "places": ("float16[3,5] x", "a = ArgMax <axis = 1> (x)\n b = Cast <to = 10> (a)\n y = Mul (b, x)"),
    "ranks": (
        "float16[3,5] x",
        "a = Exp (x)\n k = Constant <value_ints = [2]> ()\n v, i = TopK (a, k)\n b = Cast <to = 10> (i)\n y = Add (b, v)",
    ),
    "both halves": (
        "float16[3,5] x, bfloat16[3,5] z",
        "a = Exp (x)\n b = Exp (z)\n c = Cast <to = 10> (b)\n y = Add (a, c)",
    ),
    "a limit": ("float16[3,5] x, float16 z", "a = Exp (x)\n y = Clip (a, z)"),
    "powers": ("float16[3,5] x, int32[3,5] z", "a = Exp (x)\n y = Pow (a, z)"),
    "scattered": (
        "float16[3,5] x, int32[3,1] i, float16[3,1] z",
        "a = Exp (x)\n b = Exp (z)\n y = ScatterElements <axis = 1> (a, i, b)",
    ),
    "bodies": (
        "float16[3,5] x, bool[1] c",
        """a = Exp (x)
        y = If (c) <then_branch = t () => (float16[3,5] t) { t = Sqrt (a) },
                    else_branch = e () => (float16[3,5] e) { e = Neg (a) }>""",
    ),
}


@pytest.mark.parametrize("name", BESIDE_OTHERS)
def test_halves_beside_other_dtypes(name):
    operands, nodes = BESIDE_OTHERS[name]
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> halves ({operands}) => (float16 y) {{ {nodes} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    random, feeds = np.random.default_rng(3), {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        is_float = kind.elem_type in {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
        numbers = random.standard_normal(shape) if is_float else random.integers(0, 2, shape)
        feeds[value.name] = np.asarray(numbers, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    expected = np.asarray(neo.compile(model).run(feeds)["y"])
    module = neo.compile(model, target="opencl")
    actual = np.asarray(module.run(feeds)["y"])
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.astype("f4"), expected.astype("f4"), rtol=1e-2, atol=1e-2)
    assert any(step.device == "opencl" for step in module.steps)


def test_a_sum_beyond_float16_is_finite():
    text = """<ir_version: 10, opset_import: ["" : 20]> sums (float16[3, 300] x, float16[3, 1] z) => (float16 y) {
      a = Mul (x, z)
      b = ReduceSum (a, axes)
      y = Div (b, z)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "axes"))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {"x": np.full((3, 300), 20, np.float16), "z": np.full((3, 1), 20, np.float16)}  # sums of 120,000
    actual = np.asarray(neo.compile(model, target="opencl").run(feeds)["y"])
    np.testing.assert_allclose(actual.astype("f4"), np.full((3, 1), 6000), rtol=2e-3)


@pytest.mark.parametrize("target", ["opencl", "cuda", "mali", "intel_graphics"])
def test_kernels_hold_halves(target, tmp_path):
    model, _ = model_of("residual", "float16")
    write_kernels(neo.compile(model, target=target), tmp_path)
    texts = [path.read_text() for path in tmp_path.iterdir() if path.suffix in {".cl", ".cu"}]
    assert texts
    for text in texts:
        assert "const float *restrict x" not in text
        # Of PoCL's own functions those of vectors want aligned places.
        own = "cvt.f32.f16" if target == "cuda" else "vload_half"
        assert own in text or "widen_float16" in text or "copy_" in text
        assert "cl_khr_fp16" not in text


def distinct_kernels(target):
    """The kernels of all models here."""
    modules = [neo.compile(model_of(name, half)[0], target=target) for name, half in CASES]
    return [*dict.fromkeys(entry["text"] for module in modules for entry in module.kernels)]


@pytest.mark.skipif(CLANG is None, reason="clang is needed to compile OpenCL C")
@pytest.mark.parametrize("target", ["opencl", "mali", "intel_graphics"])
def test_kernels_are_opencl_c_1_2(target):
    compile_opencl(distinct_kernels(target))


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_kernels_compile_for_cuda(capability):
    compile_cuda(distinct_kernels("cuda"), capability)


def test_packed_weights_take_half_the_bytes():
    model, _ = model_of("many channels", "float16")
    wide = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in wide.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype("f4"), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    pins = {"*": ["gpu:float32/conv_direct*", "gpu/*"]}
    bytes_held = [neo.compile(m, target="opencl", routines=pins).memory.constants for m in (model, wide)]
    assert bytes_held[0] <= bytes_held[1] / 2 + 64


@pytest.mark.parametrize("half", HALVES)
def test_a_saved_module_gives_the_same_bits(half, tmp_path):
    model, feeds = model_of("residual", half)
    module = neo.compile(model, target="opencl")
    module.save(tmp_path / "halves.neo")
    again = neo.load(tmp_path / "halves.neo").run(feeds)["y"]
    np.testing.assert_array_equal(np.asarray(again), np.asarray(module.run(feeds)["y"]))


def test_what_float32_computes_stays_wide():
    """A mixed model: its product is float32, and no half may hold it."""
    text = """<ir_version: 10, opset_import: ["" : 20]> mixed (float16[4, 8] x) => (float16 y) {
      a = Cast <to = 1> (x)
      b = Mul (a, big)
      c = Sub (b, bigger)
      d = Mul (c, small)
      y = Cast <to = 10> (d)
    }"""
    model = onnx.parser.parse_model(text)
    for label, value in {"big": 1e6, "bigger": 1e5, "small": 1e-6}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([value], "f4"), label))
    x = np.random.default_rng(2).standard_normal((4, 8)).astype(np.float16)
    actual = np.asarray(neo.compile(model, target="opencl").run({"x": x})["y"])
    np.testing.assert_allclose(actual, np.asarray(neo.compile(model).run({"x": x})["y"]), rtol=2e-3, atol=1e-3)

"""Models on targets with a device: where nodes run, what comes out, and what is refused."""

import neo
import numpy as np
import onnx
import pytest
from neo.standalone import export

NETWORK = """
<ir_version: 8, opset_import: ["" : 18]>
network (float[N, 3, 9, 11] x) => (float[N, 8] y, int64[K, L] at)
<float[8, 3, 3, 3] w, float[8] b, float[8, 8] m> {
  c = Conv <pads = [1, 1, 1, 1], strides = [2, 1]> (x, w, b)
  r = Relu (c)
  g = GlobalAveragePool (r)
  f = Flatten (g)
  y = MatMul (f, m)
  at = NonZero (f)
}
"""


def network():
    made = onnx.parser.parse_model(NETWORK)
    rng = np.random.default_rng(3)
    del made.graph.initializer[:]
    for name, shape in (("w", (8, 3, 3, 3)), ("b", (8,)), ("m", (8, 8))):
        values = rng.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return made


@pytest.fixture(scope="module")
def model():
    return network()


@pytest.mark.parametrize("batch", [1, 3])
def test_a_network_of_open_sizes_on_opencl(model, batch):
    module = neo.compile(model, target="opencl")
    x = np.random.default_rng(batch).standard_normal((batch, 3, 9, 11)).astype(np.float32)
    expected = neo.compile(model).run({"x": x})
    for run in (module.run, module.with_threads(1).run, lambda feeds: module.run_async(feeds).result()):
        given = run({"x": x})
        np.testing.assert_allclose(given["y"], expected["y"], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(given["at"], expected["at"])


def test_every_node_is_on_the_device(model):
    counts = neo.compile(model, target="opencl").explain().devices
    assert counts["opencl"] > 0
    assert counts["copies"] >= 3  # in, and both outputs back
    assert counts.get("cpu", 0) == 0


@pytest.mark.parametrize("target", ["mali", "intel_graphics", "cuda", "null"])
def test_compiling_needs_no_device(model, target):
    assert neo.compile(model, target=target).target == target


@pytest.fixture(scope="module")
def module(model):
    return neo.compile(model, target="opencl")


@pytest.fixture(scope="module")
def path(module, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.neo"
    module.save(path)
    return path


def test_a_saved_module_gives_the_same_bits(module, path, tmp_path):
    loaded = neo.load(path)
    assert loaded.target == "opencl"
    assert loaded.explain().devices == module.explain().devices
    x = np.random.default_rng(5).standard_normal((2, 3, 9, 11)).astype(np.float32)
    for feeds in ({"x": x}, {"x": x[:1]}):
        given, expected = loaded.run(feeds), module.run(feeds)
        for name in ("y", "at"):
            np.testing.assert_array_equal(given[name], expected[name])
    loaded.save(tmp_path / "again.neo")
    np.testing.assert_array_equal(neo.load(tmp_path / "again.neo").run({"x": x})["y"], module.run({"x": x})["y"])


def test_a_saved_module_has_the_same_kernels(module, path):
    assert [k["text"] for k in neo.load(path).kernels] == [k["text"] for k in module.kernels]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"name":"opencl"', b'"name":"openxx"'),  # a target that there is not
        (b'"device":"opencl"', b'"device":"cudacu"'),  # a slot elsewhere
        (b'"device":"opencl"}', b'"divice":"opencl"}'),  # a slot that is not where its step writes
        (b'"outputs":["opencl:', b'"outputs":["mpencl:'),
        (b'"outputs":["opencl:float32', b'"outputs":["cuda:float3232'),  # what no routine offers
    ],
)
def test_a_damaged_file_is_refused_in_one_line(path, old, new):
    whole = path.read_bytes()
    old, new = (text.replace(b'"', rb"\"") for text in (old, new))
    assert old in whole
    with pytest.raises((neo.ModelError, neo.UnsupportedError)) as caught:
        neo.load(whole.replace(old, new, 1))
    assert "\n" not in str(caught.value).split("\nHint:")[0]


def test_exporting_is_refused_in_one_line(path, tmp_path):
    with pytest.raises(neo.UnsupportedError, match="must be for the CPU to be exported") as caught:
        export(path, tmp_path / "out")
    assert "\n" not in str(caught.value).split("\nHint:")[0]

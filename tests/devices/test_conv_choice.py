"""Which convolution a device gets: subgroups on Intel Graphics, matrix instructions where the user lets operands be rounded."""

import neo
import numpy as np
import onnx
import pytest

NETWORK = """
<ir_version: 8, opset_import: ["" : 18]>
network (float[N, {c}, {s}, {s}] x) => (float[N, {c}, {s}, {s}] y)
<float[{c}, {c}, 3, 3] w0, float[{c}] b0, float[{c}, 1, 3, 3] w1, float[{c}, {c}, 1, 1] w2, float[{c}] b2> {{
  c0 = Conv <pads = [1, 1, 1, 1]> (x, w0, b0)
  r0 = Relu (c0)
  c1 = Conv <pads = [1, 1, 1, 1], group = {c}> (r0, w1)
  r1 = Relu (c1)
  c2 = Conv (r1, w2, b2)
  a2 = Add (c2, r0)
  y = Relu (a2)
}}
"""
CHAIN = """
<ir_version: 8, opset_import: ["" : 18]>
chain (float[1, 128, 28, 28] x) => (float[1, 128, 28, 28] y)
<float[128, 128, 3, 3] w0, float[128, 128, 3, 3] w1, float[128, 128, 3, 3] w2> {
  c0 = Conv <pads = [1, 1, 1, 1]> (x, w0)
  r0 = Relu (c0)
  c1 = Conv <pads = [1, 1, 1, 1]> (r0, w1)
  r1 = Relu (c1)
  c2 = Conv <pads = [1, 1, 1, 1]> (r1, w2)
  y = Add (c2, r0)
}
"""
SUBGROUP = "gpu:float32/conv_subgroup_nchw"
ROUNDED = "gpu:tf32/conv_tiled"


def network(channels, size):
    shapes = {"w0": (channels, channels, 3, 3), "b0": (channels,), "w1": (channels, 1, 3, 3)}
    shapes |= {"w2": (channels, channels, 1, 1), "b2": (channels,)}
    return filled(NETWORK.format(c=channels, s=size), shapes)


def filled(text, shapes):
    made = onnx.parser.parse_model(text)
    rng = np.random.default_rng(3)
    del made.graph.initializer[:]
    for name, shape in shapes.items():
        values = (rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return made


def options(module):
    """Of each convolution, the options by routine."""
    nodes = [n for n in module.explain().nodes if n.op == "Conv"]
    assert len(nodes) == 3
    return [{o.routine.split("{")[0]: o for o in n.options} for n in nodes]


def routines(module):
    """The routines of the steps, those of absorbed nodes included."""
    return {n.options[0].routine.split("{")[0] for n in module.explain().nodes}


@pytest.fixture(scope="module")
def typical():
    return network(64, 28)


def test_intel_graphics_takes_subgroups():
    chain = filled(CHAIN, dict.fromkeys(("w0", "w1", "w2"), (128, 128, 3, 3)))
    used = routines(neo.compile(chain, target="intel_graphics", accuracy="strict"))
    assert {r for r in used if "conv" in r} <= {f"{SUBGROUP}8c", f"{SUBGROUP}16c"}
    assert any("conv" in r for r in used)


@pytest.mark.parametrize("target", ["mali", "cuda", "opencl"])
def test_devices_without_block_reads_refuse_subgroups(typical, target):
    for of_node in options(neo.compile(typical, target=target)):
        for size in (8, 16):
            refused = of_node[f"{SUBGROUP}{size}c"]
            assert refused.time_us is None
            assert "no subgroup of the device reads blocks of so many threads" in refused.reason


@pytest.mark.parametrize(("channels", "size"), [(24, 5), (16, 7)])
def test_subgroups_compute_what_the_cpu_does(channels, size, tmp_path):
    model = network(channels, size)
    module = neo.compile(model, target="intel_graphics", routines={"*": [f"{SUBGROUP}*", "gpu*copy*", "gpu*eltwise*"]})
    assert {r for r in routines(module) if "conv" in r} <= {f"{SUBGROUP}8c", f"{SUBGROUP}16c"}
    x = np.random.default_rng(1).standard_normal((2, channels, size, size)).astype(np.float32)
    given = module.run({"x": x})["y"]
    np.testing.assert_allclose(given, neo.compile(model).run({"x": x})["y"], rtol=1e-4, atol=1e-5)
    module.save(tmp_path / "m.neo")
    np.testing.assert_array_equal(neo.load(tmp_path / "m.neo").run({"x": x})["y"], given)


def test_operands_are_rounded_only_where_the_user_lets_them(typical, tmp_path):
    for accuracy in (None, "default", "strict"):
        assert ROUNDED not in routines(neo.compile(typical, target="cuda", accuracy=accuracy))
    module = neo.compile(network(256, 56), target="cuda", accuracy="reduced")
    assert ROUNDED in routines(module)
    module.save(tmp_path / "m.neo")
    assert neo.load(tmp_path / "m.neo").target == "cuda"


def test_a_pin_to_rounding_does_not_change_the_accuracy(typical):
    pins = {"*": [ROUNDED, "gpu*copy*", "gpu*eltwise*"]}
    assert ROUNDED in routines(neo.compile(typical, target="cuda", accuracy="reduced", routines=pins))
    with pytest.raises(neo.Error):
        neo.compile(typical, target="cuda", routines=pins)


@pytest.mark.parametrize("target", ["mali", "intel_graphics", "opencl"])
def test_devices_without_matrices_refuse_them(typical, target):
    for of_node in options(neo.compile(typical, target=target, accuracy="reduced")):
        assert "the device multiplies no matrices" in of_node[ROUNDED].reason

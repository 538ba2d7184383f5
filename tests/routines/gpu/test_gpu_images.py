"""Convolutions that read the input, the weights or both through images, against NumPy."""

import neo
import numpy as np
import pytest
from neo import _native

from tests.devices.test_conv_choice import network
from tests.routines.gpu.programs import ON, Program, need_device
from tests.routines.gpu.test_gpu_conv import run_direct

# A schedule, then kernel, strides and dilations.
BLOCKED = [
    ({"in_block": 4, "out_block": 4, "lanes": 4, "vectors": 2, "columns": 3, "inner": 4}, (3, 3, 1, 1, 1, 1)),
    (
        {"in_block": 8, "out_block": 8, "lanes": 8, "vectors": 1, "columns": 2, "rows": 2, "inner": 4}
        | {"reuse": 1, "unroll": 1, "tx": 2},
        (2, 3, 2, 2, 1, 1),
    ),
    (
        {"in_block": 16, "out_block": 16, "lanes": 16, "vectors": 2, "columns": 1, "inner": 16}
        | {"unroll": 2, "order": 1, "tz": 2},
        (3, 2, 1, 2, 2, 1),
    ),
]
FIRST = {"out_block": 4, "lanes": 4, "vectors": 2, "columns": 2, "inner": 1, "load": 1, "ty": 2}


def generated(seed, window, block, out_block):
    """Shapes that a window fits in, one of two groups among them."""
    rng = np.random.default_rng(seed)
    kh, kw, _, _, dh, dw = window
    for groups in (1, 1, 2):
        ic, oc = (int(rng.integers(1, 20)) for _ in range(2))
        if groups > 1:
            ic, oc = groups * block * int(rng.integers(1, 3)), groups * out_block * int(rng.integers(1, 3))
        pads = tuple(int(p) for p in rng.integers(0, 3, 4))
        height, width = ((k - 1) * d + int(rng.integers(1, 9)) for k, d in ((kh, dh), (kw, dw)))
        yield int(rng.integers(1, 3)), ic, height, width, oc, groups, pads


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("image", [1, 2, 3])
@pytest.mark.parametrize("case", range(len(BLOCKED)))
def test_convolution_through_images(case, image, on):
    schedule, window = BLOCKED[case]
    form = {"bias": 1, "residual": image % 2, "relu": 1}
    for shape in generated(10 * case + image, window, schedule["in_block"], schedule["out_block"]):
        run_direct(schedule | {"load": 4, "image": image}, shape, window, on, **form)


@pytest.mark.parametrize("on", ON)
def test_first_layer_with_weights_in_an_image(on):
    for shape in generated(7, (3, 3, 2, 2, 1, 1), 1, 4):
        run_direct(FIRST | {"image": 2}, shape, (3, 3, 2, 2, 1, 1), on, relu=1)


@pytest.mark.parametrize("image", [1, 3])
def test_pixels_that_are_no_texels_are_refused(image):
    with pytest.raises(RuntimeError, match="pixels are not read in texels"):
        Program("conv_direct", ic=8, oc=8, kh=3, kw=3, **FIRST, image=image)


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", [87, 90])
def test_images_compile_for_cuda(capability):
    schedule, _ = BLOCKED[1]
    Program("conv_direct", ic=8, oc=8, kh=2, kw=3, **schedule, load=4, image=3).compile_cuda(capability)


PINS = {"*": ["gpu:float32/conv_direct_nchw", "gpu:float32/conv_depthwise_nchw", "gpu*copy*", "gpu*eltwise*"]}


def test_a_model_with_images_runs_and_is_saved(tmp_path):
    model = network(64, 28)
    module = neo.compile(model, target="intel_graphics", routines=PINS)
    texts = [k["text"] for k in module.kernels]
    assert any("image1d_buffer_t w" in text for text in texts)  # by the estimate
    need_device("opencl")
    x = np.random.default_rng(1).standard_normal((2, 64, 28, 28)).astype("f4")
    given = module.run({"x": x})["y"]
    expected = neo.compile(model, accuracy="strict").run({"x": x})["y"]
    np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-5)
    module.save(tmp_path / "m.neo")
    loaded = neo.load(tmp_path / "m.neo")
    assert [k["text"] for k in loaded.kernels] == texts
    np.testing.assert_array_equal(loaded.run({"x": x})["y"], given)


WORKLOAD = "y = Conv(i0, k0) {{strides=[1, 1]}} <- i0: float32[{n},64,28,28], k0: float32[64,64,1,1]{where}"


def test_inputs_are_images_where_every_size_fits():
    def schedules(target, n, where=""):
        sizes = _native.space_sizes(WORKLOAD.format(n=n, where=where), target, 1)
        return sizes["gpu:float32/conv_direct_nchw4c"]

    # A batch of 1 is 12544 texels, an image of a Mali has 65536.
    assert schedules("mali", 1) == schedules("mali", 5) == schedules("mali", "N", " where N in [1,5] hint 1")
    assert schedules("mali", 6) == schedules("mali", "N", " where N in [1,6] hint 1") == schedules("mali", "N")
    assert schedules("cuda", 1) < schedules("mali", 6) < schedules("mali", 5)


@pytest.mark.parametrize("target", ["opencl", "cuda", "null"])
def test_what_gains_nothing_is_without_images(target):
    nodes = neo.compile(network(64, 28), target=target).explain().nodes
    assert not any("image=" in o.routine for n in nodes for o in n.options)

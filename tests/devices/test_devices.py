"""Devices: what there is, what each refuses, the program cache; OpenCL on PoCL, CUDA without a GPU, the null device."""

import os
import subprocess
import sys
from pathlib import Path

import neo
import numpy as np
import pytest
from neo import _native
from onnx import TensorProto, helper, numpy_helper

from tests.kernel_ir.kernels import kernels, whole

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"n": 100}


@pytest.fixture(scope="module")
def opencl():
    return kernels.Runner("opencl")


def in_a_process(code, **environment):
    """Run code in a process of its own with other environment variables; gives what it prints."""
    path = os.pathsep.join([str(ROOT), *(p for p in sys.path if p)])
    done = subprocess.run(
        [sys.executable, "-c", "from tests.kernel_ir.kernels import kernels\n" + code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


SAY_WHY = "try:\n    kernels.Runner({!r})\nexcept RuntimeError as error:\n    print(error)\n"
RUN = """
import numpy as np
from tests.kernel_ir.kernels import whole
arrays = whole("histogram", {"n": 100}, {"x": np.zeros(100, "u1"), "counts": np.zeros(256, "i4"), "sum": np.zeros(1, "f4")})
kernels.Runner("opencl").run("histogram", {"n": 100}, {}, arrays)
print(arrays["counts"][0])
"""


def lacks(kind):
    return next(k for k in _native.devices() if k["kind"] == kind)["devices"][0]["lacks"]


def test_every_kind_is_listed():
    found = {kind["kind"]: kind for kind in _native.devices()}
    assert list(found) == ["opencl", "cuda", "null"]
    for kind in found.values():
        assert bool(kind["devices"]) != bool(kind["missing"])
    for device in found["opencl"]["devices"]:
        assert device["platform"].startswith("OpenCL ")
        assert device["memory_bytes"] > 0
        assert device["compute_units"] > 0


def test_an_absent_device_is_named(opencl):
    with pytest.raises(
        RuntimeError,
        match=r"\[opencl\] a device of that number or name must be there\. Got 'Mali-T860', expected one of",
    ):
        kernels.Runner("opencl", "Mali-T860")


@pytest.mark.parametrize("wanted", ["0", "null", "NULL"])
def test_a_device_is_chosen_by_number_or_by_a_part_of_its_name(wanted):
    kernels.Runner("null", wanted)


@pytest.mark.parametrize("wanted", ["1", "99999999999999999999", "-1", "0x", "absent"])
def test_a_number_or_name_that_no_device_has(wanted):
    with pytest.raises(
        RuntimeError, match=rf"a device of that number or name must be there\. Got '{wanted}', expected one of"
    ):
        kernels.Runner("null", wanted)


def test_the_environment_chooses_the_device_of_a_call(monkeypatch):
    x = np.zeros((1, 4, 8, 8), np.float32)
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], ["y"], "conv")],
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
            [numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float32), "w")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    monkeypatch.setenv("NEO_DEVICE", "no such device")
    module = neo.compile(model, target="null")
    with pytest.raises(neo.ResourceError, match="Got 'no such device'"):
        module(x)
    monkeypatch.setenv("NEO_DEVICE", "0")
    assert module(x).shape == (1, 4, 6, 6)


def test_without_a_driver_opencl_says_so(tmp_path):
    said = in_a_process(SAY_WHY.format("opencl"), OCL_ICD_VENDORS=str(tmp_path), OPENCL_VENDOR_PATH=str(tmp_path))
    assert "[opencl] there must be an OpenCL driver. Got none" in said
    assert "Hint: install a driver" in said


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has an NVIDIA GPU")
def test_without_a_gpu_cuda_says_so():
    said = in_a_process(SAY_WHY.format("cuda"))
    assert "[cuda] the library libcuda.so.1 must be there." in said or "[cuda] there must be an NVIDIA GPU" in said


def test_a_compile_error_has_the_log_and_the_line(opencl):
    with pytest.raises(
        RuntimeError,
        match=r"(?s)\[opencl\] the driver must compile the kernel.*nonsense.*Line 2 is:   a\[0\] = nonsense;",
    ):
        opencl.compile("__kernel void f(__global float *a) {\n  a[0] = nonsense;\n}\n")


def test_what_a_device_lacks_is_said_before_the_driver(opencl):
    missing = lacks("opencl")
    rules = {"float16": "must compute in float16", "subgroups": "must have subgroups", "images": "must have images"}
    for word, rule in rules.items():
        if word in missing:
            with pytest.raises(RuntimeError, match=rule):
                opencl.compile("", **{word: True})


def test_a_buffer_beyond_the_memory_is_refused(opencl):
    with pytest.raises(RuntimeError, match=r"a buffer must fit in the device's memory\. Got 4611686018427387904 bytes"):
        opencl.allocate(1 << 62)


def test_a_group_beyond_the_device_is_refused(opencl):
    with pytest.raises(RuntimeError, match="a group must fit the device. Got 1000000 threads"):
        opencl.launch_with(1_000_000, 0)
    with pytest.raises(RuntimeError, match="local memory must fit the device"):
        opencl.launch_with(1, 1 << 40)


def test_memory_of_the_host_is_used_in_place(opencl):
    assert opencl.shares_memory() == ("the host's memory" not in lacks("opencl"))


def test_launches_are_timed_and_repeated_as_a_sequence(opencl):
    arrays = whole(
        "histogram", SIZES, {"x": np.zeros(100, "u1"), "counts": np.zeros(256, "i4"), "sum": np.zeros(1, "f4")}
    )
    times = opencl.run("histogram", SIZES, {}, arrays, 3, True)
    assert arrays["counts"][0] == 300
    assert len(times) == 3
    assert min(times) > 0


def test_the_program_cache_is_used_and_damage_is_repaired(tmp_path):
    home = {"XDG_CACHE_HOME": str(tmp_path)}
    assert in_a_process(RUN, **home).strip() == "100"
    (entry,) = (tmp_path / "neo" / "programs").iterdir()
    whole_entry = entry.read_bytes()
    assert b"histogram" in whole_entry
    for damaged in (b"", whole_entry[: len(whole_entry) // 2], whole_entry[:-1] + bytes([whole_entry[-1] ^ 1])):
        entry.write_bytes(damaged)
        assert in_a_process(RUN, **home).strip() == "100"
        assert len(entry.read_bytes()) > len(whole_entry) // 2
        assert [p.name for p in entry.parent.iterdir()] == [entry.name]


def test_without_a_home_nothing_is_kept():
    assert in_a_process(RUN, XDG_CACHE_HOME="", HOME="").strip() == "100"


def test_the_null_device_records_and_computes_nothing():
    null = kernels.Runner("null")
    arrays = whole("histogram", SIZES, {"x": np.ones(100, "u1"), "counts": np.ones(256, "i4"), "sum": np.ones(1, "f4")})
    null.run("histogram", SIZES, {}, arrays)
    assert not arrays["counts"].any()
    assert null.record() == [
        "write 100",
        "write 1024",
        "write 4",
        "launch histogram 2 1 1 x 64 1 1",
        "read 1024",
        "read 4",
    ]


def test_the_null_device_records_images():
    null = kernels.Runner("null")
    x, w = np.ones((5, 4), "f4"), np.ones((3, 4), "f4")
    null.run("image_blur", {"n": 5}, {}, whole("image_blur", {"n": 5}, {"x": x, "w": w}))
    launch = "launch image_blur 1 1 1 x 64 1 1, argument 1 an image of 5, argument 2 an image of 3"
    assert launch in null.record()


def test_images_are_made_again_for_other_sizes_and_kept_for_the_same(opencl):
    if "images" in lacks("opencl"):
        pytest.skip("a device with images is needed")
    rng = np.random.default_rng(0)
    for n in (5, 70, 5):
        x = rng.standard_normal((n, 4)).astype("f4")
        w = np.array([[0] * 4, [1] * 4, [0, 0, 0, 1]], "f4")
        arrays = whole("image_blur", {"n": n}, {"x": x, "w": w})
        opencl.run("image_blur", {"n": n}, {}, arrays, 3)
        expected = x.copy()
        expected[:, 3] += x[np.minimum(np.arange(n) + 1, n - 1), 3]
        np.testing.assert_array_equal(arrays["y"].reshape(n, 4), expected)

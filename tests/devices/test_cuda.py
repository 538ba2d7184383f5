"""The CUDA device on an emulated GPU: the order of calls of the driver, and kernels as they are printed for it."""

import re
import subprocess

import pytest

from tests.devices import emulated_cuda
from tests.kernel_ir.compilers import NVCC
from tests.kernel_ir.kernels import kernels
from tests.routines.gpu.programs import Program, programs

# A network in float32 that ends without NonZero, whose result would be counted.
CHAIN = """
import neo
import numpy as np
import onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 18]>
network (float[1, 4, 9, 11] x) => (float[1, 4, 9, 11] y)
{ a = Relu (x)  b = Softmax <axis = 1> (a)  c = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (b)  y = Tanh (c) }
''')
x = np.random.default_rng(0).standard_normal((1, 4, 9, 11)).astype(np.float32)
module = neo.compile(model, target="cuda")
assert module.explain().devices == {"cuda": 4, "copies": 2}
expected = neo.compile(model)(x)
"""
CALLS = CHAIN + "for _ in range(4): np.testing.assert_allclose(module(x), expected, rtol=1e-5, atol=1e-6)\n"


def calls_of(log):
    """Return the calls of the driver that move data, launch or wait, without their sizes."""
    kept = re.compile(r"cu(Memcpy|Launch|Graph|Stream(Sync|Begin)|EventSync|ModuleGet|MemAlloc|MemFree)")
    return [line for line in log.read_text().splitlines() if kept.match(line)]


def test_a_call_is_one_graph_between_two_copies_through_pinned_memory(tmp_path):
    emulated_cuda.run(CALLS, EMULATED_CUDA_LOG=str(tmp_path / "log"))
    calls = calls_of(tmp_path / "log")
    graphs = [i for i, call in enumerate(calls) if call.startswith("cuGraphLaunch")]
    assert len(graphs) == 3  # the first call runs the kernels one by one
    assert sum(call.startswith("cuGraphInstantiate") for call in calls) == 1
    # From one graph to the next: the result comes, the host waits for it, and the next input goes.
    between = calls[graphs[1] + 1 : graphs[2]]
    assert between == ["cuMemcpyDtoHAsync 1584 pinned", "cuEventSynchronize", "cuMemcpyHtoDAsync 1584 pinned"]
    assert not any("pageable" in call for call in calls)


def test_a_call_that_is_traced_runs_kernel_by_kernel(tmp_path):
    code = CALLS + "profile = module.profile({'x': x}, repeat=2)\nassert profile\n"
    emulated_cuda.run(code, EMULATED_CUDA_LOG=str(tmp_path / "log"))
    calls = calls_of(tmp_path / "log")
    last_graph = max(i for i, call in enumerate(calls) if call.startswith("cuGraphLaunch"))
    assert sum(call.startswith("cuLaunchKernel") for call in calls[last_graph:]) >= 8


def test_copies_of_several_parts_arrive_whole():
    emulated_cuda.run("""
import neo
import numpy as np
import onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 18]>
network (float[N] x) => (float[N] y) { y = Relu (x) }
''')
module = neo.compile(model, target="cuda")
for elements in (1, 65_535, 65_536, 65_537, 8 * 65_536, 8 * 65_536 + 1, 1_500_001, 0, 3):
    x = np.random.default_rng(elements).standard_normal(elements).astype(np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(module(x), np.maximum(x, 0))
""")


def test_a_launch_of_more_than_65535_groups_along_an_axis():
    emulated_cuda.run("""
import neo
import numpy as np
import onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 18]>
network (float[70000, 1, 2] a, float[70000, 2, 3] b) => (float[70000, 1, 3] y) { y = MatMul (a, b) }
''')
rng = np.random.default_rng(0)
a, b = rng.standard_normal((70000, 1, 2)).astype("f4"), rng.standard_normal((70000, 2, 3)).astype("f4")
module = neo.compile(model, target="cuda", routines={"*": "gpu*"})
np.testing.assert_allclose(module(a, b), a @ b, rtol=1e-5, atol=1e-5)
""")


def test_scratch_memory_that_a_branch_makes_larger():
    emulated_cuda.run("""
import neo
import numpy as np
import onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 18]>
network (float[2000] x, float[90000] z, bool c) => (float[2000] u, float[90000] v) <int64 axis = {0}> {
  s = CumSum (x, axis)
  v = If (c) <then_branch = yes () => (float[90000] p) { q = CumSum (z, axis)  p = Relu (q) },
              else_branch = no () => (float[90000] n) { n = Identity (z) }>
  t = Relu (s)
  u = CumSum (t, axis)
}
''')
x, z = np.random.default_rng(0).random(2000).astype("f4"), np.random.default_rng(1).random(90000).astype("f4")
module = neo.compile(model, target="cuda")
for c in (False, False, True, True, True, False):
    u, v = module.run({"x": x, "z": z, "c": np.array(c)}).values()
    np.testing.assert_allclose(u, np.cumsum(np.cumsum(x, dtype="f8")), rtol=1e-4)
    np.testing.assert_allclose(v, np.cumsum(z, dtype="f8") if c else z, rtol=1e-3)
""")


def test_times_are_exact_after_an_hour():
    said = emulated_cuda.run(
        """
import numpy as np
from tests.kernel_ir.kernels import kernels, whole
runner = kernels.Runner("cuda")
arrays = whole("histogram", {"n": 100}, {"x": np.zeros(100, "u1"), "counts": np.zeros(256, "i4"), "sum": np.zeros(1, "f4")})
runner.run("histogram", {"n": 100}, {}, arrays)
print(*runner.run("histogram", {"n": 100}, {}, arrays, 3, True))
""",
        EMULATED_CUDA_FIRST_KERNEL_MS="3600000",
    )
    assert [round(float(ns), -2) for ns in said.split()] == [10_000] * 3


@pytest.mark.parametrize("code", [700, 715, 716, 719])
def test_an_error_that_loses_the_device_says_so(code):
    said = emulated_cuda.run(
        CHAIN
        + "module(x)\ntry:\n  module(x)\nexcept neo.ResourceError as error:\n  print(error)\n"
        + "try:\n  module(x)\nexcept neo.ResourceError as error:\n  print('again')\n",
        EMULATED_CUDA_FAIL=f"cuGraphLaunch:{code}",
    )
    assert f"must be able to launch a graph. Got CUDA_ERROR_{code} from Emulated CUDA" in said
    assert "the device is lost to this process; a new process opens it again" in said
    assert "again" in said


def test_a_refused_graph_leaves_a_queue_that_works():
    said = emulated_cuda.run(
        CHAIN
        + "module(x)\ntry:\n  module(x)\nexcept neo.ResourceError as error:\n  print(error)\n"
        + "np.testing.assert_allclose(module(x), expected, rtol=1e-5, atol=1e-6)\n",
        EMULATED_CUDA_FAIL="cuGraphInstantiate:801",
    )
    assert "make a graph. Got CUDA_ERROR_801" in said
    assert "is lost" not in said


def test_a_network_of_open_sizes_and_counted_results():
    emulated_cuda.run("""
import neo
import numpy as np
from tests.devices.test_targets import network

expected, module = neo.compile(network()), neo.compile(network(), target="cuda")
for batch in (1, 1, 1, 3, 3, 1):
    x = np.random.default_rng(batch).standard_normal((batch, 3, 9, 11)).astype(np.float32)
    given, wanted = module.run({"x": x}), expected.run({"x": x})
    np.testing.assert_allclose(given["y"], wanted["y"], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(given["at"], wanted["at"])
""")


SAMPLE = (
    "test_softmax_axis_1",
    "test_nonzero_example",
    "test_conv_with_strides_padding",
    "test_maxpool_2d_pads",
)


def test_cases_of_the_backend_suite():
    said = emulated_cuda.run(f"""
from tests.conformance.on_device import run_on
for name in {SAMPLE}:
    outcome = run_on(name, "cuda")
    assert not outcome.failure and outcome.on_device, outcome
print("done")
""")
    assert said.strip().endswith("done")


@pytest.mark.nvcc
def test_vectors_that_begin_at_a_multiple_of_their_length_are_one_instruction(tmp_path):
    (tmp_path / "kernel.cu").write_text(kernels.print("eltwise_vector", "cuda"))
    command = [NVCC, "-ptx", "-std=c++17", "-arch=sm_90", "-o", tmp_path / "kernel.ptx", tmp_path / "kernel.cu"]
    subprocess.run(command, check=True)
    ptx = (tmp_path / "kernel.ptx").read_text()
    assert re.search(r"ld\.global(\.nc)?\.v4\.[bfu]32", ptx)
    assert re.search(r"st\.global\.v4\.[bfu]32", ptx)


@pytest.mark.nvcc
@pytest.mark.parametrize("name", kernels.names())
def test_nvrtc_takes_what_nvcc_takes(name):
    assert kernels.compile_cuda(kernels.print(name, "cuda", "matrices"), 90)[:4] == b"\x7fELF"


@pytest.mark.nvcc
def test_a_device_that_nvrtc_does_not_know_yet_is_given_ptx_and_one_that_it_forgot_is_refused():
    text = kernels.print("scan_add", "cuda")
    assert b".target sm_" in kernels.compile_cuda(text, 999)
    with pytest.raises(
        RuntimeError, match=r"must know the device's compute capability. Got 2.0, which it does not any more"
    ):
        kernels.compile_cuda(text, 20)


@pytest.mark.nvcc
def test_half_precision_finds_its_header(monkeypatch):
    monkeypatch.setenv("CUDA_PATH", "/nonexistent")
    text = '#include <cuda_fp16.h>\nextern "C" __global__ void f(__half *a) { a[0] = __float2half(1.0f); }\n'
    assert kernels.compile_cuda(text, 90)[:4] == b"\x7fELF"


@pytest.mark.nvcc
def test_a_kernel_may_have_the_name_of_a_function_of_cuda():
    text = Program("basic", workload="y = LayerNormalization(i0, i1) <- i0: float32[3,5], i1: float32[5]")
    for i, name in enumerate(text.native.names()):
        code = programs.compile_cuda(text.native.print(i, "cuda"), 90)
        assert f"neo_{name}".encode() in code

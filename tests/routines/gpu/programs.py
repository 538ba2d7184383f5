"""Programs of the GPU routines, run as plain C under sanitizers and on devices; CUDA's compilers take their kernels."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from neo import _native

from tests.built import load_extension
from tests.compiled import compiled
from tests.kernel_ir.compilers import NVCC

programs = load_extension("_gpu_programs")
# The kind of device that stands for "opencl" where the tests are to run on another one, and only there: "cuda".
DEVICE = os.environ.get("NEO_TEST_DEVICE")
ON = ("opencl",) if DEVICE else ("c", "opencl")
NAN_BYTE = 0xFF  # fills what a program only writes, and its temporaries: NaN in every float type

# Runs launches on memory of exactly the size that the kernels declare; the sanitizers see what goes beyond.
CHILD = r"""
import ctypes, pickle, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
kernels = ctypes.CDLL(sys.argv[1])
names, memory, launches = pickle.load(sys.stdin.buffer)
places = {}
for key, data in memory.items():
    places[key] = libc.malloc(len(data))
    ctypes.memmove(places[key], data, len(data))
for kernel, arguments in launches:
    kept, args = [], (ctypes.c_void_p * len(arguments))()
    for i, argument in enumerate(arguments):
        if len(argument) == 3:
            args[i] = places[argument[:2]]
        else:
            kind = {"int32": ctypes.c_int32, "float64": ctypes.c_double}.get(argument[0], ctypes.c_float)
            kept.append(kind(argument[1]))
            args[i] = ctypes.cast(ctypes.pointer(kept[-1]), ctypes.c_void_p)
    getattr(kernels, names[kernel])(args)
pickle.dump({k: ctypes.string_at(places[k], len(v)) for k, v in memory.items() if k[0] == "operand"}, sys.stdout.buffer)
"""


class Program:
    """One program with its choice made.

    Parameters
    ----------
    name : str
        As registered beside the family's C++ tests.
    choice : int or str
        Numbers and words of its maker.
    """

    def __init__(self, name, **choice):
        numbers = {k: int(v) for k, v in choice.items() if not isinstance(v, str)}
        words = {k: v for k, v in choice.items() if isinstance(v, str)}
        self.native = programs.Program(name, numbers, words)

    def run(self, operands, outputs, packed=(), on="c", repeats=1):
        """Return the outputs, and the times in ns where a device measured them.

        Parameters
        ----------
        operands : list of ndarray or tuple
            Run-time inputs; logical dims are their shapes, or come first in a tuple.
        outputs : list of tuple
            Shape and dtype of each output; a third entry is the shape of its memory where that differs.
        packed : sequence of ndarray
            Packed constants.
        on : {"c", "opencl", "cuda", "null"}
            Plain C runs under AddressSanitizer and UndefinedBehaviorSanitizer.
        repeats : int
            Rounds on a device.
        """
        dims = [list(x[0] if isinstance(x, tuple) else x.shape) for x in operands]
        inputs = [np.ascontiguousarray(x[1] if isinstance(x, tuple) else x) for x in operands]
        made = []
        for shape, dtype, *memory in outputs:
            made.append(np.empty(memory[0] if memory else shape, dtype))
            made[-1].reshape(-1).view(np.uint8)[:] = NAN_BYTE
        arrays = inputs + made
        shapes = dims + [list(shape) for shape, *_ in outputs]
        packed = [np.ascontiguousarray(x) for x in packed]
        if on == "c":
            self._run_c(shapes, arrays, packed)
            return made, []
        times = _runner(on).run(self.native, shapes, arrays, packed, repeats)
        return made, times

    def _run_c(self, shapes, arrays, packed):
        temporaries, launches = self.native.launches(shapes)
        memory = {("operand", i): a.tobytes() for i, a in enumerate(arrays)}
        memory |= {("packed", i): a.tobytes() for i, a in enumerate(packed)}
        memory |= {("temporary", i): bytes([NAN_BYTE]) * size for i, size in enumerate(temporaries)}
        for _, arguments in launches:
            for argument in arguments:
                if len(argument) == 3:
                    have = len(memory[argument[:2]])
                    assert have >= argument[2], (
                        f"{argument[0]} {argument[1]} has {have} bytes, a kernel wants {argument[2]}"
                    )
        done = subprocess.run(
            [sys.executable, "-S", "-c", CHILD, self._library()],
            input=pickle.dumps((self.native.names(), memory, launches)),
            capture_output=True,
            check=False,
            env={"LD_PRELOAD": _preload(), "ASAN_OPTIONS": "detect_leaks=0", "PATH": "/usr/bin:/bin"},
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
        for (_, i), data in pickle.loads(done.stdout).items():
            arrays[i].reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)

    def _library(self):
        """Plain C of the kernels as a shared library."""
        texts = {f"{i}.c": self.native.print(i, "c") for i in range(len(self.native.names()))}
        command = ["gcc", "-std=gnu11", "-O0", "-g1", "-w", "-shared", "-fPIC", "-fsanitize=address,undefined"]
        command += ["-fno-sanitize-recover=all", "-o", "kernels.so", *texts, "-lm"]
        return str(compiled(command, texts, "kernels.so"))

    def compile_cuda(self, capability, features="none"):
        """Assert that CUDA's compiler takes every kernel for a compute capability, such as 87."""
        if NVCC is None:
            pytest.skip("nvcc is needed to compile for CUDA")
        for i in range(len(self.native.names())):
            command = [NVCC, "--std=c++17", f"-arch=sm_{capability}", "-ptx", "-o", "kernel.ptx", "kernel.cu"]
            compiled(command, {"kernel.cu": self.native.print(i, "cuda", features)}, "kernel.ptx")


_runners: dict[str, object] = {}


def need_device(kind):
    """Skip the test where there is no such device."""
    if not any(k["kind"] == kind and k["devices"] for k in _native.devices()):
        pytest.skip(f"a device of kind {kind} is needed")


def _runner(kind):
    kind = DEVICE or kind if kind == "opencl" else kind
    if kind not in _runners:
        need_device(kind)
        _runners[kind] = programs.Runner(kind)
    return _runners[kind]


def _preload():
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return found.stdout.strip()

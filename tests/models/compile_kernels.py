"""``python -m tests.models.compile_kernels MODEL...``: compiles every kernel of networks, each distinct one once.

OpenCL kernels go through the first OpenCL driver as OpenCL C 1.2, those of CUDA through nvcc for sm_87 and sm_90. No
device is needed to make them: their texts are made in a process that sees no OpenCL driver. A driver that lacks Intel's
subgroups is told what they look like, and compiles without linking. Status 1 where a compiler refuses one.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from .half_twin import half_twin

_TARGETS = ("opencl", "mali", "intel_graphics", "cuda")
_CAPABILITIES = (87, 90)
_BATCH = 8  # kernels that nvcc is given at once
_NAME = re.compile(r"__global__ .*?void (\w+)\(")
_SUBGROUPS = "cl_intel_subgroups"
_BLOCKS = "intel_sub_group_block_"
# What that extension adds, as far as kernels use it.
_DECLARATIONS = "".join(
    f"uint{n} __attribute__((overloadable)) {_BLOCKS}read{n}(const __global uint *);\n"
    f"void __attribute__((overloadable)) {_BLOCKS}write{n}(__global uint *, uint{n});\n"
    for n in ("", 2, 4, 8)
) + "".join(
    f"{kind}{n} __attribute__((overloadable)) intel_sub_group_shuffle({kind}{n}, uint);\n"
    for kind in ("int", "uint", "float")
    for n in ("", 2, 4, 8)
)
_WRITE = "import sys, neo; from neo.kernels import write_kernels; write_kernels(neo.compile(sys.argv[1], target=sys.argv[2]), sys.argv[3])"


class OpenCl:
    """The first OpenCL device's compiler."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libOpenCL.so.1")
        self._library.clCreateContext.restype = ctypes.c_void_p
        self._library.clCreateProgramWithSource.restype = ctypes.c_void_p
        platform, self._device, code = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        assert self._library.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0, "no OpenCL driver"
        assert (
            self._library.clGetDeviceIDs(platform, ctypes.c_ulong(0xFFFFFFFF), 1, ctypes.byref(self._device), None) == 0
        )
        devices = ctypes.byref(self._device)
        self._context = ctypes.c_void_p(self._library.clCreateContext(None, 1, devices, None, None, ctypes.byref(code)))
        assert code.value == 0

    def refuses(self, text: str) -> str:
        """Return the compiler's log where it does not take a text, nothing where it does."""
        is_intels = _SUBGROUPS in text
        source, code = ctypes.c_char_p(((_DECLARATIONS if is_intels else "") + text).encode()), ctypes.c_int()
        program = ctypes.c_void_p(
            self._library.clCreateProgramWithSource(self._context, 1, ctypes.byref(source), None, ctypes.byref(code))
        )
        devices = ctypes.byref(self._device)
        log = ""
        if is_intels:
            done = self._library.clCompileProgram(
                program, 1, devices, b"-cl-std=CL1.2", 0, None, None, None, ctypes.c_void_p()
            )
        else:
            done = self._library.clBuildProgram(program, 1, devices, b"-cl-std=CL1.2", None, None)
        if done != 0:
            buffer = ctypes.create_string_buffer(1 << 16)
            self._library.clGetProgramBuildInfo(program, self._device, 0x1183, len(buffer), buffer, None)
            log = buffer.value.decode(errors="replace") or "refused without a log"
        self._library.clReleaseProgram(program)
        return log


def nvcc_refuses(nvcc: str, texts: Sequence[str], capability: int) -> str:
    """Return nvcc's messages where it does not take some texts, nothing where it does."""
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for i, text in enumerate(texts):
            (Path(folder) / f"kernel{i}.cu").write_text(text, encoding="utf-8")
            parts.append(f'namespace kernel{i} {{\n#include "kernel{i}.cu"\n}}\n')
        source = Path(folder) / "all.cu"
        source.write_text("".join(parts), encoding="utf-8")
        command = [nvcc, "-cubin", "-std=c++17", f"-arch=sm_{capability}", "-o", f"{folder}/all.cubin", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""


def texts_of(model: str, target: str, folder: Path) -> list[str]:
    """Return the distinct kernels of a model for a target whose device is absent."""
    environment = os.environ | {"OCL_ICD_VENDORS": str(folder / "none")}
    command = [sys.executable, "-c", _WRITE, model, target, str(folder)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return [path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()) if path.suffix in {".cl", ".cu"}]


def _batches(texts: Iterable[str]) -> list[list[str]]:
    """Lists of at most so many texts, no two of which name a kernel alike: names of C know no namespace."""
    batches: list[dict[str, str]] = []
    for text in texts:
        name = _NAME.findall(text)[-1]
        fitting = (batch for batch in batches if len(batch) < _BATCH and name not in batch)
        batch = next(fitting, None)
        if batch is None:
            batches.append(batch := {})
        batch[name] = text
    return [list(batch.values()) for batch in batches]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.models.compile_kernels", description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--targets", nargs="+", default=list(_TARGETS), choices=_TARGETS)
    parser.add_argument("--half", action="store_true", help="the networks' twins of float16")
    parser.add_argument("--page", type=Path, help="where to write the page of docs/, after every network")
    options = parser.parse_args(arguments)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    opencl = OpenCl()
    seen: dict[str, set[str]] = {"cl": set(), "cu": set()}
    failures: list[str] = []
    rows: list[str] = []
    for model in options.models:
        counts = []
        for target in options.targets:
            suffix = "cu" if target == "cuda" else "cl"
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as twins:
                source = model
                if options.half:
                    source = f"{twins}/model.onnx"
                    Path(source).write_bytes(half_twin(model))
                try:
                    texts = texts_of(source, target, Path(folder))
                except subprocess.CalledProcessError as error:
                    failures.append(f"{Path(model).stem}, {target}: {error.stderr.decode().strip().splitlines()[-1]}")
                    counts.append("0")
                    continue
            counts.append(str(len(texts)))
            fresh = [text for text in texts if text not in seen[suffix]]
            seen[suffix].update(fresh)
            if suffix == "cl":
                logs = [opencl.refuses(text) for text in fresh]
            else:
                logs = [nvcc_refuses(nvcc, part, c) for part in _batches(fresh) for c in _CAPABILITIES]
            failures += [f"{Path(model).stem}, {target}: {log.strip().splitlines()[0]}" for log in logs if log]
        rows.append(f"| {Path(model).stem} | {' | '.join(counts)} |")
        print(rows[-1], failures[-1:], flush=True)
        lines = [
            "# Kernels of the benchmark networks",
            "",
            "Written by `python -m tests.models.compile_kernels`: distinct kernels of each network by target. OpenCL kernels were",
            "compiled as OpenCL C 1.2 by PoCL's compiler (`clBuildProgram`; those with Intel's subgroups, whose functions it lacks, not linked), those of CUDA by nvcc for sm_87 and sm_90.",
            f"{len(seen['cl'])} distinct OpenCL kernels, {len(seen['cu'])} distinct CUDA kernels (twice), {len(failures)} failures.",
            "",
            f"| network | {' | '.join(options.targets)} |",
            f"|---|{'---|' * len(options.targets)}",
            *rows,
            "",
            *(f"- {failure}" for failure in failures),
        ]
        if options.page:
            options.page.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

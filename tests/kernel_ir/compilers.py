"""Compilers that take the text of kernels without a device: clang as OpenCL C 1.2, nvcc for CUDA."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.compiled import compiled

# A driver of OpenCL on the CPU brings one with its version in the name.
CLANG = next(filter(None, map(shutil.which, ("clang", *(f"clang-{n}" for n in range(14, 22))))), None)
NVCC = shutil.which("nvcc") or (path if Path(path := "/usr/local/cuda/bin/nvcc").exists() else None)
CAPABILITIES = (87, 90)
_BATCH = 8  # kernels that a compiler is given at once
_NAME = re.compile(r"(?:__global__ |__kernel ).*?void (\w+)\(")
_EXTENSION = re.compile(r"#pragma OPENCL EXTENSION (\w+) : enable")
# What extensions add that clang's header for OpenCL C 1.2 does not have.
_DECLARATIONS = {
    "cl_khr_integer_dot_product": "int __attribute__((const)) dot_4x8packed_ss_int(uint, uint);\n",
    "cl_arm_integer_dot_product_accumulate_int8": "int __attribute__((const)) arm_dot_acc(char4, char4, int);\n",
}


def extensions_of(text: str) -> set[str]:
    """Return the extensions that a text in OpenCL C enables."""
    return set(_EXTENSION.findall(text))


def compile_opencl(texts: Sequence[str]) -> None:
    """Assert that clang takes kernels as OpenCL C 1.2 with cl_khr_fp16, and what each enables beyond that.

    Raises
    ------
    AssertionError
        With clang's messages, warnings among them.
    """
    assert CLANG is not None, "clang is needed to compile OpenCL C"
    by_extensions: dict[tuple[str, ...], list[str]] = {}
    for text in texts:
        by_extensions.setdefault(tuple(sorted(extensions_of(text))), []).append(text)
    for extensions, some in by_extensions.items():
        known = ",".join(f"+{e}" for e in ("cl_khr_fp16", *extensions) if e not in _DECLARATIONS)
        command = [CLANG, "-x", "cl", "-cl-std=CL1.2", "-target", "spir64-unknown-unknown", "-Werror"]
        # All of the header's functions as declarations: of some extensions the compiler's own table has none.
        command += ["-cl-no-stdinc", "-include", "opencl-c.h", "-Xclang", f"-cl-ext=-all,{known}"]
        declarations = "".join(_DECLARATIONS.get(e, "") for e in extensions)
        if declarations:
            command += ["-include", "declarations.h", "-Wno-ignored-pragmas"]
        for batch in batches(some):
            files = {f"{name}.cl": text for name, text in batch.items()}
            command_of = [*command, "-emit-llvm", "-O0", "-c", *files]
            last = [*files][-1].removesuffix(".cl")
            compiled(command_of, {**files, "declarations.h": declarations}, f"{last}.bc")


def compile_cuda(texts: Sequence[str], capability: int) -> None:
    """Assert that nvcc takes kernels for a compute capability, such as 87.

    Raises
    ------
    AssertionError
        With nvcc's messages.
    """
    assert NVCC is not None, "nvcc is needed to compile CUDA"
    for batch in batches(texts):
        files = {f"{name}.cu": text for name, text in batch.items()}
        every = "".join(f'namespace in_{name} {{\n#include "{name}.cu"\n}}\n' for name in batch)
        command = [NVCC, "-cubin", "-std=c++17", f"-arch=sm_{capability}", "-o", "all.cubin", "all.cu"]
        compiled(command, {**files, "all.cu": every}, "all.cubin")


def batches(texts: Iterable[str]) -> list[Mapping[str, str]]:
    """Texts by the names of their kernels, few at a time, no name twice: names of C know no namespace."""
    found: list[dict[str, str]] = []
    for text in texts:
        name = _NAME.findall(text)[-1]
        fitting = (batch for batch in found if len(batch) < _BATCH and name not in batch)
        batch = next(fitting, None)
        if batch is None:
            found.append(batch := {})
        batch[name] = text
    return [*found]

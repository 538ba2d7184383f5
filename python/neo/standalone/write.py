"""Writes the folder of an export."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neo import _native
from neo.errors import ModelError, ResourceError, UnsupportedError
from neo.standalone.sources import needed_files, root

__all__ = ["Export", "export"]

# Instruction sets that kernels are compiled for, and whose names CMake gives to machines that have them.
_TIERS = {"scalar": ".*", "avx2": "x86_64|AMD64|amd64", "avx512": "x86_64|AMD64|amd64", "neon": "aarch64|arm64"}
_TIER_OF = {"avx512_vnni": "avx512"}


@dataclass(frozen=True)
class Export:
    """What :func:`export` wrote.

    Attributes
    ----------
    folder : Path
        Where.
    target : str
        What the module was compiled for.
    routines : tuple of str
        The steps that the library can make.
    sources : int
        C++ files, headers not counted.
    """

    folder: Path
    target: str
    routines: tuple[str, ...]
    sources: int


def export(model: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Export:
    """Write the sources of a library that runs one saved module.

    Parameters
    ----------
    model : path
        A module that :meth:`neo.Module.save` wrote.
    folder : path
        A folder that is empty or does not exist yet.

    Returns
    -------
    Export
        What was written. The folder's README.md says how to build it, for this machine or for another.

    Raises
    ------
    neo.ModelError
        The file is not a whole saved module, or the folder is not empty.
    neo.UnsupportedError
        The module is for a target that has no sources.
    neo.ResourceError
        A file cannot be read or written.
    """
    path, out = os.fsdecode(model), Path(folder)
    if not path.endswith(".neo"):
        msg = f'[export] a saved module must be given. Got "{path}"\nHint: neo compile {path} -o model.neo'
        raise ModelError(msg)
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            msg = f'[export] the folder must be empty. Got "{out}"'
            raise ModelError(msg)
        plan, makers, families, target, isa, kernels = _native.compact_module(path)
        tier = _TIER_OF.get(isa, isa)
        if tier not in _TIERS:
            msg = f'[export] a target must have sources. Got "{target}", expected one of {", ".join(_TIERS)}'
            raise UnsupportedError(msg)
        files = needed_files(makers, families)
        for name in files:
            _copy(root() / name, out / name)
        templates = Path(__file__).parent / "templates"
        for header in ("neo.h", "neo.hpp"):
            _copy(root() / "csrc" / "capi" / header, out / "include" / header)
        _copy(templates / "neo_embedded.h", out / "include" / "neo_embedded.h")
        _copy(root() / "csrc" / "standalone" / "model.S", out / "csrc" / "standalone" / "model.S")
        _copy(root() / "cmake" / "neo_isa.cmake", out / "cmake" / "neo_isa.cmake")
        _copy(Path(path), out / "model.neo")
        (out / "csrc" / "standalone" / "parts.cpp").write_text(_parts(plan, makers, families), encoding="utf-8")
        (out / "example").mkdir()
        _copy(templates / "main.c", out / "example" / "main.c")
        bits = {word: hex(value) for word, value in kernels.items()}
        words = {**bits, "TIER": tier, "MACHINES": _TIERS[tier], "TARGET": target, "MODEL": Path(path).name}
        for template in ("CMakeLists.txt", "README.md"):
            text = (templates / template).read_text(encoding="utf-8")
            for word, value in words.items():
                text = text.replace(f"@{word}@", value)
            (out / template).write_text(text, encoding="utf-8")
    except ResourceError:
        raise
    except OSError as error:
        msg = f"[export] files must be readable and writable. Got {error}"
        raise ResourceError(msg) from error
    sources = sum(name.endswith(".cpp") for name in files) + 1
    return Export(out, target, tuple(makers), sources)


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)


def _parts(plan: bytes, makers: Sequence[str], families: Sequence[str]) -> str:
    """The C++ file of what differs from model to model."""
    rows = [plan[i : i + 24] for i in range(0, len(plan), 24)]
    numbers = "\n".join("".join(f"{byte}," for byte in row) for row in rows)
    steps = ", ".join(f"make_{m}_step" for m in makers) or "nullptr"
    ops = "".join(f"  add_{f}_ops(ops);\n" for f in families)
    return f"""#include "standalone/standalone.h"
#include "ops/families.h"

namespace neo {{
namespace {{

alignas(8) constexpr unsigned char kPlan[] = {{
{numbers}}};

constexpr MakeStep kMakers[] = {{{steps}}};

void add_ops([[maybe_unused]] OpRegistry& ops) {{
{ops}}}

}}  // namespace

ExportedParts exported_parts() {{
  return {{std::as_bytes(std::span(kPlan)), kMakers, add_ops}};
}}

}}  // namespace neo
"""

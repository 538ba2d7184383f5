"""The kernels of a module for a device, as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neo.errors import ModelError
from neo.report.table import render_table

if TYPE_CHECKING:
    from neo.module import Module

__all__ = ["write_kernels"]

_SUFFIXES = {"opencl": ".cl", "cuda": ".cu", "c": ".c"}


def write_kernels(module: Module, folder: str | PathLike[str]) -> str:
    """Write every kernel that runs on the module's device to a file of its own, once, and ``kernels.json``.

    Parameters
    ----------
    module : Module
        Compiled for a device, which need not be there.
    folder : path
        Made where it is not there.

    Returns
    -------
    str
        A table of the steps in order, each with the estimate of its time.
    """
    kernels = module.kernels
    steps = module.steps
    if all(step.device == "cpu" for step in steps):
        msg = f"[kernels] a module must have steps on a device. Got none of {len(steps)} for {module.target}"
        raise ModelError(msg)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for entry in kernels:
        text = entry["text"]
        if text not in files:
            files[text] = _file_name(entry, set(files.values()))
            (out / files[text]).write_text(text, encoding="utf-8")
        told = {key: entry[key] for key in ("item", "node", "op", "routine", "kernel", "language")}
        rows.append(told | {"file": files[text], "step_estimate_us": entry["estimate_us"]})
    on_cpu = [s for s in steps if s.device == "cpu"]
    summary = {
        "target": module.target,
        "note": "times are estimates from the target's figures, not measurements",
        "kernels": rows,
        "cpu_steps": [{"node": s.node, "op": s.op, "routine": s.routine} for s in on_cpu],
    }
    (out / "kernels.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    table = render_table(
        ("node", "op", "kernel", "file", "step, us (estimate)"),
        [(r["node"], r["op"], r["kernel"], r["file"], f"{r['step_estimate_us']:.1f}") for r in rows],
        right=(4,),
    )
    return f"{table}\n{len(files)} kernels in {out}; {len(on_cpu)} of {len(steps)} steps run on the CPU"


def _file_name(entry: Mapping[str, Any], taken: set[str]) -> str:
    suffix = _SUFFIXES[entry["language"]]
    name = f"{entry['kernel']}{suffix}"
    number = 1
    while name in taken:
        number += 1
        name = f"{entry['kernel']}_{number}{suffix}"
    return name

"""``summary.md``, for reading, ``results.json``, for what comes after, and ``details.tar.gz``: logs and kernels."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.gpu_check.context import Context, Found

__all__ = ["write"]


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    def cell(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
        return str(value if value is not None else "").replace("|", "/").replace("\n", " ")

    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return ["", *lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows), ""]


def _networks(found: Found) -> list[str]:
    results = found.get("networks", {})
    engines = list(dict.fromkeys(engine for f in results.values() for engine in f["ms"]))
    rows = []
    for key, f in results.items():
        ours = f["ms"].get("neo, fp32")
        others = [ms for e, ms in f["ms"].items() if e.endswith("fp32") and not e.startswith("neo")]
        ahead = min(others) / ours if ours and others else None
        why = "; ".join(f"{e}: {text}" for e, text in f["error"].items())
        rows.append([key, *(f["ms"].get(e) for e in engines), ahead, f["difference"].get("neo, fp32"), why])
    lines = ["Medians in ms, from the host's arrays to the host's arrays."]
    lines += _table(["network x batch", *engines, "best other / neo, fp32", "difference", ""], rows)
    lines += [f"- {key}: {value:.3f}" for key, value in found.items() if key.startswith("geometric mean")]
    return lines


def _profiles(found: Found) -> list[str]:
    keys = (
        "family",
        "steps",
        "median",
        "10 %",
        "90 %",
        "rank correlation",
        "measured, us",
        "estimated, us",
        "scale",
        "offset_us",
    )
    lines = [
        f"Rank correlation of all steps: {found.get('rank correlation')}. Ratios are measured over estimated times."
    ]
    lines += _table(keys, ([row.get(key) for key in keys] for row in found.get("families", [])))
    head = ("network", "node", "op", "routine", "us", "estimate_us", "files", "ptxas")
    return lines + _table(head, ([step.get(key) for key in head] for step in found.get("slowest", [])))


def _tuning(found: Found) -> list[str]:
    head = ("untuned", "tuned", "untuned / tuned", "budget, s", "compile, s", "tuning")
    rows = ([name, *(entry.get(key) for key in head)] for name, entry in found.get("networks", {}).items())
    return _table(("network", *head), rows)


def _models(found: Found) -> list[str]:
    rows = (
        [name, m["difference"], m["on_device"], m["on_cpu"], m["failure"] or "agrees"]
        for name, m in found.get("models", {}).items()
    )
    lines = _table(("model", "difference", "steps on the device", "steps on the CPU", ""), rows)
    return [*lines, f"Not here: {', '.join(found.get('not here', [])) or 'none'}."]


def _vision(found: Found) -> list[str]:
    head = ("operator", "n", "ms", "work", "ns / work", "growth")
    lines = _table(head, found.get("growth", []))
    detectors = ("network", "off", "on", "off / on", "tuned", "on / tuned", "tuned, placed freely")
    return lines + _table(detectors, found.get("detectors", []))


SECTIONS = {"vision": _vision, "networks": _networks, "profiles": _profiles, "tuning": _tuning, "models": _models}
LARGE = {"cases", "networks", "steps", "slowest", "families", "models", "not here", "growth", "detectors"}


def write(context: Context, parts: Sequence[str]) -> None:
    """Write the files from what is there."""
    results = {name: context.load(name) for name in parts}
    device = results["environment"].get("device")
    lines = [f"# neo on {device or 'no device'}", ""]
    lines += [f"`tools/gpu_check.sh --target {context.target}`{' --few' if context.few else ''}", ""]
    lines += _table(
        ("part", "status", "s"),
        ([name, found.get("status", "not begun"), found.get("took, s")] for name, found in results.items()),
    )
    for name, found in results.items():
        if not found:
            continue
        lines += [f"## {name}", ""]
        for key, value in found.items():
            if key in LARGE or key in ("status", "took, s") or key.startswith("geometric mean"):
                continue
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            lines += ["```", text.strip()[-3000:], "```"] if "\n" in text else [f"- {key}: {text[:2000]}"]
        lines += SECTIONS[name](found) if name in SECTIONS else []
        lines.append("")
    (context.results / "summary.md").write_text("\n".join(lines), encoding="utf-8")
    (context.results / "results.json").write_text(json.dumps(results, indent=1, default=str) + "\n", encoding="utf-8")
    partial = context.folder / "details.partial"
    with tarfile.open(partial, "w:gz") as archive:
        for name in ("parts", "kernels", "kernels.log"):
            if (context.folder / name).exists():
                archive.add(context.folder / name, name)
    shutil.move(partial, context.results / "details.tar.gz")

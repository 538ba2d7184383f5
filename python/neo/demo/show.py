"""The main job on the network that comes with neo: compile, predict, time, look inside."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from neo import demo
from neo.compile import compile as compile_model
from neo.report.table import counted, render_table

__all__ = ["show"]

_SHADES = " .:-=+*#%@"


def show(*, threads: int | None = None) -> None:
    """Recognise the 64 digits of the demo and print what came out, how fast, and where the time went."""
    start = time.perf_counter()
    module = compile_model(demo.model_bytes(), threads=threads)
    compile_ms = (time.perf_counter() - start) * 1e3
    images, labels = demo.images()
    probabilities = module(images)
    predicted = probabilities.argmax(axis=1)

    print("Handwritten digits, and what the network says of them:\n")
    print("\n".join(_side_by_side(images[:6])))
    rows = []
    for i in range(8):
        ranked = np.argsort(-probabilities[i])[:2]
        first, second = (f"{k} ({100 * probabilities[i, k]:.1f} %)" for k in ranked)
        rows.append((i, labels[i], first, second, "right" if predicted[i] == labels[i] else "wrong"))
    print(render_table(("image", "label", "prediction", "next", ""), rows, right=(0, 1)))
    print(f"...\n{int((predicted == labels).sum())} of {len(labels)} right\n")

    latency = {n: _median_us(module, images[:n]) for n in (1, 64)}
    print(f"compiled in {compile_ms:.0f} ms for {module.target} on {counted(module.threads, 'thread')}")
    print(f"one image {latency[1]:.1f} us, 64 images {latency[64]:.1f} us ({latency[64] / 64:.1f} us each)\n")
    print("Where the time goes with 64 images:\n")
    print(module.profile({module.inputs[0].name: images}).table())


def _median_us(module: object, images: NDArray[np.float32]) -> float:
    times: list[float] = []
    while len(times) < 200 and sum(times) < 1:
        start = time.perf_counter()
        module(images)  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


def _side_by_side(images: NDArray[np.float32]) -> list[str]:
    lines = []
    for row in range(images.shape[2]):
        cells = []
        for image in images:
            levels = (image[0, row] * (len(_SHADES) - 1)).round().astype(int)
            cells.append("".join(_SHADES[v] * 2 for v in levels))
        lines.append("   ".join(cells))
    return lines

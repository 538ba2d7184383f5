"""Blocks of channels other than the vector's width (NeoCPU, section 3.1.1): what layouts NCHW[x]c could win.

``python -m benchmarks.blocks --models resnet50,vgg16`` compiles ``micro/blocks.cpp`` with the libraries of a build and
times the direct convolution of every layer in every pair of blocks of input and output channels, on one core. A
network's layers add up to four totals: in the layout that selection uses, whose block is a vector; with one other block
for the whole network; with the best pair for each layer, as if changes of layout cost nothing, which no search over
blocks can beat; and the last beside measuring the vector's own block a second time, which is what the least of several
measurements wins by chance.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import onnx
from onnx import shape_inference
from rich.console import Console

from benchmarks import environment, native_program, page, results
from benchmarks.results import Section
from benchmarks.suites import find_entries

#: Of a convolution, as ``micro/blocks.cpp`` reads them.
Layer = tuple[int, ...]
#: Microseconds by blocks of input and output channels.
Times = dict[tuple[int, int], float]


def layers_of(model: onnx.ModelProto) -> Counter[Layer]:
    """Return the convolutions of one group over images of one row or more, with how often each stands there.

    Parameters
    ----------
    model : onnx.ModelProto
        With sizes that are known.
    """
    graph = shape_inference.infer_shapes(model).graph
    shapes = {
        value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in [*graph.input, *graph.value_info, *graph.output]
    }
    weights = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    found: Counter[Layer] = Counter()
    for node in graph.node:
        if node.op_type != "Conv" or node.input[1] not in weights:
            continue
        x, weight, y = shapes[node.input[0]], weights[node.input[1]], shapes[node.output[0]]
        attributes = {a.name: list(a.ints) or a.i for a in node.attribute}
        if len(x) != 4 or attributes.get("group", 1) != 1:
            continue
        found[
            (
                *(x[1], *x[2:], y[1], *y[2:], *weight[2:]),
                *attributes.get("strides", [1, 1]),
                *attributes.get("pads", [0] * 4)[:2],
                *attributes.get("dilations", [1, 1]),
            )
        ] += 1
    return found


def measure(program: Path, layers: list[Layer]) -> tuple[int, list[Times]]:
    """Return the vector's width, and the times of each layer.

    Parameters
    ----------
    program : Path
        The compiled ``micro/blocks.cpp``.
    layers : list of tuple
        Of `layers_of`.
    """
    lines = "".join(" ".join(map(str, layer)) + "\n" for layer in layers)
    done = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True)
    first, *rest = done.stdout.splitlines()
    times = [{(int(x), int(y)): float(us) for x, y, us in (pair.split(":") for pair in line.split())} for line in rest]
    return int(first.split()[1]), times


def totals(counts: list[int], times: list[Times], lanes: int) -> tuple[float, dict[int, float], float]:
    """Add a network's layers up: by the vector's block, by another one where a layer has it, by the best for each.

    Parameters
    ----------
    counts : list of int
        How often each layer stands in the network.
    times : list of dict
        Of the layers that have the vector's block.
    lanes : int
        The vector's width.
    """
    own = sum(n * t[lanes, lanes] for n, t in zip(counts, times, strict=True))
    blocks = sorted({x for t in times for x, y in t if x == y and x != lanes})
    other = {b: sum(n * t.get((b, b), t[lanes, lanes]) for n, t in zip(counts, times, strict=True)) for b in blocks}
    return own, other, sum(n * min(t.values()) for n, t in zip(counts, times, strict=True))


def _rows(program: Path, paths: dict[str, Path], console: Console) -> list[list[str]]:
    rows: list[list[str]] = []
    ratios = []
    for name, path in paths.items():
        with console.status(f"measure {name}"):
            counted = layers_of(onnx.load(str(path)))
            lanes, found = measure(program, list(counted))
            _, again = measure(program, list(counted))
        kept = [i for i, t in enumerate(found) if (lanes, lanes) in t]
        counts = [list(counted.values())[i] for i in kept]
        own, other, best = totals(counts, [found[i] for i in kept], lanes)
        chance = sum(n * min(found[i][lanes, lanes], again[i][lanes, lanes]) for n, i in zip(counts, kept, strict=True))
        block, time = min(other.items(), key=lambda item: item[1])
        ratios.append((own / time, own / best, own / chance))
        rows.append([name, str(len(kept)), page.number(own / 1e3), f"{own / time:.3f} ({block})"])
        rows[-1] += [f"{own / best:.3f}", f"{own / chance:.3f}"]
    means = [f"{math.exp(sum(map(math.log, column)) / len(column)):.3f}" for column in zip(*ratios, strict=True)]
    return [*rows, ["geometric mean", "", "", *means]]


def main(words: list[str] | None = None) -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blocks", description="Blocks other than a vector.")
    parser.add_argument("--models", default="", help="networks, separated by commas (default: all of the suite)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--build", type=Path, default=native_program.BUILD, help="a build (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    try:
        entries = find_entries("networks", arguments.models.split(",") if arguments.models else None)
    except ValueError as error:
        parser.error(str(error))
    paths = {entry.name: entry.prepare(arguments.cache.resolve())[0] for entry in entries}
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = native_program.build(Path(folder), "blocks", arguments.build)
        except native_program.NotBuiltError as error:
            parser.exit(1, f"not measured: {error}\n")
        rows = _rows(program, paths, console)
    text = (
        "Direct convolutions of one group on one core, least times over the register blocks: milliseconds of all of a "
        "network's layers where the blocks of input and output channels are a vector, and by how much they are faster "
        "with the best other block for the whole network, with the best pair of blocks for each layer, changes of layout "
        "for nothing, and with the vector's block measured a second time."
    )
    notes = [environment.measured()]
    header = ["network", "layers", "ms", "one other block", "a pair for each layer", "the same again"]
    made = Section("Blocks of channels other than a vector", text, header, rows, notes)
    for row in rows:
        console.print("  ".join(row), highlight=False)
    results.record_section("blocks", made, results.json_beside(arguments.results), arguments.results)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()

"""What was chosen for each layer of a network, as in Table III of SoftNeuro: ``python -m benchmarks.listing``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import neo
from neo.report.explain import NodeExplanation, Option
from rich.console import Console

from benchmarks import environment, results
from benchmarks.results import Section
from benchmarks.suites import find_entries

NETWORK = "vgg16"

_ROUTINE = re.compile(r"(?P<descriptor>[^{]*)(?:\{(?P<parameters>.*)\})?")


def split(routine: str) -> tuple[str, str]:
    """Return a routine's descriptor and its parameters: "a/b{x=1 y=2}" to "a/b" and "x:1, y:2"."""
    match = _ROUTINE.fullmatch(routine)
    assert match is not None
    parameters = (match["parameters"] or "").split()
    return match["descriptor"], ", ".join(p.replace("=", ":", 1) for p in parameters)


def rows_of(nodes: Sequence[NodeExplanation]) -> list[list[str]]:
    """Return a row per layer: its name and operator, what was chosen, and what another choice would cost."""
    rows = []
    for node in nodes:
        chosen = node.options[0]
        descriptor, parameters = split(chosen.routine)
        time = "" if chosen.time_us is None else f"{chosen.time_us:.1f}{'*' if chosen.measured else ''}"
        rows.append([node.node, node.op, descriptor, parameters, time, _runner_up(node.options)])
    return rows


def _runner_up(options: Sequence[Option]) -> str:
    """The other routine that would cost the whole network least."""
    mine = options[0].routine.split("{")[0]
    others = [o for o in options[1:] if o.change_us is not None and o.routine.split("{")[0] != mine]
    best = min(others, key=lambda o: o.change_us or 0.0, default=None)
    return "" if best is None else f"{best.routine.split('{')[0]}, {best.change_us:+.1f}"


def section(network: str, module: neo.Module, threads: int, command: str) -> Section:
    """Return the table of a module.

    Parameters
    ----------
    network : str
        Its name.
    module : neo.Module
        The network, compiled.
    threads : int
        For how many.
    command : str
        What made it.
    """
    explanation = module.explain()
    nodes = explanation.nodes
    text = (
        f"What selection chose for each layer of {network} with {threads} thread{'s' if threads > 1 else ''}, as in "
        f"Table III of SoftNeuro, and the other routine that would change the total least. {len(nodes)} layers after "
        f"the passes; the total is {explanation.estimate_us / 1e3:.2f} ms. * measured; the others are estimates."
    )
    head = ["layer", "operator", "routine", "parameters", "us", "next best, change of the total in us"]
    place = environment.place()
    notes = [f"On {place}; commit {environment.commit()}.", f"`{command}`"]
    return Section(f"Chosen routines: {network}, {threads} threads", text, head, rows_of(nodes), notes)


def main(words: list[str] | None = None) -> None:
    """Compile, print and write the listing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.listing", description="The routine of each layer.")
    parser.add_argument("--models", default=NETWORK, help="networks, separated by commas (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tune", help='as for neo.compile: "60s", or a number of trials (default: estimates)')
    parser.add_argument("--database", type=Path, help="measured times (default with --tune: the user's)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    tune = int(arguments.tune) if arguments.tune and arguments.tune.isdigit() else arguments.tune or False
    for entry in find_entries("networks", arguments.models.split(",")):
        path, _ = entry.prepare(arguments.cache.resolve())
        module = neo.compile(str(path), threads=arguments.threads, tune=tune, database=arguments.database)
        command = f"python -m benchmarks.listing --models {entry.name} --threads {arguments.threads}"
        command += f" --tune {arguments.tune}" if arguments.tune else ""
        made = section(entry.name, module, arguments.threads, command)
        for layer, op, descriptor, parameters, *_ in made.rows:
            console.print(f"{layer}  {op}  {descriptor}  {parameters}", highlight=False)
        key = f"listing-{entry.name}-{arguments.threads}"
        results.record_section(key, made, results.json_beside(arguments.results), arguments.results)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()

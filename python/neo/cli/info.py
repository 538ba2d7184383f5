"""``neo info``."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from neo.cli.arguments import add_json, check_folder, print_json
from neo.report.table import render_table
from neo.saved import load

HELP = "a model's inputs, outputs and operators"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("model", help="an ONNX file, or a module that neo compile wrote (.neo)")
    add_json(command, "it")


def run(options: argparse.Namespace) -> None:
    """Print what the file says of itself."""
    if options.json:
        check_folder(options.json, "--json")
    facts = _saved_facts(options.model) if Path(options.model).suffix == ".neo" else _model_facts(options.model)
    if options.json:
        print_json(options.json, facts)
    if options.json == "-":
        return
    print(f"{facts['name']}: {facts['made']}")
    for title in ("input", "output"):
        for entry in facts[f"{title}s"]:
            print(f"  {title} {entry['name']}: {entry['type']}")
    print(render_table(("op", "nodes"), list(facts["operators"].items()), right=(1,)))


def _model_facts(path: str) -> dict[str, Any]:
    import onnx

    from neo.frontend.onnx.load import load_model

    proto = load_model(path).proto
    opsets = {o.domain or "ai.onnx": o.version for o in proto.opset_import}
    told = ", ".join(f"{domain} {version}" for domain, version in opsets.items())
    counts = Counter(node.op_type for node in proto.graph.node)

    def entries(values: Any) -> list[dict[str, str]]:
        return [{"name": v.name, "type": onnx.helper.printable_type(v.type)} for v in values]

    return {
        "name": proto.graph.name or path,
        "made": f"opset {told}; made by {proto.producer_name or 'unknown'}",
        "opsets": opsets,
        "producer": proto.producer_name,
        "inputs": entries(proto.graph.input),
        "outputs": entries(proto.graph.output),
        "operators": dict(counts.most_common()),
    }


def _saved_facts(path: str) -> dict[str, Any]:
    module = load(path)
    origin = module.provenance
    variants = f", {len(module.variants)} variants" if len(module.variants) > 1 else ""
    version = origin.get("version", "unknown")
    return {
        "name": origin.get("model", path),
        "made": f"compiled by neo {version} for {module.target}{variants}",
        "provenance": origin,
        "target": module.target,
        "variants": len(module.variants),
        "inputs": [{"name": t.name, "type": str(t).partition(": ")[2]} for t in module.inputs],
        "outputs": [{"name": t.name, "type": str(t).partition(": ")[2]} for t in module.outputs],
        "operators": dict(Counter(step.op for step in module.steps).most_common()),
    }

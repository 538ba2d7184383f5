"""What is drawn of a module that was loaded: its plan, which no longer knows the model's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neo.report.graph import divide

__all__ = ["drawn_plan", "planned_nodes"]


def drawn_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Nodes, edges and blocks as `drawn_graph` gives them: a node per item, an edge per slot that one item reads."""
    drawing: dict[str, Any] = {"nodes": [], "edges": [], "blocks": []}
    _draw(plan, 0, -1, "", drawing)
    return drawing


def planned_nodes(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A variable with its one choice for each item, in the form of a selection problem's nodes."""
    nodes = []
    for item in plan["items"]:
        slots = plan["blocks"][item["block"]]["slots"]
        choice = {
            "routine": item["routine"],
            "time_us": item["estimate_us"],
            "estimate_us": item["estimate_us"],
            "measured": False,
            "packed_bytes": 0,
            "workspace_bytes": 0,
            "nodes": [item["node"]],
            "inputs": [_schema(slots[s]) for s in item["reads"]],
            "outputs": [_schema(slots[s]) for s in item["writes"]],
            "note": "saved without the others",
        }
        names = [slots[s]["name"] for s in item["writes"]]
        nodes.append({"name": item["node"], "op": item["op"], "outputs": names, "choices": [choice], "rejections": []})
    return nodes


def _schema(slot: Mapping[str, Any]) -> str:
    return f"cpu:{slot['type'].partition('[')[0]}:{slot['layout']}"


def _draw(plan: Mapping[str, Any], block: int, parent: int, body: str, drawing: dict[str, Any]) -> None:
    slots = plan["blocks"][block]["slots"]
    first = len(drawing["nodes"])
    writers: dict[int, int] = {}  # slot -> node
    memory: dict[int, list[int]] = {}  # slot that owns memory -> nodes that wrote parts of it

    def root(slot: int) -> int:
        while slots[slot]["storage"] == "view":
            slot = slots[slot]["base"]
        return slot

    def add(kind: str, name: str, op: str, writes: Sequence[int], **more: Any) -> int:
        node: dict[str, Any] = {
            "id": len(drawing["nodes"]),
            "kind": kind,
            "name": name,
            "op": op,
            "label": op,
            "members": [],
        }
        node |= {"routine": "", "parent": parent, "body": body, "block": -1, "steps": [], "type": "", "schema": ""}
        node |= {"attributes": {}, "variables": []}
        if writes:
            node |= {"type": slots[writes[0]]["type"], "schema": _schema(slots[writes[0]])}
        drawing["nodes"].append(node | more)
        for slot in writes:
            writers[slot] = node["id"]
            memory.setdefault(root(slot), []).append(node["id"])
        return int(node["id"])

    def connect(slot: int, to: int) -> None:
        found = [writers[slot]] if slot in writers else memory.get(root(slot), [])
        for maker in found:
            kind, takes = drawing["nodes"][maker]["kind"], drawing["nodes"][maker].get("takes", "")
            changed = kind in ("conversion", "input", "argument") or takes != _schema(slots[slot])
            edge = {"from": maker, "to": to, "value": slots[slot]["name"], "type": slots[slot]["type"]}
            if maker != to:
                drawing["edges"].append(edge | {"schema": _schema(slots[slot]), "changes": changed})

    for slot in plan["blocks"][block]["arguments"]:
        kind = "input" if parent < 0 else "argument"
        add(kind, slots[slot]["name"], kind, [slot])
    for number, item in enumerate(plan["items"]):
        if item["block"] != block:
            continue
        reads = [s for s in dict.fromkeys(item["reads"]) if slots[s]["storage"] != "constant"]
        sources = {s: _schema(slots[s]) for s in reads}
        kind = "control" if item["bodies"] else "conversion" if item["op"] == "neo.Adapt" else "step"
        name = item["node"] or next((slots[s]["name"] for s in item["writes"]), "")
        unit = add(kind, name, item["op"], [], routine=item["routine"], steps=[number], variables=[number])
        for slot in reads:
            connect(slot, unit)
        node = drawing["nodes"][unit]
        node["takes"] = next(iter(sources.values()), "")
        for slot in item["writes"]:
            writers[slot] = unit
            memory.setdefault(root(slot), []).append(unit)
        if item["writes"]:
            slot = item["writes"][0]
            node |= {"type": slots[slot]["type"], "schema": _schema(slots[slot])}
        if kind == "conversion":
            node |= {"label": "conversion", "from": node["takes"]}
        for name_of_body, inner in item["bodies"].items():
            _draw(plan, inner, unit, name_of_body, drawing)
    last = len(drawing["nodes"])
    for slot in plan["blocks"][block]["results"]:
        kind = "output" if parent < 0 else "result"
        connect(slot, add(kind, slots[slot]["name"], kind, [], type=slots[slot]["type"]))
    divide(drawing, first, last, parent, body)

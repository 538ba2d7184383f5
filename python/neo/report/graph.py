"""What of a compiled model is drawn: a node per routine that runs, conversion, input and output, and the edges."""

from __future__ import annotations

import collections
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["divide", "drawn_graph"]

#: A block of a large network is at most this many nodes.
_BLOCK_NODES = 18
#: A graph of more nodes than the first number is divided into blocks, a body of more than the second.
_WHOLE_NODES, _WHOLE_BODY_NODES = 64, 40


def drawn_graph(
    graph: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], choices: Sequence[int], plan: Mapping[str, Any]
) -> dict[str, Any]:
    """Nodes, edges and blocks as plain data (docs/profiling.md).

    Parameters
    ----------
    graph, nodes : mapping, sequence
        The problem's graph and its variables.
    choices : sequence of int
        The choice of each variable.
    plan : mapping
        The plan made of them, whose items become the ``steps`` of the nodes.
    """
    drawing = _Drawing(nodes, choices, plan)
    drawing.add(_taken(graph, nodes, choices), block=0, parent=-1, body="")
    return {"nodes": drawing.nodes, "edges": drawing.edges, "blocks": drawing.blocks}


def _taken(
    graph: Mapping[str, Any], variables: Sequence[Mapping[str, Any]], choices: Sequence[int]
) -> Mapping[str, Any]:
    """A graph with the nodes of the inner graphs that were chosen in the places of the nodes that they compute."""
    values, nodes = dict(graph["values"]), []
    chosen = {n["variable"]: variables[n["variable"]]["choices"][choices[n["variable"]]] for n in graph["nodes"]}
    gone = {member for c in chosen.values() if "expansion" in c for member in c["members"]}
    for node in graph["nodes"]:
        choice = chosen[node["variable"]]
        if "expansion" in choice:
            values |= choice["graph"]["values"]
            nodes += choice["graph"]["nodes"]
        elif node["variable"] not in gone:
            bodies = {name: _taken(body, variables, choices) for name, body in node["bodies"].items()}
            nodes.append(node | {"bodies": bodies})
    return {**graph, "values": values, "nodes": nodes}


class _Drawing:
    def __init__(self, variables: Sequence[Mapping[str, Any]], choices: Sequence[int], plan: Mapping[str, Any]) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.blocks: list[dict[str, Any]] = []
        self._variables = variables
        self._choices = choices
        self._items = plan["items"]
        self._writers: dict[tuple[int, str, str], int] = {}  # block, value, conversion -> item
        self._copies: dict[tuple[int, str], list[int]] = {}  # block, node -> items that copy pieces of it
        for number, item in enumerate(self._items):
            slots = plan["blocks"][item["block"]]["slots"]
            conversion = item["routine"] if item["op"] == "neo.Adapt" else ""
            if item["routine"].startswith("cpu:adapt/copy "):
                self._copies.setdefault((item["block"], item["node"]), []).append(number)
                continue
            for slot in item["writes"]:
                self._writers.setdefault((item["block"], slots[slot]["name"], conversion), number)

    def _choice(self, variable: int) -> Mapping[str, Any]:
        chosen: Mapping[str, Any] = self._variables[variable]["choices"][self._choices[variable]]
        return chosen

    def _add(self, kind: str, name: str, op: str, parent: int, body: str, **more: Any) -> int:
        node = {"id": len(self.nodes), "kind": kind, "name": name, "op": op, "label": op, "members": []}
        node |= {"routine": "", "parent": parent, "body": body, "block": -1, "steps": [], "type": "", "schema": ""}
        self.nodes.append(node | {"attributes": {}, "variables": []} | more)
        return len(self.nodes) - 1

    def add(self, graph: Mapping[str, Any], *, block: int | None, parent: int, body: str) -> None:
        """Draw a graph: the root, or a body of a node that is drawn already."""
        values = graph["values"]
        made: dict[str, tuple[int, str]] = {}  # value -> who gives it, in which schema
        held: dict[tuple[str, str], int] = {}  # value, schema -> who converts it
        first = len(self.nodes)

        def source(value: str, schema: str) -> tuple[int, str, str] | None:
            """Who gives a value in a schema: its maker, or a conversion, which is drawn when first asked for."""
            if value not in made:
                return None  # a constant
            maker, given = made[value]
            if schema == given:
                return maker, value, schema
            if (value, schema) not in held:
                holders = given.split(":")[0], schema.split(":")[0]
                where = holders[0] if holders[0] == holders[1] else "copy"
                routine = f"{where}:adapt/{given}->{schema}"
                item = self._writers.get((-1 if block is None else block, value, routine))
                steps = [] if item is None else [item]
                added = self._add("conversion", value, "neo.Adapt", parent, body, routine=routine, steps=steps)
                self.nodes[added] |= {"label": "conversion", "type": values[value][0], "schema": schema, "from": given}
                connect((maker, value, given), added)
                held[value, schema] = added
            return held[value, schema], value, schema

        def connect(found: tuple[int, str, str] | None, to: int) -> None:
            if found is None:
                return
            maker, value, schema = found
            kind, takes = self.nodes[maker]["kind"], self.nodes[maker].get("takes", "")
            changed = kind in ("conversion", "input", "argument") or takes != schema
            edge = {"from": maker, "to": to, "value": value, "type": values[value][0], "schema": schema}
            self.edges.append(edge | {"changes": changed})

        for name in graph["inputs"]:
            kind = "input" if parent < 0 else "argument"
            made[name] = self._add(kind, name, kind, parent, body, type=values[name][0]), values[name][2]
            self.nodes[made[name][0]]["schema"] = values[name][2]
        by_variable = {n["variable"]: n for n in graph["nodes"]}
        for variable in self._live(graph, by_variable):
            node, choice = by_variable[variable], self._choice(variable)
            if "routine" in choice:
                reads = list(zip(choice["reads"], choice["inputs"], strict=True))
                gives = list(zip(choice["writes"], choice["outputs"], strict=True))
            else:
                reads = [(v, values[v][2]) for v in node["inputs"] if v]
                gives = [(v, values[v][2]) for v in node["outputs"] if v]
            found = [source(value, schema) for value, schema in reads if schema]
            if "routine" in choice:
                unit = self._add_routine(variable, choice, by_variable, values, block, parent, body)
            else:
                unit = self._add_control(variable, node, block, parent, body)
            self.nodes[unit]["takes"] = next((f[2] for f in found if f), "")
            for one in found:
                connect(one, unit)
            for value, schema in gives:
                made[value] = unit, schema
            if gives:
                self.nodes[unit] |= {"type": values[gives[0][0]][0], "schema": gives[0][1]}
        last = len(self.nodes)
        for name in graph["outputs"]:
            kind = "output" if parent < 0 else "result"
            given = source(name, values[name][2])
            connect(given, self._add(kind, name, kind, parent, body, type=values[name][0]))
        divide({"nodes": self.nodes, "edges": self.edges, "blocks": self.blocks}, first, last, parent, body)

    def _live(self, graph: Mapping[str, Any], by_variable: Mapping[int, Mapping[str, Any]]) -> list[int]:
        """Variables whose results are read when the plan runs, each behind those it reads; roots stand for their groups."""
        producer = {v: n["variable"] for n in graph["nodes"] for v in n["outputs"] if v}
        for variable in by_variable:
            producer |= dict.fromkeys(self._choice(variable).get("writes", ()), variable)

        def reads(variable: int) -> list[int]:
            choice = self._choice(variable)
            if "routine" in choice:
                values = [v for v, s in zip(choice["reads"], choice["inputs"], strict=True) if s]
            else:
                values = [v for v in by_variable[variable]["inputs"] if v]
            return [producer[v] for v in values if v in producer]

        live: set[int] = set()
        wanted = [producer[v] for v in graph["outputs"] if v in producer]
        while wanted:
            variable = wanted.pop()
            if variable not in live:
                live.add(variable)
                wanted += reads(variable)
        order: dict[int, None] = {}

        def place(variable: int) -> None:
            if variable not in order:
                for source in reads(variable):
                    place(source)
                order[variable] = None

        for variable in by_variable:
            if variable in live:
                place(variable)
        return list(order)

    def _add_routine(
        self,
        variable: int,
        choice: Mapping[str, Any],
        by_variable: Mapping[int, Mapping[str, Any]],
        values: Mapping[str, Any],
        block: int | None,
        parent: int,
        body: str,
    ) -> int:
        members = [v for v in choice["members"] if v in by_variable]
        entries = [self._member(v, by_variable[v]) for v in members]
        name = entries[-1]["name"]
        at = -1 if block is None else block
        item = next((i for v in choice["writes"] if (i := self._writers.get((at, v, ""))) is not None), None)
        steps = ([] if item is None else [item]) + self._copies.get((at, self._variables[variable]["name"]), [])
        kind = "view" if item is None and choice["kind"] in ("view", "concat in place") else choice["kind"]
        return self._add(
            kind,
            name,
            entries[-1]["op"],
            parent,
            body,
            label=" + ".join(e["label"] for e in entries),
            members=entries,
            routine=choice["routine"],
            steps=sorted(set(steps)),
            attributes=_attributes(by_variable[variable]["attrs"]),
            variables=members,
            constants=[
                {"name": v, "type": values[v][0], "bytes": values[v][1]}
                for v in choice["reads"]
                if values[v][1] is not None
            ],
        )

    def _add_control(self, variable: int, node: Mapping[str, Any], block: int | None, parent: int, body: str) -> int:
        entry = self._member(variable, node)
        at = -1 if block is None else block
        item = next((i for v in node["outputs"] if v and (i := self._writers.get((at, v, ""))) is not None), None)
        unit = self._add("control", entry["name"], entry["op"], parent, body, members=[entry], variables=[variable])
        bodies = {} if item is None else self._items[item]["bodies"]
        if item is not None:
            self.nodes[unit] |= {"steps": [item], "routine": self._items[item]["routine"]}
        self.nodes[unit]["attributes"] = _attributes(node["attrs"])
        for name, graph in node["bodies"].items():
            self.add(graph, block=bodies.get(name), parent=unit, body=name)
        return unit

    def _member(self, variable: int, node: Mapping[str, Any]) -> dict[str, Any]:
        of = self._variables[variable]
        name = of["name"] or next((v for v in node["outputs"] if v), "")
        return {"name": name, "op": of["op"], "label": of["op"] + _clamp(node["attrs"]), "variable": variable}


def divide(drawing: Mapping[str, Any], first: int, last: int, parent: int, body: str) -> None:
    """Cut one graph's nodes, in the order in which they run, where few values pass from before to behind."""
    nodes, blocks = drawing["nodes"], drawing["blocks"]
    own = [n["id"] for n in nodes[first:last] if (n["parent"], n["body"]) == (parent, body)]
    own = [i for i in own if nodes[i]["kind"] not in ("input", "argument")]
    if len(own) <= (_WHOLE_NODES if parent < 0 else _WHOLE_BODY_NODES):
        return
    first_block = len(blocks)
    for begin, end in _cuts(own, drawing["edges"]):
        members = own[begin:end]
        number = len(blocks)
        for i in members:
            nodes[i]["block"] = number
        named = [nodes[i]["name"] for i in members if nodes[i]["kind"] != "conversion"]
        block = {"id": number, "name": _shared_name(named or [nodes[members[0]]["name"]]), "nodes": members}
        blocks.append(block | {"parent": parent, "body": body})
    _tell_apart(blocks[first_block:])


def _cuts(own: Sequence[int], edges: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Ranges that cover all: short of `_BLOCK_NODES`, the fewest values passing between them."""
    place = {node: i for i, node in enumerate(own)}
    reach: dict[tuple[int, str, str], tuple[int, int]] = {}  # a value as one reader gets it -> from, to the last reader
    for e in edges:
        if e["from"] in place and e["to"] in place:
            key = (e["from"], e["value"], e["schema"])
            begin, end = place[e["from"]], place[e["to"]]
            reach[key] = begin, max(end, reach.get(key, (begin, end))[1])
    crossing = [0] * (len(own) + 1)
    for begin, end in reach.values():
        for cut in range(begin + 1, end + 1):
            crossing[cut] += 1
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(own) + 1):
        options = []
        for begin in range(max(0, end - _BLOCK_NODES), end):
            size = (end - begin) / _BLOCK_NODES
            cost = best[begin][0] + 2.0 + 3 * (crossing[end] - 1 if end < len(own) else 0) + (1 - size) ** 2
            options.append((cost, begin))
        best.append(min(options))
    ranges = []
    end = len(own)
    while end > 0:
        begin = best[end][1]
        ranges.append((begin, end))
        end = begin
    return ranges[::-1]


def _shared_name(names: Sequence[str]) -> str:
    """The folder that most of the names lie in, or from the first to the last."""
    counts: dict[str, int] = {}
    for name in names:
        parts = re.split(r"(?<=[/.])", name)
        for depth in range(1, len(parts)):
            folder = "".join(parts[:depth])
            if folder.strip("/."):
                counts[folder] = counts.get(folder, 0) + 1
    enough = [f for f, n in counts.items() if n >= 0.6 * len(names)]
    if enough:
        return max(enough, key=len).rstrip("/.")
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _tell_apart(blocks: Sequence[dict[str, Any]]) -> None:
    """Number the blocks of one name."""
    counts = collections.Counter(b["name"] for b in blocks)
    seen: collections.Counter[str] = collections.Counter()
    for block in blocks:
        name = block["name"]
        if counts[name] > 1:
            seen[name] += 1
            block["name"] = f"{name} ({seen[name]} of {counts[name]})"


def _clamp(attributes: Mapping[str, Any]) -> str:
    if "clamp_min" not in attributes and "clamp_max" not in attributes:
        return ""
    lo, hi = attributes.get("clamp_min", -math.inf), attributes.get("clamp_max", math.inf)
    if lo == 0 and hi in (6, math.inf):
        return " + Relu6" if hi == 6 else " + Relu"
    return " + Clip"


def _attributes(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Attributes as text, long ones cut."""
    texts = {name: str(value) for name, value in attributes.items()}
    return {name: text if len(text) <= 200 else text[:200] + " …" for name, text in texts.items()}

"""Why a node is wrong: what of its compilation, changed alone, makes it right again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neo.accuracy.exact import ExactGraph
from neo.accuracy.names import ModelNode
from neo.accuracy.observed import Observed, observe
from neo.accuracy.subject import Alternative, Subject
from neo.accuracy.survey import known_values, local_errors
from neo.frontend.onnx.load import load_model

__all__ = ["Cause", "find_cause", "first_wrong_step", "model_difference"]

_MAX_ALTERNATIVES = 6
_NARROW = ("float16", "bfloat16", "float8", "int8", "uint8", "qint8", "int4", "uint4")


@dataclass(frozen=True)
class Cause:
    """What makes a node wrong.

    Attributes
    ----------
    kind : {"model", "precision", "algorithm", "fusion", "layout", "rewriting", "operator"}
    text : str
        In words.
    pin : dict of str to str
        What to give ``neo.compile(routines=...)``; empty where no pin helps.
    alternative : Alternative or None
        The module with that pin.
    """

    kind: str
    text: str
    pin: dict[str, str] = field(default_factory=dict)
    alternative: Alternative | None = None


def find_cause(subject: Subject, value: str, run: Observed, feeds: Mapping[str, Any]) -> Cause:
    """Find what makes a value wrong that the model itself does not make so, by changing one thing at a time.

    Parameters
    ----------
    subject : Subject
        What is checked.
    value : str
        The first value of the run that is wrong.
    run : Observed
        The run.
    feeds : mapping of arrays
        Its inputs.
    """
    wrong = first_wrong_step(subject, value, run)
    if wrong is None:
        return Cause("rewriting", "the passes before selection changed what is computed")
    graph, everything = subject.compiled, run.everything
    segment = graph.segment(wrong, everything)
    moved = [name for index in segment for name in graph.inputs[index] if name in run.changed]
    if moved:
        return Cause("layout", f"the conversion {run.changed[moved[0]]} changes elements of {moved[0]!r}")
    variable = subject.variable_of(wrong)
    if variable is None or "routine" not in subject.chosen(subject.executing(variable)):
        return Cause("operator", "no routine is chosen for this node: it is control flow or a view")
    return _other_routines(subject, wrong, subject.executing(variable), feeds)


def first_wrong_step(subject: Subject, value: str, run: Observed) -> str | None:
    """The first value, up to this one, that a step of the plan made wrong of what it read.

    Passes may put values between two of the model's own; None where every step is right.
    """
    graph = subject.compiled
    if value not in graph.producer:
        return None
    behind = graph.segment(value, known_values(subject.own, run.values))
    everything = run.everything
    names = [name for index in behind for name in graph.outputs[index] if name in everything]
    errors = local_errors(graph, everything, names)
    return next((name for name in names if name in errors and errors[name][0].bad), None)


def _base(routine: str) -> str:
    return routine.split("{")[0]


def _other_routines(subject: Subject, value: str, variable: int, feeds: Mapping[str, Any]) -> Cause:
    trusted = subject.compiled
    chosen = subject.chosen(variable)
    routine, members = _base(chosen["expansion"] if "expansion" in chosen else chosen["routine"]), list(chosen["nodes"])
    choices = subject.variables[variable]["choices"]
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for i, entry in enumerate(choices):
        if "routine" not in entry:
            continue
        groups.setdefault((_base(entry["routine"]), tuple(entry["nodes"])), []).append(i)
    same = groups.pop((routine, tuple(members)), [])
    # The routine itself in other layouts, or with another schedule.
    layouts = [
        i for i in same if choices[i]["inputs"] != chosen["inputs"] or choices[i]["outputs"] != chosen["outputs"]
    ]

    # One thing at a time: another routine for the same nodes, then the nodes one by one.
    def change(item: tuple[tuple[str, tuple[str, ...]], list[int]]) -> tuple[bool, float]:
        (_, nodes), indices = item
        return list(nodes) != members, min(choices[i]["time_us"] for i in indices)

    ordered = sorted(groups.items(), key=change)
    last = [item for item in ordered[_MAX_ALTERNATIVES:] if item[0][0] == "cpu/reference"]
    for (name, nodes), allowed in [*ordered[:_MAX_ALTERNATIVES], *last]:
        other = subject.restricted({variable: allowed})
        if other is None or not _mends(trusted, value, other, feeds):
            continue
        routines = _routines(subject, members, other)
        is_split = list(nodes) != members
        kind = "fusion" if is_split and routine in routines.values() else _kind(routine)
        together = f" together with {', '.join(m for m in members[:-1] if m)}" if any(members[:-1]) else ""
        right = ", ".join(f"{r} of {m}" for m, r in routines.items() if m) if is_split else name
        text = f"{chosen['routine']} computes it{together}; {right} {'are' if right.count(' of ') > 1 else 'is'} right"
        pin = _pin(subject, variable, routines)
        return Cause(kind, text if pin else f"{text}; a node without a name cannot be pinned", pin, other)
    if layouts:
        other = subject.restricted({variable: layouts})
        if other is not None and _mends(trusted, value, other, feeds):
            text = f"{routine} is wrong from {_schemas(chosen)}, and right from {_schemas(choices[layouts[0]])}"
            return Cause("layout", text, {}, other)
    return Cause("operator", f"every routine that was tried gives it, {chosen['routine']} as well as the others")


def _schemas(entry: Mapping[str, Any]) -> str:
    return f"{', '.join(s for s in entry['inputs'] if s)} to {', '.join(entry['outputs'])}"


def _kind(routine: str) -> str:
    parts = routine.partition("/")[0].split(":")
    return "precision" if len(parts) > 1 and parts[1].startswith(_NARROW) else "algorithm"


def _mends(trusted: ExactGraph, value: str, other: Alternative, feeds: Mapping[str, Any]) -> bool:
    run = observe(other.native, feeds)
    errors = local_errors(trusted, run.values, [value])
    return value in errors and not errors[value][0].bad


def _routines(subject: Subject, members: Sequence[str], other: Alternative) -> dict[str, str]:
    """The routine of each node of a group in the other module, where a node is not part of another group."""
    index = {node["name"]: i for i, node in enumerate(subject.variables)}
    entries = {member: subject.chosen(index[member], other.choice) for member in members if member in index}
    return {member: _base(entry["routine"]) for member, entry in entries.items() if "routine" in entry}


def _pin(subject: Subject, variable: int, routines: Mapping[str, str]) -> dict[str, str]:
    """What makes ``neo.compile`` choose these routines; empty where a node has no name to pin it by."""
    root = subject.variables[variable]["name"]
    if not root or root not in routines:
        return {}
    if routines[root] != _base(subject.chosen(variable)["routine"]):
        return {root: routines[root]}
    return {name: routine for name, routine in routines.items() if name}


def model_difference(own: Any, trusted: Any, node: ModelNode) -> Cause:
    """In what a node of the model differs from the node of the trusted one that makes the same value."""
    from onnx import numpy_helper

    protos = [load_model(m, whole=True).proto.graph for m in (own, trusted)]
    nodes = [next((n for n in g.node if node.outputs[0] in n.output), None) for g in protos]
    mine, theirs = nodes
    if mine is None or theirs is None or mine.op_type != theirs.op_type:
        narrow = next((t for t in ("float16", "bfloat16") if mine is not None and _casts(protos[0], mine, t)), None)
        if narrow:
            return Cause("precision", f"the model computes it in {narrow}")
        return Cause("model", f"the model computes it by {'nothing' if mine is None else mine.op_type}")
    stored = [{t.name: t for t in g.initializer} for g in protos]
    for graph, tensors in zip(protos, stored, strict=True):
        tensors.update(
            {n.output[0]: a.t for n in graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}
        )
    for name in _weights_behind(protos[1], theirs, stored[1]):
        if name in stored[0]:
            a, b = (numpy_helper.to_array(tensors[name]) for tensors in stored)
            if a.shape == b.shape and not np.array_equal(a, b):
                return _weights_difference(name, a, b)
    attributes = [{a.name: a.SerializeToString() for a in n.attribute} for n in (mine, theirs)]
    different = sorted(
        k for k in attributes[0].keys() | attributes[1].keys() if attributes[0].get(k) != attributes[1].get(k)
    )
    if different:
        return Cause("model", f"attributes differ: {', '.join(different)}")
    return Cause("model", "the node reads other values than in the trusted model")


def _weights_behind(graph: Any, node: Any, stored: Mapping[str, Any]) -> list[str]:
    """The weights that a node reads, those that only nodes of constants lie between included."""
    makers = {name: n for n in graph.node for name in n.output}

    def weights(name: str, depth: int) -> list[str] | None:
        if name in stored:
            return [name]
        maker = makers.get(name)
        if maker is None or depth == 0:
            return None
        found: list[str] = []
        for source in maker.input:
            behind = weights(source, depth - 1) if source else []
            if behind is None:
                return None
            found += behind
        return found

    return [found for name in node.input if name for found in weights(name, 4) or ()]


def _casts(graph: Any, node: Any, dtype: str) -> bool:
    """Whether a node's result comes out of one that computes in a narrow dtype."""
    import onnx

    makers = {name: n for n in graph.node for name in n.output}
    wanted = {"float16": onnx.TensorProto.FLOAT16, "bfloat16": onnx.TensorProto.BFLOAT16}[dtype]
    source = makers.get(node.input[0]) if node.op_type == "Cast" and node.input else None
    feeding = [makers[name] for name in (source.input if source is not None else []) if name in makers]
    return any(n.op_type == "Cast" and any(a.i == wanted for a in n.attribute if a.name == "to") for n in feeding)


def _weights_difference(name: str, found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> Cause:
    if expected.dtype == np.float32:
        import ml_dtypes

        for dtype, text in ((np.dtype(np.float16), "float16"), (np.dtype(ml_dtypes.bfloat16), "bfloat16")):
            with np.errstate(over="ignore"):
                if np.array_equal(expected.astype(dtype).astype(np.float32), found):
                    return Cause("precision", f"{name!r} is rounded to {text}")
    different = found != expected
    position = tuple(int(i) for i in np.argwhere(different)[0])
    count = int(np.count_nonzero(different))
    return Cause(
        "model",
        f"{count} of {expected.size} elements of {name!r} differ. "
        f"Got {found[position]}, expected {expected[position]} - at {list(position)}",
    )

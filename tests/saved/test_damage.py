"""Files that lie: each damage is refused by the rule that it breaks, and none crashes the process."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import neo
import numpy as np
import pytest

from tests.saved.parts import MODELS, Parts, join


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("saved")
    files = {}
    for name, model in MODELS.items():
        neo.compile(model, threads=2).save(folder / name)
        files[name] = (folder / name).read_bytes()
    return files


def block(parts: Parts, number: int = 0) -> dict[str, Any]:
    return parts.plan["blocks"][number]


def items(parts: Parts, number: int = 0) -> list[dict[str, Any]]:
    return [item for region in block(parts, number)["regions"] for item in region["items"]]


def step(parts: Parts, routine: str = "", number: int = 0) -> dict[str, Any]:
    """The first step of the block whose routine begins so."""
    return next(i for i in items(parts, number) if i["kind"] == "step" and i["routine"].startswith(routine))


def slot_of(parts: Parts, storage: str, number: int = 0) -> tuple[int, dict[str, Any]]:
    return next((i, s) for i, s in enumerate(block(parts, number)["slots"]) if s["storage"] == storage)


def loop(parts: Parts) -> dict[str, Any]:
    return next(i for i in items(parts) if i["kind"] == "loop")


def set_at(target: Any, key: Any, value: Any) -> None:
    target[key] = value


# Model, rule of the message, damage.
Damage = Callable[[Parts], object]
PLANS: list[tuple[str, str, Damage]] = [
    ("network", "must be a plan|have its members", lambda p: p.plan.pop("blocks")),
    ("network", "must have a block", lambda p: set_at(p.plan, "blocks", [])),
    ("network", "must be a known one", lambda p: set_at(p.plan["target"], "isa", "mmx")),
    ("network", "figure must be positive", lambda p: set_at(p.plan["target"], "l2_gbps", 0)),
    ("network", "lie in its range", lambda p: set_at(p.plan["target"], "threads", 10**6)),
    ("network", "name its inputs", lambda p: p.plan["inputs"].append("z")),
    ("network", "slot must be one of its block", lambda p: set_at(block(p)["results"], 0, 99999)),
    ("network", "argument must have an argument's slot", lambda p: set_at(block(p)["arguments"], 0, 1)),
    ("network", "given once", lambda p: block(p)["arguments"].append(block(p)["arguments"][0])),
    ("network", "must be handed out", lambda p: set_at(block(p), "results", block(p)["arguments"])),
    ("network", "a view must be|circle", lambda p: set_at(slot_of(p, "view")[1], "base", slot_of(p, "view")[0])),
    ("network", "dtype of its base", lambda p: set_at(slot_of(p, "view")[1], "type", "float64[N,16,12,12]")),
    ("network", "layout of a slot must have its rank", lambda p: set_at(slot_of(p, "arena")[1], "layout", "NCW")),
    ("network", "block of a layout", lambda p: set_at(slot_of(p, "arena")[1], "layout", "NCHW99999c")),
    ("network", "written before it is read", lambda p: set_at(step(p)["reads"], 0, step(p)["writes"][0])),
    ("network", "write to memory of its block", lambda p: set_at(step(p)["writes"], 0, step(p)["reads"][0])),
    ("network", "slot for every operand", lambda p: step(p)["reads"].append(0)),
    ("network", "routines that this neo has", lambda p: set_at(step(p)["spec"], "routine", "cpu:float32/magic")),
    ("network", "does not end in that operator", lambda p: set_at(step(p)["spec"], "routine", "cpu/gather")),
    ("network", "offer that candidate", lambda p: set_at(step(p)["spec"], "schedule", {"oc_bn": 10**9})),
    ("network", "offer that candidate", lambda p: set_at(step(p)["spec"], "outputs", ["cpu:float32:NHWC"])),
    ("network", "blob for every constant", lambda p: set_at(step(p)["spec"], "packed", [])),
    (
        "network",
        "size that its routine wants",
        lambda p: set_at(step(p)["spec"]["packed"][0], 2, step(p)["spec"]["packed"][0][2] - 1),
    ),
    ("network", "take every packed blob", lambda p: step(p)["spec"]["packed"].append([-1, "float32", 0])),
    ("network", "lie in its range", lambda p: set_at(step(p)["spec"]["packed"][0], 0, 10**6)),
    ("network", "at most .* elements", lambda p: step(p)["spec"]["packed"][0].extend([2**40, 2**40])),
    ("network", "fill its blob", lambda p: set_at(step(p)["spec"]["packed"][0], 2, 2**20)),
    ("network", "all values that a call may give", lambda p: set_at(p.plan["symbols"][0], 2, 4)),
    ("network", "must be of a symbol", lambda p: set_at(block(p)["regions"][0]["sources"][0], 0, "Z")),
    ("network", "read off an argument", lambda p: set_at(block(p)["regions"][0]["sources"][0], 4, 9)),
    ("network", "symbols must differ", lambda p: p.plan["symbols"].append(p.plan["symbols"][0])),
    ("network", "nested|at most .* levels|[Gg]ot", lambda p: set_at(step(p), "flops", "(" * 5000 + "1" + ")" * 5000)),
    ("control", "body of one item", lambda p: set_at(loop(p), "body", items(p)[0].get("then", 1))),
    ("control", "lie in its range", lambda p: set_at(loop(p), "body", 0)),
    ("control", "what its loop hands over", lambda p: loop(p)["carried"].append(loop(p)["carried"][0])),
    ("control", "must have an axis", lambda p: loop(p)["scanned"].append(loop(p)["carried"][0])),
    ("control", "slot of its own", lambda p: set_at(loop(p)["results"], 0, block(p)["results"][0])),
    ("control", "must be of a known kind", lambda p: set_at(loop(p), "kind", "goto")),
    ("control", "body of an item", lambda p: p.plan["blocks"].append(p.plan["blocks"][-1])),
    ("words", "have no planned memory", lambda p: set_at(slot_of(p, "owned")[1], "storage", "arena")),
    ("words", "hold what its step takes", lambda p: set_at(slot_of(p, "argument")[1], "type", "int64[N]")),
]


@pytest.mark.parametrize(("model", "rule", "damage"), PLANS)
def test_a_plan_that_lies_is_refused(saved: dict[str, bytes], model: str, rule: str, damage: Damage) -> None:
    parts = Parts.of(saved[model])
    damage(parts)
    with pytest.raises(neo.ModelError, match=rule) as caught:
        neo.load(parts.join())
    assert not isinstance(caught.value, neo.InternalError)


def test_a_step_that_writes_over_its_input_is_refused(saved: dict[str, bytes]) -> None:
    parts = Parts.of(saved["network"])
    steps = [item for item in items(parts) if item["kind"] == "step"]
    at, depthwise = next((i, s) for i, s in enumerate(steps) if "depthwise" in s["routine"])
    (source, *_), (target,) = depthwise["reads"], depthwise["writes"]
    depthwise["writes"] = [source]
    for later in steps[at + 1 :]:
        later["reads"] = [source if slot == target else slot for slot in later["reads"]]
    for slot in block(parts)["slots"]:
        if slot.get("base") == target:
            slot["base"] = source
    x = np.zeros((1, 3, 12, 12), np.float32)
    with pytest.raises(neo.ModelError, match="a step must not write over what it reads"):
        neo.load(parts.join())(x)


def header(change: Callable[[dict[str, Any]], object]) -> Callable[[Parts], bytes]:
    def damaged(parts: Parts) -> bytes:
        change(parts.header)
        return join(parts.header, parts.data)

    return damaged


FILES: list[tuple[str, Callable[[Parts], bytes]]] = [
    ("begin with the length", lambda p: b""),
    ("begin with the length", lambda p: b"\x00" * 7),
    ("must lie in the file", lambda p: struct.pack("<Q", 2**64 - 1) + p.join()[8:]),
    ("must lie in the file", lambda p: struct.pack("<Q", len(p.join())) + p.join()[8:]),
    ("begin at a multiple", lambda p: struct.pack("<Q", 64) + p.join()[8:]),
    ("must be JSON", lambda p: struct.pack("<Q", 56) + b"{" * 56 + p.data),
    ("nest at most", lambda p: struct.pack("<Q", 1016) + b"[" * 1016 + p.data),
    ("must be JSON", lambda p: struct.pack("<Q", 56) + b'{"\xff": 1}'.ljust(56) + p.data),
    ("keys must differ", lambda p: struct.pack("<Q", 56) + b'{"a": 1, "a": 2}'.ljust(56) + p.data),
    ("end with its last blob", lambda p: p.join() + b"\x00" * 64),
    ("must hold all its blobs.*cut short", lambda p: p.join()[:-64]),
    ("have its members", header(lambda h: h.pop("__metadata__"))),
    ("must have the entry", header(lambda h: h["__metadata__"].pop("neo.plan"))),
    ("format that this neo reads", header(lambda h: set_at(h["__metadata__"], "neo.format", "99"))),
    ("signature", header(lambda h: set_at(h["__metadata__"], "neo.signature", "[]"))),
    ("signature", header(lambda h: set_at(h["__metadata__"], "neo.signature", "[" * 100000))),
    ("of its kind", header(lambda h: set_at(h["__metadata__"], "neo.plan", 3))),
    ("named by their number", header(lambda h: set_at(h, "01", h.pop("1")))),
    ("dtype of a blob", header(lambda h: set_at(h["0"], "dtype", "F7"))),
    ("size of a blob|lie in its range", header(lambda h: set_at(h["0"], "shape", [2**40, 2**40]))),
    ("what its shape says", header(lambda h: set_at(h["0"], "shape", [1]))),
    ("lie in its range", header(lambda h: set_at(h["0"], "data_offsets", [-64, 0]))),
    ("must hold all its blobs|lie in its range", header(lambda h: set_at(h["0"], "data_offsets", [0, 2**62]))),
    ("follow each other", header(lambda h: set_at(h, "1", h["0"]))),
    ("two offsets", header(lambda h: set_at(h["0"], "data_offsets", [0]))),
]


@pytest.mark.parametrize(("rule", "damage"), FILES)
def test_a_file_that_lies_is_refused(saved: dict[str, bytes], rule: str, damage: Callable[[Parts], bytes]) -> None:
    with pytest.raises(neo.ModelError, match=rule):
        neo.load(damage(Parts.of(saved["network"])))


def test_the_message_names_the_file(saved: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "broken.neo"
    path.write_bytes(saved["network"][:-1])
    with pytest.raises(neo.ModelError, match=r" - at .*broken\.neo"):
        neo.load(path)

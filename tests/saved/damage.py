"""Damages a saved module in every place of its plan and header, loads and runs what loads: run as a script.

``python -m tests.saved.damage FILE MODEL SEED`` prints a line of counts; a crash of the process is the failure.
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo

from tests.saved.parts import Parts, feeds_of, join

_INTS = (-1, 0, 1, 2, 7, 10**6, 2**31, 2**62, -(2**63), 2**64, 0.5, "1", None, [], True)
_TEXTS = (
    "",
    "x",
    "float32[1]",
    "int64[*]",
    "float32[70368744177664]",
    "N",
    "-1",
    "cpu:float32:NCHW",
    3,
    None,
    "\x00\xff",
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value below a JSON value."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def damages(tree: Any, path: tuple[Any, ...], chance: random.Random) -> Iterator[Any]:
    """Yield copies of a tree with another value in one place."""
    value = at(tree, path)
    others: list[Any] = list(_INTS if isinstance(value, bool | int | float) else _TEXTS)
    if isinstance(value, bool):
        others.append(not value)
    elif isinstance(value, int):
        others += [value + 1, value - 1, value * 2, value * 64]
    elif isinstance(value, str):
        others += [value[:-1], value + "1", value.replace("1", "9"), value.replace("N", "4"), value[1:]]
        others += [value.replace("float32", "int64"), value.replace("16", "8"), "arena", "view", "owned", "result"]
    elif isinstance(value, list):
        others = [[], value[:-1], value[1:], value + value, value[::-1], {}, None, [[]]]
    elif isinstance(value, dict):
        others = [{}, [], None, {**value, "extra": 1}]
    for other in chance.sample(others, min(len(others), 5)):
        damaged = copy.deepcopy(tree)
        at(damaged, path[:-1])[path[-1]] = other
        yield damaged
    damaged = copy.deepcopy(tree)
    del at(damaged, path[:-1])[path[-1]]
    yield damaged
    # Another value of the same kind from elsewhere in the tree.
    twin = at(tree, chance.choice([p for p in places(tree) if type(at(tree, p)) is type(value)]))
    damaged = copy.deepcopy(tree)
    at(damaged, path[:-1])[path[-1]] = copy.deepcopy(twin)
    yield damaged


def files(whole: bytes, seed: int, limit: int) -> Iterator[bytes]:
    """Yield damaged files: plan, header, and the bytes themselves."""
    chance = random.Random(seed)
    parts = Parts.of(whole)
    for path in chance.sample(list(places(parts.plan)), min(limit, len(list(places(parts.plan))))):
        for plan in damages(parts.plan, path, chance):
            yield Parts(parts.header, plan, parts.data).join()
    # The plan is one string of the header: left as it is here.
    for path in places(parts.header):
        if path[-1] == "neo.plan":
            continue
        for header in damages(parts.header, path, chance):
            if isinstance(header, dict):
                yield join(header, parts.data)
    for _ in range(limit):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3, 20))):
            damaged[chance.randrange(min(len(damaged), 4 * len(whole) // 5))] = chance.randrange(256)
        yield bytes(damaged)
        yield whole[: chance.randrange(len(whole))]


def main(file: str, model: str, seed: int, limit: int) -> None:
    feeds = feeds_of(model)
    refused = failed = ran = 0
    for i, damaged in enumerate(files(Path(file).read_bytes(), seed, limit)):
        Path(file + ".last").write_bytes(damaged)
        try:
            module = neo.load(damaged, threads=2)
            module.explain()
        except neo.InternalError as error:
            raise AssertionError(f"damage {i} is called a bug") from error
        except neo.Error:
            refused += 1
            continue
        try:
            module.run({t.name: feeds[t.name] for t in module.inputs if t.name in feeds})
            ran += 1
        except neo.Error:
            failed += 1
    print(f"{refused} refused, {failed} failed, {ran} ran")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

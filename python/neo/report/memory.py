"""Who holds which memory from which step to which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["arena_bytes", "memory_over_steps"]

#: The place of the arena that the regions of a block share for what ends with them.
_PASSING = -1


def arena_bytes(regions: Sequence[Mapping[str, Any]]) -> int:
    """Return what all arenas of a call hold, in bytes.

    Parameters
    ----------
    regions : sequence of mapping
        Where the buffers of the regions lie.
    """
    return _arena_bases(regions)[1]


def _arenas_of(region: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Place and bytes of each arena that a region uses."""
    passing = (_PASSING, region["passing_bytes"])
    return [passing] if region["place"] == _PASSING else [passing, (region["place"], region["kept_bytes"])]


def _arena_bases(regions: Sequence[Mapping[str, Any]]) -> tuple[dict[tuple[int, int], int], int]:
    """Where each arena begins if they lie one behind the other, by block and place, and where the last one ends."""
    sizes: dict[tuple[int, int], int] = {}
    for region in regions:
        for place, size in _arenas_of(region):
            key = region["block"], place
            sizes[key] = max(sizes.get(key, 0), size)
    bases, end = {}, 0
    for key in sorted(sizes):
        bases[key] = end
        end += sizes[key]
    return bases, end


def memory_over_steps(
    plan: Mapping[str, Any], regions: Sequence[Mapping[str, Any]], packed_bytes: float
) -> dict[str, Any]:
    """Buffers with their place, size and lifetime in steps, as plain data (docs/profiling.md).

    Parameters
    ----------
    plan : mapping
        Blocks and items.
    regions : sequence of mapping
        Where the buffers of the regions that ran lie.
    packed_bytes : float
        Weights packed by the chosen routines.
    """
    items, blocks = plan["items"], plan["blocks"]
    ends = _last_nested(items)
    last_step = len(items) - 1
    uses = _uses(plan, ends)
    buffers: list[dict[str, Any]] = []
    arenas: list[dict[str, Any]] = []
    sizes: dict[tuple[int, int], int] = {}
    bases, end = _arena_bases(regions)
    scratch: dict[int, int] = {}
    for region in sorted(regions, key=lambda r: (r["block"], r["region"])):
        number = region["block"]
        own = [i for i, item in enumerate(items) if (item["block"], item["region"]) == (number, region["region"])]
        if not own:
            continue
        sizes |= {(number, slot): n for slot, n in region["sizes"].items()}
        scratch[number] = max(scratch.get(number, 0), region["scratch_bytes"])
        for place, size in _arenas_of(region):
            arena = {"block": number, "region": region["region"], "base": bases[number, place], "bytes": size}
            arenas.append(arena | {"first": own[0], "last": max(ends[i] for i in own)})
        for slot, offset in region["offsets"].items():
            if (number, slot) not in uses:
                continue
            first, last = uses[number, slot]
            base = bases[number, region["place"] if slot in region["outliving"] else _PASSING]
            if slot in blocks[number]["results"]:
                last = max(ends[i] for i in own)
            buffers.append(
                {
                    "name": blocks[number]["slots"][slot]["name"],
                    "type": blocks[number]["slots"][slot]["type"],
                    "layout": blocks[number]["slots"][slot]["layout"],
                    "writer": first,
                    "first": first,
                    "last": last,
                    "offset": base + offset,
                    "bytes": region["sizes"].get(slot, 0),
                }
            )
    held = {"result": 0, "owned": 0}
    unknown = 0
    outputs = []
    for number, block in enumerate(blocks):
        for index, slot in enumerate(block["slots"]):
            if slot["storage"] not in held or (number, index) not in uses:
                continue
            known = sizes.get((number, index))
            unknown += known is None
            held[slot["storage"]] += known or 0
            first, last = uses[number, index]
            if slot["storage"] == "result":
                last = last_step if number == 0 else last
            outputs.append(
                {"name": slot["name"], "type": slot["type"], "first": first, "last": last, "bytes": known}
                | {"storage": slot["storage"], "writer": first}
            )
    constants = sum(s["bytes"] for b in blocks for s in b["slots"] if s["storage"] == "constant")
    live = [0] * len(items)
    for b in buffers:
        for step in range(b["first"], b["last"] + 1):
            live[step] += b["bytes"]
    return {
        "packed_bytes": int(packed_bytes),
        "constant_bytes": constants,
        "arena_bytes": end,
        "scratch_bytes": sum(scratch.values()),
        "result_bytes": held["result"],
        "owned_bytes": held["owned"],
        "unknown_sizes": unknown,
        "unshared_bytes": sum(b["bytes"] for b in buffers),
        "arenas": arenas,
        "buffers": sorted(buffers, key=lambda b: (b["first"], b["offset"])),
        "outputs": outputs,
        "live_bytes": live,
    }


def _last_nested(items: Sequence[Mapping[str, Any]]) -> list[int]:
    """For each item the last one inside it; items are in depth-first order."""
    ends = list(range(len(items)))
    of_block: dict[int, int] = {}
    for number, item in enumerate(items):
        of_block[item["block"]] = number
    for number in range(len(items) - 1, -1, -1):
        for block in items[number]["bodies"].values():
            if block in of_block:
                ends[number] = max(ends[number], ends[of_block[block]])
    return ends


def _uses(plan: Mapping[str, Any], ends: Sequence[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """The first and the last item that touch a slot's memory, by block and slot."""
    uses: dict[tuple[int, int], tuple[int, int]] = {}
    for number, item in enumerate(plan["items"]):
        slots = plan["blocks"][item["block"]]["slots"]
        for slot in (*item["reads"], *item["writes"]):
            while slots[slot]["storage"] == "view":
                slot = slots[slot]["base"]
            first, last = uses.get((item["block"], slot), (number, number))
            uses[item["block"], slot] = min(first, number), max(last, ends[number])
    return uses

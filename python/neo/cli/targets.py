"""``neo targets``."""

from __future__ import annotations

import argparse

from neo import _native
from neo.cli.arguments import add_json, check_folder, print_json
from neo.report.table import counted, render_table

HELP = "every target and device, which run here, what each lacks"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_json(command, "them")


def run(options: argparse.Namespace) -> None:
    """Print the targets, those of devices, and the devices that are here."""
    if options.json:
        check_folder(options.json, "--json")
        found = {
            "host": f"cpu:{_native.host_isa()}",
            "threads": _native.default_threads(),
            "targets": _native.targets(),
            "device_targets": _native.device_targets(),
            "devices": _native.devices(),
        }
        print_json(options.json, found)
    if options.json == "-":
        return
    rows = [(t["name"], t["architecture"], "yes" if t["runs_here"] else "no") for t in _native.targets()]
    print(render_table(("target", "architecture", "runs here"), rows))
    print(f"cpu is cpu:{_native.host_isa()} here, {counted(_native.default_threads(), 'thread')}")
    print()
    print(render_table(("target", "device"), [(t["name"], t["summary"]) for t in _native.device_targets()]))
    devices = []
    for kind in _native.devices():
        for d in kind["devices"]:
            memory = f"{d['memory_bytes'] / 2**30:.1f} GiB"
            devices.append(
                (kind["kind"], d["name"], d["platform"].split("  ")[0], memory, ", ".join(d["lacks"]) or "nothing")
            )
        if not kind["devices"]:
            devices.append((kind["kind"], "none", "", "", kind["missing"].split("\n")[0]))
    print()
    print(render_table(("kind", "device", "driver", "memory", "lacks"), devices))

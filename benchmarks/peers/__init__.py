"""The engines of the tables: those of ``neo.bench``, neo tuned, and PyTorch, which needs the source of a network."""

from __future__ import annotations

from pathlib import Path

from neo.bench import ENGINES as INSTALLED
from neo.bench import Engine

#: Engines that are neo; all others are its peers.
OURS = ("neo", "neo-tuned")

ENGINES: dict[str, Engine] = {
    "neo": INSTALLED["neo"],
    "neo-tuned": Engine(INSTALLED["neo"].adapter, {"tune": True}),
    **{name: engine for name, engine in INSTALLED.items() if name != "neo"},
    "torch": Engine(Path(__file__).with_name("torch.py")),
}

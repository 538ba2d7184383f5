"""One adapter per engine, and the table of them.

An adapter is a file with

- ``version() -> str``: import the engine; its name, version and the settings that matter;
- ``convert(task)``, only where the engine does not read ONNX: write its own files into ``task.cache``;
- ``load(task) -> (arrange, run)``: prepare the model. ``arrange(feeds)`` gives arrays by the model's names the form
  that the engine takes, and is not timed; ``run(arranged) -> list of arrays`` computes the outputs in the model's order.

A worker process imports it by its path, perhaps with another interpreter, so it imports nothing of neo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["ENGINES", "Engine"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Engine:
    """An adapter and how it is asked to work.

    Attributes
    ----------
    adapter : Path
        The file.
    options : mapping
        The task's options: for neo, arguments of ``neo.compile``.
    """

    adapter: Path
    options: Mapping[str, Any] = field(default_factory=dict)


ENGINES: dict[str, Engine] = {
    name: Engine(_FOLDER / f"{name}.py") for name in ("neo", "ort", "openvino", "ncnn", "mnn", "litert")
}

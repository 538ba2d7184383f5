"""The models of each table, with what they are fed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks.models import branches, networks, small_networks, tables

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class Entry:
    """A model of a suite; ``prepare(cache)`` gives its file and inputs, and may take a while the first time."""

    name: str
    prepare: Callable[[Path], tuple[Path, Feeds]]
    network: str | None = None
    tflite: Path | None = None


def _network(network: networks.Network) -> Entry:
    def prepare(cache: Path) -> tuple[Path, Feeds]:
        rng = np.random.default_rng(zlib.crc32(network.name.encode()))
        return networks.export(network.name, cache), {"x": rng.standard_normal(network.shape, dtype=np.float32)}

    return Entry(network.name, prepare, network=network.name)


# Float TFLite files that hold the same model as the ONNX file.
_TFLITE = {
    "basic-pitch": "basic-pitch/nmp.tflite",
    "kws-dscnn": "kws-dscnn/kws_ref_model_float32.tflite",
    "resnet8": "resnet8-cifar10/pretrainedResnet.tflite",
}


def _zoo() -> list[Entry]:
    from tests.models import inputs, zoo

    def entry(model: zoo.Model) -> Entry:
        def prepare(cache: Path) -> tuple[Path, Feeds]:
            feeds = model.cases()[0].feeds
            if model.kind != "light":
                return model.path, feeds
            path = cache / f"{model.name}.onnx"
            if not path.exists():
                cache.mkdir(parents=True, exist_ok=True)
                source = zoo.load(model)
                assert isinstance(source, bytes)
                path.with_suffix(".partial").write_bytes(source)
                path.with_suffix(".partial").replace(path)
            return path, feeds

        tflite = inputs.models_folder() / _TFLITE[model.name] if model.name in _TFLITE else None
        return Entry(model.name, prepare, tflite=tflite)

    models = [model for model in zoo.MODELS if model.kind in ("float", "light") and model.onnxruntime]
    return [entry(model) for model in models if model.path.exists()]


def _written(model: onnx.ModelProto, path: Path) -> Path:
    """The path, where the model is once this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".partial").write_bytes(model.SerializeToString())
    return path.with_suffix(".partial").replace(path)


def _small() -> list[Entry]:
    def entry(kind: str, seed: int) -> Entry:
        def prepare(cache: Path) -> tuple[Path, Feeds]:
            sample = small_networks.make(kind, seed)
            return _written(sample.model, cache / f"{kind}-{seed}.onnx"), sample.feeds

        return Entry(f"{kind}-{seed}", prepare)

    return [entry(kind, seed) for kind in small_networks.KINDS for seed in range(small_networks.MEMBERS)]


def _forests() -> list[Entry]:
    def entry(table: tables.Table, rows: int) -> Entry:
        def prepare(cache: Path) -> tuple[Path, Feeds]:
            path = cache / f"{table.name}.onnx"
            return path if path.exists() else _written(table.model(), path), table.feeds(rows)

        return Entry(f"{table.name}-r{rows}", prepare)

    return [entry(table, rows) for table in tables.FORESTS if table.gives_numbers for rows in (1, 10, 1000)]


def _branches() -> list[Entry]:
    def entry(graph: branches.Branches) -> Entry:
        def prepare(cache: Path) -> tuple[Path, Feeds]:
            path = cache / f"{graph.name}.onnx"
            if not path.exists():
                cache.mkdir(parents=True, exist_ok=True)
                path.with_suffix(".partial").write_bytes(graph.model().SerializeToString())
                path.with_suffix(".partial").replace(path)
            rng = np.random.default_rng(zlib.crc32(graph.name.encode()))
            return path, {"x": rng.standard_normal(graph.shape, dtype=np.float32)}

        return Entry(graph.name, prepare)

    return [entry(graph) for graph in branches.BRANCHES]


SUITES: dict[str, tuple[str, Callable[[], list[Entry]]]] = {
    "networks": (
        "Convolutional networks, batch 1, random weights",
        lambda: [_network(network) for network in networks.NETWORKS.values() if not network.recurrent],
    ),
    "recurrent": (
        "Recurrent networks, random weights",
        lambda: [_network(network) for network in networks.NETWORKS.values() if network.recurrent],
    ),
    "zoo": ("Real float models of the shared models folder", _zoo),
    "small": ("Small networks of ten kinds that image zoos lack, random weights", _small),
    "forests": ("Ensembles of trees, 1, 10 and 1,000 rows", _forests),
    "branches": ("Graphs whose steps may run beside each other, random weights", _branches),
    "microseconds": (
        "Networks of microseconds, whole calls from Python",
        lambda: [entry for entry in _zoo() if entry.name in ("kws-dscnn", "micro-kws", "resnet8")],
    ),
}


def find_entries(suite: str, names: list[str] | None) -> list[Entry]:
    """Return the entries of a suite, all of them or the named ones.

    Parameters
    ----------
    suite : str
        A key of ``SUITES``.
    names : list of str, optional
        Names of models; one that the suite lacks is a ``ValueError`` that lists what it has.
    """
    entries = {entry.name: entry for entry in SUITES[suite][1]()}
    for name in names or []:
        if name not in entries:
            raise ValueError(
                f"no model of suite {suite!r} is called {name!r}. Got {name!r}, expected one of {sorted(entries)}"
            )
    return [entries[name] for name in names] if names else list(entries.values())

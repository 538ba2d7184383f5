"""The models of each table, with what they are fed."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks.models import (
    architectures,
    branches,
    decoders,
    encoders,
    libraries,
    networks,
    quantized,
    small_networks,
    tables,
    training,
)

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


def made(name: str, make: Callable[[], onnx.ModelProto], feed: Callable[[onnx.ModelProto], Feeds]) -> Entry:
    """An entry whose model is written once; ``feed`` takes its inputs from the model."""

    def prepare(cache: Path) -> tuple[Path, Feeds]:
        path = cache / f"{name}.onnx"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".partial").write_bytes(make().SerializeToString())
            path.with_suffix(".partial").replace(path)
        return path, feed(onnx.load(path))

    return Entry(name, prepare)


def random_feeds(model: onnx.ModelProto) -> Feeds:
    """Normal numbers, token numbers under 1,000, masks of ones; axes that are symbols have 128 elements."""
    rng = np.random.default_rng(0)
    feeds: Feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or 128 for dim in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.FLOAT:
            feeds[value.name] = rng.standard_normal(shape, dtype=np.float32)
        else:
            feeds[value.name] = np.ones(shape, np.int64) if "mask" in value.name else rng.integers(0, 1000, shape)
    return feeds


def _encoders() -> list[Entry]:
    return [made(name, make, random_feeds) for name, make in encoders.ENCODERS.items()]


def _decoders() -> list[Entry]:
    return [made(name, make, random_feeds) for name, make in decoders.DECODERS.items()]


def _quantized() -> list[Entry]:
    large = {name: case for name, case in quantized.QUANTIZED.items() if name not in quantized.SMALL}
    return [made(f"{name}-codes", case.model, random_feeds) for name, case in large.items()]


def _quantized_networks() -> list[Entry]:
    def entry(network: networks.Network) -> Entry:
        def prepare(cache: Path) -> tuple[Path, Feeds]:
            path = networks.export(network.name, cache)
            source = quantized.Network(lambda: onnx.load(path), network.shape)
            way = quantized.Static(per_channel=True)
            return made(f"{network.name}-qdq", lambda: way(source), lambda _: source.feeds(7)).prepare(cache)

        return Entry(network.name, prepare)

    return [entry(network) for network in networks.NETWORKS.values() if not network.recurrent]


def _libraries() -> list[Entry]:
    def entry(path: Path) -> Entry:
        return Entry(path.stem, lambda _: (path, random_feeds(onnx.load(path, load_external_data=False))))

    return [entry(path) for path in libraries.written(libraries.CACHE)]


def _small() -> list[Entry]:
    def entry(kind: str, seed: int) -> Entry:
        sample = functools.cache(lambda: small_networks.make(kind, seed))
        return made(f"{kind}-{seed}", lambda: sample().model, lambda _: sample().feeds)

    return [entry(kind, seed) for kind in small_networks.KINDS for seed in range(small_networks.MEMBERS)]


def _architectures() -> list[Entry]:
    def entry(kind: str, sizes: architectures.Sizes) -> Entry:
        made_once = functools.cache(lambda: architectures.make(kind, sizes))
        name = "-".join([kind, *(f"{symbol}{size}" for symbol, size in sizes.items())])
        return made(name, lambda: made_once().model, lambda _: made_once().feeds)

    return [entry(kind, sizes) for kind, (_, listed) in architectures.ARCHITECTURES.items() for sizes in listed]


def _forests() -> list[Entry]:
    def entry(table: tables.Table, rows: int) -> Entry:
        prepare = made(table.name, table.model, lambda _: table.feeds(rows)).prepare
        return Entry(f"{table.name}-r{rows}", prepare)

    return [entry(table, rows) for table in tables.FORESTS if table.gives_numbers for rows in (1, 10, 1000)]


def _branches() -> list[Entry]:
    return [made(graph.name, graph.model, random_feeds) for graph in branches.BRANCHES]


def _training() -> list[Entry]:
    def entry(iteration: training.Training) -> Entry:
        made_once = functools.cache(iteration.make)
        return made(iteration.name, lambda: made_once()[0], lambda _: made_once()[1])

    return [entry(iteration) for iteration in training.TRAINING]


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
    "encoders": ("Transformers as exporters write them, a decoder's step, a Conformer, random weights", _encoders),
    "decoders": ("Generators, decoders, vocoders: networks of transposed convolutions, random weights", _decoders),
    "quantized": ("Quantized networks: convolutions, encoders, products, by codes of 4 and 8 bits", _quantized),
    "quantized-networks": (
        "Convolutional networks quantized by ONNX Runtime's tool: 8 bits, weights by channel, QDQ",
        _quantized_networks,
    ),
    "libraries": ("The smallest model of each family of timm and transformers, random weights", _libraries),
    "small": ("Small networks of ten kinds that image zoos lack, random weights", _small),
    "architectures": ("Families of networks at sizes that a call tells, random weights", _architectures),
    "forests": ("Ensembles of trees, 1, 10 and 1,000 rows", _forests),
    "branches": ("Graphs whose steps may run beside each other, random weights", _branches),
    "training": ("Training iterations: weights in, loss and gradients out", _training),
    "microseconds": (
        "Networks of microseconds, whole calls from Python",
        lambda: [entry for entry in _zoo() if entry.name in ("kws-dscnn", "micro-kws", "resnet8")],
    ),
}

#: Suites whose products are integers: float32's peak does not bound them.
WITHOUT_LIMIT = frozenset({"quantized", "quantized-networks"})


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

"""What the models of the zoo are for: photographs to name, speech to find, notes to write down."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from . import media, zoo
from .inputs import Feeds, models_folder

# What silero-vad must answer on test.wav: its first five windows, and how many of the first 400 hold speech.
SPEECH_FIRST = (0.2083, 0.8179, 0.8912, 0.9964, 0.9992)
SPEECH_WINDOWS = 283


@dataclass(frozen=True)
class Photograph:
    """A photograph whose label is stable under small changes of the crop, and its ImageNet class (of 1000)."""

    file: str
    imagenet: int

    def label(self, model: zoo.Model) -> int:
        """Return the index that a model must find; MobileNet v1 counts the background first."""
        return self.imagenet + 1 if model.name.startswith("mobilenet-v1") else self.imagenet


PHOTOGRAPHS = (Photograph("images/cat.bmp", 285), Photograph("images/parrot.jpg", 88))
OTHER_PHOTOGRAPHS = ("images/grace_hopper.bmp", "images/kite_and_cold.jpg", "images/face.jpg")


def photograph_feeds(
    model: zoo.Model, photograph: Photograph | str, box: tuple[int, int, int, int] | None = None
) -> Feeds:
    """Return the input of one of the MobileNets for a photograph or a crop of it, squashed to the model's size."""
    file = photograph if isinstance(photograph, str) else photograph.file
    size = model.inputs[0].shapes[0][-1]
    pixels = media.photograph(models_folder() / file, size, size, box)
    if model.name.startswith("mobilenet-v1"):
        scaled = np.ascontiguousarray(((pixels - 128) / 128).transpose(2, 0, 1)[None])
    else:
        scaled = media.normalised(pixels)
    return {model.inputs[0].name: scaled}


def crops(file: str, count: int) -> list[tuple[int, int, int, int]]:
    """Return seeded boxes inside a photograph, each at least half as wide and high as the whole."""
    width, height = media.photograph_size(models_folder() / file)
    rng = np.random.default_rng(zlib.crc32(file.encode()))
    boxes = []
    for _ in range(count):
        across, down = int(width * rng.uniform(0.5, 1)), int(height * rng.uniform(0.5, 1))
        left, top = int(rng.integers(0, width - across + 1)), int(rng.integers(0, height - down + 1))
        boxes.append((left, top, left + across, top + down))
    return boxes


def transcribe(run: Callable[[Feeds], Mapping[str, np.ndarray]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Run basic-pitch over its recording and return, per matrix, what came out and what the author stored.

    The model hears 43,844 samples at 22,050 Hz; windows overlap by 30 frames of 256 samples, of which 15 are dropped
    at both ends.
    """
    folder = models_folder() / "basic-pitch"
    samples = media.halve_rate(media.recording(folder / "vocadito_10.wav"))
    size, overlap = 43844, 30 * 256
    padded = np.concatenate([np.zeros(overlap // 2, dtype=np.float32), samples])
    padded = np.pad(padded, (0, size))
    starts = range(0, len(samples) + overlap // 2, size - overlap)
    outputs = [run({"serving_default_input_2:0": padded[None, start : start + size, None]}) for start in starts]
    stored = np.load(folder / "vocadito_10_model_output.npz", allow_pickle=True)["arr_0"].item()
    names = {"contour": 0, "note": 1, "onset": 2}
    found = {}
    for name, number in names.items():
        frames = [np.asarray(output[f"StatefulPartitionedCall:{number}"])[0, 15:-15] for output in outputs]
        found[name] = (np.concatenate(frames)[: len(stored[name])], stored[name])
    return found

"""What the models of the zoo are fed: seeded draws in the range a model was made for, and the windows of streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from . import media

Feeds = dict[str, np.ndarray]
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

REPOSITORY = Path(__file__).resolve().parents[2]


def models_folder() -> Path:
    """Return the folder of the shared models; it may be absent."""
    return Path(os.environ.get("NEO_TEST_MODELS", REPOSITORY.parent / "shared" / "models"))


def picture(low: float, high: float, *, channels_last: bool = False) -> Draw:
    """Return a draw of images: patches of about a tenth of the size, a gradient and fine noise, between the limits."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        batch, *rest = shape
        channels, height, width = (rest[-1], *rest[:2]) if channels_last else rest
        cell = max(2, min(height, width) // 10)
        coarse = rng.random((batch, channels, -(-height // cell), -(-width // cell)))
        patches = coarse.repeat(cell, 2).repeat(cell, 3)[:, :, :height, :width]
        gradient = np.linspace(0, 1, height)[:, None] * np.linspace(1, 0, width)
        values = 0.6 * patches + 0.25 * gradient + 0.15 * rng.random((batch, channels, height, width))
        if channels_last:
            values = values.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(low + (high - low) * values, dtype=np.float32)

    return draw


def stored(file: str, key: str) -> Draw:
    """Return a draw of a photograph that lies in an archive of the folder, ``[1, channels, height, width]``.

    It is sampled at the size that is asked for and shifted a little by the seed; every second one of a batch is
    mirrored. A detector that sees no object answers with numbers next to zero, which say little.
    """

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        photograph = np.load(models_folder() / file)[key][0]
        batch, _, height, width = shape
        rows = (np.arange(height) * photograph.shape[1]) // height
        columns = (np.arange(width) * photograph.shape[2]) // width
        pictures = [photograph[:, rows][:, :, columns[::-1] if i % 2 else columns] for i in range(batch)]
        shifts = rng.integers(-4, 5, (batch, 2))
        return np.stack([np.roll(item, shift, (1, 2)) for item, shift in zip(pictures, shifts, strict=True)])

    return draw


def writing(low: float, high: float) -> Draw:
    """Return a draw of pages: lines of dark strokes on white, for models that look for text."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        batch, _, height, width = shape
        page = np.ones((batch, 1, height, width))
        size = max(16, min(height, width) // 12)
        for top in range(size // 2, height - size, 2 * size):
            for left in range(size, width - size, size * 3 // 4):
                if rng.random() < 0.15:
                    continue
                for sheet in page[:, 0]:
                    glyph = sheet[top : top + size, left : left + size // 2]
                    thick = max(2, size // 8)
                    bars = rng.random(5) < 0.6
                    for bar, edge in zip(bars, (0, glyph.shape[1] - thick), strict=False):
                        glyph[:, edge : edge + thick] *= 1 - bar
                    for bar, edge in zip(bars[2:], (0, (size - thick) // 2, size - thick), strict=True):
                        glyph[edge : edge + thick] *= 1 - bar
        noisy = np.clip(0.9 * page + 0.05 * rng.standard_normal(shape), 0, 1)
        return (low + (high - low) * noisy).astype(np.float32)

    return draw


def normal(scale: float = 1.0) -> Draw:
    """Return a draw of normal values."""
    return lambda rng, shape: (scale * rng.standard_normal(shape)).astype(np.float32)


def magnitudes(scale: float = 1.0) -> Draw:
    """Return a draw of positive values."""
    return lambda rng, shape: np.abs(scale * rng.standard_normal(shape)).astype(np.float32)


def zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return the state of a stream before its first window."""
    return np.zeros(shape, dtype=np.float32)


def integers(high: int, dtype: str) -> Draw:
    """Return a draw of integers from zero up to, not including, ``high``."""
    return lambda rng, shape: rng.integers(0, high, shape).astype(dtype)


def constant(value: int | Sequence[int], dtype: str) -> Draw:
    """Return a draw of one value, broadcast to the shape."""
    return lambda rng, shape: np.broadcast_to(np.asarray(value, dtype=dtype), shape).copy()


def tones(rate: float) -> Draw:
    """Return a draw of sound at ``rate`` Hz: five decaying tones and noise in each row of the first axis."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        samples = int(np.prod(shape[1:]))
        times = np.arange(samples) / rate
        sound = 0.01 * rng.standard_normal((shape[0], samples))
        for row in sound:
            for pitch in rng.uniform(80, 1200, 5):
                start = rng.uniform(0, times[-1])
                row += (
                    0.15
                    * np.sin(2 * np.pi * pitch * times)
                    * np.exp(-2 * np.maximum(times - start, 0))
                    * (times > start)
                )
        return sound.reshape(shape).astype(np.float32)

    return draw


def half(draw: Draw) -> Draw:
    """Return ``draw`` with its values rounded to float16."""
    return lambda rng, shape: draw(rng, shape).astype(np.float16)


def speech_windows(rate: int, *, with_rate: bool) -> Callable[[Path], Iterator[Feeds]]:
    """Return the windows of ``silero-vad/test.wav``: 32 ms each, behind the last 4 ms of the window before.

    The recording has 16,000 samples a second; for 8,000 it is resampled. Without the context every output is about
    0.0005.
    """

    def windows(folder: Path) -> Iterator[Feeds]:
        samples = media.recording(folder / "silero-vad" / "test.wav")
        if rate == 8000:
            samples = media.halve_rate(samples)
        size, context = rate * 32 // 1000, rate * 4 // 1000
        padded = np.concatenate([np.zeros(context, dtype=np.float32), samples])
        for start in range(0, len(samples) - size + 1, size):
            feeds: Feeds = {"input": padded[None, start : start + context + size]}
            if with_rate:
                feeds["sr"] = np.array(rate, dtype=np.int64)
            yield feeds

    return windows


def _noisy_speech(folder: Path) -> np.ndarray:
    """Return four seconds of the recording with seeded noise."""
    samples = media.recording(folder / "silero-vad" / "test.wav")[16000:80000]
    noisy: np.ndarray = samples + np.float32(0.02) * np.random.default_rng(7).standard_normal(len(samples)).astype(
        np.float32
    )
    return noisy


def dtln_magnitudes(folder: Path) -> Iterator[Feeds]:
    """Yield the magnitudes of the spectra that the first stage of DTLN filters."""
    for spectrum in media.spectra(_noisy_speech(folder), hop=128):
        yield {"input_2": np.abs(spectrum)[None, None].astype(np.float32)}


def dtln_frames(folder: Path) -> Iterator[Feeds]:
    """Yield the overlapping frames of samples that the second stage of DTLN filters."""
    samples = _noisy_speech(folder)
    for start in range(0, len(samples) - 511, 128):
        yield {"input_4": samples[None, None, start : start + 512]}


def gtcrn_frames(folder: Path) -> Iterator[Feeds]:
    """Yield the complex spectra that GTCRN filters, real and imaginary part last."""
    for spectrum in media.spectra(_noisy_speech(folder)):
        yield {"mix": np.stack([spectrum.real, spectrum.imag], -1)[None, :, None].astype(np.float32)}

"""Photographs and recordings of the shared models folder as arrays, without a resampling library."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def photograph(path: Path, height: int, width: int, box: tuple[int, int, int, int] | None = None) -> np.ndarray:
    """Return the picture squashed to the given size as float32 RGB ``[height, width, 3]``, 0 to 255.

    Parameters
    ----------
    path : Path
        A file that Pillow reads.
    height, width : int
        Size of the result; the proportions of the picture are not kept.
    box : tuple of int, optional
        Left, upper, right and lower edge of the crop to squash, in pixels (default: the whole picture).
    """
    from PIL import Image

    with Image.open(path) as picture:
        squashed = picture.convert("RGB").resize((width, height), Image.Resampling.BILINEAR, box=box)
    return np.asarray(squashed, dtype=np.float32)


def photograph_size(path: Path) -> tuple[int, int]:
    """Return the width and height of a picture, in pixels."""
    from PIL import Image

    with Image.open(path) as picture:
        width, height = picture.size
    return width, height


def normalised(picture: np.ndarray) -> np.ndarray:
    """Return ``picture`` as ImageNet networks want it: ``[1, 3, height, width]``, mean and deviation of ImageNet."""
    scaled = (picture / 255.0 - IMAGENET_MEAN) / IMAGENET_STD
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None], dtype=np.float32)


def recording(path: Path) -> np.ndarray:
    """Return a mono 16-bit WAVE file as float32 samples between -1 and 1."""
    with wave.open(str(path)) as file:
        data = file.readframes(file.getnframes())
    return np.frombuffer(data, dtype="<i2").astype(np.float32) / 32768.0


def halve_rate(samples: np.ndarray, taps: int = 63) -> np.ndarray:
    """Resample to half the rate: a windowed-sinc low pass at a quarter of the rate, then every second sample."""
    times = np.arange(taps) - taps // 2
    low_pass = np.sinc(times / 2.0) * np.hanning(taps + 2)[1:-1]
    low_pass /= low_pass.sum()
    return np.convolve(samples, low_pass, mode="same")[::2].astype(np.float32)


def spectra(samples: np.ndarray, size: int = 512, hop: int = 256) -> np.ndarray:
    """Return the short-time Fourier transform ``[frames, size // 2 + 1]`` with a square-root Hann window."""
    window = np.sqrt(np.hanning(size + 1)[:-1])
    count = (len(samples) - size) // hop + 1
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::hop][:count]
    return np.fft.rfft(frames * window, axis=1)

"""The network and the images of ``neo demo``, trained and written by ``tools/train_digits.py``.

The images are from "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI Machine Learning
Repository, 1998, CC BY 4.0).
"""

from __future__ import annotations

import io
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

__all__ = ["images", "model_bytes"]


def model_bytes() -> bytes:
    """Return the ONNX model: ``image`` float32 [N, 1, 8, 8] in 0..1 to ``probabilities`` float32 [N, 10].

    Examples
    --------
    >>> from neo import demo
    >>> len(demo.model_bytes()) < 300_000
    True
    """
    return files(__name__).joinpath("digits.onnx").read_bytes()


def images() -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return 64 handwritten digits the network was not trained on, as the model wants them, and their labels.

    Examples
    --------
    >>> from neo import demo
    >>> images, labels = demo.images()
    >>> images.shape, labels.shape
    ((64, 1, 8, 8), (64,))
    """
    with np.load(io.BytesIO(files(__name__).joinpath("digits.npz").read_bytes())) as data:
        return (data["images"][:, None] / 16).astype(np.float32), data["labels"]

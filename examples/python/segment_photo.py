"""Say what each pixel belongs to: ``python segment_photo.py MODEL.onnx PHOTO LABELS.txt [MASK.png]``.

MODEL is DeepLab v3 of TensorFlow: an image [1, height, width, 3] between -1 and 1 to scores [1, height, width, classes];
LABELS has a class on each line. Needs ``pip install pillow``.
"""

import sys
from pathlib import Path

import neo
import numpy as np
from PIL import Image


def main(model, photo, labels, mask=None):
    """Print the share of each class, and write a picture of classes."""
    module = neo.compile(model)
    _, height, width, _ = module.inputs[0].shape
    image = Image.open(photo).convert("RGB")
    x = np.asarray(image.resize((width, height)), np.float32) / 127.5 - 1
    classes = module(x[None])[0].argmax(axis=-1)
    names = [line for line in Path(labels).read_text(encoding="utf-8").splitlines() if line]
    shares = np.bincount(classes.ravel(), minlength=len(names)) / classes.size
    for i in np.argsort(-shares):
        if shares[i] > 0.005:
            print(f"{shares[i]:6.1%}  {names[i]}")
    if mask:
        colours = np.random.default_rng(1).integers(64, 256, (len(names), 3), np.uint8)
        colours[0] = 0
        Image.fromarray(colours[classes]).resize(image.size, Image.Resampling.NEAREST).save(mask)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) in (4, 5) else __doc__)

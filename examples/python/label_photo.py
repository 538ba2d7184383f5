"""Say what is on a photograph: ``python label_photo.py MODEL.onnx PHOTO LABELS.txt``.

MODEL is a classifier of ImageNet with an input [N, 3, height, width], such as MobileNet v2; LABELS has a class on each
line. Needs ``pip install pillow``.
"""

import sys
from pathlib import Path

import neo
import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def pixels(path, height, width):
    """The photograph as [1, 3, height, width], normalised as the networks of torchvision expect it."""
    image = Image.open(path).convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    x = (np.asarray(image, np.float32) / 255 - MEAN) / DEVIATION
    return x.transpose(2, 0, 1)[None]


def main(model, photo, labels):
    """Print the five likeliest classes."""
    module = neo.compile(model)
    height, width = module.inputs[0].shape[2:]
    scores = module(pixels(photo, height, width))[0]
    names = [line for line in Path(labels).read_text(encoding="utf-8").splitlines() if line]
    names = names[len(names) - len(scores) :]  # some lists begin with a class for the background
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    for i in np.argsort(-shares)[:5]:
        print(f"{shares[i]:6.1%}  {names[i]}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 4 else __doc__)

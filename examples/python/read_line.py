"""Read a line of text: ``python read_line.py MODEL.onnx PHOTO CHARACTERS.txt``.

MODEL is a recogniser of PaddleOCR: an image [1, 3, 32, any width] to scores [1, places, characters + 2], of which the
first stands for no character and the last for a blank; CHARACTERS has one on each line. Needs ``pip install pillow``.
"""

import sys
from pathlib import Path

import neo
import numpy as np
from PIL import Image

HEIGHT = 32


def main(model, photo, characters):
    """Print the line, and how sure the network is."""
    image = Image.open(photo).convert("RGB")
    width = max(HEIGHT, round(image.width * HEIGHT / image.height))
    x = np.asarray(image.resize((width, HEIGHT), Image.Resampling.BILINEAR), np.float32) / 127.5 - 1
    module = neo.compile(model)  # the width is a symbol: photographs of any length run
    scores = module(x.transpose(2, 0, 1)[None])[0]
    known = ["", *Path(characters).read_text(encoding="utf-8").split("\n")][: scores.shape[1] - 1]
    known += [" "] * (scores.shape[1] - len(known))
    best = scores.argmax(axis=1)
    # A character that goes on over several places is one; the class 0 between two equal ones parts them.
    starts = (best != 0) & (np.diff(best, prepend=0) != 0)
    print("".join(known[i] for i in best[starts]))
    print(f"{scores.max(axis=1)[starts].mean():.1%} sure" if starts.any() else "no text")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 4 else __doc__)

"""Find the boxes of faces: ``python find_faces.py MODEL.onnx PHOTO [MARKED.png]``.

MODEL is UltraFace: an image [1, 3, height, width] to scores [1, boxes, 2] and corners [1, boxes, 4], which lie between
0 and 1. Needs ``pip install pillow``.
"""

import sys

import neo
import numpy as np
from PIL import Image, ImageDraw

LEAST_SCORE = 0.7
MOST_OVERLAP = 0.3


def overlap(box, others):
    """Intersection over union of one box and many."""
    corner = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    inner = np.prod(np.clip(corner[1] - corner[0], 0, None), axis=1)
    area = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1)
    return inner / (area[0] + area[1] - inner)


def suppress(boxes, scores):
    """The likeliest boxes, none of which covers another one by much."""
    left = np.argsort(-scores)
    kept = []
    while len(left):
        kept.append(left[0])
        left = left[1:][overlap(boxes[left[0]], boxes[left[1:]]) < MOST_OVERLAP]
    return kept


def main(model, photo, marked=None):
    """Print the corners of each face in pixels, and draw them."""
    module = neo.compile(model)
    height, width = module.inputs[0].shape[2:]
    image = Image.open(photo).convert("RGB")
    x = (np.asarray(image.resize((width, height)), np.float32) - 127) / 128
    scores, boxes = module(x.transpose(2, 0, 1)[None])
    likely = scores[0, :, 1] > LEAST_SCORE
    scores, boxes = scores[0, likely, 1], boxes[0, likely] * (image.size * 2)
    draw = ImageDraw.Draw(image)
    for i in suppress(boxes, scores):
        print(f"{scores[i]:6.1%}  {' '.join(f'{n:.0f}' for n in boxes[i])}")
        draw.rectangle(tuple(boxes[i]), outline="red", width=3)
    if marked:
        image.save(marked)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) in (3, 4) else __doc__)

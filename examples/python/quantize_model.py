"""Quantize a network and see what it costs and gains: ``python quantize_model.py``.

The network and its images of handwritten digits come with neo.
"""

import statistics
import time

import neo
from neo import demo


def microseconds(module, x):
    """The median time of a call."""
    times = []
    for _ in range(200):
        begin = time.perf_counter()
        module(x)
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def main():
    """Print rows of the float model and of the quantized one."""
    images, labels = demo.images()
    quantized = neo.quantize(demo.model_bytes(), [{"image": images[:32]}])
    for name, model in (("float32", demo.model_bytes()), ("8 bits", quantized.model)):
        module = neo.compile(model)
        right = (module(images[32:]).argmax(axis=1) == labels[32:]).mean()
        kib = module.memory.constants / 1024
        print(
            f"{name}: {right:.0%} of {len(images) - 32} digits right, {kib:.0f} KiB, {microseconds(module, images):.0f} us"
        )


if __name__ == "__main__":
    main()

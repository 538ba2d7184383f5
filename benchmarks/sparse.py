"""Convolutions and products with zeros among their weights: the sparse routine beside the fastest dense one.

``python -m benchmarks.sparse --zeros 0.7,0.9 --threads 1`` prints a line for each layer of MobileNet v1, ResNet-50 and
an encoder of 128 tokens: microseconds of the step, measured and estimated, by estimates' choice among dense routines and
by the sparse one.
"""

from __future__ import annotations

import argparse
import statistics

import neo
import numpy as np
import onnx
from neo import _native
from neo.report.table import render_table
from onnx import TensorProto, helper, numpy_helper

SPARSE = ("cpu:float32/sparse_nchw", "cpu:float32/gemm_sparse")
#: Input channels, output channels and pixels along an axis of each 1x1 layer of stride one.
LAYERS = {
    "mobilenet_v1": [
        *((32, 64, 112), (64, 128, 56), (128, 128, 56), (128, 256, 28), (256, 256, 28)),
        *((256, 512, 14), (512, 512, 14), (512, 1024, 7), (1024, 1024, 7)),
    ],
    "resnet50": [
        *((64, 64, 56), (64, 256, 56), (256, 64, 56), (256, 128, 56), (128, 512, 28), (512, 128, 28)),
        *((512, 256, 28), (256, 1024, 14), (1024, 256, 14), (1024, 512, 14), (512, 2048, 7), (2048, 512, 7)),
    ],
}
#: Inputs, outputs and rows of each product.
PRODUCTS = {"bert_base": [(768, 768, 128), (768, 3072, 128), (3072, 768, 128)]}
_ROUNDS, _REPEAT = 5, 9


#: How zeros lie: anywhere, or in blocks of four outputs that have them for the same inputs.
PATTERNS = ("any", "1x4")


def _pruned(outputs: int, inputs: int, zeros: float, pattern: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((outputs, inputs)).astype(np.float32)
    height = 4 if pattern == "1x4" else 1
    keeps = np.ones((-(-outputs // height), inputs), bool)
    keeps.ravel()[rng.permutation(keeps.size)[: round(zeros * keeps.size)]] = False
    return np.where(np.repeat(keeps, height, 0)[:outputs], weight, np.float32(0))


def layer(ic: int, oc: int, size: int, zeros: float, pattern: str) -> onnx.ModelProto:
    """One convolution, so large a share of whose weights is zero."""
    weight = _pruned(oc, ic, zeros, pattern).reshape(oc, ic, 1, 1)
    return _model("Conv", [1, ic, size, size], weight, [1, oc, size, size])


def product(depth: int, columns: int, rows: int, zeros: float, pattern: str) -> onnx.ModelProto:
    """One product with a constant matrix, so large a share of which is zero."""
    weight = np.ascontiguousarray(_pruned(columns, depth, zeros, pattern).T)
    return _model("MatMul", [rows, depth], weight, [rows, columns])


def _model(op: str, x: list[int], weight: np.ndarray, y: list[int]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w"], ["y"], "layer")],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dense_routines() -> list[str]:
    """What may run a layer but for the sparse routines."""
    return [name for name in _native.routine_names() if name.startswith("cpu") and name not in SPARSE]


def measure(model: onnx.ModelProto, threads: int) -> list[tuple[float, float]]:
    """Microseconds of the layer's step, sparse and dense, and what estimates expect: the least of several rounds."""
    pins = (list(SPARSE), dense_routines())
    modules = [neo.compile(model, threads=threads, routines={"layer": routines}) for routines in pins]
    x = np.random.default_rng(0).standard_normal(modules[0].inputs[0].shape).astype(np.float32)
    best = [(float("inf"), 0.0)] * len(modules)
    for _ in range(_ROUNDS):
        for i, module in enumerate(modules):
            step = next(
                s
                for s in module.profile({"x": x}, repeat=_REPEAT).steps
                if s.node == "layer" and s.op in ("Conv", "MatMul")
            )
            best[i] = min(best[i], (step.time_us, step.estimate_us))
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--zeros", default="0.7,0.8,0.9", help="shares of zeros, separated by commas")
    parser.add_argument("--pattern", choices=PATTERNS, default=PATTERNS[0], help="zeros anywhere, or in blocks")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    rows = []
    networks = [*((name, layer, sizes) for name, sizes in LAYERS.items())]
    networks += [(name, product, sizes) for name, sizes in PRODUCTS.items()]
    for name, make, layers in networks:
        for zeros in map(float, arguments.zeros.split(",")):
            ratios = []
            for ic, oc, size in layers:
                (sparse, expected), (dense, dense_expected) = measure(
                    make(ic, oc, size, zeros, arguments.pattern), arguments.threads
                )
                ratios.append(dense / sparse)
                times = (f"{t:.0f}" for t in (sparse, expected, dense, dense_expected))
                rows.append(
                    (
                        name,
                        f"{zeros:.0%}",
                        f"{ic} {oc} {size}x{size}" if make is layer else f"{ic} {oc} {size}",
                        *times,
                        f"{ratios[-1]:.2f}",
                    )
                )
            rows.append((name, f"{zeros:.0%}", "all", "", "", "", "", f"{statistics.geometric_mean(ratios):.2f}"))
    print(
        render_table(
            ("network", "zeros", "layer", "sparse us", "estimated", "dense us", "estimated", "ratio"),
            rows,
            right=(3, 4, 5, 6, 7),
        )
    )


if __name__ == "__main__":
    main()

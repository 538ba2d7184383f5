"""Trained networks on crops of photographs: near their float selves, and alike in ONNX Runtime."""

import neo
import numpy as np
import pytest
from neo.difference import energy_ratio

from tests.models.inputs import models_folder
from tests.quantize.test_networks import run_peer

_IMAGENET = (np.float32([0.485, 0.456, 0.406]) * 255, np.float32([0.229, 0.224, 0.225]) * 255)
_CENTRED = (np.float32(128), np.float32(128))
_PLAIN = (np.float32(0), np.float32(1))

# File, size, mean and deviation, largest relative error, least agreement. Measured: 0.13 and 0.86, 0.05 and 0.95, 0.03.
_NETWORKS = {
    "mobilenet v2": ("mobilenetv2-imagenet/mobilenetv2-12-fp32-derived.onnx", 224, _IMAGENET, 0.17, 0.75),
    "mobilenet v1": ("mobilenetv1-050-imagenet/mobilenet_v1_0.5_160-fp32-derived.onnx", 160, _CENTRED, 0.12, 0.8),
    "resnet-8": ("resnet8-cifar10/resnet8-fp32-derived.onnx", 32, _PLAIN, 0.1, 0.9),
}


def crops_of(size: int, scaling, count: int) -> list[np.ndarray]:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    from benchmarks.crops import crops

    folder = models_folder() / "images"
    if not folder.exists():
        pytest.skip("the folder of the shared models is absent (set NEO_TEST_MODELS)")
    pictures = (crops(folder, (size, size), count) - scaling[0]) / scaling[1]
    return [x[None] for x in np.ascontiguousarray(pictures.transpose(0, 3, 1, 2), np.float32)]


@pytest.mark.parametrize("name", _NETWORKS)
def test_outputs_stay_near(name):
    file, size, scaling, error, agreement = _NETWORKS[name]
    pictures = crops_of(size, scaling, 60)
    path = models_folder() / file
    quantized = neo.quantize(path, (x for x in pictures[:40]), threads=2)
    module, whole = quantized.compile(), neo.compile(path, threads=2)
    found = [(module(x), whole(x), x) for x in pictures[40:]]
    assert np.sqrt(np.mean([energy_ratio(y, z) for y, z, _ in found])) < error
    assert np.mean([y.argmax() == z.argmax() for y, z, _ in found]) >= agreement
    model = quantized.model
    same = [run_peer(model, x, model.graph.input[0].name).argmax() == y.argmax() for y, _, x in found[:10]]
    assert sum(same) >= 8


def test_a_limit_on_agreement():
    file, size, scaling, *_ = _NETWORKS["resnet-8"]
    quantized = neo.quantize(models_folder() / file, crops_of(size, scaling, 40), accuracy=0.97, threads=2)
    assert not quantized.is_quantized or quantized.report.agreement >= 0.97

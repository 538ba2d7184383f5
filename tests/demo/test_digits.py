import numpy as np
import onnx
from neo import demo
from onnx.reference import ReferenceEvaluator


def test_the_network_is_a_valid_small_model_with_a_dynamic_batch():
    content = demo.model_bytes()
    assert len(content) < 300_000
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    (image,) = model.graph.input
    assert [d.dim_param or d.dim_value for d in image.type.tensor_type.shape.dim] == ["N", 1, 8, 8]
    ops = {node.op_type for node in model.graph.node}
    assert ops >= {"Conv", "BatchNormalization", "Relu", "MaxPool", "Add", "GlobalAveragePool", "Gemm", "Softmax"}


def test_the_network_knows_nearly_all_of_the_shipped_images():
    images, labels = demo.images()
    assert images.shape == (64, 1, 8, 8)
    assert images.dtype == np.float32
    assert images.min() == 0
    assert images.max() == 1
    assert set(labels) == set(range(10))
    (probabilities,) = ReferenceEvaluator(onnx.load_from_string(demo.model_bytes())).run(None, {"image": images})
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert (probabilities.argmax(1) == labels).mean() >= 0.96

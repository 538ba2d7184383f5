"""Large tensors read beside the onnx package are those it would have read; a damaged file never ends the process."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import pytest
from neo.frontend.onnx.load import load_model
from neo.frontend.onnx.wire import LARGE, split_file
from onnx import helper, numpy_helper

from tests.frontend.models import model_of, value_info

SEED = 20261
DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64")


def tensors() -> list[onnx.TensorProto]:
    random = np.random.default_rng(SEED)
    made = [numpy_helper.from_array(np.float32([1, 2]), "small")]
    for dtype in DTYPES:
        array = random.integers(0, 100, (3, 257, 131)).astype(dtype)
        made.append(numpy_helper.from_array(array, f"large_{dtype}"))
        made.append(numpy_helper.from_array(array[:, 0], f"small_{dtype}"))
    values = random.integers(0, 100, LARGE).astype(np.float32)
    made.append(helper.make_tensor("typed", onnx.TensorProto.FLOAT, [LARGE], values))  # float_data, not raw_data
    made.append(numpy_helper.from_array(random.integers(0, 2, 2 * LARGE).astype(bool), "bool"))
    made.append(
        onnx.TensorProto(name="bits", data_type=onnx.TensorProto.BFLOAT16, dims=[LARGE], raw_data=bytes(2 * LARGE))
    )
    return made


def network() -> onnx.ModelProto:
    x = np.zeros((131,), np.float32)
    node = helper.make_node("MatMul", ["large_float32", "x"], ["y"])
    return model_of([node], [value_info("x", x)], ["y"], initializers=tensors())


def test_tensors_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    whole = network()
    path.write_bytes(whole.SerializeToString())
    loaded = load_model(path)
    taken = {loaded.proto.graph.initializer[i].name: array for i, array in loaded.tensors.items()}
    assert set(taken) == {f"large_{dtype}" for dtype in DTYPES}
    for tensor in whole.graph.initializer:
        if tensor.name in taken:
            expected = numpy_helper.to_array(tensor)
            assert taken[tensor.name].dtype == expected.dtype
            np.testing.assert_array_equal(taken[tensor.name], expected)
            tensor.ClearField("raw_data")
    assert loaded.proto == whole, "what is not taken out stays as it is"
    x = np.random.default_rng(SEED).standard_normal(131).astype(np.float32)
    weight = taken["large_float32"].astype(np.float64)
    np.testing.assert_allclose(neo.compile(path)(x), weight @ x, rtol=1e-4)


def test_sizes_that_contradict_the_data_are_left_to_the_parser(tmp_path: Path) -> None:
    whole = network()
    for tensor in whole.graph.initializer:
        if tensor.name == "large_float32":
            tensor.dims[0] = 4
    path = tmp_path / "m.onnx"
    path.write_bytes(whole.SerializeToString())
    assert "large_float32" not in {load_model(path).proto.graph.initializer[i].name for i in load_model(path).tensors}
    with pytest.raises(neo.ModelError, match="data must match"):
        neo.compile(path)


def test_two_graphs_are_left_to_the_parser(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    raw = network().SerializeToString()
    path.write_bytes(raw + raw)  # protobuf merges the two messages
    with path.open("rb") as file:
        assert split_file(file) is None


def test_constants_in_nodes_are_left_to_the_parser(tmp_path: Path) -> None:
    weight = np.random.default_rng(SEED).standard_normal((131, LARGE), dtype=np.float32)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight)),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    x = np.ones((1, 131), np.float32)
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(nodes, [value_info("x", x)], ["y"]).SerializeToString())
    with path.open("rb") as file:
        assert split_file(file) is None
    np.testing.assert_allclose(neo.compile(path)(x), x @ weight, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", range(100))
def test_damaged_file(case: int, tmp_path: Path) -> None:
    random = np.random.default_rng([SEED, case])
    array = random.standard_normal((64, 300)).astype(np.float32)
    x = np.zeros((300,), np.float32)
    node = helper.make_node("MatMul", ["w", "x"], ["y"])
    model = model_of([node], [value_info("x", x)], ["y"], initializers=[numpy_helper.from_array(array, "w")])
    raw = bytearray(model.SerializeToString())
    places = [*range(80), *range(len(raw) - 80, len(raw))]  # around the data: tags, lengths, sizes
    for at in random.choice(places, 1 + case % 3):
        raw[at] = int(random.integers(0, 256))
    if case % 5 == 0:
        del raw[int(random.integers(1, len(raw))) :]
    path = tmp_path / "m.onnx"
    path.write_bytes(raw)
    try:
        proto = onnx.ModelProto.FromString(bytes(raw))
    except Exception:
        proto = None
    try:
        loaded = load_model(path)
    except neo.Error:
        return
    assert proto is not None
    for i, tensor in enumerate(proto.graph.initializer):
        if i in loaded.tensors:
            np.testing.assert_array_equal(loaded.tensors[i], numpy_helper.to_array(tensor))
            tensor.ClearField("raw_data")
    assert loaded.proto == proto

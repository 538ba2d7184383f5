import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks import blocks, native_program
from tests import built


def network() -> onnx.ModelProto:
    """Two equal convolutions, one of stride two, one of groups."""
    weights = {"w": (32, 32, 3, 3), "v": (64, 32, 1, 1), "g": (64, 2, 3, 3)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        helper.make_node("Conv", ["a", "w"], ["b"], pads=[1] * 4),
        helper.make_node("Conv", ["b", "v"], ["c"], strides=[2, 2]),
        helper.make_node("Conv", ["c", "g"], ["y"], group=32),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 10, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, 3, 4])],
        [numpy_helper.from_array(np.ones(dims, "f"), name) for name, dims in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_layers_are_counted():
    assert blocks.layers_of(network()) == {
        (32, 10, 12, 32, 10, 12, 3, 3, 1, 1, 1, 1, 1, 1): 2,
        (32, 10, 12, 64, 5, 6, 1, 1, 2, 2, 0, 0, 1, 1): 1,
    }


def test_a_network_is_the_sum_of_its_layers():
    times = [{(16, 16): 10.0, (32, 32): 8.0, (32, 16): 7.0}, {(16, 16): 3.0}]
    assert blocks.totals([2, 1], times, 16) == (23.0, {32: 19.0}, 17.0)


def test_a_model_that_the_suite_lacks_is_named(capsys):
    with pytest.raises(SystemExit):
        blocks.main(["--models", "nosuch"])
    assert "no model of suite 'networks' is called 'nosuch'" in capsys.readouterr().err


def test_a_build_times_every_pair_of_blocks(tmp_path):
    try:
        program = native_program.build(tmp_path, "blocks", built.libraries())
    except native_program.NotBuiltError as error:
        pytest.skip(str(error))
    counted = blocks.layers_of(network())
    lanes, times = blocks.measure(program, list(counted))
    assert all((lanes, lanes) in t and all(us > 0 for us in t.values()) for t in times)
    assert all(x <= 32 and y % lanes == 0 for t in times for x, y in t)
    assert len(times) == 2

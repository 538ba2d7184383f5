"""Tensors of PyTorch as inputs and outputs."""

import neo
import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

from tests.api.conftest import build, pair, value  # noqa: F401  (a fixture)

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


def test_tensors_of_torch(pair):  # noqa: F811
    memory = torch.zeros(2, 3)
    got = pair(torch.from_numpy(A).requires_grad_(), torch.from_numpy(B), out={"rest": memory})
    assert got[1] is memory
    np.testing.assert_array_equal(memory.numpy(), A - B)
    with pytest.raises(neo.DTypeError, match=r"Hint: a\.to\(torch\.float32\)"):
        pair(torch.from_numpy(A).double(), B)


def test_bfloat16_of_torch():
    model = build(
        [helper.make_node("Relu", ["x"], ["y"])],
        [value("x", ["N", 3], TensorProto.BFLOAT16)],
        [value("y", ["N", 3], TensorProto.BFLOAT16)],
    )
    x, y = torch.arange(-3, 3).reshape(2, 3).to(torch.bfloat16), torch.zeros(2, 3, dtype=torch.bfloat16)
    neo.compile(model)(x, out=y)
    assert torch.equal(y, torch.relu(x))

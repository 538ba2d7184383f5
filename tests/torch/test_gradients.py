"""Gradients of the benchmarks' training iterations against PyTorch's."""

from __future__ import annotations

import neo
import numpy as np
import pytest
import torch

from benchmarks.models import training
from benchmarks.models.gradients import Iteration


def test_lstm_agrees_with_pytorch() -> None:
    steps, width, batch, layers = 4, 6, 3, 2
    model, feeds = training.make_lstm(steps, width, batch, layers)
    loss, *gradients = neo.compile(model).run(feeds).values()
    weights = {name: torch.tensor(value, requires_grad=True) for name, value in feeds.items() if name.startswith("w")}
    rows = list(torch.tensor(feeds["x"]))
    for layer in range(layers):
        weight, recurrent, bias = (weights[f"w{3 * layer + i}"] for i in range(3))
        hidden, cell = torch.zeros(batch, width), torch.zeros(batch, width)
        for t in range(steps):
            into, forget, out, new = (rows[t] @ weight + bias + hidden @ recurrent).split(width, dim=1)
            cell = into.sigmoid() * new.tanh() + forget.sigmoid() * cell
            rows[t] = hidden = out.sigmoid() * cell.tanh()
    scores = rows[-1] @ weights[f"w{3 * layers}"] + weights[f"w{3 * layers + 1}"]
    expected = torch.nn.functional.cross_entropy(scores, torch.tensor(feeds["labels"]))
    expected.backward()
    assert abs(loss.item() - expected.item()) < 1e-5
    for gradient, weight in zip(gradients, weights.values(), strict=True):
        np.testing.assert_allclose(gradient, weight.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("pooled", [True, False])
def test_convolutions_agree_with_pytorch(groups: int, pooled: bool) -> None:
    b = Iteration(5)
    x, w = b.weight(3, 4, 11, 10), b.weight(6, 4 // groups, 3, 3)
    y = b.add("Relu", b.add("Conv", x, w, strides=[2, 1], pads=[1, 1, 1, 1], group=groups))
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]} if pooled else {"kernel_shape": [3, 3], "strides": [2, 2]}
    y = b.add("MaxPool", y, **pool)
    loss = b.add("SoftmaxCrossEntropyLoss", b.add("ReduceMean", y, axes=[2, 3], keepdims=0), b.labels("labels", 3, 6))
    found, *gradients = neo.compile(b.iteration(loss)).run(b.feeds).values()
    tx, tw = (torch.tensor(b.feeds[name], requires_grad=True) for name in (x, w))
    ty = torch.nn.functional.conv2d(tx, tw, stride=(2, 1), padding=1, groups=groups).relu()
    ty = torch.nn.functional.max_pool2d(ty, pool["kernel_shape"], 2)
    expected = torch.nn.functional.cross_entropy(ty.mean((2, 3)), torch.tensor(b.feeds["labels"]))
    expected.backward()
    assert abs(found.item() - expected.item()) < 1e-5
    for gradient, weight in zip(gradients, (tx, tw), strict=True):
        np.testing.assert_allclose(gradient, weight.grad.numpy(), atol=1e-5)

"""PyTorch's modules in neo, and neo as PyTorch's backend; left out without torch and its exporter."""

import logging
import warnings

import neo
import neo.torch
import numpy as np
import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


@pytest.fixture
def net():
    return Net().eval()


@pytest.fixture
def x():
    return torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", [lambda x: x, lambda x: (x,), lambda x: [x], lambda x: {"x": x}])
def test_a_module_is_compiled(net, x, form):
    module = neo.compile(net, example_inputs=form(x))
    close(module(x), net(x))


def test_a_module_of_any_batch(net, x):
    module = neo.compile(net, example_inputs=(x,), dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}})
    assert isinstance(module.inputs[0].shape[0], str)
    for count in (2, 5):
        given = torch.randn(count, 3, 8, 8)
        close(module(given), net(given))


def test_a_module_needs_example_inputs(net, x):
    with pytest.raises(neo.ModelError, match=r"must come with example inputs. Got none\nHint: example_inputs"):
        neo.compile(net)
    with pytest.raises(neo.DTypeError, match="example inputs must come with a torch.nn.Module. Got str"):
        neo.compile("model.onnx", example_inputs=(x,))
    with pytest.raises(neo.DTypeError, match="example inputs must be tensors. Got int"):
        neo.compile(net, example_inputs=3)


def test_a_module_that_cannot_be_exported():
    class Branching(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(neo.UnsupportedError, match="PyTorch must be able to export the module"):
        neo.compile(Branching(), example_inputs=(torch.ones(2),))


def compiled(net, caplog):
    caplog.set_level(logging.WARNING, "neo.torch")
    torch._dynamo.reset()
    return torch.compile(net, backend="neo")


def test_the_backend_runs_a_module_at_every_size(net, x, caplog):
    run = compiled(net, caplog)
    with torch.no_grad():
        for given in (x, x[:1], torch.cat([x, x, x]), x):
            close(run(given), net(given))
    assert caplog.text == ""


def test_the_backend_runs_parts_around_what_is_not_traced(net, x, caplog):
    def function(x):
        y = net(x)
        torch._dynamo.graph_break()
        return torch.softmax(y, 1), y.shape[0]

    run = compiled(function, caplog)
    with torch.no_grad():
        got, count = run(x)
    close(got, torch.softmax(net(x), 1))
    assert count == 2
    assert caplog.text == ""


def test_parameters_that_change_are_seen(net, x, caplog):
    run = compiled(net, caplog)
    with torch.no_grad():
        run(x)
        net.linear.weight.mul_(2)
        close(run(x), net(x))


def test_gradients_are_left_to_torch(net, x, caplog):
    run = compiled(net, caplog)
    loss = run(x).sum()
    loss.backward()
    assert net.linear.weight.grad is not None
    assert "inference only" in caplog.text


def test_a_graph_that_writes_to_its_inputs_is_left_to_torch(caplog):
    def function(x):
        x.add_(1)
        return x * 2

    run = compiled(function, caplog)
    given = torch.zeros(3)
    with torch.no_grad():
        assert torch.equal(run(given), torch.full((3,), 2.0))
    assert torch.equal(given, torch.ones(3))


def test_integers_and_several_results(caplog):
    def function(a, b):
        return a + b, (a > b), a.argmax()

    run = compiled(function, caplog)
    a, b = torch.arange(6).reshape(2, 3), torch.full((2, 3), 2)
    with torch.no_grad(), warnings.catch_warnings():
        for got, expected in zip(run(a, b), function(a, b), strict=True):
            assert got.dtype == expected.dtype
            assert torch.equal(got, expected)
    assert caplog.text == ""


def test_an_input_that_nothing_reads(caplog):
    run = compiled(lambda a, b, c: a - c, caplog)
    a, b, c = torch.ones(2), torch.ones(3), torch.full((2,), 5.0)
    with torch.no_grad():
        assert torch.equal(run(a, b, c), a - c)

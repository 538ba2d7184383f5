"""Choosing what is quantized under a limit."""

import itertools
import math

import neo
import numpy as np
import onnx
import pytest
from neo import demo
from neo.difference import energy_ratio
from neo.quantize.choose import best_layers

from tests.quantize.networks import Net, calls_for, small_net


def deep_net(spoiled: bool = True) -> onnx.ModelProto:
    """Convolutions, one of which reads a channel that is thousands of times as large as the others."""
    net = Net(7)
    x = "x"
    for i in range(6):
        x = net.node("Relu", net.conv(x, 3 if not i else 32, 32, 3, name=f"conv{i}"))
        if spoiled and i == 2:
            scale = np.ones((1, 32, 1, 1), np.float32)
            scale[0, 5] = 3000
            large = net.node("Mul", x, net.constant(scale))
            down = net.conv(large, 32, 32, 1, name="spoiled")
            weights = onnx.numpy_helper.to_array(net.constants[-2]).copy()
            weights[:, 5] /= 3000
            net.constants[-2] = onnx.numpy_helper.from_array(weights, net.constants[-2].name)
            x = net.node("Relu", down)
    return net.model(["N", 3, 16, 16], net.conv(x, 32, 8, 1, name="last"))


def precisions(quantized):
    return {layer.name: layer.precision for layer in quantized.report.layers}


@pytest.fixture
def always_worth(monkeypatch):
    """Plans that are worth their error however fast they are: a test must not depend on times."""
    from importlib import import_module

    monkeypatch.setattr(import_module("neo.quantize.outcome"), "_WORTH", math.inf)


def test_the_layer_that_makes_the_error_stays_float(always_worth):
    model, data = deep_net(), calls_for([1, 3, 16, 16], 8)
    whole = neo.quantize(model, data, threads=1)
    assert whole.report.error > 0.01
    limited = neo.quantize(model, data, accuracy=0.999, threads=1)
    assert limited.report.error <= 0.001
    kept = precisions(limited)
    assert kept["spoiled"] == "float32"
    assert sum(p == "int8" for p in kept.values()) >= 3
    errors = {layer.name: layer.error for layer in limited.report.layers}
    assert max(errors, key=errors.get) == "spoiled"
    assert "price of the limit" in limited.report.summary()
    module = limited.compile()
    reference = neo.compile(model, threads=1)
    assert np.mean([energy_ratio(module(x), reference(x)) for x in data]) == pytest.approx(
        limited.report.error, rel=0.01
    )


def test_what_pays_is_quantized_where_all_of_it_keeps_the_limit(always_worth):
    quantized = neo.quantize(deep_net(spoiled=False), calls_for([1, 3, 16, 16], 4), accuracy=0.9)
    left = [layer for layer in quantized.report.layers if layer.precision == "float32"]
    assert len(left) < len(quantized.report.layers)
    assert {layer.reason for layer in left} <= {"it gains nothing"}
    assert all(layer.gain_us <= 0 for layer in left)


def test_a_limit_that_nothing_keeps_gives_the_float_model(tmp_path):
    model, data = deep_net(), calls_for([1, 3, 16, 16], 4)
    quantized = neo.quantize(model, data, accuracy=1.0, threads=1)
    assert not quantized.is_quantized
    assert set(precisions(quantized).values()) == {"float32"}
    text = str(quantized)
    assert "kept to by the float model alone" in text
    assert "the nearest plan, of" in text
    quantized.save(tmp_path / "m.onnx")
    np.testing.assert_allclose(
        neo.compile(tmp_path / "m.onnx")(data[0]), neo.compile(model)(data[0]), rtol=1e-4, atol=1e-4
    )


def test_what_gains_nothing_stays_float(monkeypatch):
    from importlib import import_module

    monkeypatch.setattr(import_module("neo.quantize.outcome"), "benchmark", lambda modules, call: [1.0, 1.5])
    quantized = neo.quantize(small_net(), calls_for([1, 3, 12, 12]), accuracy=0.5)
    assert not quantized.is_quantized
    assert "Quantizing gains nothing here: 1.5 ms beside 1 ms in float" in str(quantized)


def test_a_model_whose_layers_do_not_pay_stays_float(monkeypatch):
    from importlib import import_module

    prices = lambda study: (frozenset(), {layer.name: -1.0 for layer in study.layers})  # noqa: E731
    monkeypatch.setattr(import_module("neo.quantize.choose"), "price_layers", prices)
    quantized = neo.quantize(small_net(), calls_for([1, 3, 12, 12]), accuracy=0.5)
    assert not quantized.is_quantized
    assert "No layer is expected to be faster on codes here" in str(quantized)


def test_agreement_of_a_classifier(always_worth):
    images, labels = demo.images()
    quantized = neo.quantize(demo.model_bytes(), [x[None] for x in images], accuracy=0.98)
    assert quantized.is_quantized
    assert quantized.report.agreement >= 0.98
    right = quantized.compile()(images).argmax(axis=1) == labels
    assert right.mean() > 0.95


def test_a_metric_of_the_user_is_kept(always_worth):
    model, data = deep_net(), calls_for([1, 3, 16, 16], 4)
    reference = neo.compile(model, threads=1)
    calls = []

    def metric(module):
        calls.append(module)
        return -100 * math.sqrt(np.mean([energy_ratio(module(x), reference(x)) for x in data]))

    quantized = neo.quantize(model, data, drop=2.0, metric=metric, threads=1)
    assert metric(quantized.compile()) >= -2.0
    assert quantized.is_quantized
    assert len(calls) >= 3


def test_interrupting_keeps_the_best_plan_so_far(always_worth, monkeypatch):
    from importlib import import_module

    choose = import_module("neo.quantize.choose")
    best, count = choose.best_layers, itertools.count()

    def interrupted(gains, errors, budget):
        if next(count):
            raise KeyboardInterrupt
        return best(gains, errors, budget)

    monkeypatch.setattr(choose, "best_layers", interrupted)
    quantized = neo.quantize(deep_net(), calls_for([1, 3, 16, 16], 4), accuracy=0.99, threads=1)
    assert quantized.report.error <= 0.01
    assert "until Ctrl-C" in str(quantized)


def test_the_knapsack_is_exact_up_to_its_steps():
    rng = np.random.default_rng(0)
    for _ in range(30):
        names = [str(i) for i in range(9)]
        gains = dict(zip(names, rng.uniform(-1, 5, 9), strict=True))
        errors = dict(zip(names, rng.exponential(1, 9), strict=True))
        budget = rng.uniform(0.1, 5)
        chosen = best_layers(gains, errors, budget)
        assert sum(errors[n] for n in chosen) <= budget

        def best(room, gains=gains, errors=errors, names=names):
            sets = itertools.chain.from_iterable(itertools.combinations(names, k) for k in range(10))
            return max(sum(gains[n] for n in s) for s in sets if sum(errors[n] for n in s) <= room)

        assert best(budget * 0.99) - 1e-9 <= sum(gains[n] for n in chosen) <= best(budget) + 1e-9


def test_the_front_falls(tmp_path):
    quantized = neo.quantize(deep_net(), calls_for([1, 3, 16, 16], 3), threads=1)
    front = quantized.pareto(5)
    times = [p.time_ms for p in front.points]
    assert times == sorted(times)
    assert not any(p.is_dominated_by(q) for p in front.points for q in front.points)
    assert "int8 layers" in str(front)
    pytest.importorskip("matplotlib")
    front.plot().savefig(tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 1000


def test_energy_ratio():
    x = np.array([3.0, -4.0], np.float32)
    assert energy_ratio(x, x) == 0
    assert energy_ratio(x * 1.1, x) == pytest.approx(0.01, rel=1e-4)
    assert energy_ratio(np.float32([1]), np.float32([0])) == math.inf
    assert energy_ratio(np.float32([np.nan, 1]), np.float32([1, 1])) == math.inf
    assert energy_ratio(np.float32([np.inf, 1]), np.float32([np.inf, 1])) == 0
    assert energy_ratio(np.array([1]), np.array([2])) == 0

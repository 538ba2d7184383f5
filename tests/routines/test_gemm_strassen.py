"""Rows times a constant matrix by Strassen's algorithm against the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import EPSILON, TIERS, compile_pinned, floats, rejections
from tests.routines.test_conv import lanes, pick
from tests.routines.test_strassen import narrowest

ROUTINE = "cpu:float32/gemm_strassen"

by_tier = pytest.mark.parametrize("tier", TIERS)
by_levels = pytest.mark.parametrize("levels", [1, 2])


def pin_of(levels, tasks=1, groups=1):
    """A schedule, its parameters in the order of their names."""
    group = f"groups={groups} " if groups > 1 else ""
    return f"{ROUTINE}{{{group}{'levels=2 ' if levels == 2 else ''}tasks={tasks}}}"


def sizes_of(tier, levels, random):
    """Summed elements and columns that so many levels take."""
    part = lanes(tier) << levels
    return (
        lanes(tier) * int(random.integers(1 << levels, 3 << levels)),
        part * pick(random, [narrowest(tier), 3, 4, 6, 7, 8, 9]),
    )


def product(a_dims, weight, *, bias=None, added=None, residual=None, tail="", transposed=False):
    """A MatMul, or a Gemm that adds a constant or a run-time tensor, with what follows it; and the node that ends it.

    A tail is an operator, or the bounds of a clamp.
    """
    graph = _native.Graph()
    operands = [
        graph.add_input("a", "float32", a_dims),
        graph.add_constant("w", np.ascontiguousarray(weight.T) if transposed else weight),
    ]
    if bias is not None:
        operands.append(graph.add_constant("bias", bias))
    if added is not None:
        operands.append(graph.add_input("r", "float32", added))
    op, attrs = ("Gemm", {"transB": int(transposed)}) if transposed or len(operands) > 2 else ("MatMul", {})
    if isinstance(tail, tuple):
        attrs |= {"clamp_min": tail[0], "clamp_max": tail[1]}
    node = graph.add_node(op, operands, ["y"], attrs, "product")
    if residual is not None:
        node = graph.add_node("Add", [node.outputs[0], graph.add_input("r", "float32", residual)], ["s"], {}, "sum")
    if tail and not isinstance(tail, tuple):
        node = graph.add_node(tail, [node.outputs[0]], ["t"], {}, "tail")
    graph.outputs = [node.outputs[0]]
    return graph, node.name


def assert_near(found, expected, levels, depth):
    """Equal up to the rounding of sums of products, and of the additions around them."""
    assert found.shape == expected.shape
    tolerance = 12 * levels * EPSILON * np.sqrt(depth) * max(1.0, float(np.abs(expected).max(initial=0)))
    assert float(np.abs(found - expected).max(initial=0)) <= tolerance


def check(graph, name, inputs, tier, pin, depth, threads=()):
    levels = 2 if "levels=2" in pin else 1
    pinned = compile_pinned(graph, tier, {name: pin})
    assert pinned.routines[name] == pin, pinned.routines
    found, expected = pinned(*inputs), graph.evaluate(inputs)[0]
    assert_near(found, expected, levels, depth)
    for count in threads:
        np.testing.assert_array_equal(pinned(*inputs, threads=count), found)


@by_tier
@by_levels
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7, 12, 23, 48, 67, 128, 197, 255])
def test_agrees_with_the_reference(tier, levels, rows):
    random = np.random.default_rng(rows)
    k, n = sizes_of(tier, levels, random)
    graph, name = product([rows, k], floats(random, [k, n]))
    check(graph, name, [floats(random, [rows, k])], tier, pin_of(levels, 4), k, threads=(2, 5))


@by_tier
@by_levels
@pytest.mark.parametrize("tail", ["", "Sigmoid", "Gelu", (-0.5, 0.75)])
@pytest.mark.parametrize("transposed", [False, True])
def test_bias_residual_and_what_follows(tier, levels, tail, transposed):
    random = np.random.default_rng(3)
    k, n = sizes_of(tier, levels, random)
    for added in ({}, {"bias": floats(random, [n])}, {"residual": [37, n]}, {"added": [n]}, {"added": [37, 1]}):
        if isinstance(tail, tuple) and "residual" in added:
            continue
        graph, name = product([37, k], floats(random, [k, n]), tail=tail, transposed=transposed, **added)
        inputs = [floats(random, [37, k])] + [floats(random, dims) for at, dims in added.items() if at != "bias"]
        check(graph, name, inputs, tier, pin_of(levels), k)


@by_tier
@by_levels
@pytest.mark.parametrize("dims", [[2, 19], [3, 1, 40], [1, 2, 3, 4], [0], [2, 0], []])
def test_leading_axes(tier, levels, dims):
    random = np.random.default_rng(5)
    k, n = sizes_of(tier, levels, random)
    graph, name = product([*dims, k], floats(random, [k, n]), residual=[*dims, n])
    check(graph, name, [floats(random, [*dims, k]), floats(random, [*dims, n])], tier, pin_of(levels), k, threads=(2,))


@by_tier
@by_levels
@pytest.mark.parametrize("dims", [[], [2, 3]])
def test_rows_whose_elements_lie_apart(tier, levels, dims):
    random = np.random.default_rng(7)
    k, n = sizes_of(tier, levels, random)
    graph = _native.Graph()
    operands = [graph.add_input("a", "float32", [*dims, k, 20]), graph.add_constant("w", floats(random, [k, n]))]
    node = graph.add_node("com.microsoft.FusedMatMul", operands, ["y"], {"transA": 1}, "product")
    node = graph.add_node("Add", [node.outputs[0], graph.add_input("r", "float32", [*dims, 20, n])], ["s"], {}, "sum")
    graph.outputs = [node.outputs[0]]
    inputs = [floats(random, [*dims, k, 20]), floats(random, [*dims, 20, n])]
    check(graph, "sum", inputs, tier, pin_of(levels, 4), k, threads=(2,))


@by_tier
def test_groups_of_columns(tier):
    random = np.random.default_rng(8)
    part = lanes(tier) * 2
    k, n = 4 * part, 2 * part * (narrowest(tier) + 1)
    graph, name = product([61, k], floats(random, [k, n]), residual=[61, n])
    pin = pin_of(1, 2, groups=2)
    pinned = compile_pinned(graph, tier, {name: pin}, 2)
    assert pinned.routines[name] == pin, pinned.routines
    inputs = [floats(random, [61, k]), floats(random, [61, n])]
    found = pinned(*inputs)
    assert_near(found, graph.evaluate(inputs)[0], 1, k)
    np.testing.assert_array_equal(pinned(*inputs, threads=5), found)


@by_tier
def test_rows_that_only_running_tells(tier):
    random = np.random.default_rng(9)
    k, n = sizes_of(tier, 1, random)
    graph, name = product(["rows", k], floats(random, [k, n]), residual=["rows", n])
    pinned = compile_pinned(graph, tier, {name: pin_of(1, 4)})
    assert pinned.routines[name] == pin_of(1, 4), pinned.routines
    for rows in (0, 1, 2, 31, 200):
        inputs = [floats(random, [rows, k]), floats(random, [rows, n])]
        assert_near(pinned(*inputs), graph.evaluate(inputs)[0], 1, k)


@by_tier
@by_levels
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("added", ["bias", "residual", "column"])
def test_calls_of_few_rows_and_of_many(tier, levels, transposed, added):
    random = np.random.default_rng(10)
    k, n = sizes_of(tier, levels, random)
    options = {
        "bias": {"bias": floats(random, [n])},
        "residual": {"residual": ["rows", n]},
        "column": {"added": ["rows", 1]},
    }
    graph, name = product(["rows", k], floats(random, [k, n]), tail="Sigmoid", transposed=transposed, **options[added])
    pinned = compile_pinned(graph, tier, {name: pin_of(levels, 4)})
    assert pinned.routines[name] == pin_of(levels, 4), pinned.routines
    for rows in (0, 1, 5, 13, 31, 32, 33, 90):
        inputs = [floats(random, [rows, k])]
        if added != "bias":
            inputs.append(floats(random, [rows, n if added == "residual" else 1]))
        found = pinned(*inputs)
        assert_near(found, graph.evaluate(inputs)[0], levels, k)
        np.testing.assert_array_equal(pinned(*inputs, threads=5), found)


def reason(weight, **attrs):
    graph = _native.Graph()
    a = graph.add_input("a", "float32", [20, weight.shape[0]])
    constant = graph.add_constant("w", weight)
    graph.outputs = [graph.add_node("Gemm", [a, constant], ["y"], attrs, "product").outputs[0]]
    return rejections(graph, "avx2", "product").get(ROUTINE)


def test_what_it_is_not_for():
    assert reason(np.ones([64, 64], np.float32)) is None
    assert reason(np.ones([64, 64], np.float32), alpha=2.0) == "the product or what is added is scaled"
    assert reason(np.ones([1024, 2048], np.float32)) == "its weights take too much memory"
    assert reason(np.ones([60, 64], np.float32)).startswith("the input channels are no vectors")
    assert reason(np.ones([64, 60], np.float32)) == "the output channels are not an even number of vectors"

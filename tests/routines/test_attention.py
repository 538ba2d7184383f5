"""Attention as one step, of every instruction set, against the references of its parts."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick

ATTENTION = "cpu:float32/attention"

by_tier = pytest.mark.parametrize("tier", TIERS)


class Case:
    """A graph softmax(scale q k + terms) v with transposes, factors and masks around it."""

    def __init__(self, seed, symbols=False):
        self.random = np.random.default_rng(seed)
        self.graph = _native.Graph()
        self.inputs = []
        self.symbols = symbols

    def input(self, dims, kind="float32"):
        array = floats(self.random, dims) if kind == "float32" else self.random.random(tuple(dims)) < 0.7
        return self.given(array)

    def given(self, array):
        self.inputs.append(array)
        i = len(self.inputs)
        names = [f"s{i}_{axis}" if self.symbols and size > 1 else size for axis, size in enumerate(array.shape)]
        kind = "bool" if array.dtype == bool else "float32"
        return self.graph.add_input(f"x{i}", kind, array.shape if not self.symbols else names)

    def node(self, op, operands, **attrs):
        name = f"n{len(self.graph.nodes)}"
        return self.graph.add_node(op, operands, [name + ".y"], attrs, name).outputs[0]

    def number(self, value):
        return self.graph.add_constant("k", np.float32(value))

    def turned(self, dims, order, factor=None):
        """A value of these dims that is an input transposed, and times a factor before or after that."""
        perm = list(np.argsort(order))
        x = self.input([dims[i] for i in order])
        if factor and self.random.random() < 0.5:
            x, factor = self.node("Mul", [x, self.number(factor)]), None
        if perm != sorted(perm):
            x = self.node("Transpose", [x], perm=[int(i) for i in perm])
        return self.node("Div", [x, self.number(1 / factor)]) if factor else x

    def attend(self, scores, v, order=None, guarded=False):
        p = self.node("Softmax", [scores], axis=-1)
        if guarded:
            p = self.node("Where", [self.node("IsNaN", [p]), self.number(0.0), p])
        y = self.node("MatMul", [p, v])
        if order is not None:
            y = self.node("Transpose", [y], perm=order)
        self.graph.outputs = [y]
        return self

    def check(self, tier, threads=1):
        """The whole graph is one step, whose result is that of the references."""
        end = self.graph.nodes[-1].name
        pinned = compile_pinned(self.graph, tier, {end: ATTENTION}, threads)
        assert pinned.routines == {end: ATTENTION + "{}"} or pinned.routines == {end: ATTENTION}, pinned.routines
        actual = pinned(*self.inputs, threads=threads)
        depth = max(max(x.shape, default=1) for x in self.inputs)
        assert_close(actual, self.graph.evaluate(self.inputs)[0], depth, self.graph)
        return actual


def length(random):
    return int(pick(random, [1, 2, 3, 7, 16, 49, 64, 101, int(random.integers(1, 200)), 800, 1300]))


def drawn(seed):
    case = Case(seed)
    random = case.random
    batch = [int(random.integers(1, 4)) for _ in range(int(random.integers(0, 4)))]
    queries, keys = length(random), length(random)
    if queries * keys > 300_000:
        queries = 5
    size, values = (int(pick(random, [1, 2, 8, 16, 33, 64, 100])) for _ in range(2))
    rank = len(batch) + 2

    def operand(rows, columns, factor=None):
        own = [pick(random, [1, b]) if random.random() < 0.2 else b for b in batch]
        order = list(random.permutation(rank))
        last = order.index(pick(random, [rank - 1, rank - 2]))
        order[last], order[-1] = order[-1], order[last]
        return case.turned([*own, rows, columns], order, factor)

    scores = case.node("MatMul", [operand(queries, size, 0.5), operand(size, keys)])
    for _ in range(int(random.integers(0, 3))):
        if random.random() < 0.4:
            scores = case.node("Mul", [scores, case.number(0.7)])
        dims = [pick(random, [1, b]) for b in batch] + [pick(random, [1, queries]), keys]
        dims = dims[int(random.integers(0, rank - 1)) :]
        if random.random() < 0.5:
            pair = [scores, case.input(dims)]
            scores = case.node("Add", pair if random.random() < 0.5 else pair[::-1])
        else:
            pair = [case.number(-3.0), scores]
            scores = case.node("Where", [case.input(dims, "bool"), *(pair if random.random() < 0.5 else pair[::-1])])
    order = None
    if random.random() < 0.5:
        order = [*(int(i) for i in random.permutation(rank - 1)), rank - 1]
    return case.attend(scores, operand(keys, values), order)


@by_tier
@pytest.mark.parametrize("seed", range(40))
def test_it_is_its_parts(tier, seed):
    drawn(seed).check(tier)


@by_tier
def test_threads_do_not_change_the_bits(tier):
    results = []
    for threads in (1, 3):
        case = Case(5)
        scores = case.node("MatMul", [case.input([2, 3, 300, 32]), case.input([2, 3, 32, 900])])
        results.append(case.attend(scores, case.input([2, 3, 900, 40])).check(tier, threads))
    np.testing.assert_array_equal(*results)


@by_tier
@pytest.mark.parametrize("sizes", [(1, 5, 9), (3, 1, 1), (2, 130, 1100), (0, 4, 4), (2, 0, 3), (2, 3, 0)])
def test_sizes_of_a_call(tier, sizes):
    batch, queries, keys = sizes
    graph = _native.Graph()
    q = graph.add_input("q", "float32", ["B", "Q", 2, 24])
    k = graph.add_input("k", "float32", ["B", "K", 2, 24])
    v = graph.add_input("v", "float32", ["B", "K", 2, 20])
    mask = graph.add_input("mask", "float32", ["B", 1, 1, "K"])

    def node(op, operands, **attrs):
        name = f"n{len(graph.nodes)}"
        return graph.add_node(op, operands, [name + ".y"], attrs, name).outputs[0]

    turned = [
        node("Transpose", [x], perm=perm) for x, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3]))
    ]
    scores = node("Add", [node("MatMul", turned[:2]), mask])
    y = node("MatMul", [node("Softmax", [scores], axis=-1), turned[2]])
    graph.outputs = [node("Transpose", [y], perm=[0, 2, 1, 3])]
    pinned = compile_pinned(graph, tier, {graph.nodes[-1].name: ATTENTION})
    assert len(pinned.routines) == 1
    random = np.random.default_rng(0)
    inputs = [
        floats(random, d)
        for d in ((batch, queries, 2, 24), (batch, keys, 2, 24), (batch, keys, 2, 20), (batch, 1, 1, keys))
    ]
    assert_close(pinned(*inputs), graph.evaluate(inputs)[0], 1100)


@by_tier
@pytest.mark.parametrize("unsqueezed", [False, True])
@pytest.mark.parametrize(("queries", "keys", "size"), [(1, 70, 64), (3, 900, 40), (9, 33, 16)])
def test_heads_that_share_keys(tier, queries, keys, size, unsqueezed):
    """Keys and values of two heads are repeated for six, and turned after that or before."""
    case = Case(queries)

    def repeated(dims, turned):
        x = case.input([2, dims[0], 2, dims[1]])
        x = case.node("Transpose", [x], perm=[0, 2, 1, 3])
        ints = [case.graph.add_constant("i", np.array(i, np.int64)) for i in ([2], [2, 2, 3, *dims], [2, 6, *dims])]
        if unsqueezed:
            x = case.node("Unsqueeze", [x, ints[0]])
        else:
            x = case.node("Reshape", [x, case.graph.add_constant("i", np.array([2, 2, 1, *dims]))])
        x = case.node("Reshape", [case.node("Expand", [x, ints[1]]), ints[2]])
        return case.node("Transpose", [x], perm=[0, 1, 3, 2]) if turned else x

    scores = case.node("MatMul", [case.input([2, 6, queries, size]), repeated([keys, size], True)])
    scores = case.node("Mul", [scores, case.number(0.25)])
    case.attend(scores, repeated([keys, 32], False)).check(tier)


@by_tier
@pytest.mark.parametrize("guarded", [False, True])
def test_hidden_keys(tier, guarded):
    """Rows whose first blocks of keys are hidden are those of the others; rows without any key are NaN, or zero."""
    case = Case(3)
    mask = np.zeros((4, 2000), np.float32)
    mask[1, :1700] = mask[2] = mask[3, 1:] = -np.inf
    scores = case.node("MatMul", [case.input([4, 16]), case.input([16, 2000])])
    scores = case.node("Add", [scores, case.given(mask)])
    graph = case.attend(scores, case.input([2000, 8]), guarded=guarded).graph
    pinned = compile_pinned(graph, tier, {graph.nodes[-1].name: ATTENTION})
    assert len(pinned.routines) == 1
    actual, expected = pinned(*case.inputs), graph.evaluate(case.inputs)[0]
    np.testing.assert_array_equal(actual[2], expected[2])
    assert guarded == np.all(actual[2] == 0)
    kept = [0, 1, 3]
    assert_close(actual[kept], expected[kept], 2000)
    np.testing.assert_allclose(actual[3], case.inputs[3][0], rtol=1e-6)


@by_tier
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite(tier, number):
    case = Case(4)
    q = floats(case.random, [3, 8])
    q[1, 2] = number
    k = np.abs(floats(case.random, [8, 1000])) + 0.1
    graph = case.attend(case.node("MatMul", [case.given(q), case.given(k)]), case.input([1000, 5])).graph
    pinned = compile_pinned(graph, tier, {graph.nodes[-1].name: ATTENTION})
    actual = pinned(*case.inputs)
    assert np.isnan(actual[1]).all()
    assert_close(actual[[0, 2]], graph.evaluate(case.inputs)[0][[0, 2]], 1000)


def offered(graph):
    return any(c["routine"].startswith(ATTENTION) for c in candidates(graph, TIERS[0], graph.nodes[-1].name))


def test_what_it_does_not_take():
    def scores(case):
        return case.node("MatMul", [case.input([2, 5, 8]), case.input([2, 8, 7])])

    case = Case(0)
    assert offered(case.attend(scores(case), case.input([2, 7, 4])).graph)
    case = Case(0)  # the scores are read elsewhere
    s = scores(case)
    case.attend(s, case.input([2, 7, 4])).graph.outputs = [case.graph.nodes[-1].outputs[0], s]
    assert not offered(case.graph)
    case = Case(0)  # another axis
    s = case.node("Softmax", [scores(case)], axis=1)
    case.graph.outputs = [case.node("MatMul", [s, case.input([2, 7, 4])])]
    assert not offered(case.graph)
    case = Case(0)  # a number for each row is no term
    s = case.node("Add", [scores(case), case.input([2, 5, 1])])
    assert not offered(case.attend(s, case.input([2, 7, 4])).graph)
    case = Case(0)  # three terms
    s = scores(case)
    for _ in range(3):
        s = case.node("Add", [s, case.input([5, 7])])
    assert not offered(case.attend(s, case.input([2, 7, 4])).graph)
    case = Case(0)  # clamped scores
    s = case.node("MatMul", [case.input([2, 5, 8]), case.input([2, 8, 7])], clamp_min=0.0)
    assert not offered(case.attend(s, case.input([2, 7, 4])).graph)

"""Matrix products by the packed routine of every instruction set against the reference."""

import itertools

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections

GEMM = "cpu:float32/gemm"
ACTIVATIONS = [
    ("Gelu", {}),
    ("Gelu", {"approximate": "tanh"}),
    ("Swish", {}),
    ("Swish", {"alpha": 1.702}),
    ("HardSwish", {}),
    ("Sigmoid", {}),
    ("HardSigmoid", {"alpha": 0.3}),
    ("Tanh", {}),
    ("LeakyRelu", {"alpha": 0.1}),
    ("Elu", {"alpha": 0.5}),
    ("Softplus", {}),
    ("Mish", {}),
]

by_tier = pytest.mark.parametrize("tier", TIERS)
by_activation = pytest.mark.parametrize(
    "activation", ACTIVATIONS, ids=lambda a: "-".join([a[0], *map(str, a[1].values())])
)


class Case:
    """One product, and what follows it, over operands that are inputs or constants."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.graph = _native.Graph()
        self.inputs = []

    def operand(self, name, dims, constant=False, symbols=None):
        array = floats(self.random, dims)
        if constant:
            return self.graph.add_constant(name, array)
        self.inputs.append(array)
        return self.graph.add_input(name, "float32", symbols or list(dims))

    def product(self, op, operands, attrs, tail="", activation=None):
        value = self.graph.add_node(op, operands, ["product"], attrs, "product").outputs[0]
        self.ends = "product"
        if tail:
            residual = self.operand("residual", value.shape)
            pair = [value, residual] if self.random.random() < 0.5 else [residual, value]
            value = self.graph.add_node("Add", pair, ["add"], {}, "add").outputs[0]
            self.ends = "add"
        if tail == "relu":
            value = self.graph.add_node("Relu", [value], ["relu"], {}, "relu").outputs[0]
            self.ends = "relu"
        if activation:
            name, attrs = activation
            value = self.graph.add_node(name, [value], ["activation"], attrs, "activation").outputs[0]
            self.ends = "activation"
        self.graph.outputs = [value]
        return self

    def check(self, tier, depth, threads=1):
        pinned = compile_pinned(self.graph, tier, {self.ends: GEMM})
        assert list(pinned.routines) == [self.ends], pinned.routines
        assert pinned.routines[self.ends].startswith(GEMM), pinned.routines
        assert_close(pinned(*self.inputs, threads=threads), self.graph.evaluate(self.inputs)[0], depth, self.graph)
        return pinned


def clamp_of(random, tail):
    return {} if tail else pick(random, [{}, {"clamp_min": 0.0}, {"clamp_min": -0.5, "clamp_max": 1.0}])


def size(random):
    return int(pick(random, [1, 2, int(random.integers(1, 20)), int(random.integers(1, 90)), 300]))


@by_tier
@pytest.mark.parametrize("seed", range(48))
def test_matmul_agrees_with_the_reference(tier, seed):
    case = Case(seed)
    random = case.random
    m, n, k = size(random), size(random), size(random)
    batch = [int(random.integers(1, 4)) for _ in range(int(random.integers(0, 3)))] if m * n * k < 1e6 else []

    def operand_dims(rows, columns):
        part = [d if random.random() < 0.7 else 1 for d in batch]
        return [*part[int(random.integers(0, len(part) + 1)) :], rows, columns]

    a_dims, b_dims = operand_dims(m, k), operand_dims(k, n)
    if random.random() < 0.1:
        a_dims = [k]
    elif random.random() < 0.1:
        b_dims = [k]
    constant = pick(random, ["b", "b", "a", ""])
    tail = pick(random, ["", "", "add", "relu"])
    operands = [case.operand("a", a_dims, constant == "a"), case.operand("b", b_dims, constant == "b")]
    if len(b_dims) > 1 and random.random() < 0.5:
        operands.append(case.operand("bias", [n], bool(tail) or random.random() < 0.5))
    case.product("MatMul", operands, clamp_of(random, tail), tail).check(tier, k)


@by_tier
@pytest.mark.parametrize("seed", range(48))
def test_gemm_agrees_with_the_reference(tier, seed):
    case = Case(100 + seed)
    random = case.random
    m, n, k = size(random), size(random), size(random)
    trans_a, trans_b = (int(x) for x in random.integers(0, 2, 2))
    constant = pick(random, ["b", "b", "a", ""])
    operands = [
        case.operand("a", [k, m] if trans_a else [m, k], constant == "a"),
        case.operand("b", [n, k] if trans_b else [k, n], constant == "b"),
    ]
    c_dims = pick(random, [None, [], [1], [n], [1, n], [m, 1], [m, n], [1, 1]])
    if c_dims is not None:
        operands.append(case.operand("c", c_dims, random.random() < 0.6))
    column = c_dims is None or (operands[2].constant is not None and c_dims not in ([m, 1], [m, n]))
    tail = pick(random, ["", "add", "relu"]) if column and m > 1 else ""
    attrs = {"transA": trans_a, "transB": trans_b, "alpha": pick(random, [1.0, 0.5]), "beta": pick(random, [1.0, -1.5])}
    case.product("Gemm", operands, {**attrs, **clamp_of(random, tail)}, tail).check(tier, k)


@by_tier
@by_activation
@pytest.mark.parametrize("tail", ["", "add"])
def test_a_product_ends_in_an_activation(tier, activation, tail):
    # Whole and partial register blocks and vectors; several passes over k; a vector times a matrix; batches.
    for a_dims, b_dims, constant in [
        ([13, 24], [24, 37], True),
        ([13, 24], [24, 37], False),
        ([34, 600], [600, 50], True),
        ([34, 600], [600, 50], False),
        ([1, 70], [70, 130], True),
        ([5, 1, 70], [70, 33], False),
        ([3, 9, 20], [3, 20, 17], False),
    ]:
        case = Case(300)
        operands = [case.operand("a", a_dims), case.operand("b", b_dims, constant)]
        if constant:
            operands.append(case.operand("bias", b_dims[-1:], True))
        case.product("MatMul", operands, {}, tail, activation).check(tier, a_dims[-1], threads=2)


@by_tier
@pytest.mark.parametrize("tail", ["", "add", "relu"])
def test_panels_that_leave_the_second_cache(tier, tail):
    for trans_a, n in [(0, 70), (0, 64), (1, 64)]:
        case = Case(302)
        k = 9000
        operands = [case.operand("a", [k, 34] if trans_a else [34, k]), case.operand("b", [k, n], True)]
        case.product("Gemm", operands, {"transA": trans_a}, tail).check(tier, k, threads=2)


@by_tier
@by_activation
@pytest.mark.parametrize("tail", ["", "add"])
def test_gemm_ends_in_an_activation(tier, activation, tail):
    for trans_a, trans_b in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        case = Case(301)
        operands = [
            case.operand("a", [40, 11] if trans_a else [11, 40]),
            case.operand("b", [21, 40] if trans_b else [40, 21], constant=not trans_a),
            case.operand("c", [21], constant=True),
        ]
        attrs = {"transA": trans_a, "transB": trans_b, "alpha": 0.5, "beta": -1.5}
        case.product("Gemm", operands, attrs, tail, activation).check(tier, 40)


@by_tier
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 8, 9])
def test_a_few_rows_with_rows_of_the_other_operand(tier, rows):
    """As they lie, and added up at the end; the sums are as long as that pays, and a little shorter and longer."""
    for seed, (columns, depth) in enumerate([(1, 16), (5, 128), (16, 127), (33, 144), (70, 300), (67, 1031)]):
        for tail, activation in (("", None), ("add", ("Gelu", {})), ("relu", None)):
            case = Case(seed)
            operands = [case.operand("a", [rows, depth]), case.operand("b", [columns, depth])]
            if not tail:
                operands.append(case.operand("c", pick(case.random, [[columns], [rows, 1], [rows, columns]])))
            attrs = {"transB": 1, "alpha": pick(case.random, [1.0, 0.3]), "beta": pick(case.random, [1.0, -2.0])}
            case.product("Gemm", operands, attrs, tail, activation).check(tier, depth, 1 + seed % 2)


@by_tier
def test_an_activation_of_an_empty_product(tier):
    for a_dims, b_dims in [([0, 5], [5, 7]), ([3, 0], [0, 7]), ([3, 5], [5, 0])]:
        case = Case(302)
        operands = [case.operand("a", a_dims), case.operand("b", b_dims, True)]
        case.product("MatMul", operands, {}, activation=("Sigmoid", {})).check(tier, 5)


def test_a_clamped_product_does_not_end_in_an_activation():
    case = Case(303)
    operands = [case.operand("a", [6, 6]), case.operand("b", [6, 6], True)]
    case.product("MatMul", operands, {"clamp_min": 0.0}, activation=("Sigmoid", {}))
    assert not any(c["routine"].startswith(GEMM) for c in candidates(case.graph, TIERS[0], "activation"))


@by_tier
@pytest.mark.parametrize("seed", range(8))
def test_fused_matmul_agrees_with_the_reference(tier, seed):
    case = Case(200 + seed)
    random = case.random
    m, n, k = (int(x) for x in random.integers(1, 40, 3))
    trans_a, trans_b = (int(x) for x in random.integers(0, 2, 2))
    operands = [
        case.operand("a", [2, 3, *([k, m] if trans_a else [m, k])]),
        case.operand("b", [3, *([n, k] if trans_b else [k, n])], random.random() < 0.5),
    ]
    attrs = {"transA": trans_a, "transB": trans_b, "alpha": 0.125}
    case.product("com.microsoft.FusedMatMul", operands, attrs).check(tier, k)


@by_tier
@pytest.mark.parametrize(
    "dims", [([0, 5], [5, 7]), ([3, 0], [0, 7]), ([3, 5], [5, 0]), ([0, 3, 5], [5, 7]), ([1, 3, 5], [0, 5, 7])]
)
def test_empty_operands(tier, dims):
    for constant in (False, True):
        case = Case(1)
        operands = [case.operand("a", dims[0]), case.operand("b", dims[1], constant)]
        case.product("MatMul", operands, {}).check(tier, 5)


@by_tier
@pytest.mark.parametrize("constant", [False, True])
def test_sizes_may_be_symbols(tier, constant):
    case = Case(2)
    a = case.operand("a", [1, 4, 24], symbols=["N", "M", 24])
    b = case.operand("b", [24, 19] if constant else [1, 24, 19], constant, None if constant else ["N", 24, 19])
    case.product("MatMul", [a, b, case.operand("bias", [19], True)], {"clamp_min": -0.5})
    pinned = compile_pinned(case.graph, tier, {"product": GEMM})
    for batch, m in [(1, 4), (3, 1), (1, 1), (0, 4), (2, 33)]:
        inputs = [floats(case.random, [batch, m, 24])]
        if not constant:
            inputs.append(floats(case.random, [batch, 24, 19]))
        assert_close(pinned(*inputs), case.graph.evaluate(inputs)[0], 24, (batch, m))


@by_tier
@pytest.mark.parametrize(
    ("a_dims", "b_dims", "constant"),
    [
        ([130, 200], [200, 150], True),
        ([130, 200], [200, 150], False),
        ([1, 700], [700, 1000], True),
        ([1, 700], [700, 1000], False),
        ([4, 64, 64], [4, 64, 64], False),
        ([3, 40, 120], [120, 130], True),
    ],
)
def test_the_same_bits_on_any_number_of_threads(tier, a_dims, b_dims, constant):
    case = Case(3)
    case.product("MatMul", [case.operand("a", a_dims), case.operand("b", b_dims, constant)], {}, "relu")
    pinned = case.check(tier, a_dims[-1])
    once = pinned(*case.inputs)
    for threads in (2, 5):
        assert np.array_equal(once, pinned(*case.inputs, threads=threads))


@by_tier
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("form", ["MatMul", "Gemm", "transA", "clamp"])
def test_rows_of_short_sums_have_the_bits_of_a_row_alone(tier, form, constant):
    """Few products each: from four rows on they have a kernel of their own."""
    for depth, columns in ((1, 1), (2, 2), (3, 64), (4, 4), (9, 33), (16, 100), (63, 7), (64, 16)):
        random = np.random.default_rng(depth)
        a, b = floats(random, [29, depth]), floats(random, [depth, columns])
        bias = floats(random, [columns])

        def product(rows, a=a, b=b, bias=bias, depth=depth):
            graph = _native.Graph()
            left = np.ascontiguousarray(a[rows].T) if form == "transA" else a[rows]
            x, feeds = graph.add_input("a", "float32", list(left.shape)), [left]
            if constant:
                w = graph.add_constant("b", b)
            else:
                w = graph.add_input("b", "float32", list(b.shape))
                feeds.append(b)
            operands = [x, w] if form == "MatMul" else [x, w, graph.add_constant("bias", bias)]
            attrs = {"transA": {"transA": 1}, "clamp": {"clamp_min": 0.0, "clamp_max": 1.5}}.get(form, {})
            op = "MatMul" if form == "MatMul" else "Gemm"
            graph.outputs = graph.add_node(op, operands, ["p"], attrs, "product").outputs
            pinned = compile_pinned(graph, tier, {"product": GEMM})
            found, expected = pinned(*feeds), graph.evaluate(feeds)[0]
            assert_close(found, expected, depth)
            assert pinned(*feeds, threads=3).tobytes() == found.tobytes()
            return found

        alone = np.concatenate([product(slice(r, r + 1)) for r in (0, 7, 28)])
        for rows in (4, 5, 13, 29):
            some = product(slice(29 - rows, 29))
            for r, row in zip((0, 7, 28), alone, strict=True):
                if r >= 29 - rows:
                    assert some[r - 29].tobytes() == row.tobytes()


@by_tier
@pytest.mark.parametrize("tail", ["", "add", "relu", "sigmoid"])
def test_few_rows_have_the_bits_of_many(tier, tail):
    """A row alone, and rows of one register block, go other ways to the kernels than many rows."""
    random = np.random.default_rng(0)
    sizes = [*itertools.product((1, 7, 64, 130), (2, 3, 16, 33, 64, 70, 128, 257, 300)), (9000, 70)]
    for k, n in sizes:
        weights, a, residual = (floats(random, dims) for dims in ([k, n], [70, k], [70, n]))
        found = []
        for rows in (70, 1, 2, 5):
            graph = _native.Graph()
            feeds = [a[:rows]]
            x = graph.add_input("x", "float32", [rows, k])
            w = graph.add_constant("w", weights)
            value = graph.add_node("MatMul", [x, w], ["p"], {}, "p").outputs[0]
            last = "p"
            if tail in ("add", "relu"):
                feeds.append(residual[:rows])
                other = graph.add_input("r", "float32", [rows, n])
                value, last = graph.add_node("Add", [value, other], ["s"], {}, "s").outputs[0], "s"
            if tail in ("relu", "sigmoid"):
                op = "Relu" if tail == "relu" else "Sigmoid"
                value, last = graph.add_node(op, [value], ["e"], {}, "e").outputs[0], "e"
            graph.outputs = [value]
            pinned = compile_pinned(graph, tier, {last: GEMM})
            found.append(pinned(*feeds))
            # Every other call goes backwards through the weights.
            for threads in (1, 2, 2):
                np.testing.assert_array_equal(pinned(*feeds, threads=threads), found[-1], f"{k} {n}")
        for few in found[1:]:
            np.testing.assert_array_equal(few, found[0][: len(few)], f"{k} {n}")


@by_tier
def test_the_left_operand_may_be_the_residual(tier):
    case = Case(4)
    x = case.operand("x", [20, 20])
    a = case.graph.add_node("Relu", [x], ["a"], {}, "a").outputs[0]
    product = case.graph.add_node("MatMul", [a, case.operand("b", [20, 20], True)], ["product"], {}, "product")
    add = case.graph.add_node("Add", [a, product.outputs[0]], ["add"], {}, "add").outputs[0]
    case.graph.outputs = [case.graph.add_node("Neg", [add], ["neg"], {}, "neg").outputs[0]]
    pinned = compile_pinned(case.graph, tier, {"add": GEMM})
    assert_close(pinned(*case.inputs), case.graph.evaluate(case.inputs)[0], 20)


@by_tier
def test_a_matrix_times_itself(tier):
    case = Case(5)
    a = case.operand("a", [37, 37])
    case.product("MatMul", [a, a], {}).check(tier, 37)


def test_a_constant_right_operand_is_packed_once():
    case = Case(6)
    case.product("MatMul", [case.operand("a", [5, 100]), case.operand("b", [100, 100], True)], {})
    for tier in TIERS:
        (candidate,) = (c for c in candidates(case.graph, tier, "product") if c["routine"].startswith(GEMM))
        assert candidate["inputs"] == ["cpu:float32:AB", None]
        assert candidate["packed_bytes"] >= 100 * 100 * 4


@pytest.mark.parametrize(
    ("attrs", "dtype", "reason"),
    [
        ({"transBatchA": 1}, "float32", "a batch axis lies inside"),
        ({}, "float64", "an input is not a float32 tensor of known rank"),
    ],
)
def test_rejections_give_their_reason(attrs, dtype, reason):
    graph = _native.Graph()
    operands = [graph.add_input(name, dtype, [4, 4, 4]) for name in "ab"]
    graph.outputs = list(graph.add_node("com.microsoft.FusedMatMul", operands, ["y"], attrs, "product").outputs)
    assert rejections(graph, TIERS[0], "product")[GEMM] == reason


def test_two_addends_are_one_too_many():
    case = Case(7)
    operands = [case.operand(n, [6, 6]) for n in "abc"]
    case.product("Gemm", operands, {}, "add")
    assert rejections(case.graph, TIERS[0], "add")[GEMM] == "two tensors are added"

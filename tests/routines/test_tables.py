"""Linear models, support vector machines, norms and encoders against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from neo import _native
from neo.errors import ShapeError

from tests.routines.pinning import TIERS, compile_pinned, rejections

ML = "ai.onnx.ml."
ROWS = (0, 1, 2, 5, 64, 65, 200)
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
WORDS = ["ash", "birch", "cedar", "fir", ""]


def graph_of(op: str, inputs: dict[str, np.ndarray], outputs: list[str], attrs: dict[str, Any]) -> _native.Graph:
    graph = _native.Graph()
    made = []
    for name, x in inputs.items():
        dtype = "string" if x.dtype == object else x.dtype.name
        made.append(graph.add_input(name, dtype, ["N", *x.shape[1:]]))
    node = graph.add_node(op, made, outputs, attrs, "node")
    graph.outputs = [o for o in node.outputs if o is not None]
    return graph


def check(
    op: str, x: np.ndarray, attrs: dict[str, Any], routine: str, tier: str, outputs: list[str], *, within: float
) -> None:
    graph = graph_of(op, {"x": x}, outputs, attrs)
    pinned = compile_pinned(graph, tier, {"node": routine})
    assert pinned.routines["node"] == routine
    expected = graph.evaluate([x])
    first = pinned.module.call([x])
    for actual, wanted in zip(first, expected, strict=True):
        assert actual.dtype == wanted.dtype
        if wanted.dtype.kind == "f" and within > 0:
            np.testing.assert_allclose(actual, wanted, rtol=within, atol=within)
        else:
            np.testing.assert_array_equal(actual, wanted)
    for threads in (2, 5):
        for actual, wanted in zip(pinned.module.with_threads(threads).call([x]), first, strict=True):
            np.testing.assert_array_equal(actual, wanted)


def numbers(random: np.random.Generator, *shape: int) -> list[float]:
    return random.normal(size=shape).astype(np.float32).reshape(-1).tolist()


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("targets", [1, 2, 3, 9, 40])
@pytest.mark.parametrize("rows", ROWS)
def test_linear_regressors(tier: str, targets: int, rows: int) -> None:
    random = np.random.default_rng([targets, rows])
    features = int(random.choice([1, 3, 8, 30, 67]))
    attrs: dict[str, Any] = {"coefficients": numbers(random, targets, features), "targets": targets}
    attrs["post_transform"] = str(random.choice(TRANSFORMS[:4]))
    if random.random() < 0.7:
        attrs["intercepts"] = numbers(random, targets)
    x = random.normal(size=(rows, features)).astype(np.float32)
    check(ML + "LinearRegressor", x, attrs, "cpu:float32/linear_model", tier, ["y"], within=2e-5)


@pytest.mark.parametrize("labels", [[], [7], [7, -3], [4, 5, 6], list(range(20))])
@pytest.mark.parametrize("sets", [1, 2, 3, 20])
@pytest.mark.parametrize("outputs", [["label", "score"], ["label"], ["", "score"]])
def test_linear_classifiers(labels: list[int], sets: int, outputs: list[str]) -> None:
    if sets > 1 and labels and len(labels) < sets:
        return
    random = np.random.default_rng([len(labels), sets])
    attrs = {"coefficients": numbers(random, sets, 6), "intercepts": numbers(random, sets), "classlabels_ints": labels}
    for transform in TRANSFORMS[:4]:
        attrs["post_transform"] = transform
        x = random.normal(size=(37, 6)).astype(np.float32)
        x[3] = 0
        check(ML + "LinearClassifier", x, attrs, "cpu:float32/linear_model", TIERS[-1], outputs, within=2e-5)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("supports", [0, 1, 2, 33])
def test_support_vector_regressors(tier: str, kernel: str, supports: int) -> None:
    random = np.random.default_rng([len(kernel), supports])
    attrs: dict[str, Any] = {
        "kernel_type": kernel,
        "kernel_params": [0.1, 0.3, float(random.choice([2, 3, 4]))],
        "coefficients": numbers(random, supports or 7),
        "rho": [0.25],
        "one_class": int(supports == 2),
    }
    if supports:
        attrs |= {"n_supports": supports, "support_vectors": numbers(random, supports, 7)}
    for rows in ROWS:
        x = random.normal(size=(rows, 7)).astype(np.float32)
        check(ML + "SVMRegressor", x, attrs, "cpu:float32/support_vectors", tier, ["y"], within=5e-5)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("counts", [[3, 2], [4, 0, 9], [1, 2, 3, 4, 5]])
@pytest.mark.parametrize("chances", [False, True])
def test_support_vector_classifiers(kernel: str, counts: list[int], chances: bool) -> None:
    random = np.random.default_rng([len(kernel), len(counts)])
    classes, total = len(counts), sum(counts)
    pairs = classes * (classes - 1) // 2
    attrs: dict[str, Any] = {
        "kernel_type": kernel,
        "kernel_params": [0.1, 0.3, 3.0],
        "coefficients": numbers(random, classes - 1, total),
        "support_vectors": numbers(random, total, 5),
        "vectors_per_class": counts,
        "rho": numbers(random, pairs),
        "classlabels_ints": list(range(10, 10 + classes)),
    }
    if chances:
        attrs |= {"prob_a": (-random.uniform(0.5, 2, pairs)).tolist(), "prob_b": numbers(random, pairs)}
    for rows in ROWS:
        x = random.normal(size=(rows, 5)).astype(np.float32)
        outputs = ["label", "score"]
        check(ML + "SVMClassifier", x, attrs, "cpu:float32/support_vectors", TIERS[-1], outputs, within=5e-5)


def test_support_vectors_of_a_linear_classifier() -> None:
    random = np.random.default_rng(0)
    attrs = {"coefficients": numbers(random, 3, 5), "rho": [0.5], "classlabels_ints": [1, 2, 3]}
    x = random.normal(size=(70, 5)).astype(np.float32)
    outputs = ["label", "score"]
    check(ML + "SVMClassifier", x, attrs, "cpu:float32/support_vectors", TIERS[-1], outputs, within=2e-5)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("features", [1, 3, 16, 37])
def test_norms(tier: str, norm: str, features: int) -> None:
    random = np.random.default_rng(features)
    for rows in ROWS:
        x = random.normal(size=(rows, features)).astype(np.float32)
        x[rows // 2 : rows // 2 + 1] = 0
        x[rows // 3 : rows // 3 + 1] *= np.float32(1e30)
        check(ML + "Normalizer", x, {"norm": norm}, "cpu:float32/normalizer", tier, ["y"], within=3e-7)


@pytest.mark.parametrize("keys", ["strings", "int64s", "floats"])
@pytest.mark.parametrize("values", ["strings", "int64s", "floats"])
def test_labels(keys: str, values: str) -> None:
    random = np.random.default_rng(0)
    lists: dict[str, list[Any]] = {
        "strings": [*WORDS, "ash"],
        "int64s": [3, -1, 1 << 40, 0, 5, 3],
        "floats": [0.5, float("nan"), -0.0, 1e30, -2.0, 0.5],
    }
    attrs = {f"keys_{keys}": lists[keys], f"values_{values}": lists[values]}
    pool = {
        "strings": np.array([*WORDS, "other"], object),
        "int64s": np.array([3, -1, 1 << 40, 0, 5, 7]),
        "floats": np.array([0.5, np.nan, 0.0, 1e30, 4, 5], np.float32),
    }[keys]
    for rows in ROWS:
        check(ML + "LabelEncoder", random.choice(pool, (rows, 3)), attrs, "cpu/lookup", TIERS[-1], ["y"], within=0)


def test_categories() -> None:
    random = np.random.default_rng(0)
    attrs = {"cats_int64s": [1, 2, 3, 4, 5], "cats_strings": WORDS}
    words = random.choice(np.array([*WORDS, "x"], object), (9, 2))
    check(ML + "CategoryMapper", words, attrs, "cpu/lookup", TIERS[-1], ["y"], within=0)
    check(ML + "CategoryMapper", random.integers(0, 8, (9, 2)), attrs, "cpu/lookup", TIERS[-1], ["y"], within=0)
    check(ML + "OneHotEncoder", words, {"cats_strings": WORDS}, "cpu/lookup", TIERS[-1], ["y"], within=0)
    floats = random.normal(size=(9, 2)).astype(np.float32) * 3
    check(ML + "OneHotEncoder", floats, {"cats_int64s": [0, -1, 2]}, "cpu/lookup", TIERS[-1], ["y"], within=0)


def test_an_element_that_is_no_category() -> None:
    x = np.array([[1], [4]])
    graph = graph_of(ML + "OneHotEncoder", {"x": x}, ["y"], {"cats_int64s": [1, 2], "zeros": 0})
    module = compile_pinned(graph, TIERS[-1], {"node": "cpu/lookup"}).module
    with pytest.raises(ShapeError, match="an element must be a category. Got element 1 outside them"):
        module.call([x])


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skips", [0, 1, 5])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 2), (2, 3), (3, 3)])
def test_n_grams(mode: str, skips: int, lengths: tuple[int, int]) -> None:
    random = np.random.default_rng([skips, *lengths])
    words = WORDS[:4]
    pool = [*words, "ash", *random.choice(words, 12), *random.choice(words, 9)]
    attrs: dict[str, Any] = {
        "mode": mode,
        "min_gram_length": lengths[0],
        "max_gram_length": lengths[1],
        "max_skip_count": skips,
        "ngram_counts": [0, 5, 17],
        "ngram_indexes": random.integers(0, 12, 14).tolist(),
        "pool_strings": [str(word) for word in pool],
        "weights": numbers(random, 14),
    }
    for rows, size in ((0, 4), (1, 1), (3, 2), (7, 9)):
        x = random.choice(np.array([*words, "x"], object), (rows, size))
        check("TfIdfVectorizer", x, attrs, "cpu/lookup", TIERS[-1], ["y"], within=1e-6)
    codes = {word: i for i, word in enumerate(words)}
    attrs["pool_int64s"] = [codes[word] for word in attrs.pop("pool_strings")]
    check("TfIdfVectorizer", random.integers(0, 6, (5, 8)), attrs, "cpu/lookup", TIERS[-1], ["y"], within=1e-6)


@pytest.mark.parametrize(
    ("op", "routine", "attrs", "reason"),
    [
        ("LinearRegressor", "cpu:float32/linear_model", {"coefficients": [1.0]}, "do not fit the features"),
        (
            "LinearClassifier",
            "cpu:float32/linear_model",
            {"coefficients": [1.0] * 3, "classlabels_strings": ["a", "b"]},
            "strings",
        ),
        ("SVMRegressor", "cpu:float32/support_vectors", {"coefficients": [1.0]}, "do not fit the features"),
    ],
)
def test_what_is_left_to_the_reference(op: str, routine: str, attrs: dict[str, Any], reason: str) -> None:
    outputs = ["label", "score"] if op.endswith("Classifier") else ["y"]
    graph = graph_of(ML + op, {"x": np.zeros((2, 3), np.float32)}, outputs, attrs)
    assert reason in rejections(graph, TIERS[-1], "node")[routine]


def test_no_features_of_float64() -> None:
    graph = graph_of(ML + "LinearRegressor", {"x": np.zeros((2, 3))}, ["y"], {"coefficients": [1.0] * 3})
    assert rejections(graph, TIERS[-1], "node")["cpu:float32/linear_model"] == "the features are not float32"

"""Models of tables: forests, linear models, support vector machines and pipelines of ``ai.onnx.ml``, as exporters write them.

Nothing is trained: a tree is split at ranks of random rows, so that paths are as long and leaves as likely as in a
trained one. Nothing but onnx and numpy is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

__all__ = ["FORESTS", "PIPELINES", "Ensemble", "Table", "grow", "single_node"]

ML = "ai.onnx.ml"
WORDS = ["red", "green", "blue", "small", "medium", "large", "north", "south", "east", "west", "yes", "no"]

Feeds = dict[str, np.ndarray[Any, Any]]
Growth = Callable[[np.random.Generator, np.ndarray[Any, Any]], "Tree"]


@dataclass(frozen=True)
class Table:
    """A model and what feeds it: ``feeds(rows)`` makes so many rows."""

    name: str
    model: Callable[[], onnx.ModelProto]
    feeds: Callable[[int], Feeds]
    gives_numbers: bool = True  # neither strings nor maps


@dataclass
class Tree:
    """Nodes in pre-order; a leaf has no children (0) and a share of the rows."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    when_true: list[int] = field(default_factory=list)
    when_false: list[int] = field(default_factory=list)

    def add(self, feature: int = 0, threshold: float = 0.0) -> int:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.when_true.append(0)
        self.when_false.append(0)
        return len(self.feature) - 1


def _split(rng: np.random.Generator, rows: np.ndarray[Any, Any]) -> tuple[int, float, Any]:
    feature = int(rng.integers(rows.shape[1]))
    column = rows[:, feature]
    rank = int((len(rows) - 1) * rng.uniform(0.1, 0.9))
    threshold = float(np.partition(column, rank)[rank])
    return feature, threshold, column <= threshold


def grow_by_depth(depth: int, stops: float = 0.1) -> Growth:
    """Trees as XGBoost grows them: level by level, with some leaves above the last level."""

    def grown(rng: np.random.Generator, rows: np.ndarray[Any, Any]) -> Tree:
        tree = Tree()

        def descend(part: np.ndarray[Any, Any], level: int) -> int:
            at = tree.add()
            if level == depth or len(part) < 2 or (level > 1 and rng.random() < stops):
                return at
            tree.feature[at], tree.threshold[at], goes = _split(rng, part)
            tree.when_true[at] = descend(part[goes], level + 1)
            tree.when_false[at] = descend(part[~goes], level + 1)
            return at

        descend(rows, 0)
        return tree

    return grown


def grow_by_leaf(leaves: int) -> Growth:
    """Trees as LightGBM grows them: the leaf that gains most is split next, whatever its depth."""

    def grown(rng: np.random.Generator, rows: np.ndarray[Any, Any]) -> Tree:
        tree = Tree()
        tree.add()
        waiting = [(float(len(rows)), 0, rows)]
        for _ in range(leaves - 1):
            waiting.sort(key=lambda entry: entry[0])
            _, at, part = waiting.pop()
            if len(part) < 2:
                break
            tree.feature[at], tree.threshold[at], goes = _split(rng, part)
            for chosen in (goes, ~goes):
                child = tree.add()
                (tree.when_true if chosen is goes else tree.when_false)[at] = child
                waiting.append((len(part[chosen]) * rng.uniform(0.2, 1), child, part[chosen]))
        return tree

    return grown


def grow_to_the_end(samples: int) -> Growth:
    """Trees as scikit-learn's forests grow them: until a leaf holds a single one of the rows it was given."""

    def grown(rng: np.random.Generator, rows: np.ndarray[Any, Any]) -> Tree:
        part = rows[rng.permutation(len(rows))[:samples]]
        return grow_by_depth(64, stops=0.0)(rng, part)

    return grown


@dataclass(frozen=True)
class Ensemble:
    """What an ensemble is made of.

    ``votes``: "tree" where each tree votes for one class in turn (boosting), "leaf" where each leaf votes for all by their shares.
    """

    trees: int
    growth: Growth
    features: int = 20
    op: str = "TreeEnsembleRegressor"
    targets: int = 1
    votes: str = "tree"
    post_transform: str = "NONE"
    aggregate: str = "SUM"
    mode: str = "BRANCH_LEQ"
    missing: bool = False
    dtype: type = np.float32
    base: bool = False
    labels: Sequence[str] | None = None
    zip_map: bool = False
    seed: int = 0


def grow(ensemble: Ensemble) -> list[Tree]:
    """Grow the trees of an ensemble over random rows of its own."""
    rng = np.random.default_rng(ensemble.seed)
    rows = rng.standard_normal((2000, ensemble.features), dtype=np.float32)
    return [ensemble.growth(rng, rows) for _ in range(ensemble.trees)]


def _vote(rng: np.random.Generator, e: Ensemble, tree: int) -> list[tuple[int, float]]:
    if e.votes == "leaf" and e.targets == 1:
        return [(0, float(rng.uniform()) / e.trees)]
    if e.votes == "leaf":
        shares = rng.dirichlet(np.full(e.targets, 0.3)) / (1 if e.aggregate == "AVERAGE" else e.trees)
        return [(target, float(share)) for target, share in enumerate(shares)]
    return [(tree % e.targets, float(rng.normal() * 0.1))]


def _named_attributes(e: Ensemble, trees: list[Tree]) -> dict[str, Any]:
    rng = np.random.default_rng(e.seed + 1)
    prefix = "class" if e.op == "TreeEnsembleClassifier" else "target"
    keys = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    nodes: dict[str, list[Any]] = {f"nodes_{key}": [] for key in keys}
    votes: dict[str, list[Any]] = {f"{prefix}_{key}": [] for key in ("treeids", "nodeids", "ids", "weights")}
    for number, tree in enumerate(trees):
        for at, feature in enumerate(tree.feature):
            leaf = tree.when_true[at] == 0
            mode = "LEAF" if leaf else e.mode
            fields = (number, at, feature, mode, tree.threshold[at], tree.when_true[at], tree.when_false[at])
            for column, value in zip(nodes.values(), fields, strict=True):
                column.append(value)
            for target, weight in _vote(rng, e, number) if leaf else []:
                for column, value in zip(votes.values(), (number, at, target, weight), strict=True):
                    column.append(value)
    attributes = {**nodes, **votes, "post_transform": e.post_transform}
    if e.missing:
        attributes["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(nodes["nodes_modes"])).tolist()
    if e.dtype == np.float64:
        for key in ("nodes_values", f"{prefix}_weights"):
            values = np.array(attributes.pop(key), np.float64)
            attributes[f"{key}_as_tensor"] = helper.make_tensor(key, TensorProto.DOUBLE, values.shape, values)
    if e.base:
        attributes["base_values"] = rng.normal(size=e.targets).tolist()
    if e.op == "TreeEnsembleRegressor":
        return {**attributes, "n_targets": e.targets, "aggregate_function": e.aggregate}
    if e.labels is not None:
        return {**attributes, "classlabels_strings": list(e.labels)}
    return {**attributes, "classlabels_int64s": list(range(max(2, e.targets)))}


def _numbered_attributes(e: Ensemble, trees: list[Tree]) -> dict[str, Any]:
    """Those of the TreeEnsemble of opset 5, whose leaves are apart."""
    rng = np.random.default_rng(e.seed + 1)
    kind = TensorProto.DOUBLE if e.dtype == np.float64 else TensorProto.FLOAT
    keys = ("modes", "splits", "featureids", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    nodes: dict[str, list[Any]] = {key: [] for key in keys}
    leaf_targets: list[int] = []
    leaf_weights: list[float] = []
    roots: list[int] = []
    for number, tree in enumerate(trees):
        roots.append(len(nodes["modes"]))
        places: dict[int, tuple[int, int]] = {}
        inner = 0
        for at in range(len(tree.feature)):
            if tree.when_true[at] == 0:
                places[at] = (len(leaf_targets), 1)
                target, weight = _vote(rng, e, number)[0]
                leaf_targets.append(target)
                leaf_weights.append(weight)
            else:
                places[at] = (roots[-1] + inner, 0)
                inner += 1
        for at in range(len(tree.feature)):
            if tree.when_true[at] != 0:
                yes, no = places[tree.when_true[at]], places[tree.when_false[at]]
                fields = (0, tree.threshold[at], tree.feature[at], *yes, *no)
                for column, value in zip(nodes.values(), fields, strict=True):
                    column.append(value)
    attributes: dict[str, Any] = {f"nodes_{key}": nodes[key] for key in keys if key not in ("modes", "splits")}
    attributes["nodes_modes"] = helper.make_tensor("modes", TensorProto.UINT8, [len(nodes["modes"])], nodes["modes"])
    attributes["nodes_splits"] = helper.make_tensor("splits", kind, [len(nodes["splits"])], nodes["splits"])
    attributes["leaf_targetids"] = leaf_targets
    attributes["leaf_weights"] = helper.make_tensor("weights", kind, [len(leaf_weights)], leaf_weights)
    return {**attributes, "tree_roots": roots, "n_targets": e.targets, "aggregate_function": 1, "post_transform": 0}


class Pipeline:
    """A graph in the making whose nodes are of both domains."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: int, width: int) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, ["N", width]))
        return name

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        name = f"k{len(self.initializers)}"
        self.initializers.append(onnx.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def ml(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        return self.add(op, *inputs, outputs=outputs, domain=ML, **attributes)

    def output(self, name: str, dtype: int) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, dtype, None))

    def output_maps(self, scores: str, labels: Sequence[Any]) -> None:
        """Scores as skl2onnx gives them where they are wanted with their labels."""
        strings = isinstance(labels[0], str)
        names: dict[str, Any] = {"classlabels_strings" if strings else "classlabels_int64s": list(labels)}
        zipped = self.ml("ZipMap", scores, **names)
        key = TensorProto.STRING if strings else TensorProto.INT64
        value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, value))
        self.outputs.append(helper.make_value_info(zipped, maps))

    def model(self, ml_opset: int = 3) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "table", self.inputs, self.outputs, self.initializers)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, ml_opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _rows(features: int, dtype: type, *, nans: bool = False) -> Callable[[int], Feeds]:
    def feeds(rows: int) -> Feeds:
        rng = np.random.default_rng(rows)
        x: np.ndarray[Any, Any] = rng.standard_normal((rows, features)).astype(dtype)
        if nans:
            x[rng.random(x.shape) < 0.05] = np.nan
        return {"x": x}

    return feeds


def ensemble_model(e: Ensemble) -> onnx.ModelProto:
    """Write the model of an ensemble: one node, and for a classifier what skl2onnx puts behind it."""
    p = Pipeline()
    x = p.input("x", TensorProto.DOUBLE if e.dtype == np.float64 else TensorProto.FLOAT, e.features)
    trees = grow(e)
    if e.op == "TreeEnsemble":
        p.output(p.ml(e.op, x, **_numbered_attributes(e, trees)), p.inputs[0].type.tensor_type.elem_type)
        return p.model(5)
    attributes = _named_attributes(e, trees)
    if e.op == "TreeEnsembleRegressor":
        p.output(p.ml(e.op, x, **attributes), TensorProto.FLOAT)
        return p.model()
    label, scores = p.ml(e.op, x, outputs=2, **attributes)
    p.output(label, TensorProto.INT64 if e.labels is None else TensorProto.STRING)
    if e.zip_map:
        p.output_maps(scores, e.labels or list(range(max(2, e.targets))))
    else:
        p.output(scores, TensorProto.FLOAT)
    return p.model()


def _forest(name: str, e: Ensemble) -> Table:
    feeds = _rows(e.features, e.dtype, nans=e.missing)
    return Table(name, lambda: ensemble_model(e), feeds, gives_numbers=not e.zip_map and e.labels is None)


_CLASSIFIER = "TreeEnsembleClassifier"
FORESTS: list[Table] = [
    _forest("lgbm-10x31", Ensemble(10, grow_by_leaf(31))),
    _forest("lgbm-200x31", Ensemble(200, grow_by_leaf(31), 30)),
    _forest("lgbm-200x31-nan", Ensemble(200, grow_by_leaf(31), 30, missing=True)),
    _forest("lgbm-2000x31", Ensemble(2000, grow_by_leaf(31), 50)),
    _forest("lgbm-500x127", Ensemble(500, grow_by_leaf(127), 50)),
    _forest("lgbm-binary-100x31", Ensemble(100, grow_by_leaf(31), 30, _CLASSIFIER, post_transform="LOGISTIC")),
    _forest(
        "lgbm-5class-500x31",
        Ensemble(500, grow_by_leaf(31), 30, _CLASSIFIER, targets=5, post_transform="SOFTMAX", zip_map=True),
    ),
    _forest("xgb-100x6", Ensemble(100, grow_by_depth(6), 20, mode="BRANCH_LT", missing=True, base=True)),
    _forest("xgb-1000x3", Ensemble(1000, grow_by_depth(3), 20, mode="BRANCH_LT", base=True)),
    _forest("xgb-500x8", Ensemble(500, grow_by_depth(8), 60, mode="BRANCH_LT", base=True)),
    _forest(
        "xgb-3class-300x6",
        Ensemble(300, grow_by_depth(6), 20, _CLASSIFIER, targets=3, mode="BRANCH_LT", post_transform="SOFTMAX"),
    ),
    _forest("stumps-300", Ensemble(300, grow_by_depth(1, 0), 20)),
    _forest(
        "rf-100x1000-3class",
        Ensemble(100, grow_to_the_end(1000), 20, _CLASSIFIER, targets=3, votes="leaf", zip_map=True),
    ),
    _forest("rf-100x500-binary", Ensemble(100, grow_to_the_end(500), 30, _CLASSIFIER, votes="leaf")),
    _forest(
        "rf-100x300-strings",
        Ensemble(100, grow_to_the_end(300), 20, _CLASSIFIER, targets=4, votes="leaf", labels=WORDS[:4]),
    ),
    _forest("rf-regressor-50x2000", Ensemble(50, grow_to_the_end(2000), 10, aggregate="AVERAGE")),
    _forest("rf-20targets-50x8", Ensemble(50, grow_by_depth(8), 20, targets=20, votes="leaf")),
    _forest("ensemble5-200x31", Ensemble(200, grow_by_leaf(31), 30, "TreeEnsemble")),
    _forest("ensemble5-double-100x6", Ensemble(100, grow_by_depth(6), 30, "TreeEnsemble", dtype=np.float64)),
    _forest("double-100x31", Ensemble(100, grow_by_leaf(31), 30, dtype=np.float64)),
    _forest("max-100x5", Ensemble(100, grow_by_depth(5), 10, aggregate="MAX")),
]


def single_node(
    op: str, inputs: Mapping[str, tuple[int, int]], outputs: Sequence[int], **attributes: Any
) -> onnx.ModelProto:
    """Write the model of one operator; inputs are (dtype, width) by name, outputs dtypes."""
    p = Pipeline()
    names = [p.input(name, dtype, width) for name, (dtype, width) in inputs.items()]
    made = p.ml(op, *names, outputs=len(outputs), **attributes)
    for name, dtype in zip([made] if len(outputs) == 1 else made, outputs, strict=True):
        p.output(name, dtype)
    return p.model()


def _linear(classes: int, features: int, transform: str = "SOFTMAX") -> onnx.ModelProto:
    """A scaled logistic regression, as skl2onnx writes the pipeline of both."""
    rng = np.random.default_rng(classes)
    p = Pipeline()
    x = p.input("x", TensorProto.FLOAT, features)
    x = p.ml("Scaler", x, offset=rng.normal(size=features).tolist(), scale=rng.uniform(0.5, 2, features).tolist())
    label, scores = p.ml(
        "LinearClassifier",
        x,
        outputs=2,
        coefficients=rng.normal(size=classes * features).tolist(),
        intercepts=rng.normal(size=classes).tolist(),
        classlabels_ints=list(range(classes)),
        multi_class=1,
        post_transform=transform,
    )
    scores = p.ml("Normalizer", scores, norm="L1")
    p.output(p.add("Cast", label, to=TensorProto.INT64), TensorProto.INT64)
    p.output_maps(scores, list(range(classes)))
    return p.model()


def _linear_regressor(features: int, targets: int) -> onnx.ModelProto:
    rng = np.random.default_rng(features)
    return single_node(
        "LinearRegressor",
        {"x": (TensorProto.FLOAT, features)},
        [TensorProto.FLOAT],
        coefficients=rng.normal(size=targets * features).tolist(),
        intercepts=rng.normal(size=targets).tolist(),
        targets=targets,
    )


def _svm(kernel: str, classes: int, supports: int, features: int, *, chances: bool) -> onnx.ModelProto:
    rng = np.random.default_rng(supports)
    pairs = classes * (classes - 1) // 2
    counts = np.diff([0, *sorted(rng.integers(1, supports, classes - 1)), supports]).tolist()
    attributes: dict[str, Any] = {
        "kernel_type": kernel,
        "kernel_params": [0.5 / features, 0.3, 3.0],
        "coefficients": rng.normal(size=(classes - 1) * supports).tolist(),
        "support_vectors": rng.normal(size=supports * features).tolist(),
        "vectors_per_class": counts,
        "rho": rng.normal(size=pairs).tolist(),
        "classlabels_ints": list(range(classes)),
        "post_transform": "NONE",
    }
    if chances:
        attributes["prob_a"] = (-rng.uniform(0.5, 2, pairs)).tolist()
        attributes["prob_b"] = (rng.normal(size=pairs) * 0.1).tolist()
    inputs = {"x": (TensorProto.FLOAT, features)}
    return single_node("SVMClassifier", inputs, [TensorProto.INT64, TensorProto.FLOAT], **attributes)


def _svm_regressor(kernel: str, supports: int, features: int) -> onnx.ModelProto:
    rng = np.random.default_rng(supports)
    return single_node(
        "SVMRegressor",
        {"x": (TensorProto.FLOAT, features)},
        [TensorProto.FLOAT],
        kernel_type=kernel,
        kernel_params=[0.5 / features, 0.3, 3.0],
        coefficients=rng.normal(size=supports).tolist(),
        support_vectors=rng.normal(size=supports * features).tolist(),
        n_supports=supports,
        rho=[0.25],
    )


def _mixed(numbers: int, words: int, *, forest: bool) -> onnx.ModelProto:
    """Numbers imputed and scaled, words one-hot encoded, side by side into a model: a ColumnTransformer."""
    rng = np.random.default_rng(numbers)
    p = Pipeline()
    x = p.input("x", TensorProto.FLOAT, numbers)
    x = p.ml("Imputer", x, imputed_value_floats=rng.normal(size=numbers).tolist(), replaced_value_float=float("nan"))
    x = p.ml("Scaler", x, offset=rng.normal(size=numbers).tolist(), scale=rng.uniform(0.5, 2, numbers).tolist())
    w = p.input("w", TensorProto.STRING, words)
    parts = [x]
    for column in range(words):
        picked = p.ml("ArrayFeatureExtractor", w, p.constant([column], np.int64))
        hot = p.ml("OneHotEncoder", picked, cats_strings=WORDS, zeros=1)
        parts.append(p.add("Reshape", hot, p.constant([-1, len(WORDS)], np.int64)))
    x = p.add("Concat", *parts, axis=1)
    width = numbers + words * len(WORDS)
    if forest:
        e = Ensemble(100, grow_by_leaf(31), width, _CLASSIFIER, post_transform="LOGISTIC")
        label, scores = p.ml(_CLASSIFIER, x, outputs=2, **_named_attributes(e, grow(e)))
    else:
        label, scores = p.ml(
            "LinearClassifier",
            x,
            outputs=2,
            coefficients=rng.normal(size=2 * width).tolist(),
            intercepts=[0.1, -0.1],
            classlabels_strings=["no", "yes"],
            multi_class=1,
            post_transform="LOGISTIC",
        )
    p.output(label, TensorProto.INT64 if forest else TensorProto.STRING)
    p.output_maps(scores, [0, 1] if forest else ["no", "yes"])
    return p.model()


def _mixed_rows(numbers: int, words: int) -> Callable[[int], Feeds]:
    def feeds(rows: int) -> Feeds:
        rng = np.random.default_rng(rows)
        x = rng.standard_normal((rows, numbers), dtype=np.float32)
        x[rng.random(x.shape) < 0.1] = np.nan
        return {"x": x, "w": rng.choice(np.array([*WORDS, "other"], object), (rows, words))}

    return feeds


def _words(width: int) -> Callable[[int], Feeds]:
    return lambda rows: {"w": np.random.default_rng(rows).choice(np.array([*WORDS, "other"], object), (rows, width))}


def _tf_idf(vocabulary: int) -> onnx.ModelProto:
    """Counts of words and of pairs of words, weighted: a TfidfVectorizer behind its tokenizer."""
    rng = np.random.default_rng(vocabulary)
    words = [f"{word}{i}" for i in range(-(-vocabulary // len(WORDS))) for word in WORDS][:vocabulary]
    pairs = [str(word) for word in rng.choice(words, 2 * vocabulary)]
    p = Pipeline()
    w = p.input("w", TensorProto.STRING, 20)
    counts = p.add(
        "TfIdfVectorizer",
        w,
        mode="TFIDF",
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=0,
        ngram_counts=[0, vocabulary],
        ngram_indexes=list(range(2 * vocabulary)),
        pool_strings=[*words, *pairs],
        weights=rng.uniform(0.5, 2, 2 * vocabulary).tolist(),
    )
    p.output(p.ml("Normalizer", counts, norm="L2"), TensorProto.FLOAT)
    return p.model()


def _tf_idf_rows(vocabulary: int) -> Callable[[int], Feeds]:
    words = [f"{word}{i}" for i in range(-(-vocabulary // len(WORDS)) + 2) for word in WORDS]
    return lambda rows: {"w": np.random.default_rng(rows).choice(np.array(words, object), (rows, 20))}


def _preprocessing() -> onnx.ModelProto:
    """Two tables of numbers imputed, binarized, scaled and normalized, then laid side by side."""
    rng = np.random.default_rng(3)
    p = Pipeline()
    a, b = p.input("x", TensorProto.FLOAT, 16), p.input("y", TensorProto.INT64, 4)
    a = p.ml("Imputer", a, imputed_value_floats=[0.5], replaced_value_float=float("nan"))
    bits = p.ml("Binarizer", a, threshold=0.2)
    a = p.ml("Scaler", a, offset=rng.normal(size=16).tolist(), scale=rng.uniform(0.5, 2, 16).tolist())
    a = p.ml("Normalizer", a, norm="L2")
    b = p.ml("Scaler", b, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 0.25, 1.0, 2.0])
    features = p.ml("FeatureVectorizer", a, bits, b, inputdimensions=[16, 16, 4])
    p.output(p.ml("ArrayFeatureExtractor", features, p.constant([1, 3, 17, 33, 20], np.int64)), TensorProto.FLOAT)
    return p.model()


def _preprocessing_rows(rows: int) -> Feeds:
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 16), dtype=np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return {"x": x, "y": rng.integers(-5, 5, (rows, 4))}


def _encoder(values: str) -> onnx.ModelProto:
    keys = {"keys_strings": [f"{word}{i}" for i in range(100) for word in WORDS]}
    many = len(keys["keys_strings"])
    attributes = (
        {"values_int64s": list(range(many))}
        if values == "int64"
        else {"values_floats": [float(i) for i in range(many)]}
    )
    dtype = TensorProto.INT64 if values == "int64" else TensorProto.FLOAT
    return single_node("LabelEncoder", {"w": (TensorProto.STRING, 3)}, [dtype], **keys, **attributes)


def _number_encoder() -> onnx.ModelProto:
    return single_node(
        "LabelEncoder",
        {"y": (TensorProto.INT64, 4)},
        [TensorProto.FLOAT],
        keys_int64s=list(range(-500, 500)),
        values_floats=[float(i) * 0.5 for i in range(1000)],
        default_float=-1.0,
    )


def _integers(width: int, low: int, high: int) -> Callable[[int], Feeds]:
    return lambda rows: {"y": np.random.default_rng(rows).integers(low, high, (rows, width))}


PIPELINES: list[Table] = [
    Table("logistic-2x20", lambda: _linear(2, 20), _rows(20, np.float32)),
    Table("logistic-10x100", lambda: _linear(10, 100), _rows(100, np.float32)),
    Table("logistic-5x30-ovr", lambda: _linear(5, 30, "LOGISTIC"), _rows(30, np.float32)),
    Table("linear-30", lambda: _linear_regressor(30, 1), _rows(30, np.float32)),
    Table("linear-200x8", lambda: _linear_regressor(200, 8), _rows(200, np.float32)),
    Table("svc-rbf-3x300", lambda: _svm("RBF", 3, 300, 20, chances=True), _rows(20, np.float32)),
    Table("svc-poly-2x100", lambda: _svm("POLY", 2, 100, 10, chances=False), _rows(10, np.float32)),
    Table("svc-linear-4x200", lambda: _svm("LINEAR", 4, 200, 30, chances=False), _rows(30, np.float32)),
    Table("svr-rbf-500", lambda: _svm_regressor("RBF", 500, 20), _rows(20, np.float32)),
    Table("svr-sigmoid-100", lambda: _svm_regressor("SIGMOID", 100, 20), _rows(20, np.float32)),
    Table("mixed-logistic", lambda: _mixed(10, 3, forest=False), _mixed_rows(10, 3)),
    Table("mixed-forest", lambda: _mixed(10, 3, forest=True), _mixed_rows(10, 3)),
    Table("preprocessing", _preprocessing, _preprocessing_rows),
    Table("label-encoder-strings", lambda: _encoder("int64"), _words(3)),
    Table("label-encoder-numbers", _number_encoder, _integers(4, -600, 600)),
    Table("tf-idf-1000", lambda: _tf_idf(1000), _tf_idf_rows(1000)),
]

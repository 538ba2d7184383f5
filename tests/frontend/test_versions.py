"""No version of an ONNX operator is taken over unless somebody has looked at what it means."""

from __future__ import annotations

from collections import defaultdict

import onnx
import pytest
from neo import _native
from neo.frontend.onnx import control
from neo.frontend.onnx.registry import find_converter
from neo.frontend.onnx.versions import KNOWN_DOMAINS, NEVER, VERSIONS, newest_opset

# Attributes that newer versions added to operators whose older versions are taken over: their defaults are what the older
# versions did.
ADDED = {
    "ArgMax": {"select_last_index"},
    "ArgMin": {"select_last_index"},
    "Attention": {"left_window_size", "right_window_size"},
    "AveragePool": {"ceil_mode", "count_include_pad", "dilations"},
    "Cast": {"round_mode", "saturate"},
    "CastLike": {"round_mode", "saturate"},
    "DepthToSpace": {"mode"},
    "DequantizeLinear": {"axis", "block_size", "output_dtype"},
    "GRU": {"layout"},
    "GatherND": {"batch_dims"},
    "LSTM": {"layout"},
    "LabelEncoder": {"default_tensor", "keys_tensor", "values_tensor"},
    "LpPool": {"ceil_mode", "dilations"},
    "MaxPool": {"ceil_mode", "dilations", "storage_order"},
    "QuantizeLinear": {"axis", "block_size", "output_dtype", "precision", "saturate"},
    "RNN": {"layout"},
    "Range": {"stash_type"},
    "Reshape": {"allowzero"},
    "Resize": {"antialias", "axes", "keep_aspect_ratio_policy"},
    "ScatterElements": {"reduction"},
    "ScatterND": {"reduction"},
    "Shape": {"end", "start"},
    "SpaceToDepth": {"mode"},
    "TopK": {"largest", "sorted"},
    "TreeEnsembleClassifier": {
        "base_values_as_tensor",
        "class_weights_as_tensor",
        "nodes_hitrates_as_tensor",
        "nodes_values_as_tensor",
    },
    "TreeEnsembleRegressor": {
        "base_values_as_tensor",
        "nodes_hitrates_as_tensor",
        "nodes_values_as_tensor",
        "target_weights_as_tensor",
    },
}

# Operators of ONNX that neo refuses altogether.
REFUSED = {("", "ImageDecoder")}

HISTORY: dict[tuple[str, str], list[onnx.defs.OpSchema]] = defaultdict(list)
for _schema in onnx.defs.get_all_schemas_with_history():
    if _schema.domain in KNOWN_DOMAINS:
        HISTORY[_schema.domain, _schema.name].append(_schema)
for _schemas in HISTORY.values():
    _schemas.sort(key=lambda s: s.since_version)

OPERATORS = sorted(HISTORY)


def spans(key: tuple[str, str]) -> list[tuple[int, int, onnx.defs.OpSchema]]:
    """Give each version of an operator with the opsets in which it holds: from, up to and including."""
    schemas = HISTORY[key]
    ends = [s.since_version - 1 for s in schemas[1:]] + [newest_opset(key[0])]
    return [(s.since_version, end, s) for s, end in zip(schemas, ends, strict=True)]


def is_function(schema: onnx.defs.OpSchema) -> bool:
    return schema.has_function or schema.has_context_dependent_function


@pytest.mark.parametrize("key", OPERATORS, ids=lambda k: f"{k[0]}.{k[1]}".lstrip("."))
def test_every_version_is_taken_over_converted_or_refused(key: tuple[str, str]) -> None:
    domain, op = key
    if key in REFUSED:
        assert key not in VERSIONS
        return
    if key not in VERSIONS:
        assert all(is_function(schema) for _, _, schema in spans(key))
        return
    since, newest = VERSIONS[key]
    for first, last, schema in spans(key):
        converted = {find_converter(domain, op, opset) is not None for opset in range(first, last + 1)}
        if domain == "" and op in control.OPERATORS:
            assert converted == {False}
            continue
        assert len(converted) == 1, f"a converter covers a part of version {schema.since_version}"
        taken = since <= schema.since_version <= newest
        assert taken or converted == {True}, f"nobody handles version {schema.since_version}"


@pytest.mark.parametrize("key", sorted(VERSIONS), ids=lambda k: f"{k[0]}.{k[1]}".lstrip("."))
def test_every_version_has_been_looked_at(key: tuple[str, str]) -> None:
    since, newest = VERSIONS[key]
    versions = [schema.since_version for schema in HISTORY[key]]
    assert newest == versions[-1]
    assert since == NEVER or since in versions


@pytest.mark.parametrize("key", sorted(VERSIONS), ids=lambda k: f"{k[0]}.{k[1]}".lstrip("."))
def test_versions_that_are_taken_over_differ_by_additions_only(key: tuple[str, str]) -> None:
    since, _ = VERSIONS[key]
    schemas = [schema for schema in HISTORY[key] if schema.since_version >= since]
    if not schemas:
        return
    newest = schemas[-1]
    added = set()
    for schema in schemas:
        for name, attribute in schema.attributes.items():
            if name == "consumed_inputs":
                continue
            assert name in newest.attributes, f"version {schema.since_version} has {name}"
            now = newest.attributes[name]
            assert (attribute.type, attribute.default_value) == (now.type, now.default_value), name
        inputs = [i.option for i in schema.inputs]
        optional = onnx.defs.OpSchema.FormalParameterOption.Optional
        for then, now in zip(schema.inputs, newest.inputs, strict=False):
            assert then.option == now.option or now.option == optional
        assert all(i.option == optional for i in newest.inputs[len(inputs) :])
        assert len(schema.outputs) <= len(newest.outputs)
        added |= set(newest.attributes) - set(schema.attributes)
    assert added == ADDED.get(key[1], set())


def test_every_operator_that_is_taken_over_exists() -> None:
    names = set(_native.op_names())
    for (domain, op), version in VERSIONS.items():
        if version.since != NEVER:
            assert (f"{domain}.{op}" if domain else op) in names

"""The stub of the extension says what the extension has."""

import ast
import re
from pathlib import Path

import neo._native
import numpy as np
import pytest

_native = neo._native
extension = __import__("neo._neo", fromlist=["_neo"])
STUB = Path(neo.__file__).with_name("_neo.pyi")
TREE = ast.parse(STUB.read_text(encoding="utf-8"))
TYPED_DICTS = {
    node.name: {line.target.id for line in node.body}
    for node in TREE.body
    if isinstance(node, ast.ClassDef) and node.bases
}
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef) and not node.bases}
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}

# What pybind11 prints for an argument or a result, to what the stub may say for it.
_SAME = {
    "typing.SupportsInt | typing.SupportsIndex": "int",
    "typing.SupportsFloat | typing.SupportsIndex": "float",
    "collections.abc.": "",
    "neo._neo.": "",
    "numpy.typing.": "",
}


def public_names(scope):
    return {name for name in vars(scope) if not name.startswith("_")}


def methods(node):
    return {
        item.name: item
        for item in node.body
        if isinstance(item, ast.FunctionDef) and not item.decorator_list and item.name != "__init__"
    }


def properties(node, decorator="property"):
    return {
        item.name
        for item in node.body
        if isinstance(item, ast.FunctionDef) and any(ast.unparse(d).endswith(decorator) for d in item.decorator_list)
    }


def printed_signature(function):
    """Names with defaults, and the result, from the first line of a docstring: name(a: int, b: str = '') -> list."""
    line = function.__doc__.splitlines()[0]
    for long, short in _SAME.items():
        line = line.replace(long, short)
    return ast.parse(f"def {line}: ...").body[0]


def arguments(function):
    names = [a.arg for a in function.args.args]
    defaults = [ast.literal_eval(d) for d in function.args.defaults]
    return names, defaults


def outer(annotation):
    """The class of an annotation without what it holds: list[int] is list."""
    return None if annotation is None else re.split(r"\[", ast.unparse(annotation))[0]


def callables():
    for name in FUNCTIONS:
        yield pytest.param(FUNCTIONS[name], extension, id=name)
    for owner, node in CLASSES.items():
        for name, method in methods(node).items():
            yield pytest.param(method, getattr(extension, owner), id=f"{owner}.{name}")


def test_the_stub_names_what_the_extension_has():
    assert set(CLASSES) | set(FUNCTIONS) == public_names(extension)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_members_of_its_stub(name):
    members = vars(getattr(extension, name))
    found = {m for m, value in members.items() if isinstance(value, property)}
    assert properties(CLASSES[name]) == found
    assert properties(CLASSES[name], ".setter") == {m for m in found if members[m].fset}
    assert {m for m in methods(CLASSES[name]) if not m.startswith("_")} == public_names(
        getattr(extension, name)
    ) - found


@pytest.mark.parametrize(("stub", "scope"), list(callables()))
def test_a_signature_is_that_of_the_stub(stub, scope):
    printed = printed_signature(vars(scope)[stub.name] if isinstance(scope, type) else getattr(scope, stub.name))
    assert arguments(stub) == arguments(printed)
    assert outer(stub.returns) == outer(printed.returns)


@pytest.mark.parametrize("name", CLASSES)
def test_only_what_the_stub_says_can_be_made(name):
    has_maker = any(isinstance(item, ast.FunctionDef) and item.name == "__init__" for item in CLASSES[name].body)
    if has_maker:
        getattr(extension, name)()
    else:
        with pytest.raises(TypeError, match="No constructor"):
            getattr(extension, name)()


def test_entries_have_the_keys_of_their_stub():
    assert all(set(entry) == TYPED_DICTS["TargetEntry"] for entry in _native.targets())
    assert all(set(entry) == TYPED_DICTS["KnobEntry"] for entry in _native.knobs())
    graph = _native.parse_graph('graph "g" (x: float32[4]) -> (y) { "n": y = Relu(x) : float32[4] }')
    problem = _native.build_problem(graph, "cpu:scalar", 1)
    assert all(set(entry) == TYPED_DICTS["NodeEntry"] for entry in problem.nodes)
    assert all(set(entry) == TYPED_DICTS["TrialEntry"] for entry in _native.make_bench(problem, 1).trials)
    module = problem.lower([0] * len(problem.flat[0]), 0.0, 1)
    assert all(set(entry) == TYPED_DICTS["StepEntry"] for entry in module.steps)
    _, events, _, _ = module.trace([np.ones(4, np.float32)])
    assert events
    assert all(set(entry) == TYPED_DICTS["TraceEntry"] for entry in events)


def test_the_door_to_the_extension_lists_all_of_it():
    assert set(_native.__all__) == public_names(extension)


def test_the_package_says_that_it_is_typed():
    assert STUB.with_name("py.typed").is_file()

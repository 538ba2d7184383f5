"""What ``import neo`` loads, and what waits until it is used."""

import subprocess
import sys

# All of neo that importing it may load, the extension not among it; nothing of it imports numpy.
ALLOWED = (
    *("neo", "neo.compile", "neo.errors", "neo.quantize", "neo.quantize.face", "neo.tune", "neo.version"),
    *("__future__", "dataclasses", "logging", "typing"),
)
HEAVY = (
    *("numpy", "onnx", "onnxruntime", "matplotlib", "ml_dtypes", "scipy", "sqlite3", "google.protobuf"),
    *("neo._neo", "neo.testing", "neo.frontend.onnx", "neo.select", "neo.requirements"),
)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_nothing_heavy():
    assert run(f"import sys, neo; print([name for name in {HEAVY} if name in sys.modules])") == "[]"


def test_import_loads_the_modules_that_are_listed():
    mine = run("import sys, neo; print(sorted(name for name in sys.modules if name.partition('.')[0] == 'neo'))")
    assert mine == str(sorted(name for name in ALLOWED if name.partition(".")[0] == "neo"))


def test_a_compile_leaves_the_names_as_they_are():
    code = """
import neo
text = '<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (y) { y = Relu (x) }'
import onnx
neo.compile(onnx.parser.parse_model(text), threads=1)
import neo.tune.database, neo.quantize.study, neo.compile
print([name for name in neo.__all__ if not hasattr(neo, name)])
print([type(getattr(neo, name)).__name__ for name in ("compile", "tune", "quantize", "load", "Module", "Limits")])
"""
    assert run(code) == "[]\n['function', 'function', 'function', 'function', 'type', 'type']"


def test_every_name_is_there():
    assert run("import neo; print([name for name in dir(neo) if not hasattr(neo, name)])") == "[]"
    assert run("from neo import *; print(Tensor.__name__, register_op.__name__)") == "Tensor register_op"


def test_testing_is_there_when_it_is_asked_for():
    assert run("import neo; print(neo.testing.FLOAT_FACTOR)") == "64.0"
    assert run("from neo import testing; print(testing.FLOAT_FACTOR)") == "64.0"


def test_an_attribute_that_is_not_there_is_named():
    assert run("import neo\ntry: neo.nothing\nexcept AttributeError as e: print(e)") == (
        "module 'neo' has no attribute 'nothing'"
    )

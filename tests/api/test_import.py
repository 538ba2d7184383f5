"""What ``import neo`` loads, and what waits until it is used."""

import subprocess
import sys

HEAVY = ("onnx", "onnxruntime", "matplotlib", "ml_dtypes", "scipy", "neo.testing", "neo.frontend.onnx")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_nothing_heavy():
    assert run(f"import sys, neo; print([name for name in {HEAVY} if name in sys.modules])") == "[]"


def test_testing_is_there_when_it_is_asked_for():
    assert run("import neo; print(neo.testing.FLOAT_FACTOR)") == "64.0"
    assert run("from neo import testing; print(testing.FLOAT_FACTOR)") == "64.0"


def test_an_attribute_that_is_not_there_is_named():
    assert run("import neo\ntry: neo.nothing\nexcept AttributeError as e: print(e)") == (
        "module 'neo' has no attribute 'nothing'"
    )

"""The tests of this folder are left out where torch or onnxscript is missing: neo's tests install neither."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") and find_spec("onnxscript") else ["test_*.py"]

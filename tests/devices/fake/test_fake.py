"""A fourth kind of device, which neo does not come with: all of it is in this folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# In a process of its own: a kind of device stays.
CODE = """
import sys
import neo
import numpy as np
from neo import _native
from tests.devices.test_targets import network

neo.load_devices(sys.argv[1])
assert [t["device"] for t in _native.device_targets() if t["name"] == "fake"] == ["fake"]
(kind,) = [k for k in _native.devices() if k["kind"] == "fake"]
assert kind["devices"][0]["platform"] == "plain C", kind
x = np.random.default_rng(0).standard_normal((2, 3, 9, 11)).astype(np.float32)
expected = neo.compile(network()).run({"x": x})
module = neo.compile(network(), target="fake")
assert module.explain().devices["fake"] > 0 and module.explain().devices.get("cpu", 0) == 0
assert "fake:float32:NCHW" in str(module.explain("r"))
given = module.run({"x": x})
np.testing.assert_allclose(given["y"], expected["y"], rtol=1e-5, atol=1e-5)
np.testing.assert_array_equal(given["at"], expected["at"])
try:
    neo.load_devices(sys.argv[1])
except neo.ModelError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("fake") / "libfake.so"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run(["c++", *flags, f"-I{ROOT / 'csrc'}", "-o", path, HERE / "fake_device.cpp"], check=True)
    return path


def run(code, *arguments):
    path = os.pathsep.join([str(ROOT), *(p for p in sys.path if p)])
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_model_runs_on_a_fourth_device(library):
    done = run(CODE, library)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 'must be new. Got "fake"' in done.stdout


def test_what_is_no_library_of_devices_is_refused_in_one_line(tmp_path):
    import neo

    nothing = tmp_path / "nothing.so"
    for path, what in ((nothing, "must be there"), (next(Path("/lib").glob("*/libm.so.6")), "neo_register_devices")):
        with pytest.raises(neo.ResourceError, match=what) as caught:
            neo.load_devices(path)
        assert "\n" not in str(caught.value).split("\nHint:")[0]
    with pytest.raises(neo.DTypeError):
        neo.load_devices(3)

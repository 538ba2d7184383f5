"""Tensors outside the model's file: read from the model's folder only, and every message names the tensor."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.errors.models import constant


def external(folder: Path, **facts: str) -> Path:
    """Save a model whose initializer lies outside the file, as `facts` say."""
    subject = constant(dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in facts.items():
        subject.graph.initializer[0].external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(subject.SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "model"
    inside.mkdir()
    data = np.arange(4, dtype=np.float32).tobytes()
    (inside / "data.bin").write_bytes(data)
    (tmp_path / "secret.bin").write_bytes(data)
    (inside / "link.bin").symlink_to(tmp_path / "secret.bin")
    return inside


def test_external_data_beside_the_model(folder: Path) -> None:
    path = external(folder, location="data.bin", offset="4", length="12")
    result = neo.compile(path)(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(result, [[1, 2, 3], [1, 2, 3]])


OUTSIDE = "external data must lie in the model's folder. Got "
INSIDE = "external data must lie inside its file. Got "


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"location": "../secret.bin"}, OUTSIDE),
        ({"location": "link.bin"}, OUTSIDE),
        ({"location": "/etc/hostname"}, OUTSIDE),
        ({"location": ""}, OUTSIDE),
        ({"location": "a\0b"}, OUTSIDE),
        ({"location": "x" * 5000}, "external data must"),
        ({"location": "."}, "external data must exist. Got no file '.'"),
        ({"location": "missing.bin"}, "external data must exist. Got no file 'missing.bin'"),
        ({"location": "data.bin", "offset": "8"}, f"{INSIDE}offset 8, length 12 of 16 bytes, expected 12 bytes"),
        ({"location": "data.bin", "offset": "-4"}, INSIDE),
        ({"location": "data.bin", "length": "8"}, INSIDE),
        ({"location": "data.bin", "offset": "four"}, "offset and length of external data must be integers"),
        ({"location": "data.bin", "offset": str(1 << 70)}, INSIDE),
    ],
)
def test_external_data(folder: Path, facts: dict[str, str], words: str) -> None:
    with pytest.raises(neo.ModelError) as caught:
        neo.compile(external(folder, **facts))
    assert words in str(caught.value)
    assert "initializer 'w'" in str(caught.value)


def test_external_strings(folder: Path) -> None:
    path = external(folder, location="data.bin")
    subject = onnx.load(path, load_external_data=False)
    subject.graph.initializer[0].data_type = TensorProto.STRING
    path.write_bytes(subject.SerializeToString())
    with pytest.raises(neo.ModelError, match="strings must be in the model itself"):
        neo.compile(path)


def test_a_model_that_other_models_data_is_beside(folder: Path) -> None:
    """External data may lie in a folder below the model's."""
    below = folder / "weights"
    below.mkdir()
    (folder / "data.bin").rename(below / "data.bin")
    path = external(folder, location="weights/data.bin", length="12")
    assert neo.compile(path)(np.zeros((2, 3), np.float32))[0, 2] == 2


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a model as hubs cache it: model and data are links to files of other names in another folder."""
    blobs, revision = tmp_path / "blobs", tmp_path / "snapshots" / "rev" / "onnx"
    blobs.mkdir()
    revision.mkdir(parents=True)
    (blobs / "b").write_bytes(np.arange(3, dtype=np.float32).tobytes())
    external(blobs, location="model.onnx_data").rename(blobs / "a")
    (revision / "model.onnx").symlink_to("../../../blobs/a")
    (revision / "model.onnx_data").symlink_to("../../../blobs/b")
    return revision / "model.onnx"


def test_a_link_beside_a_link(cache: Path) -> None:
    result = neo.compile(cache)(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(result, [[0, 1, 2], [0, 1, 2]])


def test_data_beside_the_file_that_a_link_leads_to(cache: Path) -> None:
    cache.with_name("model.onnx_data").unlink()
    (cache.resolve().parent / "b").rename(cache.resolve().parent / "model.onnx_data")
    result = neo.compile(cache)(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(result, [[0, 1, 2], [0, 1, 2]])


def test_a_link_out_of_both_folders(cache: Path, tmp_path: Path) -> None:
    data = cache.with_name("model.onnx_data")
    data.unlink()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 12)
    data.symlink_to(tmp_path / "secret.bin")
    with pytest.raises(neo.ModelError, match="must lie in the model's folder"):
        neo.compile(cache)


def test_links_of_a_model_that_nobody_has_looked_at(cache: Path) -> None:
    with pytest.raises(neo.ModelError, match="must lie in the model's folder"):
        neo.compile(cache, limits=neo.Limits())

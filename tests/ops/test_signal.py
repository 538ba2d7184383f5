"""Transforms against NumPy's."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run


def pairs(x):
    return np.stack([x.real, x.imag], -1)


@pytest.mark.parametrize("length", [1, 2, 5, 8, 12])
def test_transforms_agree_with_numpy(length):
    random = np.random.default_rng(length)
    x = random.standard_normal((2, 8, 3))
    n = np.array(length)
    axis = np.array(1)
    np.testing.assert_allclose(run("DFT", x[..., None], n, axis), pairs(np.fft.fft(x, length, 1)), atol=1e-12)
    np.testing.assert_allclose(run("DFT", x[..., None], n, axis, onesided=1), pairs(np.fft.rfft(x, length, 1)), atol=1e-12)
    z = pairs(np.fft.fft(x, axis=1))
    np.testing.assert_allclose(run("DFT", z, n, axis, inverse=1), pairs(np.fft.ifft(np.fft.fft(x, axis=1), length, 1)), atol=1e-12)
    half = np.fft.rfft(x, axis=1)
    got = run("DFT", pairs(half), n, axis, inverse=1, onesided=1)
    np.testing.assert_allclose(got[..., 0], np.fft.irfft(half, length, 1) if length > 1 else half.real[:, :1], atol=1e-12)


def test_sizes_of_transforms():
    assert infer("DFT", "float32[B,L,1]", onesided=1) == "float32[B,floordiv(L, 2) + 1,2]"
    assert infer("DFT", "float32[B,L,2]", inverse=1, onesided=1) == "float32[B,2*L - 2,1]"
    window = np.ones(400, np.float32)
    assert infer("STFT", "float32[B,16000,1]", np.array(160), window) == "float32[B,98,201,2]"


def test_complex_input_has_no_onesided_spectrum():
    with pytest.raises(ShapeError, match="real input"):
        infer("DFT", "float32[4,2]", onesided=1)
    with pytest.raises(ModelError, match="real and imaginary parts"):
        infer("DFT", "float32[4,4,1]", None, np.array(-1))


def test_frames_overlap():
    x = np.arange(10, dtype=np.float64).reshape(1, 10, 1)
    got = run("STFT", x, np.array(3), None, np.array(4))
    want = np.stack([np.fft.rfft(x[0, i : i + 4, 0]) for i in (0, 3, 6)])
    np.testing.assert_allclose(got[0], pairs(want), atol=1e-12)
    with pytest.raises(ShapeError, match="fit the signal"):
        run("STFT", x, np.array(3), None, np.array(11))

"""Crops of photographs that benchmarks.crops draws."""

import numpy as np
import pytest

from . import inputs


def test_crops_are_seeded_and_fit_the_network() -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    from benchmarks.crops import crops

    folder = inputs.models_folder() / "images"
    if not folder.exists():
        pytest.skip("the folder of the shared models is absent (set NEO_TEST_MODELS)")
    first, again = (crops(folder, (24, 32), 7) for _ in range(2))
    assert first.shape == (7, 24, 32, 3)
    assert np.array_equal(first, again)
    assert 0 <= first.min() < first.max() <= 255
    assert len({crop.tobytes() for crop in first}) == 7

"""Crops of photographs: what is drawn."""

import numpy as np
import pytest

from tests.models.inputs import models_folder

pytest.importorskip("PIL")


@pytest.mark.skipif(not (models_folder() / "images").exists(), reason="the shared models are not there")
def test_crops_are_seeded_and_fit_the_network() -> None:
    from benchmarks.crops import crops

    first, again = (crops(models_folder() / "images", (24, 32), 7) for _ in range(2))
    assert first.shape == (7, 24, 32, 3)
    assert np.array_equal(first, again)
    assert 0 <= first.min() < first.max() <= 255
    assert len({crop.tobytes() for crop in first}) == 7

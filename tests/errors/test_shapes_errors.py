"""One case per message for sizes given to a compilation."""

import neo
import pytest
from neo import demo


def refusal(shapes):
    with pytest.raises(neo.ModelError) as caught:
        neo.compile(demo.model_bytes(), shapes=shapes)
    return str(caught.value)


@pytest.mark.parametrize("size", [-1, "4", (4, 2), (1, 2, 3), 1 << 46, 2.0])
def test_shapes_that_are_no_size(size):
    assert f"shapes must be sizes or (least, most). Got {size!r} for 'N'" in refusal({"N": size})


def test_shapes_for_a_symbol_that_the_model_lacks():
    assert "shapes must name symbols of the model. Got 'batch', expected 'N'" in refusal({"batch": 1})

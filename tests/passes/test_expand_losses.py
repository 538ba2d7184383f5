"""SoftmaxCrossEntropyLoss becomes the loss of a LogSoftmax."""

import pytest

from tests.passes.rewriting import after, lines_of, ops_of


@pytest.mark.parametrize("attributes", ["", ' {ignore_index=1, reduction="none"}', ' {reduction="sum"}'])
def test_a_cross_entropy_is_the_loss_of_logarithms(attributes: str) -> None:
    text = f"""graph "g" (x: float32[N,4,5], w: float32[4]) -> (y, p) {{
      constant l = int64[3,5] {{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2}}
      y, p = SoftmaxCrossEntropyLoss(x, l, w){attributes}
    }}"""
    assert ops_of(after(text, "expand_losses")) == ["LogSoftmax", "NegativeLogLikelihoodLoss"]


def test_probabilities_that_nobody_wants_and_weights_that_are_not_there() -> None:
    text = """graph "g" (x: float32[2,4]) -> (y) {
      constant l = int64[2] {3, 1}
      y = SoftmaxCrossEntropyLoss(x, l)
    }"""
    assert lines_of(after(text, "expand_losses"))[-1] == "y = NegativeLogLikelihoodLoss(y_1, l)"

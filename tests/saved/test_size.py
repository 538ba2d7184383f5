"""What a saved file takes: constants that several steps read are in it once, and a long plan is short."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.frontend.models import model_of, value_info
from tests.saved.parts import Variants
from tests.saved.same_bits import assert_same

STEPS, WIDTH = 120, 24


def unrolled(symbol: str | None = None) -> onnx.ModelProto:
    """A recurrent layer written out step by step; all steps share two matrices."""
    random = np.random.default_rng(7)
    weights = [
        numpy_helper.from_array(random.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH, name)
        for name in ("w", "u")
    ]
    nodes, state = [], "h"
    for step in range(STEPS):
        nodes += [
            helper.make_node("Gather", ["x", f"step_{step}"], [f"x_{step}"], axis=0),
            helper.make_node("Add", [f"x_{step}", state], [f"in_{step}"]),
            helper.make_node("MatMul", [f"in_{step}", "w"], [f"xw_{step}"]),
            helper.make_node("MatMul", [state, "u"], [f"hu_{step}"]),
            helper.make_node("Add", [f"xw_{step}", f"hu_{step}"], [f"sum_{step}"]),
            helper.make_node("Erf", [f"sum_{step}"], [f"h_{step}"]),  # with Tanh it would be an RNN
        ]
        weights.append(numpy_helper.from_array(np.int64(step), f"step_{step}"))
        state = f"h_{step}"
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [STEPS, symbol or 1, WIDTH])
    h = value_info("h", np.zeros((1, WIDTH), np.float32))
    return model_of(nodes, [x, h], [state], initializers=weights)


def feeds() -> dict[str, np.ndarray]:
    random = np.random.default_rng(8)
    return {
        "x": random.standard_normal((STEPS, 1, WIDTH), dtype=np.float32),
        "h": random.standard_normal((1, WIDTH), dtype=np.float32),
    }


def test_a_constant_of_many_steps_is_saved_once_and_the_plan_is_short(tmp_path: Path) -> None:
    model = unrolled()
    module = neo.compile(model.SerializeToString(), threads=2)
    path = tmp_path / "m.neo"
    module.save(path)
    products = [step for step in module.steps if step.op == "MatMul"]
    assert len(products) >= STEPS
    parts = Variants.of(path.read_bytes())
    large = [blob for name, blob in parts.header.items() if blob["shape"][0] >= WIDTH * WIDTH]
    assert len(large) <= 2, "two matrices, however many products read them"
    assert parts.metadata["neo.format"] == "6"
    assert path.stat().st_size < 1.2 * model.ByteSize()
    loaded = neo.load(path)
    for name, expected in module.run(feeds()).items():
        assert_same(loaded.run(feeds())[name], expected, name)
    assert [step.node for step in loaded.steps] == [step.node for step in module.steps]


def test_variants_have_short_plans_too(tmp_path: Path) -> None:
    module = neo.compile(unrolled("N").SerializeToString(), threads=1, shapes={"N": [1, (1, 4)]})
    path = tmp_path / "m.neo"
    module.save(path)
    assert Variants.of(path.read_bytes()).metadata["neo.format"] == "6"
    loaded = neo.load(path)
    assert len(loaded.variants) == 2
    for name, expected in module.run(feeds()).items():
        assert_same(loaded.run(feeds())[name], expected, name)


@pytest.mark.parametrize("change", ["~", "~   ", "~}}}}", "~  !" + "}" * 2_000_000])
def test_a_damaged_short_plan_is_refused(change: str, tmp_path: Path) -> None:
    path = tmp_path / "m.neo"
    neo.compile(unrolled().SerializeToString(), threads=1).save(path)
    parts = Variants.of(path.read_bytes())
    plan = parts.metadata["neo.plan"]
    for damaged in (plan[:40] + change, change + plan[:40]):
        parts.metadata["neo.plan"] = damaged
        with pytest.raises(neo.Error):
            neo.load(parts.join())

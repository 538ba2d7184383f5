"""Damaged ONNX models: a seed's fields changed as their meaning suggests, then, now and then, its bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import onnx

from tests.untrusted.hostile import Damage
from tests.untrusted.mutate_nodes import (
    add_node,
    change_names,
    change_operator,
    change_opset,
    change_output,
    change_wiring,
    nest_in_if,
    nest_in_loop,
    quantize_edge,
    splice_model,
    wrap_in_function,
)
from tests.untrusted.mutate_values import (
    change_attribute_shape,
    change_attribute_value,
    change_input_shape,
    change_input_type,
    change_tensor_data,
    change_tensor_dims,
    change_tensor_numbers,
    fix_input,
    make_external,
    make_sparse,
)

__all__ = ["damage", "damage_bytes"]


def damage(rng: random.Random, model: onnx.ModelProto, others: Sequence[onnx.ModelProto]) -> list[str]:
    """Change a model in one to four places; says how. `others` are models that parts may be taken from."""
    done = []
    wanted = 1 + sum(rng.random() < 0.4 for _ in range(3))
    for _ in range(wanted * 6):
        name, change = rng.choices(_DAMAGES, _WEIGHTS)[0]
        try:
            changed = change(rng, model, others)
        except Exception:  # the damage does not fit this model, or what was done to it before
            changed = False
        if changed:
            done.append(name)
        if len(done) == wanted:
            break
    return done


def damage_bytes(rng: random.Random, raw: bytes) -> bytes:
    """Change a few bytes anywhere."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 6)):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(7)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del data[at : at + rng.randint(1, 12)]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.randint(1, 12))
        elif kind == 4:
            stop = at + rng.randint(1, 60)
            data[at:at] = data[at:stop]
        elif kind == 5:
            data[at : at + 9] = b"\xff" * 9
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


_TABLE: list[tuple[int, str, Damage]] = [
    (8, "input shape", change_input_shape),
    (2, "input type", change_input_type),
    (9, "input fixed", fix_input),
    (10, "tensor numbers", change_tensor_numbers),
    (6, "tensor dims", change_tensor_dims),
    (2, "tensor data", change_tensor_data),
    (1, "external data", make_external),
    (2, "sparse tensor", make_sparse),
    (14, "attribute value", change_attribute_value),
    (4, "attribute", change_attribute_shape),
    (4, "wiring", change_wiring),
    (4, "operator", change_operator),
    (6, "new node", add_node),
    (2, "opset", change_opset),
    (2, "output", change_output),
    (2, "names", change_names),
    (3, "branches", nest_in_if),
    (2, "loop", nest_in_loop),
    (3, "function", wrap_in_function),
    (4, "quantize", quantize_edge),
    (6, "splice", splice_model),
]
_DAMAGES = [(name, change) for _, name, change in _TABLE]
_WEIGHTS = [weight for weight, _, _ in _TABLE]

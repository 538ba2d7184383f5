"""One operator on the CPU, and inputs with everything that makes its order hard."""

import neo
import numpy as np
from onnx import TensorProto, helper


def on_cpu(op, inputs, *, constants=(), domain="", outputs=1, **attributes):
    """Return the outputs of one node that neo compiles for the CPU.

    Parameters
    ----------
    op : str
        Of opset 18, or of the domain `neo`.
    inputs : list of ndarray
        Given at run time.
    constants : sequence of ndarray
        Further inputs, constants of the model.
    """
    given = [f"x{i}" for i in range(len(inputs))]
    held = [f"c{i}" for i in range(len(constants))]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, given + held, results, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(given, inputs, strict=True)
        ],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results],
        [
            helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(c.dtype), c.shape, c.tobytes(), raw=True)
            for name, c in zip(held, constants, strict=True)
        ],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("neo", 1)]
    module = neo.compile(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    made = module(*inputs)
    return [np.asarray(y) for y in (made if isinstance(made, (list, tuple)) else [made])]


def with_ties(rng, shape):
    """Few values, many of them equal; NaN, infinities and both zeros."""
    x = rng.integers(-50, 50, shape).astype("f4") / 4
    flat = x.reshape(-1)
    if flat.size > 10:
        for value in (np.nan, np.inf, -np.inf, -0.0, 0.0):
            flat[rng.integers(0, flat.size, max(1, flat.size // 30))] = value
    return x


def with_equal_overlaps(rng, images, n, grid):
    """Corners on a grid, so that overlaps are equal to the threshold; some upside down, empty or not numbers."""
    boxes = rng.integers(0, grid, (images, n, 4)).astype("f4") / 8
    boxes[..., 2:] = boxes[..., :2] + rng.integers(-2, 12, (images, n, 2)).astype("f4") / 8
    if n > 10:
        for value in (np.nan, np.inf):
            boxes[:, rng.integers(0, n, n // 30 + 1), rng.integers(0, 4)] = value
    return boxes

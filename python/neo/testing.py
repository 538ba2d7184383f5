"""Accuracy checks for pytest: compare a module with ONNX Runtime, or with stored tensors.

The float rule
    For every output, ``max |neo - ref| <= FLOAT_FACTOR * eps * sqrt(depth) * max |ref|``, where ``eps`` is the machine
    epsilon of the output's dtype and ``depth`` the longest reduction of the model (``longest_reduction``). Rounding
    errors of a sum of ``depth`` terms grow like ``sqrt(depth)``; the factor stands for layers behind each other and
    for algorithms, such as Winograd's, that trade a few bits for speed.
The quantized rule
    A model that computes on quantized values agrees where every output is within one step of the output's own grid
    (``output_steps``) and the largest value of each row stays the largest; equal values may change places.
Exact
    Integers, booleans and strings must be equal. Not-a-numbers and infinities must be at the same positions.

Examples
--------
>>> import numpy as np
>>> from neo.testing import assert_arrays_close
>>> assert_arrays_close(np.float32([1, 2]), np.float32([1, 2.0000002]), depth=1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = [
    "FLOAT_FACTOR",
    "UNKNOWN_DEPTH",
    "assert_arrays_close",
    "assert_close",
    "assert_quantized_close",
    "longest_reduction",
    "output_steps",
    "seeded_inputs",
]

#: ``k`` of the float rule.
FLOAT_FACTOR = 64.0

#: The longest reduction that is assumed where nothing tells it: the reference is arrays, and no ``depth`` is given.
UNKNOWN_DEPTH = 1024


class _Tensor(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> Sequence[int | str]: ...


class _Module(Protocol):
    @property
    def inputs(self) -> Sequence[_Tensor]: ...
    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]: ...


# --- arrays ---


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether ``dtype`` is a floating-point type, those of ml_dtypes (kind ``V``) included."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _epsilon(dtype: np.dtype[Any]) -> float:
    if dtype.kind == "f":
        return float(np.finfo(dtype).eps)
    import ml_dtypes

    limits: Any = ml_dtypes.finfo
    return float(limits(dtype).eps)


def _compare_form(actual: Any, expected: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return both as arrays after checking that their shapes and kinds agree."""
    left, right = np.asarray(actual), np.asarray(expected)
    if left.shape != right.shape:
        raise AssertionError(f"[{name}] shapes must agree. Got {left.shape}, expected {right.shape}")
    same = _is_float(left.dtype) == _is_float(right.dtype)
    if not same or (not _is_float(left.dtype) and left.dtype.kind != right.dtype.kind):
        raise AssertionError(f"[{name}] dtypes must agree. Got {left.dtype}, expected {right.dtype}")
    return left, right


def _worst(name: str, rule: str, error: np.ndarray, actual: np.ndarray, expected: np.ndarray) -> str:
    """Describe the position of the largest error."""
    position = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    count = f"{int(np.count_nonzero(error))} of {error.size} differ"
    return (
        f"[{name}] {rule}. Got {actual[position]}, expected {expected[position]} - at {list(position)} of shape "
        f"{list(actual.shape)} ({count})"
    )


def _assert_exact(actual: np.ndarray, expected: np.ndarray, name: str) -> None:
    different = np.asarray(actual != expected)
    if different.any():
        raise AssertionError(_worst(name, "values must be equal", different, actual, expected))


def _finite(actual: np.ndarray, expected: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 with everything that is not finite, and agrees, set to zero."""
    left, right = actual.astype(np.float64), expected.astype(np.float64)
    special = ~np.isfinite(right)
    agree = np.where(special, (left == right) | (np.isnan(left) & np.isnan(right)), np.isfinite(left))
    if not agree.all():
        rule = "not-a-numbers and infinities must be at the same positions"
        raise AssertionError(_worst(name, rule, ~agree, actual, expected))
    return np.where(special, 0.0, left), np.where(special, 0.0, right)


def assert_arrays_close(
    actual: Any, expected: Any, *, depth: int = UNKNOWN_DEPTH, factor: float = FLOAT_FACTOR, name: str = "array"
) -> None:
    """Raise ``AssertionError`` unless ``actual`` agrees with ``expected`` by the float rule, or exactly if no float.

    Parameters
    ----------
    actual, expected : array_like
        The arrays; shapes and kinds of dtype must agree, and the coarser dtype gives the machine epsilon.
    depth : int
        The longest reduction on the way to the values.
    factor : float
        ``k`` of the float rule.
    name : str
        What the message calls the array.

    Examples
    --------
    >>> assert_arrays_close(np.float32([1.0, 2.0]), np.float32([1.0, 2.5]), depth=16)
    Traceback (most recent call last):
        ...
    AssertionError: [array] max |neo - ref| is 0.5, the limit 7.629e-05 = 64 * eps * sqrt(16) * 2.5. Got 2.0, expected \
2.5 - at [1] of shape [2] (1 of 2 differ)
    """
    left, right = _compare_form(actual, expected, name)
    if not _is_float(left.dtype):
        _assert_exact(left, right, name)
        return
    if not left.size:
        return
    exact_left, exact_right = _finite(left, right, name)
    error = np.abs(exact_left - exact_right)
    epsilon = max(_epsilon(left.dtype), _epsilon(right.dtype))
    magnitude = float(np.abs(exact_right).max())
    limit = factor * epsilon * math.sqrt(depth) * magnitude
    if float(error.max()) > limit:
        rule = (
            f"max |neo - ref| is {error.max():.4g}, the limit {limit:.4g} = "
            f"{factor:g} * eps * sqrt({depth}) * {magnitude:.4g}"
        )
        raise AssertionError(_worst(name, rule, error, left, right))


def assert_quantized_close(actual: Any, expected: Any, *, step: float, steps: float = 1.0, name: str = "array") -> None:
    """Raise ``AssertionError`` unless every value is within one quantization step and each row has the same top-1.

    A row is what the last axis runs over; a top-1 is the same where the value that ``actual`` calls largest is, in
    ``expected``, as large as any.

    Parameters
    ----------
    actual, expected : array_like
        The arrays, in real values (not quantized ones).
    step : float
        The scale of the grid the values lie on.
    steps : float
        How many steps are allowed.
    name : str
        What the message calls the array.
    """
    left, right = _compare_form(actual, expected, name)
    if not _is_float(left.dtype):
        _assert_exact(left, right, name)
        return
    if not left.size:
        return
    exact_left, exact_right = _finite(left, right, name)
    error = np.abs(exact_left - exact_right)
    if float(error.max()) > step * (steps + 1e-3):
        rule = f"outputs must be within {steps:g} step of {step:.4g}, the worst is off by {error.max() / step:.2f}"
        raise AssertionError(_worst(name, rule, error, left, right))
    if left.ndim == 0 or left.shape[-1] < 2:
        return
    rows_left, rows_right = exact_left.reshape(-1, left.shape[-1]), exact_right.reshape(-1, left.shape[-1])
    chosen = rows_left.argmax(-1)
    rows = np.arange(len(rows_left))
    wrong = rows_right[rows, chosen] < rows_right.max(-1)
    if wrong.any():
        row = int(wrong.argmax())
        raise AssertionError(
            f"[{name}] the largest value must stay the largest. Got index {int(chosen[row])} "
            f"({rows_left[row, chosen[row]]:.6g}), expected {int(rows_right[row].argmax())} "
            f"({rows_right[row].max():.6g}) - at row {row} of {len(rows)} ({int(wrong.sum())} rows differ)"
        )


# --- what the graph tells ---

Shape = Sequence["int | None"]
_ShapeOf = Callable[[str], "Shape | None"]


def _load_graph(model: Any) -> onnx.ModelProto:
    """Return a copy of the model, from a path, bytes or a ModelProto, without the contents of its large weights."""
    import onnx

    source = model
    if isinstance(source, str | Path):
        source = onnx.load(source, load_external_data=False)
    elif isinstance(source, bytes):
        source = onnx.load_from_string(source)
    slim = onnx.ModelProto()
    slim.CopyFrom(source)
    for tensor in slim.graph.initializer:
        if math.prod(tensor.dims) > 1024:
            for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
                tensor.ClearField(field)
    return slim


def _product(dims: Sequence[int | None] | None) -> int:
    """Return the product of the known dims."""
    return math.prod(dim for dim in dims or () if dim)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    import onnx

    for attribute in node.attribute:
        if attribute.name == name:
            return onnx.helper.get_attribute_value(attribute)
    return default


def _axis_lengths(node: onnx.NodeProto, shape: Shape | None, constants: Mapping[str, np.ndarray]) -> int:
    """Return the number of elements that a reduction with axes (an attribute or an input) sums."""
    if shape is None:
        return 1
    axes = _attribute(node, "axes", None)
    if axes is None and len(node.input) > 1 and node.input[1] in constants:
        axes = constants[node.input[1]].reshape(-1).tolist()
    if axes is None:
        return _product(shape)
    return _product([shape[axis] for axis in axes if -len(shape) <= axis < len(shape)])


def _terms(node: onnx.NodeProto, shape_of: _ShapeOf, constants: Mapping[str, np.ndarray], opset: int) -> int:
    """Return how many values one output element of ``node`` sums; 1 where it sums none, or it is unknown."""
    op = node.op_type
    shapes = [shape_of(name) if name else None for name in node.input]
    first = shapes[0] if shapes else None
    if op in ("Conv", "FusedConv", "ConvInteger", "DeformConv"):
        return _product((shapes[1] or ())[1:])
    if op == "QLinearConv":
        return _product((shapes[3] or ())[1:])
    if op == "ConvTranspose":
        weight = shapes[1] or (1, 1)
        return max(1, _product([weight[0], *weight[2:]]) // int(_attribute(node, "group", 1)))
    if op == "Gemm":
        return _product((shapes[1] or ())[1:] if _attribute(node, "transB", 0) else (shapes[1] or ())[:1])
    if op in ("MatMul", "MatMulInteger", "FusedMatMul", "QLinearMatMul", "MatMulNBits"):
        right = shapes[3 if op == "QLinearMatMul" else 1] if len(shapes) > 1 else None
        return max(_product((first or ())[-1:]), _product((right or ())[-2:][:1]))
    if op in ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"):
        return _product((shapes[1] or ())[-1:]) + _product((shapes[2] or ())[-1:])
    if op in ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"):
        return _axis_lengths(node, first, constants)
    if op in ("GlobalAveragePool", "GlobalLpPool", "InstanceNormalization"):
        return _product((first or ())[2:])
    if op in ("AveragePool", "LpPool", "QLinearAveragePool"):
        return math.prod(_attribute(node, "kernel_shape", [1]))
    if op in ("LayerNormalization", "RMSNormalization", "SkipLayerNormalization"):
        return _product((first or ())[int(_attribute(node, "axis", -1)) :])
    if op in ("Softmax", "LogSoftmax"):
        axis = int(_attribute(node, "axis", -1 if opset >= 13 else 1))
        return _product((first or ())[axis:][: 1 if opset >= 13 else None])
    if op in ("GroupNormalization", "MeanVarianceNormalization"):
        return _product((first or ())[1:])
    if op == "LRN":
        return int(_attribute(node, "size", 1))
    if op in ("Einsum", "Attention", "MultiHeadAttention", "CumSum", "DFT", "STFT"):
        return max((dim or 1 for shape in shapes if shape for dim in shape), default=1)
    return 1


def _walk(graph: onnx.GraphProto, outer: Mapping[str, Shape], constants: Mapping[str, np.ndarray], opset: int) -> int:
    """Return the longest reduction of a graph and of the bodies in it."""
    import onnx
    from onnx import numpy_helper

    shapes, known = dict(outer), dict(constants)
    for value in [*graph.input, *graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        if tensor.HasField("shape"):
            shapes[value.name] = [dim.dim_value or None for dim in tensor.shape.dim]
    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    tensors += [
        (node.output[0], attribute.t)
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    ]
    for name, tensor in tensors:
        shapes[name] = list(tensor.dims)
        if math.prod(tensor.dims) <= 8 and not tensor.external_data:
            known[name] = numpy_helper.to_array(tensor)
    longest = 1
    for node in graph.node:
        longest = max(longest, _terms(node, shapes.get, known, opset))
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                longest = max(longest, _walk(attribute.g, shapes, known, opset))
    return longest


def longest_reduction(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Return the largest number of terms that one output element of any node sums.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model.
    shapes : mapping, optional
        Shapes of inputs whose dims are symbols; reductions over a dim that stays unknown are left out.
    """
    import onnx

    slim = _load_graph(model)
    for value in slim.graph.input:
        if shapes and value.name in shapes:
            del value.type.tensor_type.shape.dim[:]
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = size
    del slim.graph.value_info[:]
    for value in slim.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(slim, check_type=False, strict_mode=False, data_prop=True)
    opset = max((entry.version for entry in slim.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    return _walk(inferred.graph, {}, {}, opset)


_GRID_KEEPING = (
    "Identity",
    "Reshape",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Flatten",
    "Slice",
    "Gather",
    "Cast",
    "Dropout",
)


def output_steps(model: Any) -> dict[str, float]:
    """Return the quantization step of every output that lies on a grid, up to an added constant.

    An output lies on a grid where it comes out of a ``DequantizeLinear`` through nothing but moves of elements and sums
    with constants. Where what was quantized is the softmax of values that lie on a grid themselves, half a step of that
    grid is added: so much does one step in the logits change a probability. Models that quantize nothing give an empty
    dict.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model.
    """
    from onnx import numpy_helper

    graph = _load_graph(model).graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    producers: dict[str, onnx.NodeProto] = {name: node for node in graph.node for name in node.output}

    def scale(name: str) -> float:
        return float(np.max(numpy_helper.to_array(tensors[name]))) if name in tensors else 0.0

    def find_source(name: str) -> onnx.NodeProto | None:
        """Return the node that computed the elements of a value."""
        node = producers.get(name)
        while node is not None:
            varying = [item for item in node.input if item and item not in tensors]
            follow = node.op_type in _GRID_KEEPING or (node.op_type in ("Add", "Sub") and len(varying) == 1)
            if not follow or not varying:
                return node
            node = producers.get(varying[0])
        return None

    def step(name: str) -> float:
        node = find_source(name)
        if node is None or node.op_type != "DequantizeLinear":
            return 0.0
        grid = scale(node.input[1])
        quantized = find_source(node.input[0])
        if quantized is not None and quantized.op_type == "QLinearSoftmax":
            return grid + scale(quantized.input[1]) / 2
        softmax = find_source(quantized.input[0]) if quantized and quantized.op_type == "QuantizeLinear" else None
        return grid + step(softmax.input[0]) / 2 if softmax is not None and softmax.op_type == "Softmax" else grid

    steps = {output.name: step(output.name) for output in graph.output}
    return {name: value for name, value in steps.items() if value > 0}


def _quantizes(model: Any) -> bool:
    ops = {node.op_type for node in _load_graph(model).graph.node}
    return any(op in ("QuantizeLinear", "DynamicQuantizeLinear") or op.startswith("QLinear") for op in ops)


# --- modules ---


def _to_dtype(name: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(name)
    except TypeError:
        import ml_dtypes

        found = np.dtype(getattr(ml_dtypes, str(name)))
    return found


def seeded_inputs(
    module: _Module, seed: int = 0, sizes: Mapping[str, int] | None = None
) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Return seeded values for every input of ``module``: standard normal floats, and zeros and ones for anything else.

    Parameters
    ----------
    module : neo.Module
        What the inputs are for.
    seed : int
        The same seed gives the same values.
    sizes : mapping, optional
        The size of each symbol in the inputs' shapes.
    """
    rng = np.random.default_rng(seed)
    feeds = {}
    for item in module.inputs:
        shape = []
        for dim in item.shape:
            if not isinstance(dim, int) and str(dim) not in (sizes or {}):
                raise ValueError(
                    f"[neo.testing] every symbol needs a size. Got shape {list(item.shape)} of input {item.name!r}, "
                    f"expected sizes={{{str(dim)!r}: ...}} or inputs="
                )
            shape.append(dim if isinstance(dim, int) else (sizes or {})[str(dim)])
        dtype = _to_dtype(item.dtype)
        values = rng.standard_normal(shape) if _is_float(dtype) else rng.integers(0, 2, shape)
        feeds[item.name] = np.asarray(values).astype(dtype)
    return feeds


def _session(reference: Any) -> Any:
    """Return an onnxruntime session for a path, bytes or a ModelProto; a session is returned as it is."""
    if hasattr(reference, "get_outputs"):
        return reference
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "[neo.testing] comparing with a model needs onnxruntime, which is not installed. Got "
            f"{type(reference).__name__}, expected arrays, or: pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    source = reference.SerializeToString() if hasattr(reference, "SerializeToString") else reference
    return onnxruntime.InferenceSession(
        str(source) if isinstance(source, Path) else source, options, providers=["CPUExecutionProvider"]
    )


def _model_of(reference: Any) -> Any:
    """Return the model that a reference was made from, or None."""
    if isinstance(reference, Mapping):
        return None
    if not hasattr(reference, "get_outputs"):
        return reference
    return getattr(reference, "_model_path", None) or getattr(reference, "_model_bytes", None)


def _run_reference(reference: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
    names = [output.name for output in reference.get_outputs()]
    return dict(zip(names, reference.run(names, dict(feeds)), strict=True))


def assert_close(
    module: _Module,
    reference: Any,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    *,
    rounds: int = 3,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    depth: int | None = None,
    steps: Mapping[str, float] | None = None,
    factor: float = FLOAT_FACTOR,
) -> None:
    """Raise ``AssertionError`` unless ``module`` gives the outputs of ``reference``, by the rules of this file.

    Parameters
    ----------
    module : neo.Module
        What is checked: anything with ``inputs`` and ``run``.
    reference : path, bytes, onnx.ModelProto, onnxruntime.InferenceSession or mapping of arrays
        A model, run by ONNX Runtime, or the expected outputs by name. Outputs that a mapping lacks are not compared.
    inputs : mapping of arrays, or sequence of them, optional
        What to feed; must be given with expected outputs as the reference (default: ``rounds`` sets of seeded values).
    rounds : int
        How many sets of seeded values to compare when ``inputs`` is not given.
    seed : int
        Seed of the first round; each round adds one.
    sizes : mapping, optional
        The sizes of symbolic dims, for the seeded values.
    depth : int, optional
        Longest reduction (default: ``longest_reduction`` of the model, ``UNKNOWN_DEPTH`` where there is none at hand).
    steps : mapping, optional
        Quantization step per output; makes the quantized rule hold for it (default: ``output_steps`` of the model).
    factor : float
        ``k`` of the float rule.

    Examples
    --------
    >>> import neo  # doctest: +SKIP
    >>> neo.testing.assert_close(neo.compile("model.onnx"), "model.onnx")  # doctest: +SKIP
    """
    expected_arrays = reference if isinstance(reference, Mapping) else None
    if expected_arrays is not None and not isinstance(inputs, Mapping):
        raise ValueError(
            "[neo.testing] expected outputs belong to given inputs. Got "
            f"inputs of type {type(inputs).__name__}, expected one mapping of arrays"
        )
    if inputs is None:
        feeds_of_rounds: list[Mapping[str, Any]] = [seeded_inputs(module, seed + i, sizes) for i in range(rounds)]
    else:
        feeds_of_rounds = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    if not feeds_of_rounds:
        raise ValueError("[neo.testing] nothing to compare. Got 0 sets of inputs, expected at least 1")
    model = _model_of(reference)
    if steps is None:
        steps = output_steps(model) if model is not None and _quantizes(model) else {}
        if model is not None and not steps and _quantizes(model):
            raise ValueError(
                "[neo.testing] no output of this quantized model lies on a grid. Got steps=None, expected "
                "steps={output: step}, or steps={} for the float rule"
            )
    session = None if expected_arrays is not None else _session(reference)
    for number, feeds in enumerate(feeds_of_rounds):
        expected = expected_arrays if expected_arrays is not None else _run_reference(session, feeds)
        if depth is None and model is not None:
            depth = longest_reduction(model, {name: np.shape(value) for name, value in feeds.items()})
        actual = module.run(feeds)
        for name, right in expected.items():
            if name not in actual:
                raise AssertionError(f"[{name}] output is missing. Got {sorted(actual)}, expected {sorted(expected)}")
            title = name if len(feeds_of_rounds) == 1 else f"{name}, round {number}"
            _assert_value(actual[name], right, title, depth or UNKNOWN_DEPTH, steps.get(name), factor)


def _assert_value(actual: Any, expected: Any, name: str, depth: int, step: float | None, factor: float) -> None:
    """Compare one output: an array, a sequence of them, or an empty optional."""
    if expected is None or actual is None:
        if expected is not actual:
            raise AssertionError(f"[{name}] an optional must agree. Got {actual!r}, expected {expected!r}")
    elif isinstance(expected, list):
        if not isinstance(actual, list | tuple) or len(actual) != len(expected):
            raise AssertionError(
                f"[{name}] sequences must agree in length. Got {actual!r:.200}, expected {len(expected)}"
            )
        for index, (left, right) in enumerate(zip(actual, expected, strict=True)):
            _assert_value(left, right, f"{name}[{index}]", depth, step, factor)
    elif step is not None:
        assert_quantized_close(actual, expected, step=step, name=name)
    else:
        assert_arrays_close(actual, expected, depth=depth, factor=factor, name=name)

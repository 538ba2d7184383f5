"""Operators that a program brings along: their shapes and their computation as functions of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from neo import _native
from neo.errors import DTypeError, ModelError
from neo.signature import Tensor

__all__ = ["register_op"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Sizes = tuple[int | str | None, ...] | None


def register_op(
    name: str,
    function: Callable[..., Any] | None = None,
    *,
    infer: Callable[..., Any] | None = None,
    pure: bool = True,
) -> Callable[..., Any]:
    """Let models use an operator that a function of yours computes.

    The function runs wherever a node of this operator stands: while a model is compiled, to fold constants, and in each
    call. It holds Python's lock, so such nodes of several calls take turns.

    Parameters
    ----------
    name : str
        Domain and name, as in ``"my.domain.Swap"``. neo's own operators cannot be replaced; an operator that was
        registered is replaced in modules that are there already, too.
    function : callable, optional
        Takes the inputs in the node's order, None for one that is left out, and the node's attributes as keywords.
        An input is an array of its own, a list for a sequence, a dict for a map. It returns the output, or a tuple of
        outputs, of the dtypes and shapes that `infer` gave. Without it `register_op` is a decorator.
    infer : callable, optional
        Takes a :class:`neo.Tensor` for each input, and the attributes as keywords; it returns a :class:`neo.Tensor` or a
        pair of dtype and shape, or a list of these for several outputs. A size is a number, an expression over the
        inputs' symbols (``"2*N + 1"``), or None where only running tells; a shape of None leaves the rank open. Without
        it every output is like the first input.
    pure : bool
        Whether equal inputs give equal outputs. Nodes of an operator that is not pure are neither folded nor merged.

    Returns
    -------
    callable
        `function`, or the decorator.

    Raises
    ------
    neo.ModelError
        The name has no domain, or is an operator of neo's own.
    neo.DTypeError
        `function` or `infer` cannot be called.

    Examples
    --------
    >>> import neo
    >>> @neo.register_op("my.domain.Swap")
    ... def swap(x, *, axis=0):
    ...     return x[::-1] if axis == 0 else x[:, ::-1]
    """
    domain, _, own = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if domain in ("", "ai.onnx") or not own:
        msg = (
            f"[register_op] the name must have a domain of its own. Got {name!r}, expected a name like 'my.domain.Swap'"
        )
        raise ModelError(msg)
    for role, given in (("function", function), ("infer", infer)):
        if given is not None and not callable(given):
            msg = f"[register_op] `{role}` must be callable. Got {type(given).__name__} - at {name}"
            raise DTypeError(msg)

    def add(chosen: _Function) -> _Function:
        def infer_node(node: _native.Node) -> list[tuple[str, _Sizes]]:
            return _inferred(node, infer)

        def compute_node(node: _native.Node, inputs: list[Any]) -> list[Any]:
            return _computed(node, inputs, chosen)

        _native.register_op(name, infer_node, compute_node, pure)
        return chosen

    return add if function is None else add(function)


def _place(node: _native.Node) -> str:
    return f'node "{node.name}"' if node.name else f"a {node.op}"


def _call(node: _native.Node, role: str, function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    try:
        return function(*inputs, **node.attrs)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        msg = f"[{node.op}] the {role} must not raise. Got {text} - at {_place(node)}"
        raise ModelError(msg) from error


def _inferred(node: _native.Node, infer: Callable[..., Any] | None) -> list[tuple[str, _Sizes]]:
    """Dtype and sizes of each output, as `infer` or the first input has them."""
    inputs = [
        None if v is None else Tensor(v.name, v.dtype if v.kind == "tensor" else v.type, v.shape) for v in node.inputs
    ]
    count = len(node.outputs)
    if infer is not None:
        given = _call(node, "inference", infer, inputs)
        is_one = isinstance(given, Tensor) or (
            isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], Tensor | tuple | list)
        )
        described = [given] if is_one or not isinstance(given, tuple | list) else list(given)
    else:
        described = [inputs[0] if inputs else None] * count
    if len(described) < count:
        msg = f"[{node.op}] the inference must give every output. Got {len(described)}, expected {count} - at {_place(node)}"
        raise ModelError(msg)
    return [_described(node, d) for d in described[:count]]


def _described(node: _native.Node, given: Any) -> tuple[str, _Sizes]:
    if isinstance(given, Tensor):
        return given.dtype, given.shape
    try:
        dtype, shape = given
        # Types that are no dtypes of NumPy's, "string" and "seq(float32[*])", are text as they are.
        text = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        sizes = None if shape is None else tuple(_size(d) for d in shape)
    except (TypeError, ValueError) as error:
        msg = (
            f"[{node.op}] the inference must give dtypes and shapes. Got {given!r}, "
            f"expected a neo.Tensor or a pair like ('float32', (1, 'N')) - at {_place(node)}"
        )
        raise DTypeError(msg) from error
    return text, sizes


def _size(given: Any) -> int | str | None:
    if given is None or isinstance(given, str):
        return given
    size = int(given)
    if size != given or size < 0:
        msg = f"{given!r} is no size"
        raise ValueError(msg)
    return size


def _computed(node: _native.Node, inputs: list[Any], function: Callable[..., Any]) -> list[Any]:
    """The outputs of the function on copies of the inputs, which live in memory that the next node may overwrite."""
    own = [_own(x, None if v is None else v.dtype) for x, v in zip(inputs, node.inputs, strict=True)]
    given = _call(node, "function", function, own)
    count = len(node.outputs)
    values = list(given) if isinstance(given, tuple) else [given]
    if len(values) < count:
        msg = (
            f"[{node.op}] the function must give every output. Got {len(values)}, expected {count} - at {_place(node)}"
        )
        raise ModelError(msg)
    is_wider = any(isinstance(x, np.ndarray) and x.dtype != y.dtype for x, y in zip(inputs, own, strict=True))
    results = []
    for i, (value, output) in enumerate(zip(values[:count], node.outputs, strict=True)):
        if output is None or output.kind != "tensor":
            results.append(value)
            continue
        array = np.asarray(value)
        if array.dtype == object and not all(isinstance(x, str | bytes) for x in array.flat):
            msg = f"[{node.op}] output {i} must be an array. Got {type(value).__name__} - at {_place(node)}"
            raise DTypeError(msg)
        name = "string" if array.dtype.kind in "USO" else array.dtype.name
        if name != output.dtype:
            msg = f"[{node.op}] output {i} must be of dtype {output.dtype}. Got {name} - at {_place(node)}"
            raise DTypeError(msg)
        # A check of accuracy computes in float64 throughout; the function's floats are then made as wide.
        results.append(array.astype(np.float64) if is_wider and array.dtype.kind in "fV" else array)
    return results


def _own(value: Any, dtype: str | None) -> Any:
    if isinstance(value, np.ndarray):
        if dtype is None or dtype == value.dtype.name or value.dtype != np.float64:
            return value.copy()
        import ml_dtypes

        return value.astype(getattr(ml_dtypes, dtype, dtype))
    if isinstance(value, list):
        return [_own(x, None) for x in value]
    return value

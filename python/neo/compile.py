"""The way of a model: import, passes, candidates, selection, lowering. Each arrow is one function."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from neo import _native
from neo.errors import ModelError
from neo.frontend.onnx import import_model
from neo.module import Module, Tensor
from neo.select import Problem, Resource, solve

if TYPE_CHECKING:
    import onnx

__all__ = ["compile"]


def compile(  # noqa: A001  (the name users expect)
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    *,
    target: str = "cpu",
    threads: int | None = None,
    accuracy: str | None = None,
    memory: int | None = None,
    routines: Mapping[str, str | Sequence[str]] | None = None,
    shapes: Mapping[str, int | tuple[int, int]] | None = None,
) -> Module:
    """Compile a model for a machine.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        An ONNX model; external data lies beside the file.
    target : str
        ``"cpu"`` is this host; ``"cpu:avx2"`` and the like cap the instruction set (``neo targets`` lists them).
    threads : int, optional
        Threads a call may use. The default is the cores this process may really use.
    accuracy : {"default", "strict"}, optional
        ``"strict"`` keeps to methods whose error is that of the direct one.
    memory : int, optional
        Bytes that packed weights may take.
    routines : mapping of str to str or list of str, optional
        Pins: a node name or pattern to the routines it may use, by name or pattern (``{"conv*": "cpu:float32/direct*"}``).
    shapes : mapping of str to int or (int, int), optional
        Symbols of the model to a size, or to the range it may take.

    Returns
    -------
    Module

    Raises
    ------
    neo.UnsupportedError
        The model has nodes neo cannot run; all of them are listed.
    neo.ModelError
        The model or an argument is malformed.
    """
    _native.check_target(target)
    if threads is None:
        threads = _native.default_threads()
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        msg = f"[compile] threads must be a positive int. Got {threads!r}, expected 1 or more"
        raise ModelError(msg)
    if accuracy not in (None, "default", "strict"):
        msg = f"[compile] accuracy must be known. Got {accuracy!r}, expected 'default' or 'strict'"
        raise ModelError(msg)

    graph = import_model(model, shapes=shapes)
    inputs = [_tensor(v) for v in graph.inputs]
    outputs = [_tensor(v) for v in graph.outputs]
    kinds = {v.name: v.kind for v in graph.inputs}
    graph = _native.run_passes(graph)

    problem = _native.build_problem(graph, target, threads, _pins(routines))
    arrays = _arrays(problem, accuracy, memory)
    solution = solve(arrays)
    native = problem.lower(list(solution.choice), float(solution.total), threads)
    return Module(native, inputs, outputs, problem, solution.choice, target, int(graph.reduction_length), kinds)


def _arrays(problem: _native.Problem, accuracy: str | None, memory: int | None) -> Problem:
    edges: dict[tuple[int, int], np.ndarray[Any, np.dtype[np.float64]]] = {}
    for u, v, matrix in problem.edges:
        edges[u, v] = edges[u, v] + matrix if (u, v) in edges else matrix
    resources = []
    if memory is not None:
        resources.append(Resource("packed_bytes", float(memory), problem.resources["packed_bytes"]))
    if accuracy == "strict":
        resources.append(Resource("error", 0.0, problem.resources["error"]))
    return Problem(problem.costs, edges, resources)


def _pins(routines: Mapping[str, str | Sequence[str]] | None) -> Callable[[str, str], bool] | None:
    if not routines:
        return None
    pins = {node: [allowed] if isinstance(allowed, str) else list(allowed) for node, allowed in routines.items()}

    def allow(node: str, routine: str) -> bool:
        for pattern, allowed in pins.items():
            if fnmatch.fnmatchcase(node, pattern):
                bare = routine.split("{")[0]
                return any(fnmatch.fnmatchcase(bare, a) or fnmatch.fnmatchcase(routine, a) for a in allowed)
        return True

    return allow


def _tensor(value: _native.Value) -> Tensor:
    if value.kind != "tensor":
        return Tensor(value.name, value.type, None)
    return Tensor(value.name, value.dtype, value.shape)

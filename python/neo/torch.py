"""neo as a backend of PyTorch's compiler: ``torch.compile(model, backend="neo")``.

PyTorch finds the backend by neo's entry point, or once ``neo.torch`` was imported. It is for inference: a graph whose
tensors need gradients, that writes to its inputs, or that PyTorch cannot export, is run by PyTorch, and the logger
"neo.torch" says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

from neo.compile import compile as compile_model
from neo.errors import Error, UnsupportedError
from neo.module import Module
from neo.torch_export import export_program

__all__ = ["backend"]

_log = logging.getLogger("neo.torch")


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compile a graph of PyTorch's compiler; for each set of sizes that it is called with once.

    Parameters
    ----------
    graph : torch.fx.GraphModule
    example_inputs : sequence of tensors and sizes
        Parameters and buffers among them become constants.

    Returns
    -------
    callable
        Takes what the graph takes, and gives what it gives.
    """
    constants = {i: x for i, x in enumerate(example_inputs) if _is_static(x)}
    compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def run(*args: Any) -> Any:
        # A parameter that was written to, or that the optimizer replaced, has another version or address.
        own = tuple((args[i]._version, args[i].data_ptr()) for i in constants)
        key = (torch.is_grad_enabled(), own, *(_kind(x) for i, x in enumerate(args) if i not in constants))
        if key not in compiled:
            compiled[key] = _prepare(graph, args, constants)
        return compiled[key](*args)

    return run


def _is_static(x: Any) -> bool:
    """Whether it is a module's parameter or buffer, which the compiler hands in as an argument."""
    return isinstance(x, torch.nn.Parameter) or hasattr(x, "_dynamo_static_input_type")


def _kind(x: Any) -> Any:
    return (x.dtype, x.device, tuple(x.shape), x.requires_grad) if isinstance(x, torch.Tensor) else x


class _Bound(torch.nn.Module):
    """A graph with its parameters and sizes at hand, which takes the other tensors."""

    def __init__(self, graph: torch.fx.GraphModule, args: Sequence[Any], open_places: Sequence[int]) -> None:
        super().__init__()
        self._graph = graph
        self._places = list(open_places)
        self._fixed = {i: x for i, x in enumerate(args) if i not in self._places and not isinstance(x, torch.Tensor)}
        self._count = len(args)
        for i, x in enumerate(args):
            if i not in self._places and isinstance(x, torch.Tensor):
                self.register_buffer(f"constant_{i}", x.detach())

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Call the graph."""
        args = [
            self._fixed[i] if i in self._fixed else getattr(self, f"constant_{i}", None) for i in range(self._count)
        ]
        for place, tensor in zip(self._places, tensors, strict=True):
            args[place] = tensor
        return self._graph(*args)


def _prepare(graph: torch.fx.GraphModule, args: Sequence[Any], constants: dict[int, Any]) -> Callable[..., Any]:
    places = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and i not in constants]
    try:
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in args):
            msg = "[torch] neo runs inference only. Got tensors that need gradients\nHint: torch.no_grad()"
            raise UnsupportedError(msg)
        module, kinds = _compiled(_Bound(graph, args, places), [args[i].detach() for i in places])
    except Error as error:
        _log.warning("PyTorch runs a graph: %s", error)
        return graph
    return _caller(module, kinds, places)


def _compiled(bound: _Bound, tensors: Sequence[torch.Tensor]) -> tuple[Module, list[Any]]:
    """The module, and each result of the graph: a dtype for a tensor, else the constant itself."""
    if any(x.device.type != "cpu" for x in tensors):
        msg = "[torch] tensors must be on the CPU. Got another device"
        raise UnsupportedError(msg)
    try:
        with torch.no_grad():
            program = torch.export.export(bound, tuple(tensors)).run_decompositions({})
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        msg = f"[torch] PyTorch must be able to export the graph. Got {type(error).__name__}: {reason}"
        raise UnsupportedError(msg) from error
    signature = program.graph_signature
    if signature.user_inputs_to_mutate or signature.buffers_to_mutate:
        msg = "[torch] a graph must not write to its inputs or parameters. Got one that does"
        raise UnsupportedError(msg)
    results = next(node for node in program.graph.nodes if node.op == "output").args[0]
    kinds = [r.meta["val"].dtype if hasattr(r, "meta") else r for r in results]
    if not all(k is None or isinstance(k, torch.dtype | int | float | bool) for k in kinds):
        msg = "[torch] a graph must give tensors. Got another value"
        raise UnsupportedError(msg)
    return compile_model(export_program(program), threads=torch.get_num_threads()), kinds


def _caller(module: Module, kinds: Sequence[Any], places: Sequence[int]) -> Callable[..., Any]:
    def call(*args: Any) -> tuple[Any, ...]:
        given = [args[i].detach() for i in places]
        got = module(*given)
        values = iter([got] if len(module.outputs) == 1 else list(got))
        return tuple(_tensor(next(values), k) if isinstance(k, torch.dtype) else k for k in kinds)

    return call


def _tensor(array: Any, dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bfloat16:
        import numpy as np

        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


torch._dynamo.register_backend(compiler_fn=backend, name="neo")

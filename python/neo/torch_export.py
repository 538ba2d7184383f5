"""PyTorch's modules as ONNX models, by PyTorch's own exporter. Imports torch when it is called."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neo.errors import DTypeError, ModelError, ResourceError, UnsupportedError

if TYPE_CHECKING:
    import onnx

__all__ = ["export_program", "is_torch_module", "to_onnx"]


def is_torch_module(model: object) -> bool:
    """Whether it is a torch.nn.Module; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "nn") and isinstance(model, torch.nn.Module)


def to_onnx(model: Any, example_inputs: Any, dynamic_shapes: Any = None) -> onnx.ModelProto:
    """Export a module that was set to ``eval()``.

    Parameters
    ----------
    model : torch.nn.Module
    example_inputs : tensor, sequence of tensors, or mapping of str to tensor
        Arguments of a call; their sizes are the model's where `dynamic_shapes` does not say otherwise.
    dynamic_shapes : optional
        As ``torch.export.export`` takes it.

    Raises
    ------
    neo.DTypeError
        `model` is no module, or there are no example inputs.
    neo.ResourceError
        PyTorch's exporter is not installed.
    neo.UnsupportedError
        The exporter cannot export the module; its reason follows.
    """
    if not is_torch_module(model):
        msg = f"[compile] example inputs must come with a torch.nn.Module. Got {type(model).__name__}"
        raise DTypeError(msg)
    if example_inputs is None:
        msg = "[compile] a torch.nn.Module must come with example inputs. Got none\nHint: example_inputs=(x,)"
        raise ModelError(msg)
    import torch

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(example_inputs, Mapping):
        kwargs = dict(example_inputs)
    elif isinstance(example_inputs, torch.Tensor):
        args = (example_inputs,)
    elif isinstance(example_inputs, Sequence):
        args = tuple(example_inputs)
    else:
        msg = f"[compile] example inputs must be tensors. Got {type(example_inputs).__name__}"
        raise DTypeError(msg)
    with _reasons(), torch.no_grad():
        program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    return export_program(program)


def export_program(program: Any) -> onnx.ModelProto:
    """Export what ``torch.export.export`` made; raises what :func:`to_onnx` does."""
    import torch

    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with _reasons():
            exported = torch.onnx.export(program, dynamo=True, verbose=False, optimize=True)
            model: onnx.ModelProto = exported.model_proto
            return model
    finally:
        log.setLevel(before)


@contextmanager
def _reasons() -> Iterator[None]:
    """A context in which the exporter's errors become neo's, of one line."""
    try:
        yield
    except ModuleNotFoundError as error:
        msg = f"[compile] PyTorch's exporter must be installed. Got no {error.name}\nHint: pip install torch onnxscript"
        raise ResourceError(msg) from error
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        msg = f"[compile] PyTorch must be able to export the module. Got {type(error).__name__}: {reason}"
        raise UnsupportedError(msg) from error

"""InferenceSession: neo's module behind ONNX Runtime's interface."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from neo.compile import compile as compile_model
from neo.errors import CancelledError, ShapeError
from neo.frontend.onnx.load import load_model
from neo.module import Module
from neo.onnxruntime.binding import IOBinding
from neo.onnxruntime.errors import ExecutionError, Fail, InvalidArgument, NotImplemented, of_load, of_run  # noqa: A004
from neo.onnxruntime.node_arg import ModelMetadata, NodeArg, arguments, metadata_of, of_tensor
from neo.onnxruntime.options import RunOptions, SessionOptions
from neo.onnxruntime.ort_value import OrtValue
from neo.onnxruntime.profiling import Profiler
from neo.saved import load

__all__ = ["PROVIDER", "InferenceSession"]

PROVIDER = "CPUExecutionProvider"
# Options of the provider that are arguments of neo.compile.
_COMPILE_OPTIONS = frozenset({"accuracy", "database", "target", "tune"})

_log = logging.getLogger("neo.onnxruntime")

Providers: TypeAlias = "Sequence[str | tuple[str, dict[Any, Any]]] | None"
Callback: TypeAlias = Callable[[list[Any], Any, str], None]


class InferenceSession:
    """A model that is compiled for this machine, with the methods of ``onnxruntime.InferenceSession``.

    Parameters
    ----------
    path_or_bytes : path or bytes
        An ONNX model, or the path of a module that ``Module.save`` wrote (.neo).
    sess_options : SessionOptions, optional
    providers : sequence of str or (str, dict), optional
        neo has the provider "CPUExecutionProvider"; others are warned of and left out. Its options ``target``, ``tune``,
        ``database`` and ``accuracy`` are those of :func:`neo.compile`.
    provider_options : sequence of dict, optional
        The options of `providers`, where these are names alone.
    **kwargs
        Other arguments of ONNX Runtime's; they have no effect.

    Raises
    ------
    NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented, Fail
        Of ``neo.onnxruntime.capi.onnxruntime_pybind11_state``.
    TypeError
        The model is neither a path nor bytes.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Providers = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(path_or_bytes, str | bytes | os.PathLike):
            msg = f"[onnxruntime] a model must be a path or bytes. Got {type(path_or_bytes).__name__}"
            raise TypeError(msg)
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            msg = f"[onnxruntime] options must be SessionOptions. Got {type(sess_options).__name__}"
            raise TypeError(msg)
        self._options = sess_options or SessionOptions()
        self._options.log_ignored(_log)
        for name, value in kwargs.items():
            _log.info("InferenceSession(%s=%r) has no effect in neo", name, value)
        self._given = path_or_bytes
        self._overridden: dict[frozenset[str], Module] = {}
        self._lock = threading.Lock()
        self._profiler = Profiler(self._options.profile_file_prefix) if self._options.enable_profiling else None
        self._started_ns = time.monotonic_ns()
        self._compile_options = _compile_options(providers, provider_options)
        with of_load():
            self._open()

    def _open(self) -> None:
        self._threads = self._options.intra_op_num_threads if self._options.intra_op_num_threads > 0 else None
        self._is_saved = not isinstance(self._given, bytes) and Path(self._given).suffix == ".neo"
        if self._is_saved and not isinstance(self._given, bytes):
            self._module = load(self._given, threads=self._threads)
            self._inputs = [of_tensor(t) for t in self._module.inputs]
            self._outputs = [of_tensor(t) for t in self._module.outputs]
            self._initializers: list[NodeArg] = []
            self._metadata = ModelMetadata(graph_name=self._module.provenance.get("model", ""))
            return
        proto = load_model(self._given).proto
        model = self._replaced(frozenset()) if self._options._initializers else self._given
        self._module = self._compiled(model)
        graph, sizes = proto.graph, self._options._sizes
        constants = {t.name for t in (*graph.initializer, *(s.values for s in graph.sparse_initializer))}
        self._inputs = arguments([v for v in graph.input if v.name not in constants], self._module.inputs, sizes)
        symbols = {d for arg in self._inputs for d in arg.shape if isinstance(d, str)}
        self._outputs = arguments(graph.output, self._module.outputs, sizes, symbols)
        self._initializers = arguments([v for v in graph.input if v.name in constants], (), sizes)
        self._metadata = metadata_of(proto)
        if self._options.optimized_model_filepath:
            from neo.onnx_export import optimize

            optimize(model, self._options.optimized_model_filepath, shapes=self._shapes(proto))

    def _shapes(self, proto: onnx.ModelProto) -> dict[str, int]:
        """The overridden sizes of symbols that the model has."""
        symbols = {d.dim_param for v in proto.graph.input for d in v.type.tensor_type.shape.dim}
        return {name: size for name, size in self._options._sizes.items() if name in symbols}

    def _compiled(self, model: str | bytes | os.PathLike[str] | onnx.ModelProto) -> Module:
        proto = load_model(model).proto
        return compile_model(model, threads=self._threads, shapes=self._shapes(proto), **self._compile_options)

    def _replaced(self, names: frozenset[str]) -> onnx.ModelProto:
        """The model with the initializers of the options, in which the initializers `names` are inputs."""
        proto = onnx.load_from_string(self._given) if isinstance(self._given, bytes) else onnx.load(self._given)
        given = self._options._initializers
        kept = [t for t in proto.graph.initializer if t.name not in names and t.name not in given]
        known = {t.name for t in proto.graph.initializer}
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
        for name, value in given.items():
            if name not in known:
                msg = f"[onnxruntime] an added initializer must be the model's. Got {name!r}"
                raise Fail(msg)
            proto.graph.initializer.append(numpy_helper.from_array(value.numpy(), name))
        return proto

    def _apart(self, feeds: Mapping[str, Any]) -> Module | None:
        """A module in which sizes of one name need not be equal, where the feeds ask for it.

        ONNX Runtime does not hold the symbols of inputs to one value, and there are models whose exporter reused a name.
        """
        shapes = [(arg.shape, np.shape(feeds[arg.name])) for arg in self._inputs if arg.name in feeds]
        pairs = {(d, n) for dims, shape in shapes if len(dims) == len(shape) for d, n in zip(dims, shape, strict=True)}
        named = [d for d, _ in pairs if isinstance(d, str)]
        if len(named) == len(set(named)) or self._is_saved:
            return None
        key = frozenset({""})
        with self._lock, of_load():
            if key not in self._overridden:
                proto = self._replaced(frozenset())
                for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
                    for dim in value.type.tensor_type.shape.dim:
                        dim.ClearField("dim_param")
                self._overridden[key] = self._compiled(proto)
            return self._overridden[key]

    def _module_for(self, feeds: Mapping[str, Any]) -> Module:
        """The module, or one whose initializers among the feeds are inputs."""
        expected = {arg.name for arg in self._inputs}
        others = frozenset(name for name in feeds if name not in expected)
        if not others:
            return self._module
        overridable = {arg.name for arg in self._initializers}
        for name in sorted(others - overridable):
            msg = f"[onnxruntime] input names must be the model's. Got {name!r}, expected {', '.join(sorted(expected))}"
            raise InvalidArgument(msg)
        with self._lock, of_load():
            if others not in self._overridden:
                self._overridden[others] = self._compiled(self._replaced(others))
            return self._overridden[others]

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run on arrays by name.

        Parameters
        ----------
        output_names : sequence of str, or None
            The outputs to return; None or empty: all.
        input_feed : mapping of str to array
            Arrays, OrtValues, lists for sequences. An initializer that the model declares as an input may be among
            them; a module for it is then compiled once.
        run_options : RunOptions, optional

        Returns
        -------
        list
            An array for a tensor, a list for a sequence, a dict for a map, None for an empty optional.

        Raises
        ------
        ValueError
            An input is missing.
        InvalidArgument
            A name, dtype, rank or size is not the model's.
        Fail
            The run was terminated.
        """
        self._check_feed(input_feed)
        return self._run(self._names(output_names), input_feed, None, run_options)

    def _check_feed(self, input_feed: Mapping[str, Any]) -> None:
        missing = [a.name for a in self._inputs if a.name not in input_feed and not a.type.startswith("optional")]
        if missing:
            msg = f"Required inputs ({missing}) are missing from input feed ({list(input_feed)})."
            raise ValueError(msg)

    def _names(self, output_names: Sequence[str] | None) -> list[str]:
        known = [arg.name for arg in self._outputs]
        if isinstance(output_names, str | bytes):
            msg = f"[onnxruntime] output names must be a list. Got {output_names!r}, expected a list of str"
            raise TypeError(msg)
        names = list(output_names or known)
        for name in names:
            if name not in known:
                msg = f"[onnxruntime] output names must be the model's. Got {name!r}, expected {', '.join(known)}"
                raise InvalidArgument(msg)
        return names

    def _run(
        self,
        names: Sequence[str],
        feeds: Mapping[str, Any],
        out: Mapping[str, Any] | None,
        run_options: RunOptions | None,
    ) -> list[Any]:
        if run_options is not None and not isinstance(run_options, RunOptions):
            msg = f"[onnxruntime] run options must be RunOptions. Got {type(run_options).__name__}"
            raise TypeError(msg)
        module = self._module_for(feeds)
        feeds = {name: x.value() if isinstance(x, OrtValue) else x for name, x in feeds.items()}
        with of_run():
            if run_options is not None:
                run_options.log_ignored(_log)
            try:
                results = self._call(module, feeds, out, run_options)
            except ShapeError:
                apart = self._apart(feeds)
                if apart is None:
                    raise
                results = self._call(apart, feeds, out, run_options)
        return [results[name] for name in names]

    def _call(
        self,
        module: Module,
        feeds: Mapping[str, Any],
        out: Mapping[str, Any] | None,
        run_options: RunOptions | None,
    ) -> dict[str, Any]:
        if self._profiler is not None:
            return self._profiler.run(module, feeds, out)
        if run_options is None:
            return module.run(feeds, out=out)
        token = run_options.start()
        try:
            return module._name(module._compute(module._arrange(feeds), module._memory_of(out), token))
        finally:
            run_options.finish(token)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callback,
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run on another thread, which calls ``callback(results, user_data, error)``.

        After an error `results` is empty and `error` its text; else `error` is empty.
        """
        self._check_feed(input_feed)
        names = self._names(output_names)
        feed = dict(input_feed)

        def work() -> None:
            try:
                results, error = self._run(names, feed, None, run_options), ""
            except Exception as failure:
                results, error = [], str(failure) or type(failure).__name__
            callback(results, user_data, error)

        threading.Thread(target=work, name="neo-onnxruntime", daemon=True).start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run on OrtValues by name, as :meth:`run` does."""
        self._check_feed(input_dict_ort_values)
        results = self._run(self._names(output_names), input_dict_ort_values, None, run_options)
        return [OrtValue(value) for value in results]

    def io_binding(self) -> IOBinding:
        """Make a binding of this session's inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on what is bound, into the memory that is bound.

        Raises
        ------
        ValueError
            The binding is another session's.
        RuntimeError
            Something is not bound, or does not fit.
        """
        if iobinding._session is not self:
            msg = "[onnxruntime] a binding must be of the session that it runs on. Got another session's"
            raise ValueError(msg)
        if not iobinding._outputs:
            msg = "[onnxruntime] a binding must have outputs. Got none, expected at least one"
            raise ExecutionError(msg)
        out = {name: v.numpy() for name, v in iobinding._outputs.items() if v is not None}
        try:
            self._check_feed(iobinding._inputs)
            names = self._names(list(iobinding._outputs))
            results = self._run(names, iobinding._inputs, out, run_options)
        except (ValueError, InvalidArgument, NotImplemented, Fail) as error:
            if isinstance(error.__cause__, CancelledError):
                raise
            raise ExecutionError(str(error)) from error
        iobinding._results = [
            iobinding._outputs[name] or OrtValue(value) for name, value in zip(names, results, strict=True)
        ]

    def get_inputs(self) -> list[NodeArg]:
        """Name, type and shape of each input."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Name, type and shape of each output."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Name, type and shape of each initializer that is an input, too."""
        return list(self._initializers)

    def get_modelmeta(self) -> ModelMetadata:
        """Where the model comes from."""
        return self._metadata

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """The providers: one for all processors."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options that compiling took, by provider."""
        return {PROVIDER: dict(self._compile_options)}

    def set_providers(
        self, providers: Providers = None, provider_options: Sequence[dict[Any, Any]] | None = None
    ) -> None:
        """Compile again for these providers."""
        self._compile_options = _compile_options(providers, provider_options)
        self._overridden.clear()
        with of_load():
            self._open()

    def disable_fallback(self) -> None:
        """Take what ONNX Runtime would do after an error of a provider."""

    def enable_fallback(self) -> None:
        """Take what ONNX Runtime would do after an error of a provider."""

    def end_profiling(self) -> str:
        """Write the profile of the runs since the session was made; returns the file, or "" without profiling."""
        return "" if self._profiler is None else self._profiler.write()

    def get_profiling_start_time_ns(self) -> int:
        """When the session was made, by ``time.monotonic_ns``."""
        return self._started_ns

    @property
    def module(self) -> Module:
        """Neo's module behind the session: ``session.module.explain()``."""
        return self._module


def _compile_options(providers: Providers, options: Sequence[dict[Any, Any]] | None) -> dict[str, Any]:
    """What the provider's options say to neo.compile; warns of providers that neo lacks."""
    pairs: list[tuple[Any, Any]] = []
    for i, provider in enumerate(providers or ()):
        name, chosen = provider if isinstance(provider, tuple) and len(provider) == 2 else (provider, {})
        pairs.append((name, options[i] if options and i < len(options) else chosen))
    seen: set[Any] = set()
    found: dict[str, Any] = {}
    for name, chosen in pairs:
        if name in seen:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=3)
            continue
        seen.add(name)
        if name != PROVIDER:
            text = f"Specified provider '{name}' is not in available provider names. Available providers: '{PROVIDER}'"
            warnings.warn(text, stacklevel=3)
            continue
        if not isinstance(chosen, Mapping):
            msg = f"[onnxruntime] options of a provider must be a dict. Got {chosen!r} for {name!r}"
            raise TypeError(msg)
        for key, value in chosen.items():
            if key in _COMPILE_OPTIONS:
                found[key] = value
            else:
                _log.info("the option %s=%r of %s has no effect in neo", key, value, PROVIDER)
    return found

"""What the user holds: a compiled model."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neo import _native
from neo.errors import DTypeError, ModelError, ShapeError
from neo.limits import checked_threads
from neo.provenance import Provenance
from neo.report.fallbacks import fallback_shares
from neo.report.step import Step
from neo.select import Flat, Problem, optimality
from neo.signature import Signature, Tensor

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from neo.call_future import CallFuture
    from neo.candidates import Selection
    from neo.report.explain import Bound, Explanation
    from neo.report.profile import Profile
    from neo.report.subject import Machine, Subject
    from neo.tune.measure import Tuning

__all__ = ["Module", "Tensor"]


class Module:
    """A compiled model. Made by :func:`neo.compile`; calls are thread-safe and release the GIL."""

    def __init__(
        self,
        native: _native.Module,
        signature: Signature,
        machine: _native.Machine,
        *,
        selection: Selection | None = None,
        tuning: Tuning | None = None,
        provenance: Provenance | None = None,
    ) -> None:
        self._native = native
        self._call: Callable[..., list[Any]] = native.call
        self._signature = signature
        self._inputs = signature.inputs
        self._output_names = [t.name for t in signature.outputs]
        self._by_name = {t.name: i for i, t in enumerate(self._inputs)}
        self._kinds = [signature.kinds[t.name] for t in self._inputs]
        self._dtypes = [
            np.dtype(t.dtype) if kind == "tensor" and t.dtype in _NUMPY else None
            for t, kind in zip(self._inputs, self._kinds, strict=True)
        ]
        self._exact = [
            (i, t.name, dtype, *_last_sizes(t))
            for i, (t, dtype) in enumerate(zip(self._inputs, self._dtypes, strict=True))
        ]
        self._machine = machine
        self._selection = selection
        self._tuning = tuning
        self._provenance = provenance or Provenance()
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Name, dtype and shape of each input, in the model's order."""
        return self._inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Name, dtype and shape of each output, in the model's order."""
        return self._signature.outputs

    @property
    def threads(self) -> int:
        """Threads a call may use."""
        return int(self._native.threads)

    @property
    def target(self) -> str:
        """What the module was compiled for."""
        return self._machine.name

    @property
    def variants(self) -> tuple[Module, ...]:
        """The modules that calls choose from by the sizes of their inputs; a module of one variant is its own."""
        return (self,)

    @property
    def provenance(self) -> dict[str, str]:
        """Where the module comes from: the release of neo that compiled it; name and SHA-256 of the model."""
        return dict(self._provenance.told())

    @property
    def tuning(self) -> Tuning | None:
        """What tuning did; None for a module compiled with neither ``tune`` nor ``database``."""
        return self._tuning

    @property
    def reduction_length(self) -> int:
        """The longest sum behind one element of any node, the depth of accuracy checks."""
        return self._signature.depth

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arrays given by position or by name.

        Returns
        -------
        array, or tuple of arrays
            One output: the array; several: a tuple in the model's order.
        """
        if len(args) > len(self._inputs):
            msg = f"[run] every array must have an input. Got {len(args)} arrays, expected at most {len(self._inputs)}"
            raise ModelError(msg)
        if len(args) == len(self._inputs) and not kwargs:
            results = self._call(
                [
                    x
                    if type(x) is np.ndarray and x.dtype is dtype and x.ndim == rank and x.shape[first:] == sizes
                    else self._check(i, x)
                    for x, (i, _, dtype, rank, first, sizes) in zip(args, self._exact, strict=True)
                ]
            )
            return results[0] if len(results) == 1 else tuple(results)
        named = {self._inputs[i].name: x for i, x in enumerate(args)}
        for name, x in kwargs.items():
            if name in named:
                msg = f"[run] an input must be given once. Got {name!r} by position and by name"
                raise ModelError(msg)
            named[name] = x
        results = self._call(self._arrange(named))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run on arrays by name and return arrays by name, both the model's own."""
        return self._run(inputs, None)

    def run_async(self, inputs: Mapping[str, Any]) -> Future[dict[str, Any]]:
        """Start :meth:`run` on another thread.

        Returns
        -------
        concurrent.futures.Future
            ``cancel()`` drops a call that waits and stops one that runs; then the result raises CancelledError.
        """
        from concurrent.futures import ThreadPoolExecutor

        from neo.call_future import CallFuture

        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    max_workers=_native.default_threads(), thread_name_prefix="neo-call"
                )
        token = _native.CancelToken()
        arranged = self._arrange(inputs)
        future = CallFuture(token)
        work = self._executor.submit(self._finish, future, arranged, token)
        future.waiting = work
        return future

    def _finish(self, future: CallFuture, arranged: list[Any], token: _native.CancelToken) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            results = self._call(arranged, token)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(self._name(results))

    def _run(self, inputs: Mapping[str, Any], token: _native.CancelToken | None) -> dict[str, Any]:
        return self._name(self._call(self._arrange(inputs), token))

    def _name(self, results: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self._output_names, results, strict=True))

    def _arrange(self, inputs: Mapping[str, Any]) -> list[Any]:
        if type(inputs) is not dict and not isinstance(inputs, Mapping):
            msg = f"[run] inputs must be a mapping of names to arrays. Got {type(inputs).__name__}, expected a dict"
            raise DTypeError(msg)
        if inputs.keys() != self._by_name.keys():
            self._complain_about_names(inputs)
        return [
            x
            if type(x := inputs.get(name)) is np.ndarray
            and x.dtype is dtype
            and x.ndim == rank
            and x.shape[first:] == sizes
            else self._check(i, x)
            for i, name, dtype, rank, first, sizes in self._exact
        ]

    def _complain_about_names(self, inputs: Mapping[str, Any]) -> None:
        expected = ", ".join(repr(t.name) for t in self._inputs)
        unknown = [name for name in inputs if name not in self._by_name]
        if unknown:
            msg = f"[run] input names must be the model's. Got {', '.join(map(repr, unknown))}, expected {expected}"
            raise ModelError(msg)
        missing = [
            t.name for t in self._inputs if t.name not in inputs and self._kinds[self._by_name[t.name]] != "optional"
        ]
        if missing:
            msg = f"[run] every input must be given. Got none for {', '.join(map(repr, missing))}, expected {expected}"
            raise ModelError(msg)

    def _check(self, index: int, x: Any) -> Any:
        spec = self._inputs[index]
        expected = self._dtypes[index]
        if self._kinds[index] != "tensor":
            return x
        array = x if isinstance(x, np.ndarray) else _as_array(x, spec)
        if expected is None:
            if spec.dtype == "string" and array.dtype.kind not in "OUS":
                raise _dtype_error(array, spec)
        elif array.dtype != expected and array.dtype.newbyteorder("=") != expected:
            if hasattr(x, "dtype") or hasattr(x, "__dlpack__"):
                raise _dtype_error(array, spec)
            array = _number_array(array, expected, spec)
        shape = spec.shape
        if shape is not None:
            fits = len(shape) == array.ndim and all(
                not isinstance(d, int) or d == n for d, n in zip(shape, array.shape, strict=True)
            )
            if not fits:
                dims = ",".join(str(d) for d in shape)
                got = ",".join(str(d) for d in array.shape)
                msg = f"[run] shape must be the input's. Got [{got}], expected [{dims}] - at input {spec.name!r}"
                raise ShapeError(msg)
        return array

    def with_threads(self, threads: int) -> Module:
        """The same selection, and the same bits, on another number of threads.

        The threads are real even where the process has fewer cores.
        """
        return self._with(self._native.with_threads(checked_threads(threads, "with_threads")))

    def _with(self, native: _native.Module) -> Module:
        """The same module that runs another plan."""
        return Module(
            native,
            self._signature,
            self._machine,
            selection=self._selection,
            tuning=self._tuning,
            provenance=self._provenance,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the module to one file, for :func:`neo.load`.

        The file is written beside `path` and renamed: what was there stays until the new one is whole.
        """
        if not isinstance(path, str | os.PathLike):
            msg = f"[save] path must be a path. Got {type(path).__name__}, expected a str or a PathLike"
            raise DTypeError(msg)
        _native.save_variants(self._saved_parts(), os.fspath(path))

    def _saved_parts(self) -> list[tuple[_native.Module, _native.Machine, dict[str, str]]]:
        facts = {f"neo.{k}": v for k, v in self._provenance.told().items()}
        notes = {"neo.signature": self._signature.to_json(), **facts}
        return [(self._native, self._machine, notes)]

    def profile(self, inputs: Mapping[str, Any], *, repeat: int = 10) -> Profile:
        """Time every step: a table, plain data, an HTML page, a trace (docs/profiling.md).

        Parameters
        ----------
        inputs : mapping of str to array
            As for :meth:`run`.
        repeat : int
            Calls to measure after one that is not counted; a step's time is its median.
        """
        from neo.report.profile import Profile, Record

        arranged = self._arrange(inputs)
        self._native.trace(arranged)
        records = [Record(*self._native.trace(arranged)[1:]) for _ in range(max(1, repeat))]
        return Profile.of(
            records,
            subject=self._subject(),
            machine=_limits(self.target, self.threads),
            estimate_us=float(self._native.estimate_us),
            estimate_sizes=self._hints(),
            measured_sizes=self._sizes(inputs),
            tuning="" if self._tuning is None else str(self._tuning),
        )

    def _subject(self) -> Subject:
        from neo.report.alternatives import total_changes
        from neo.report.subject import Subject
        from neo.tune.hints import mark_hints

        name = self._provenance.facts.get("model", "")
        if self._selection is None:
            return Subject.of_plan(name, self.target, self.threads, self._native.plan, self._native.regions_at_hints())
        problem, choices = self._selection.problem, list(self._selection.choice)
        nodes, graph = problem.nodes, problem.graph
        if self._tuning is not None and self._tuning.hints:
            mark_hints(nodes, self._tuning.hints)
        changes = total_changes(problem.costs, problem.edges, choices, len(nodes))
        return Subject(
            name or graph["name"],
            self.target,
            self.threads,
            graph,
            nodes,
            choices,
            [c.tolist() for c in changes],
            self._native.plan,
            self._native.regions_at_hints(),
        )

    def explain(self, node: str | None = None, inputs: Mapping[str, Any] | None = None) -> Explanation:
        """Every routine for a node: chosen, slower by how much, rejected why. A loaded module knows the chosen ones.

        Parameters
        ----------
        node : str, optional
            A node's name, or the name of a value it makes; None: all nodes.
        inputs : mapping of str to array, optional
            With inputs, the module is measured and the selection's total stands beside it.
        """
        from neo.report.explain import Explanation

        measured_us = None if inputs is None else self.profile(inputs).total_us
        sizes = {} if inputs is None else self._sizes(inputs)
        estimate_us = float(self._native.estimate_us)
        tuning = "" if self._tuning is None else str(self._tuning)
        figures = next((t["summary"] for t in _native.device_targets() if t["name"] == self.target), "")
        hints = self._hints()

        def schedules(workload: str) -> dict[str, int]:
            return _native.space_sizes(workload, self.target, self.threads)

        return Explanation.of(
            self._subject(),
            node,
            estimate_us,
            measured_us,
            hints,
            sizes,
            tuning=tuning,
            bound=self._bound() if node is None else None,
            figures=figures,
            schedules=None if node is None or self._selection is None else schedules,
            is_named=self._selection is not None and self._selection.problem.cpu_penalty_us > 0,
        )

    def _bound(self) -> Bound | None:
        """How good the selection is, by the costs the problem has now; None where the problem is not known."""
        from neo.report.explain import Bound

        if self._selection is None:
            return None
        native = self._selection.problem
        found = optimality(Problem.from_flat(Flat(*native.flat), places=native.places), self._selection.choice)
        if found is None:
            return None
        return Bound(found.total, found.lower_bound, found.method, found.proof, found.others)

    def _hints(self) -> dict[str, int]:
        """What selection takes the symbols of the inputs' shapes for."""
        return {symbol: n for t in self._inputs for symbol, n in _open_sizes(t, t.hints or ()).items()}

    def _sizes(self, inputs: Mapping[str, Any]) -> dict[str, int]:
        """What these inputs make of the symbols."""
        given = [(t, np.shape(inputs[t.name])) for t in self._inputs if t.name in inputs and t.shape is not None]
        return {symbol: n for t, shape in given for symbol, n in _open_sizes(t, shape).items()}

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """The kernels that run on the device: node, routine, name, language, text, and the estimate of their step."""
        return self._native.kernels(self._machine)

    @property
    def steps(self) -> list[Step]:
        """What runs, in order."""
        return [Step(**s) for s in self._native.steps]

    @property
    def fallbacks(self) -> dict[str, float]:
        """Operators that run by their references for want of a faster routine.

        Returns
        -------
        dict of str to float
            The share of the estimated time of a call, between 0 and 1, by operator, the largest first.
        """
        return fallback_shares(self.steps)

    def __reduce__(self) -> Any:
        msg = (
            "[module] a module belongs to its process. Got pickle or copy, expected a call\n"
            "Hint: save it, and load the file there."
        )
        raise DTypeError(msg)

    def __iter__(self) -> Iterator[Any]:
        msg = "[module] a module is called, not iterated"
        raise DTypeError(msg)

    def __repr__(self) -> str:
        ins = ", ".join(map(str, self._inputs))
        outs = ", ".join(map(str, self._signature.outputs))
        return f"neo.Module({ins} -> {outs}; target {self.target}, {self.threads} threads)"


_NUMPY = frozenset(
    f"{kind}{bits}"
    for kind, sizes in (("float", (16, 32, 64)), ("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64)))
    for bits in sizes
) | {"bool", "complex64", "complex128"}


@functools.lru_cache(maxsize=16)
def _limits(target: str, threads: int) -> Machine:
    """Measured once per process: a fifth of a second."""
    from neo.report.subject import Machine

    return Machine(threads, *_native.measure_limits(target, threads))


def _last_sizes(spec: Tensor) -> tuple[int | None, int, tuple[int | str, ...]]:
    """The rank, and the sizes behind the first ones that may be any.

    An array of just these needs no look at its parts. None has the rank None, which stands for an input that has a size
    of a name behind one of a number.
    """
    if spec.shape is None:
        return None, 0, ()
    first = next((i for i, d in enumerate(spec.shape) if isinstance(d, int)), len(spec.shape))
    sizes = spec.shape[first:]
    return (len(spec.shape) if all(isinstance(d, int) for d in sizes) else None), first, sizes


def _open_sizes(spec: Tensor, sizes: Sequence[int]) -> dict[str, int]:
    """The sizes of the symbols in an input's shape."""
    return {d: n for d, n in zip(spec.shape or (), sizes, strict=False) if isinstance(d, str)}


def _as_array(x: Any, spec: Tensor) -> np.ndarray[Any, Any]:
    """What gives an array: a list, a number, ``__array__``, the buffer protocol or DLPack."""
    try:
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            return np.from_dlpack(x)
        return np.asarray(x)
    except Exception as error:
        kind = type(x).__name__
        msg = f"[run] an input must give an array. Got {kind} ({error}), expected {spec} - at input {spec.name!r}"
        raise DTypeError(msg) from error


def _number_array(array: np.ndarray[Any, Any], expected: np.dtype[Any], spec: Tensor) -> np.ndarray[Any, Any]:
    """Plain Python numbers take the input's dtype where it holds their values; floats are rounded."""
    if array.dtype.kind not in "biufc" or (expected.kind == "b" and array.size):
        raise _dtype_error(array, spec)
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(expected)
    if expected.kind in "iu" and not np.array_equal(converted, array):
        msg = f"[run] values must fit the dtype. Got {array.dtype}, expected {spec.dtype} - at input {spec.name!r}"
        raise DTypeError(msg)
    if array.dtype.kind == "c" and expected.kind != "c":
        raise _dtype_error(array, spec)
    return converted


def _dtype_error(array: np.ndarray[Any, Any], spec: Tensor) -> DTypeError:
    return DTypeError(
        f"[run] dtype must be the input's. Got {array.dtype}, expected {spec.dtype} - at input {spec.name!r}"
    )

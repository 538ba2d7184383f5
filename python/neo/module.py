"""What the user holds: a compiled model."""

from __future__ import annotations

import functools
import io
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from neo import _native
from neo.call_inputs import CallInputs
from neo.errors import DTypeError, ModelError
from neo.executors import checked_executors
from neo.limits import checked_threads, whole
from neo.memory import Closed, Memory, module_bytes
from neo.provenance import Provenance
from neo.report.fallbacks import fallback_shares
from neo.report.memory import arena_bytes
from neo.report.step import Step
from neo.signature import Signature, Tensor, html_table, open_sizes
from neo.values import Input, OutputMemory, Value, output_memory, zeros_of

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from neo.call_future import CallFuture
    from neo.candidates import Selection
    from neo.report.explain import Bound, Explanation, Makespan
    from neo.report.profile import Profile
    from neo.report.subject import Machine, Subject
    from neo.stream import Stream
    from neo.tune.measure import Tuning

__all__ = ["Memory", "Module", "Tensor"]

# The caller's memory for outputs.
Output: TypeAlias = "Value | Sequence[Value | None] | Mapping[str, Value] | None"


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
        chose_executors: bool = False,
    ) -> None:
        self._native = native
        self._chose_executors = chose_executors  # a loaded module has the same ones
        self._call: Callable[..., list[Value]] = native.call
        self._signature = signature
        self._inputs = signature.inputs
        self._output_names = [t.name for t in signature.outputs]
        self._given = CallInputs(signature)
        self._arrange = self._given.arrange
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
    def executors(self) -> tuple[int, int]:
        """How many executors run parts of the model beside each other, and the threads of each (docs/executors.md)."""
        return self._native.executors

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

    def __call__(self, *args: Input, out: Output = None, **kwargs: Input) -> Value:
        """Run on arrays given by position or by name, or on one dict of arrays by name.

        Parameters
        ----------
        *args, **kwargs : array_like
            What gives an array: NumPy's, PyTorch's tensors, DLPack, the buffer protocol, ``__array_interface__``. It is
            read where it lies if it is dense.
        out : array, sequence of arrays or dict of str to array, optional
            Memory of the caller's that outputs are written to, of their dtypes and shapes: the array of a single
            output, or one for each in the model's order (None for one that neo allocates), or some by name. An input
            that the model calls ``out`` is given by position, or to :meth:`run`. Undefined after an error.

        Returns
        -------
        array, or tuple of arrays
            One output: the array; several: a tuple in the model's order. Those of `out` are returned themselves.

        Raises
        ------
        neo.ModelError, neo.ShapeError, neo.DTypeError
            What is given is not what the model takes.
        """
        if len(args) == len(self._inputs) and not kwargs and out is None and not (args and type(args[0]) is dict):
            results = self._call(
                [
                    x
                    if type(x) is np.ndarray and x.dtype is dtype and x.ndim == rank and x.shape[first:] == sizes
                    else self._given.check(i, x)
                    for x, (i, _, dtype, rank, first, sizes) in zip(args, self._given.exact, strict=True)
                ]
            )
            return results[0] if len(results) == 1 else tuple(results)
        results = self._compute(self._arrange(self._given.named(args, kwargs)), self._memory_of(out))
        return results[0] if len(results) == 1 else tuple(results)

    def _memory_of(self, out: Output) -> OutputMemory | None:
        if out is None:
            return None
        if not isinstance(out, Mapping):
            arrays = list(out) if isinstance(out, list | tuple) else [out]
            if len(arrays) != len(self._output_names):
                expected = f"expected {len(self._output_names)}"
                msg = f"[run] out must have an array for every output. Got {len(arrays)}, {expected}"
                raise ModelError(msg)
            out = {name: x for name, x in zip(self._output_names, arrays, strict=True) if x is not None}
        return output_memory(out, self._signature.outputs)

    def _compute(
        self, arranged: list[Value], memory: OutputMemory | None, token: _native.CancelToken | None = None
    ) -> list[Value]:
        if memory is None:
            return self._call(arranged, token)
        return memory.finish(self._call(arranged, token, memory.direct))

    def run(self, inputs: Mapping[str, Input], *, out: Mapping[str, Value] | None = None) -> dict[str, Value]:
        """Run on arrays by name and return arrays by name, both the model's own.

        Parameters
        ----------
        inputs : mapping of str to array_like
            As for a call.
        out : mapping of str to array, optional
            Memory of the caller's for some outputs, of their dtypes and shapes.
        """
        return self._name(self._compute(self._arrange(inputs), self._memory_of(out)))

    def map(self, calls: Iterable[Mapping[str, Input]], *, in_flight: int = 2) -> Iterator[dict[str, Value]]:
        """Run on each of `calls`, whose sizes may differ, and yield the outputs of each in order.

        Parameters
        ----------
        calls : iterable of mapping of str to array_like
            The inputs of each call, read from as calls end.
        in_flight : int
            How many calls run or wait at a time.

        Raises
        ------
        neo.ModelError, neo.DTypeError
            `in_flight` is not positive, or `calls` cannot be iterated.
        """
        most = whole(in_flight)
        if most is None or most < 1:
            msg = f"[run] in_flight must be positive. Got {in_flight!r}, expected 1 or more"
            raise ModelError(msg)
        if not isinstance(calls, Iterable):
            msg = f"[run] calls must be an iterable of inputs. Got {type(calls).__name__}, expected dicts by name"
            raise DTypeError(msg)
        return self._map(calls, most)

    def _map(self, calls: Iterable[Mapping[str, Input]], in_flight: int) -> Iterator[dict[str, Value]]:
        waiting: deque[Future[dict[str, Value]]] = deque()
        try:
            for inputs in calls:
                waiting.append(self.run_async(inputs))
                if len(waiting) >= in_flight:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def run_async(self, inputs: Mapping[str, Input], *, out: Mapping[str, Value] | None = None) -> CallFuture:
        """Start :meth:`run` on another thread.

        Parameters
        ----------
        inputs : mapping of str to array_like
            As for :meth:`run`; the arrays must stay as they are until the call ends.
        out : mapping of str to array, optional
            As for :meth:`run`.

        Returns
        -------
        concurrent.futures.Future
            It can be awaited, too: ``outputs = await module.run_async(inputs)``. ``cancel()`` drops a call that waits
            and stops one that runs; then the result raises CancelledError.
        """
        from concurrent.futures import ThreadPoolExecutor

        from neo.call_future import CallFuture

        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    max_workers=_native.default_threads(), thread_name_prefix="neo-call"
                )
        token = _native.CancelToken()
        arranged, memory = self._arrange(inputs), self._memory_of(out)
        future = CallFuture(token)
        work = self._executor.submit(self._finish, future, arranged, memory, token)
        future.waiting = work
        return future

    def _finish(
        self, future: CallFuture, arranged: list[Value], memory: OutputMemory | None, token: _native.CancelToken
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            results = self._compute(arranged, memory, token)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(self._name(results))

    def _name(self, results: Sequence[Value]) -> dict[str, Value]:
        return dict(zip(self._output_names, results, strict=True))

    def with_threads(self, threads: int) -> Module:
        """The same selection, and the same bits, on another number of threads.

        The threads are real even where the process has fewer cores.
        """
        return self._with(self._native.with_threads(checked_threads(threads, "with_threads")))

    def with_executors(self, executors: int, threads: int) -> Module:
        """The same selection, and the same bits, on so many executors of so many threads each.

        Parameters
        ----------
        executors : int
            Parts of the model that run beside each other, 1 to 1024.
        threads : int
            Of each executor, 1 to 1024; they are real even where the process has fewer cores.

        Raises
        ------
        neo.ModelError
            One of them is no such number.
        """
        checked_executors((executors, threads), None, "with_executors")
        return self._with(self._native.with_executors(executors, threads))

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

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the module to one file, for :func:`neo.load`.

        Parameters
        ----------
        target : path or binary file
            A file at a path is written beside it and renamed: what was there stays until the new one is whole. To an
            open file its bytes are written where it stands.

        Raises
        ------
        neo.DTypeError
            `target` is neither a path nor a binary file.
        neo.ResourceError
            The file cannot be written.
        """
        if isinstance(target, str | os.PathLike):
            _native.save_variants(self._saved_parts(), os.fspath(target))
            return
        if not hasattr(target, "write") or isinstance(target, io.TextIOBase):
            msg = f"[save] target must be a path or a binary file. Got {type(target).__name__}, expected a str"
            raise DTypeError(msg)
        target.write(self._saved_bytes())

    def _saved_bytes(self) -> bytes:
        with tempfile.TemporaryDirectory(prefix="neo-") as folder:
            path = Path(folder, "module.neo")
            _native.save_variants(self._saved_parts(), str(path))
            return path.read_bytes()

    def _saved_parts(self) -> list[tuple[_native.Module, _native.Machine, dict[str, str], bool]]:
        if isinstance(self._native, Closed):
            self._native()
        facts = {f"neo.{k}": v for k, v in self._provenance.told().items()}
        notes = {"neo.signature": self._signature.to_json(), **facts}
        return [(self._native, self._machine, notes, self._chose_executors)]

    def profile(self, inputs: Mapping[str, Input], *, repeat: int = 10) -> Profile:
        """Time every step: a table, plain data, an HTML page, a trace (docs/profiling.md).

        Parameters
        ----------
        inputs : mapping of str to array
            As for :meth:`run`.
        repeat : int
            Calls to measure after one that is not counted; a step's time is its median.

        Raises
        ------
        neo.ModelError
            `repeat` is not positive.
        """
        count = whole(repeat)
        if count is None or count < 1:
            msg = f"[profile] repeat must be positive. Got {repeat!r}, expected 1 or more"
            raise ModelError(msg)
        from neo.report.profile import Profile, Record

        arranged = self._arrange(inputs)
        self._native.trace(arranged)
        records = [Record(*self._native.trace(arranged)[1:]) for _ in range(count)]
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
        from neo.candidates import inner_selections
        from neo.report.alternatives import add_inner_changes, total_changes
        from neo.report.subject import Subject
        from neo.select import Flat, Problem
        from neo.tune.hints import mark_hints

        name = self._provenance.facts.get("model", "")
        if self._selection is None:
            return Subject.of_plan(
                name, self.target, self.executors, self._native.plan, self._native.regions_at_hints()
            )
        problem, choices = self._selection.problem, list(self._selection.choice)
        nodes, graph = problem.nodes, problem.graph
        if self._tuning is not None and self._tuning.hints:
            mark_hints(nodes, self._tuning.hints)
        arrays = Problem.from_flat(Flat(*problem.flat))
        changes = total_changes(arrays.costs, arrays.edges, choices, len(nodes))
        found = inner_selections(arrays, choices, nodes)
        add_inner_changes(arrays.costs, arrays.edges, choices, found, nodes, changes)
        return Subject(
            name or graph["name"],
            self.target,
            self.executors,
            graph,
            nodes,
            choices,
            [c.tolist() for c in changes],
            self._native.plan,
            self._native.regions_at_hints(),
        )

    def explain(self, node: str | None = None, inputs: Mapping[str, Input] | None = None) -> Explanation:
        """Every routine for a node: chosen, slower by how much, rejected why. A loaded module knows the chosen ones.

        Parameters
        ----------
        node : str, optional
            A node's name, or the name of a value it makes; None: all nodes.
        inputs : mapping of str to array, optional
            With inputs, the module is measured and the selection's total stands beside it.
        """
        from neo.report.explain import Explanation

        profile = None if inputs is None else self.profile(inputs)
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
            None if profile is None else profile.total_us,
            hints,
            sizes,
            tuning=tuning,
            bound=self._bound() if node is None else None,
            figures=figures,
            far=() if profile is None else profile.far,
            schedules=None if node is None or self._selection is None else schedules,
            is_named=self._selection is not None and self._selection.problem.cpu_penalty_us > 0,
            makespan=self._makespan() if node is None else None,
        )

    def _makespan(self) -> Makespan | None:
        """What the executors should take; None where there is one of the team size that selection was for."""
        from neo.report.explain import Makespan

        at = self._machine.threads
        if self.executors == (1, at):
            return None
        return Makespan(self.executors, *self._native.expected_makespan(*self.executors, at))

    def _bound(self) -> Bound | None:
        """How good the selection is, by the costs the problem has now; None where the problem is not known."""
        from neo.report.explain import Bound
        from neo.select import Flat, Problem, optimality

        if self._selection is None:
            return None
        native = self._selection.problem
        found = optimality(Problem.from_flat(Flat(*native.flat), places=native.places), self._selection.choice)
        if found is None:
            return None
        return Bound(found.total, found.lower_bound, found.method, found.proof, found.others)

    def _hints(self) -> dict[str, int]:
        """What selection takes the symbols of the inputs' shapes for."""
        return {symbol: n for t in self._inputs for symbol, n in open_sizes(t, t.hints or ()).items()}

    def _sizes(self, inputs: Mapping[str, Input]) -> dict[str, int]:
        """What these inputs make of the symbols."""
        given = [
            (t, np.shape(cast(Any, inputs[t.name]))) for t in self._inputs if t.name in inputs and t.shape is not None
        ]
        return {symbol: n for t, shape in given for symbol, n in open_sizes(t, shape).items()}

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

    @property
    def memory(self) -> Memory:
        """Bytes that the module holds now, and those that a call of the assumed sizes takes."""
        regions = self._native.regions_at_hints()
        scratch = self.executors[0] * max((r["scratch_bytes"] for r in regions), default=0)
        call = arena_bytes(regions) + scratch
        return Memory(self._native.constant_bytes, self._native.kept_bytes, call, module_bytes(self._native))

    def warm_up(self, inputs: Mapping[str, Input] | None = None) -> Module:
        """Call once, so that the first call that counts finds memory, sizes and weights at hand.

        Parameters
        ----------
        inputs : mapping of str to array_like, optional
            As for :meth:`run`; by default zeros of the sizes that selection assumes.

        Returns
        -------
        Module
            This module.

        Raises
        ------
        neo.ModelError
            An input is no tensor, or its rank is open, and none is given.
        """
        if inputs is None:
            inputs = {spec.name: zeros_of(spec) for spec in self._inputs}
        self.run(inputs)
        return self

    def stream(self, states: Mapping[str, str] | None = None, *, initial: Mapping[str, Input] | None = None) -> Stream:
        """Calls that hand a recurrent state on from one to the next.

        Parameters
        ----------
        states : mapping of str to str, optional
            Inputs to the outputs that they take from the call before. The default is what the names tell: ``h_in`` and
            ``h_out``, ``state`` and ``stateN``, ``past`` and ``present``, ``h`` and ``hn``.
        initial : mapping of str to array_like, optional
            States of the first call; zeros of the assumed sizes where there is none.

        Returns
        -------
        neo.stream.Stream

        Raises
        ------
        neo.ModelError
            Names are not the model's, or tell nothing.
        """
        from neo.stream import Stream

        return Stream(self, states, initial)

    def close(self) -> None:
        """Let go of weights and memory now; calls that run end first, later ones raise a ModelError."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(cancel_futures=True)
        self._native = self._call = cast(Any, Closed())
        self._selection = None

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        msg = "[module] a module is called, not iterated"
        raise DTypeError(msg)

    def __repr__(self) -> str:
        ins = ", ".join(map(str, self._inputs))
        outs = ", ".join(map(str, self._signature.outputs))
        if isinstance(self._native, Closed):
            return f"neo.Module({ins} -> {outs}; closed)"
        return f"neo.Module({ins} -> {outs}; target {self.target}, {self._threads_text()})"

    def _threads_text(self) -> str:
        from neo.report.table import counted

        return counted(self.threads, "thread")

    def _repr_html_(self) -> str:
        """A table of inputs and outputs, for notebooks."""
        where = "closed" if isinstance(self._native, Closed) else f"{self.target}, {self._threads_text()}"
        return html_table(self._signature, f"neo.Module: {where}")


@functools.lru_cache(maxsize=16)
def _limits(target: str, threads: int) -> Machine:
    """Measured once per process: a fifth of a second."""
    from neo.report.subject import Machine

    return Machine(threads, *_native.measure_peak_rates(target, threads))

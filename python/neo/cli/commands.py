"""The commands that have a model, and what they print; ``neo tune`` and ``neo db`` are in tuning.py."""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neo import _native
from neo.cli.quantizing import add_quantize, check_numeric_command
from neo.cli.tuning import add_commands, add_database, budget_of
from neo.cli.values import read_value, save_outputs, to_json
from neo.compile import compile as compile_model
from neo.errors import Error, ModelError
from neo.module import Module, Tensor
from neo.report.fallbacks import fallback_line
from neo.report.table import render_table
from neo.saved import load

__all__ = ["main", "make_parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (0: done, 1: an error that was printed, 2: wrong usage)."""
    logging.getLogger("neo").addHandler(logging.NullHandler())  # the commands print what compiling logs
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return int(options.run(options) or 0)
    except (Error, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="neo", description="Compile a neural network for this machine, run it, look inside."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int | None], help_text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help_text, description=help_text)
        command.set_defaults(run=run)
        return command

    def add_model(command: argparse.ArgumentParser, *, variants: bool = False) -> None:
        command.add_argument("model", help="an ONNX file, or a module that neo compile wrote (.neo)")
        if variants:
            command.add_argument(
                "--target", action="append", help="cpu, cpu:avx2, ... (neo targets); several: a variant for each"
            )
        else:
            command.add_argument("--target", default="cpu", help="cpu, cpu:avx2, ... (neo targets)")
        command.add_argument("--threads", type=int, help="threads of a call (default: the cores this process may use)")
        command.add_argument(
            "--shape",
            action="append",
            default=[],
            metavar="SYMBOL=SIZE" + (",..." if variants else ""),
            help="fix a symbolic size" + ("; a size or LEAST:MOST, several: a variant for each" if variants else ""),
        )
        command.add_argument(
            "--input",
            action="append",
            default=[],
            metavar="NAME=FILE",
            help="an input from a .npy or .json file, else random",
        )
        command.add_argument(
            "--tune",
            nargs="?",
            const=True,
            default=False,
            metavar="BUDGET",
            help="measure instead of estimating, for at most a time such as 60s, or so many trials such as 500 "
            "(write --tune=60s before a model)",
        )
        add_database(command)

    command = add("run", _run, "run a model on inputs from files, or on random ones")
    add_model(command)
    command.add_argument("--output", metavar="FILE", help="write the outputs to an .npz or .json file; -: print JSON")
    command = add("compile", _compile_to, "compile a model into one file that runs without compiling again")
    add_model(command, variants=True)
    command.add_argument("-o", "--output", metavar="FILE", help="where to write (default: the model's name with .neo)")
    command = add("export", _export, "write the sources of a library that runs one saved module and nothing else")
    command.add_argument("model", help="a module that neo compile wrote (.neo)")
    command.add_argument("--out", required=True, metavar="DIR", help="where to write: a new or empty folder")
    command = add("optimize", _optimize, "write a model as neo's passes leave it, as ONNX for another runtime")
    command.add_argument("model", help="an ONNX file")
    command.add_argument("output", help="the ONNX file to write")
    command.add_argument("--shape", action="append", default=[], metavar="SYMBOL=SIZE", help="fix a symbolic size")
    command = add("bench", _bench, "time a model")
    add_model(command)
    command.add_argument("--seconds", type=float, default=2.0, help="how long to measure (each engine)")
    command.add_argument("--peers", action="store_true", help="beside every engine that is installed, in float32")
    command.add_argument(
        "--rounds", type=int, default=15, help="with --peers: interleaved rounds (default: %(default)s)"
    )
    command = add("profile", _profile, "where the time goes, step by step")
    add_model(command)
    command.add_argument("--top", type=int, default=25, help="rows of the table")
    command.add_argument("--json", metavar="FILE", help="write the profile as JSON")
    command.add_argument("--timeline", metavar="FILE", help="draw a timeline (needs matplotlib)")
    command.add_argument("--html", metavar="FILE", help="write a page of graph, timeline, roofline, memory and choices")
    command.add_argument("--trace", metavar="FILE", help="write a trace for Perfetto or chrome://tracing")
    command = add("explain", _explain, "which routine runs each node, and why")
    add_model(command)
    command.add_argument("node", nargs="?", help="one node or value: all its options")
    command.add_argument(
        "--measure",
        action=argparse.BooleanOptionalAction,
        help="measure the module beside the selection's total (default: with all nodes)",
    )
    command.add_argument("--html", metavar="FILE", help="write a page of graph, memory and choices")
    add_commands(add, _sizes)
    add_quantize(add, _sizes)
    command = add(
        "check", _check, "what of a model neo cannot run; which node is wrong (--accuracy), which scale (--numeric)"
    )
    command.add_argument("model", help="an ONNX file")
    command.add_argument("--accuracy", action="store_true", help="compare every node with double precision")
    command.add_argument(
        "--numeric", action="store_true", help="look at every rounded value of a quantized model: overflow, underflow"
    )
    command.add_argument(
        "--data", metavar="DIR", help="with --numeric: samples as for neo quantize, else one of the --input files"
    )
    command.add_argument(
        "--differences", metavar="DIR", help="with --numeric: write what rounding changes, element by element"
    )
    command.add_argument(
        "--against",
        default="float64",
        metavar="ENGINE|FILE",
        help="float64 (default), onnxruntime, or a trusted model with the same names of values",
    )
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help="inputs from an .npz file, or NAME=FILE.npy; else random",
    )
    command.add_argument("--samples", type=int, default=1, help="how many sets of random inputs (default: %(default)s)")
    command.add_argument("--measure", action="store_true", help="time what the pin that avoids an error costs")
    command.add_argument("--top", type=int, metavar="ROWS", help="only the nodes nearest to their bound")
    command.add_argument("--json", metavar="FILE", help="write everything as JSON")
    command.add_argument("--target", default="cpu", help="cpu, cpu:avx2, ... (neo targets)")
    command.add_argument("--threads", type=int, help="threads of a call (default: the cores this process may use)")
    command.add_argument("--shape", action="append", default=[], metavar="SYMBOL=SIZE", help="fix a symbolic size")
    command = add("kernels", _kernels, "write the kernels that would run on a device, which need not be there")
    command.add_argument("model", help="an ONNX file")
    command.add_argument("--target", required=True, help="mali, intel_graphics, opencl, cuda (neo targets)")
    command.add_argument("--out", required=True, metavar="DIR", help="folder for one file for each kernel")
    command.add_argument("--threads", type=int, help="threads of the steps on the CPU")
    command.add_argument("--shape", action="append", default=[], metavar="SYMBOL=SIZE", help="fix a symbolic size")
    command = add("info", _info, "a model's inputs, outputs and operators")
    command.add_argument("model", help="an ONNX file")
    command = add("routines", _routines, "every routine, or those that take a workload with how many schedules")
    command.add_argument("workload", nargs="?", help="a workload's text, as explain prints it (docs/workloads.md)")
    command.add_argument("--target", default="cpu", help="cpu, cpu:avx2, ... (neo targets)")
    command.add_argument("--threads", type=int, help="threads of a call (default: the cores this process may use)")
    add("targets", _targets, "every target and device, which run here, what each lacks")
    add("knobs", _knobs, "every environment variable")
    command = add("demo", _demo, "recognise digits with the network that comes with neo")
    command.add_argument("--threads", type=int)
    return parser


def _sizes(options: argparse.Namespace) -> dict[str, int]:
    sizes = {}
    for item in options.shape:
        name, _, size = item.partition("=")
        if not size.isdigit():
            msg = f"[cli] --shape must be SYMBOL=SIZE. Got {item!r}"
            raise ModelError(msg)
        sizes[name] = int(size)
    return sizes


def _size_variants(options: argparse.Namespace) -> dict[str, Any]:
    """The sizes of symbols: one, or a list; each a number or LEAST:MOST."""
    sizes: dict[str, Any] = {}
    for item in options.shape:
        name, _, text = item.partition("=")
        parts = text.split(",")
        if not all(re.fullmatch(r"[0-9]+(:[0-9]+)?", part) for part in parts):
            msg = f"[cli] --shape must be SYMBOL=SIZE or SYMBOL=LEAST:MOST, several with commas. Got {item!r}"
            raise ModelError(msg)
        found = [tuple(map(int, part.split(":"))) for part in parts]
        variants = [one if len(one) == 2 else one[0] for one in found]
        sizes[name] = variants[0] if len(variants) == 1 else variants
    return sizes


def _compile(options: argparse.Namespace) -> Module:
    if Path(options.model).suffix == ".neo":
        if options.tune or options.database or options.target != "cpu":
            msg = f"[cli] a compiled module must not be compiled again. Got {options.model!r} with options of compiling"
            raise ModelError(msg)
        return load(options.model, threads=options.threads)
    return compile_model(
        options.model,
        target=options.target,
        threads=options.threads,
        shapes=_sizes(options),
        tune=budget_of(options.tune),
        database=options.database,
    )


def _tell_fallbacks(module: Module) -> None:
    """A line about the operators that take more than a tenth of the estimated time for want of a fast routine."""
    if line := fallback_line(module.fallbacks):
        print(f"note: {line}", file=sys.stderr)


def _given_inputs(options: argparse.Namespace, kinds: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Inputs from files; those from .json files by their type in `kinds`."""
    given = {}
    for item in options.input:
        name, _, path = item.partition("=")
        try:
            given[name] = read_value(path, None if kinds is None else kinds.get(name))
        except (OSError, ValueError) as error:
            msg = f"[cli] --input must be NAME=FILE.npy. Got {item!r} ({error})"
            raise ModelError(msg) from error
    return given


def _inputs(options: argparse.Namespace, module: Module) -> dict[str, Any]:
    """The inputs given by name, and random ones for the rest."""
    random = np.random.default_rng(0)
    sizes = _sizes(options)
    inputs = _given_inputs(options, {spec.name: spec.dtype for spec in module.inputs})
    for spec in module.inputs:
        if spec.name in inputs:
            continue
        if spec.shape is None:
            what, ending = ("unknown rank", "npy") if "(" not in spec.dtype else (f"type {spec.dtype}", "json")
            msg = (
                f"[cli] an input of {what} must be given. Got none for {spec.name!r}\n"
                f"Hint: --input {spec.name}=FILE.{ending}"
            )
            raise ModelError(msg)
        shape = [sizes.get(str(d), hint) for d, hint in zip(spec.shape, spec.hints or (), strict=True)]
        inputs[spec.name] = _random_array(random, spec, shape)
    return inputs


def _random_array(random: np.random.Generator, spec: Tensor, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    if spec.dtype in ("float64", "float32", "float16", "complex64", "complex128"):
        return random.standard_normal(shape).astype(spec.dtype)
    if spec.dtype == "string":
        return np.full(shape, "neo", object)
    try:
        return random.integers(0, 2, shape).astype(spec.dtype)
    except TypeError as error:
        msg = (
            f"[cli] an input of dtype {spec.dtype} must be given. Got none for {spec.name!r}\n"
            f"Hint: --input {spec.name}=FILE.npy"
        )
        raise ModelError(msg) from error


def _run(options: argparse.Namespace) -> None:
    module = _compile(options)
    outputs = module.run(_inputs(options, module))
    _tell_fallbacks(module)
    if options.output == "-":
        print(to_json(outputs))
        return
    rows = []
    for name, x in outputs.items():
        if not isinstance(x, np.ndarray):
            kind = next(spec.dtype for spec in module.outputs if spec.name == name)
            rows.append((name, kind, [] if x is None else [len(x)], "", ""))
            continue
        numeric = x.size and x.dtype.kind in "fiu"
        rows.append(
            (name, x.dtype, list(x.shape), f"{x.min():.6g}" if numeric else "", f"{x.max():.6g}" if numeric else "")
        )
    print(render_table(("output", "dtype", "shape", "min", "max"), rows))
    if options.output:
        save_outputs(options.output, outputs)


def _compile_to(options: argparse.Namespace) -> None:
    source = Path(options.model)
    if source.suffix == ".neo":
        msg = f"[cli] compile must be given an ONNX file. Got {options.model!r}"
        raise ModelError(msg)
    target = Path(options.output) if options.output else source.with_suffix(".neo")
    module = compile_model(
        options.model,
        target=options.target or "cpu",
        threads=options.threads,
        shapes=_size_variants(options),
        tune=budget_of(options.tune),
        database=options.database,
    )
    _tell_fallbacks(module)
    module.save(target)
    size = f"{target}: {target.stat().st_size / 1e6:.1f} MB"
    count = len(module._saved_parts())
    if count == 1:
        print(f"{size}, {len(module.steps)} steps for {module.target}")
    else:
        print(f"{size}, {count} variants for {', '.join(options.target or ['cpu'])}")


def _optimize(options: argparse.Namespace) -> None:
    from neo.onnx_export import optimize

    written = optimize(options.model, options.output, shapes=_sizes(options))
    opsets = ", ".join(f"{domain} {version}" for domain, version in written.opsets.items())
    print(
        f"{options.output}: {written.size / 1e6:.1f} MB, {written.nodes_before} nodes became {written.nodes}, "
        f"opset {opsets}"
    )


def _kernels(options: argparse.Namespace) -> None:
    from neo.kernels import write_kernels

    module = compile_model(options.model, target=options.target, threads=options.threads, shapes=_sizes(options))
    print(write_kernels(module, options.out))


def _export(options: argparse.Namespace) -> None:
    from neo.standalone import export

    done = export(options.model, options.out)
    print(f"{done.folder}: {done.sources} sources for {done.target}, routines: {', '.join(done.routines)}")


def _bench_peers(options: argparse.Namespace, module: Module) -> None:
    from neo.bench.peers import measure_peers, print_peers

    if Path(options.model).suffix == ".neo":
        msg = f"[cli] --peers must be given an ONNX file. Got {options.model!r}"
        raise ModelError(msg)
    if options.rounds < 1:
        msg = f"[cli] --rounds must be positive. Got {options.rounds}, expected 1 or more"
        raise ModelError(msg)
    inputs = {name: np.asarray(value) for name, value in _inputs(options, module).items()}
    arguments = {"target": options.target, "shapes": _sizes(options), "tune": options.tune}
    if options.database:
        arguments["database"] = str(Path(options.database).absolute())
    found = measure_peers(
        Path(options.model),
        inputs,
        threads=module.threads,
        options=arguments,
        rounds=options.rounds,
        seconds=options.seconds,
    )
    print_peers(found, threads=module.threads)


def _bench(options: argparse.Namespace) -> None:
    module = _compile(options)
    if options.peers:
        _bench_peers(options, module)
        _tell_fallbacks(module)
        return
    inputs = _inputs(options, module)
    module.run(inputs)
    times: list[float] = []
    end = time.perf_counter() + options.seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        module.run(inputs)
        times.append(time.perf_counter() - start)
    q = np.quantile(times, [0.1, 0.5, 0.9]) * 1e3
    print(
        f"{q[1]:.3f} ms median, {q[0]:.3f} to {q[2]:.3f} ms (10 to 90 %), "
        f"{len(times)} calls, {module.threads} threads, {module.target}"
    )
    _tell_fallbacks(module)


def _profile(options: argparse.Namespace) -> None:
    module = _compile(options)
    profile = module.profile(_inputs(options, module))
    print(profile.table(options.top))
    if options.json:
        profile.to_json(options.json)
    if options.timeline:
        profile.timeline().savefig(options.timeline, dpi=120)
    if options.html:
        profile.html(options.html, title=Path(options.model).stem)
    if options.trace:
        profile.trace(options.trace)


def _explain(options: argparse.Namespace) -> None:
    module = _compile(options)
    measure = options.node is None if options.measure is None else options.measure
    refusal = ""
    try:
        explanation = module.explain(options.node, _inputs(options, module) if measure else None)
    except Error as error:
        if options.measure or not measure:
            raise
        explanation = module.explain(options.node)
        refusal = f"not measured: {error}"
    print(explanation)
    if refusal:
        print(refusal)
    if options.html:
        explanation.html(options.html, title=Path(options.model).stem)


def _check(options: argparse.Namespace) -> int:
    from neo.frontend.onnx import check_model, find_stale_shapes

    if options.accuracy:
        return _check_accuracy(options)
    if options.numeric:
        return check_numeric_command(options, _sizes(options), _check_inputs(options))
    refusals = check_model(options.model)
    if not refusals:
        try:
            module = compile_model(options.model)
        except Error as error:
            print(f"neo reads every node of this model but cannot compile it:\n{error}")
            return 1
        print("neo runs every node of this model")
        for stale in find_stale_shapes(options.model):
            print(f"note: {stale}; neo uses the latter")
        _tell_fallbacks(module)
        return 0
    print(
        render_table(
            ("node", "op", "opset", "dtype", "reason"), [(r.node, r.op, r.opset, r.dtype, r.reason) for r in refusals]
        )
    )
    return 1


def _check_accuracy(options: argparse.Namespace) -> int:
    from neo.accuracy import check_accuracy

    if options.top is not None and options.top < 1:
        msg = f"[cli] --top must be positive. Got {options.top}, expected 1 or more"
        raise ModelError(msg)
    inputs = _check_inputs(options)
    report = check_accuracy(
        options.model,
        against=options.against,
        inputs=inputs or None,
        samples=options.samples,
        measure=options.measure,
        target=options.target,
        threads=options.threads,
        shapes=_sizes(options),
    )
    print(report.table(options.top))
    print(report.summary())
    if options.json:
        report.to_json(options.json)
    return 0 if report.passed else 1


def _check_inputs(options: argparse.Namespace) -> dict[str, Any]:
    """The inputs of ``--input``: those of .npz files, and those given by name."""
    inputs: dict[str, Any] = {}
    for item in [i for i in options.input if "=" not in i]:
        inputs.update(_stored_inputs(item))
    options.input = [i for i in options.input if "=" in i]
    inputs.update(_given_inputs(options))
    return inputs


def _stored_inputs(path: str) -> dict[str, Any]:
    """The arrays of an .npz file by name."""
    try:
        stored = np.load(path, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            msg = f"[cli] --input must be NAME=FILE.npy or an .npz file. Got {path!r} (one array without a name)"
            raise ModelError(msg)
        with stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        if isinstance(error, Error):
            raise
        msg = f"[cli] --input must be NAME=FILE.npy or an .npz file. Got {path!r} ({error})"
        raise ModelError(msg) from error


def _info(options: argparse.Namespace) -> None:
    import onnx

    from neo.frontend.onnx.load import load_model

    proto = load_model(options.model).proto
    opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in proto.opset_import)
    print(f"{proto.graph.name or options.model}: opset {opsets}; made by {proto.producer_name or 'unknown'}")
    for title, values in (("input", proto.graph.input), ("output", proto.graph.output)):
        for v in values:
            print(f"  {title} {v.name}: {onnx.helper.printable_type(v.type)}")
    counts = Counter(node.op_type for node in proto.graph.node)
    print(render_table(("op", "nodes"), counts.most_common(), right=(1,)))


def _routines(options: argparse.Namespace) -> None:
    if options.workload is not None:
        threads = _native.default_threads() if options.threads is None else options.threads
        sizes = _native.space_sizes(options.workload, options.target, threads)
        rows = sorted(sizes.items(), key=lambda item: item[1], reverse=True)
        print(render_table(("routine", "schedules"), rows, right=(1,)))
        return
    for name in _native.routine_names():
        print(name)


def _targets(_: argparse.Namespace) -> None:
    rows = [(t["name"], t["architecture"], "yes" if t["runs_here"] else "no") for t in _native.targets()]
    print(render_table(("target", "architecture", "runs here"), rows))
    print(f"cpu is cpu:{_native.host_isa()} here, {_native.default_threads()} threads")
    print()
    print(render_table(("target", "device"), [(t["name"], t["summary"]) for t in _native.device_targets()]))
    devices = []
    for kind in _native.devices():
        for d in kind["devices"]:
            memory = f"{d['memory_bytes'] / 2**30:.1f} GiB"
            devices.append(
                (kind["kind"], d["name"], d["platform"].split("  ")[0], memory, ", ".join(d["lacks"]) or "nothing")
            )
        if not kind["devices"]:
            devices.append((kind["kind"], "none", "", "", kind["missing"].split("\n")[0]))
    print()
    print(render_table(("kind", "device", "driver", "memory", "lacks"), devices))


def _knobs(_: argparse.Namespace) -> None:
    rows = [(k["name"], k["type"], k["default"], k["value"], k["summary"]) for k in _native.knobs()]
    print(render_table(("variable", "type", "default", "now", ""), rows))


def _demo(options: argparse.Namespace) -> None:
    from neo.demo.show import show

    show(threads=options.threads)

"""The one door to the extension module."""

from pathlib import Path

from neo import _neo, errors  # noqa: F401  (the extension raises these classes)
from neo._neo import (
    Bench,
    CancelToken,
    Collapse,
    Graph,
    Machine,
    Module,
    Node,
    Problem,
    Value,
    build_problem,
    check_target,
    collapse,
    default_threads,
    host_isa,
    host_tiers,
    knob_bool,
    knobs,
    load_module,
    loop_feature_names,
    machine,
    make_bench,
    measure_limits,
    op_names,
    parse_graph,
    parse_workload,
    pass_names,
    race_modules,
    routine_names,
    run_passes,
    save_module,
    space_sizes,
    targets,
)

__all__ = [
    "Bench",
    "CancelToken",
    "Collapse",
    "Graph",
    "Machine",
    "Module",
    "Node",
    "Problem",
    "Value",
    "build_problem",
    "check_target",
    "collapse",
    "default_threads",
    "host_isa",
    "host_tiers",
    "knob_bool",
    "knobs",
    "load_module",
    "loop_feature_names",
    "machine",
    "make_bench",
    "measure_limits",
    "op_names",
    "parse_graph",
    "parse_workload",
    "pass_names",
    "race_modules",
    "routine_names",
    "run_passes",
    "save_module",
    "space_sizes",
    "targets",
]


def library_path() -> Path:
    """The extension module's file."""
    return Path(_neo.__file__)

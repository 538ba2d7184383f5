"""The one door to the extension module."""

from neo import errors  # noqa: F401  (the extension raises these classes)
from neo._neo import (
    CancelToken,
    Graph,
    Module,
    Node,
    Problem,
    Value,
    build_problem,
    check_target,
    default_threads,
    host_isa,
    host_tiers,
    knob_bool,
    knobs,
    op_names,
    parse_graph,
    routine_names,
    targets,
)

__all__ = [
    "CancelToken",
    "Graph",
    "Module",
    "Node",
    "Problem",
    "Value",
    "build_problem",
    "check_target",
    "default_threads",
    "host_isa",
    "host_tiers",
    "knob_bool",
    "knobs",
    "op_names",
    "parse_graph",
    "routine_names",
    "targets",
]

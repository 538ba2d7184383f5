"""Placement by a list of operators, in two passes over the graph: a baseline, of the unified iGPU paper.

"A Unified Optimization Approach for CNN Model Inference on Integrated GPUs", ICPP 2019, 3.1.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neo.select.greedy_choice import Follower
from neo.select.problem import Problem

_CPU = 1


def tagged(problem: Problem, listed: Sequence[bool] | None = None) -> list[npt.NDArray[np.bool_]]:
    """The first pass: every node is the device's where it is on the list, else the CPU's; which choices that leaves.

    A tag that would leave some node nothing is not given: its node keeps all choices. The second pass, in which copies
    are put between neighbours of different tags, is the selection among these choices.

    Parameters
    ----------
    problem : Problem
        Without places every choice is left.
    listed : sequence of bool, optional
        By node, whether it is on the list; the default are all that have a choice on the device.
    """
    follower = Follower(problem)
    for v, bits in enumerate(problem.places or ()):
        places = np.array(bits, dtype=np.int64)
        on_device = (places & ~_CPU) != 0
        on_cpu = (places == 0) | (places & _CPU != 0)
        is_listed = bool((on_device & follower.allowed[v]).any()) if listed is None else listed[v]
        for wanted in (on_device, on_cpu) if is_listed else (on_cpu,):
            if follower.restrict(v, wanted):
                break
    return follower.allowed

"""Names that routines and their parameters had in earlier versions: files of measurements still hold them."""

from __future__ import annotations

import re

__all__ = ["current_candidate", "current_routine"]

_ROUTINES = {
    "cpu/assemble": "cpu/concat_in_place",
    "cpu/gather_elements": "cpu/index",
    "cpu:float32/affine_pointwise": "cpu:float32/pointwise_with_prologue",
    "cpu:float32/first_depthwise": "cpu:float32/stem_depthwise",
    "cpu:float32/first_depthwise_pointwise": "cpu:float32/stem_depthwise_pointwise",
    "cpu:float32/gemv_compressed": "cpu:float32/gemv_exponent_packed",
    "cpu:float32/panel": "cpu:float32/im2col",
    "cpu:float32/recurrent_compressed": "cpu:float32/recurrent_exponent_packed",
}
#: By the routine's current name.
_PARAMETERS = {"cpu:float32/direct_nchwc": {"ahead": "prefetch"}}
#: A routine, its parameters in braces, its schemas.
_CANDIDATE = re.compile(r"(?P<routine>[^{ ]+)(?:\{(?P<schedule>[^}]*)\})?(?P<rest>.*)", re.DOTALL)


def current_routine(name: str) -> str:
    """What a routine is called now."""
    return _ROUTINES.get(name, name)


def current_candidate(text: str) -> str:
    """The text of a candidate, or of a routine with its schedule, with the names of now; parameters stay sorted."""
    match = _CANDIDATE.fullmatch(text)
    if match is None:
        return text
    routine = current_routine(match["routine"])
    if match["schedule"] is None:
        return routine + match["rest"]
    names = _PARAMETERS.get(routine, {})
    pairs = (pair.partition("=") for pair in match["schedule"].split())
    schedule = sorted(f"{names.get(name, name)}={value}" for name, _, value in pairs)
    return f"{routine}{{{' '.join(schedule)}}}{match['rest']}"

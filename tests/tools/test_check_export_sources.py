import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("check_export_sources", ROOT / "tools" / "check_export_sources.py")
assert SPEC is not None
assert SPEC.loader is not None
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)

KEPT = {"entries": {"make_a_step": "a.cpp"}, "needs": {"a.cpp": ["b.cpp"], "b.cpp": ["c.cpp"], "c.cpp": []}}


@pytest.mark.parametrize(
    ("entries", "needs", "lines"),
    [
        ({}, {}, []),
        ({}, {"a.cpp": ["b.cpp", "c.cpp"]}, []),
        ({}, {"c.cpp": ["a.cpp"]}, ["b.cpp needs a.cpp too", "c.cpp needs a.cpp too", "c.cpp needs b.cpp too"]),
        ({}, {"b.cpp": []}, ["a.cpp no longer needs c.cpp", "b.cpp no longer needs c.cpp"]),
        ({}, {"d.cpp": []}, ["d.cpp is missing"]),
        ({"make_a_step": "b.cpp"}, {}, ["make_a_step is in b.cpp, not in a.cpp"]),
        ({"make_d_step": "a.cpp"}, {}, ["make_d_step is in a.cpp, not in nowhere"]),
    ],
)
def test_what_an_export_needs_is_compared(entries, needs, lines):
    built = {"entries": KEPT["entries"] | entries, "needs": KEPT["needs"] | needs}
    assert list(check.differences(KEPT, built)) == lines


def test_the_list_of_the_repository_names_every_source_that_an_export_may_need():
    needs = json.loads((ROOT / "cmake" / "export_sources.json").read_text(encoding="utf-8"))["needs"]
    folders = ("base", "ir", "ops", "exec", "routines", "runtime", "saved", "capi", "standalone")
    sources = {
        path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / "csrc" / folder).rglob("*.cpp")
    }
    gpu = {source for source in sources if source.startswith("csrc/routines/gpu/")}
    assert needs.keys() == sources - gpu

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "check_names.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_checkout_keeps_the_rules():
    result = run(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ir/a.cpp", 'void f() { throw Error("x"); }\n', "ir/a.cpp:1: a bare throw"),
        ("ir/utils.h", "", "name the file after the one thing inside"),
        ("ir/CamelCase.h", "", "lower case with underscores"),
    ],
)
def test_names_a_broken_rule(tmp_path, name, text, words):
    path = tmp_path / "csrc" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    result = run(tmp_path)
    assert result.returncode == 1
    assert words in result.stdout


def test_allows_throw_in_check_and_in_comments_and_rethrowing(tmp_path):
    for name, text in {
        "base/check.cpp": "void fail() { throw 1; }\n",
        "ir/graph.cpp": '// never throw here\nconst char* s = "throw x";\n',
        "bindings/module.cpp": "void f() { throw py::error_already_set(); }\n",
        "ir/print.cpp": "void f() { try { g(); } catch (...) { throw; } }\n",
    }.items():
        path = tmp_path / "csrc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout


BOUNDS = "namespace neo {{\n{0}struct Bounds {{\n  int low = 0;\n}};\n{1}}}  // namespace neo\n"


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        (("", ""), ("", ""), True),
        (("", ""), ("namespace {\n", "}  // namespace\n"), False),
        (("", ""), ("namespace {\nint x;\n}  // namespace\n", ""), True),
        (("namespace python {\n", "}  // namespace python\n"), ("", ""), False),
    ],
)
def test_a_type_has_one_home(tmp_path, first, second, clash):
    folder = tmp_path / "csrc" / "passes"
    folder.mkdir(parents=True)
    (folder / "a.h").write_text(BOUNDS.format(*first))
    (folder / "b.h").write_text(BOUNDS.format(*second))
    result = run(tmp_path)
    assert (
        "csrc/passes/b.h: neo::" in result.stdout and "Bounds is defined in csrc/passes/a.h too" in result.stdout
    ) == clash
    assert result.returncode == (1 if clash else 0), result.stdout


LOCAL = "namespace neo {{\nnamespace {{\n\n{0}\n\n}}  // namespace\n}}  // namespace neo\n"


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("constexpr int kMax = 5;", "constexpr double kMax = 0.5;", "kMax"),
        ("constexpr int kLeast = 1, kMost = f(2, {3});", "constexpr int kMost = 0;", "kMost"),
        ("struct Walk {\n  int at;\n};", "class Walk {\n};", "Walk"),
        ("using Row = int;", "using Row = float;", "Row"),
        (
            "int sum(int a,\n        int b) {\n  return a + b;\n}",
            "int sum(int x, int y) {\n  return y;\n}",
            "sum(int, int)",
        ),
        ("int sum(int a) {\n  return a;\n}", "int sum(float a) {\n  return 0;\n}", None),
        ("struct Walk {\n  void run() {\n  }\n};", "struct Way {\n  void run() {\n  }\n};", None),
    ],
)
@pytest.mark.parametrize("other", ["passes", "ops"])
def test_sources_that_are_compiled_together_share_no_local_name(tmp_path, first, second, name, other):
    for folder, text in (("passes/a.cpp", first), (f"{other}/b.cpp", second)):
        path = tmp_path / "csrc" / folder
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LOCAL.format(text))
    result = run(tmp_path)
    clash = name is not None and other == "passes"
    assert (f"csrc/passes/b.cpp: neo::{name} is defined in csrc/passes/a.cpp too" in result.stdout) == clash
    assert result.returncode == (1 if clash else 0), result.stdout


def test_refuses_the_words_that_the_page_of_names_replaces(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "naming.md").write_text(
        "# Naming\n\n| refused | used instead |\n|---|---|\n| `waypoint`, `kMost...` | other |\n\n"
        "| refused in text | used instead |\n|---|---|\n| `made up` | synthetic |\n"
    )
    for name, text in {
        "csrc/ir/a.cpp": 'int waypoint = kMostRows + kMostly;  // kMost made up\nconst char* s = "kMost";\n',
        "docs/a.md": "Inputs are Made up, `made up` is code.\n",
        "python/neo/a.py": '"""About a waypoint."""\n\n# kMost\nnames = [\n    kMost,\n]\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    result = run(tmp_path)
    assert result.returncode == 1
    lines = [line for line in result.stdout.splitlines() if "docs/naming.md" in line]
    assert lines == [
        "csrc/ir/a.cpp:1: kMostRows; use other (docs/naming.md)",
        "csrc/ir/a.cpp:1: waypoint; use other (docs/naming.md)",
        "python/neo/a.py:5: kMost; use other (docs/naming.md)",
        "csrc/ir/a.cpp:1: made up; write synthetic (docs/naming.md)",
        "docs/a.md:1: Made up; write synthetic (docs/naming.md)",
    ]


@pytest.mark.parametrize(
    ("name", "text", "broken"),
    [
        ("csrc/ir/a.h", "// What a value holds.\n", True),
        ("csrc/ir/a.h", "// A value. Of two the first.\n", True),
        ("csrc/ir/a.h", "int x;  // So it is set.\n", True),
        ("csrc/ir/a.h", "// Where a value\n// lives.\n", True),
        ("csrc/ir/a.h", "// Where a value lives, readers find it.\n", False),
        ("csrc/ir/a.h", "// Where a file of\n// src/a.cpp is known, it is read.\n", False),
        ("csrc/ir/a.h", "// The part of a value: what a reader sees.\n", False),
        ("csrc/routines/cpu/a.h", "// Of a core.\n", True),
        ("python/neo/a.py", "# What a call takes.\nX = 1\n", True),
        ("python/neo/a.py", "X = 1  # microseconds of a call\n", False),
    ],
)
def test_a_sentence_of_a_comment_has_a_subject(tmp_path, name, text, broken):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    result = run(tmp_path)
    assert ("a sentence must have a subject" in result.stdout) == broken, result.stdout


@pytest.mark.parametrize(
    ("name", "text", "broken"),
    [
        ("csrc/ir/a.h", "// As in exec/plan.h.\n", True),
        ("csrc/ir/a.h", "int x;  // as in csrc/ir/b.h\n", True),
        ("csrc/ir/a.h", "// As in ir/a.h, csrc/ir/a.h and <neo/neo.h>.\n", False),
        ("cmake/a.cmake", "# tests/standalone/test_sources.py says so.\n", True),
        ("python/neo/a.py", 'X = "exec/plan.h"  # a path\n', False),
    ],
)
def test_a_path_in_a_comment_leads_to_a_file(tmp_path, name, text, broken):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    if not (tmp_path / "csrc").exists():
        (tmp_path / "csrc").mkdir()
    result = run(tmp_path)
    assert ("a path in a comment must lead to a file" in result.stdout) == broken, result.stdout

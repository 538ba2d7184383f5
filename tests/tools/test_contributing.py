"""The lists of CONTRIBUTING.md, held against the tree: what has been added touches the files that are listed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LISTS = (
    "an operator",
    "a routine",
    "a pass",
    "an instruction set",
    "a command",
    "a device",
    "a variable of the environment",
)


def paths_of(thing):
    """The files that a list names; ``<...>`` stands for any name."""
    section = TEXT.partition(f"## Add {thing}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)[1:] or [section]
    return [path for row in rows for path in re.findall(r"`((?:csrc|python|tests|tools|docs|cmake)/[^`\s]*)`", row)]


def pattern_of(path):
    """What matches the files that a path of a list stands for; a folder stands for all in it."""
    parts = map(re.escape, re.split(r"<\w+>", path))
    return re.compile("[^/]+".join(parts) + ("" if "." in path else "/?.*"))


def files(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]


def naming(pattern, paths):
    """The files, from the root, whose text has a match."""
    found = re.compile(pattern)
    return {str(p.relative_to(ROOT)) for p in paths if found.search(p.read_text(encoding="utf-8", errors="ignore"))}


@pytest.mark.parametrize("thing", LISTS)
def test_every_path_is_there(thing):
    names = [str(path.relative_to(ROOT)) for path in files("csrc", "python", "tests", "tools", "docs", "cmake")]
    paths = paths_of(thing)
    assert paths
    for path in paths:
        assert any(pattern_of(path).fullmatch(name) for name in names), path


def test_an_instruction_set_is_named_where_the_list_says():
    sources = [p for p in files("csrc", "cmake", "python", "tools") if p.suffix in {".h", ".cpp", ".cmake", ".py"}]
    kernels = re.compile(r".*\.isa\.cpp|csrc/routines/cpu/.*\.h")
    found = {n for n in naming(r"\bneon\b|kIsaNeon|NEO_ISA_NEON", sources) if not kernels.fullmatch(n)}
    listed = [pattern_of(path) for path in paths_of("an instruction set")]
    assert len(found) > 5
    assert [name for name in sorted(found) if not any(p.fullmatch(name) for p in listed)] == []


def test_a_device_is_named_where_the_list_says():
    # As a default of a member it stands for no device.
    named = r"DeviceKind::Null,|\bNull \}|\"cuda\", \"null\"|open_null_devices"
    found = naming(named, [p for p in files("csrc") if p.suffix in {".h", ".cpp"}])
    listed = [pattern_of(path) for path in paths_of("a device")]
    assert len(found) > 3
    assert [name for name in sorted(found) if not any(p.fullmatch(name) for p in listed)] == []


def test_every_pass_has_its_files():
    pipeline = (ROOT / "csrc/passes/pipeline.cpp").read_text(encoding="utf-8")
    names = re.findall(r"^      \{\"(\w+)\", \1\},$", pipeline, re.MULTILINE)
    tests = "".join(path.read_text(encoding="utf-8") for path in files("tests/passes") if path.suffix == ".py")
    declared = (ROOT / "csrc/passes/pass.h").read_text(encoding="utf-8")
    assert len(names) > 20
    for name in names:
        assert (ROOT / "csrc/passes" / f"{name}.cpp").is_file(), name
        assert f"bool {name}(Graph& graph, const PassContext& context);" in declared, name
        assert f'"{name}"' in tests, name


def test_every_family_of_operators_is_added_by_a_file():
    families = (ROOT / "csrc/ops/families.h").read_text(encoding="utf-8")
    names = re.findall(r"^  X\((\w+)\)", families, re.MULTILINE)
    sources = "".join(path.read_text(encoding="utf-8") for path in files("csrc/ops") if path.suffix == ".cpp")
    assert len(names) > 20
    for name in names:
        assert f"void add_{name}_ops(OpRegistry& ops) {{" in sources, name

"""The lists of CONTRIBUTING.md, held against the tree: what has been added touches the files that are listed."""

import json
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
    """What matches the files that a path of a list stands for; a folder with a slash behind it stands for all in it."""
    parts = map(re.escape, re.split(r"<\w+>", path))
    return re.compile("[^/]+".join(parts) + (".*" if path.endswith("/") else ""))


def files(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]


def naming(pattern, paths):
    """The files, from the root, whose text has a match."""
    found = re.compile(pattern, re.MULTILINE)
    return {str(p.relative_to(ROOT)) for p in paths if found.search(p.read_text(encoding="utf-8", errors="ignore"))}


@pytest.mark.parametrize("thing", LISTS)
def test_every_path_is_there(thing):
    names = [str(path.relative_to(ROOT)) for path in files("csrc", "python", "tests", "tools", "docs", "cmake")]
    paths = paths_of(thing)
    assert paths
    for path in paths:
        assert (ROOT / path).is_dir() or any(pattern_of(path).fullmatch(name) for name in names), path


# Kernels that differ by tier name one of those that are wider than the scalar one.
TIER = r"\bneon\b|kIsaNeon|NEO_ISA_(?:NEON|AVX2|AVX512)\b|__AVX512F__|__AVX2__"
# These tests name a tier as an example.
EXAMPLES = {"tests/cpp/test_step_cost.cpp", "tests/saved/test_variants.py", "tests/tools/test_contributing.py"}


def test_an_instruction_set_is_named_where_the_list_says():
    folders = files("csrc", "cmake", "python", "tools", "tests")
    sources = [p for p in folders if p.suffix in {".h", ".cpp", ".cmake", ".py"}]
    headers = [p for p in files("csrc/routines/cpu") if p.suffix == ".h"]
    # The row on headers with constants in a namespace for each tier.
    found = naming(TIER, sources) - naming(r"^namespace neon {", headers) - EXAMPLES
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


def test_every_preset_and_every_folder_of_tests_is_named():
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
    build = TEXT.partition("## Build")[2].partition("## Test")[0]
    assert [p["name"] for p in presets if not p.get("hidden") and f"`{p['name']}`" not in build] == []
    # The others have the names of what they test.
    tested = {p.name for folder in ("csrc", "python/neo") for p in (ROOT / folder).iterdir()}
    folders = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and any(p.glob("*.py"))} - tested
    assert [name for name in sorted(folders) if f"`tests/{name}`" not in TEXT] == []

"""What the documents name is there."""

import re
from pathlib import Path

import neo
import pytest
from neo import _native, cli

ROOT = Path(__file__).resolve().parents[2]
FIRST = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")]
DOCUMENTS = [*FIRST, ROOT / "benchmarks/results/README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#:]+)\)")
# What commands make, and git ignores.
MADE = {"benchmarks/models/cache", "benchmarks/results/local"}
PATH = re.compile(r"`((?:csrc|python|tests|tools|docs|cmake|benchmarks|notebooks)/[\w./-]*)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        assert (document.parent / target).exists(), target
    for target in set(PATH.findall(text)) - MADE:
        assert (ROOT / target).exists(), target


def test_the_readme_names_every_command():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = next(a for a in cli.make_parser()._actions if a.dest == "==SUPPRESS==" or a.choices).choices
    listed = readme.partition("On the command line")[2].partition("## What works")[0]
    for command in commands:
        assert re.search(rf"(?:neo |\| ){command}\b", listed), command


def test_every_class_of_errors_is_documented_with_its_bases():
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+Error)` \|([^|]*)\|", text, re.MULTILINE))
    classes = {n: getattr(neo, n) for n in neo.__all__ if n.endswith("Error") and n != "Error"}
    assert set(rows) == set(classes)
    for name, bases in rows.items():
        assert re.findall(r"\w+", bases) == [b.__name__ for b in classes[name].__bases__ if b is not neo.Error], name


@pytest.mark.parametrize("short", ["conv n1 c64 hw56 k64 f3 s1 p1 float32", "gemm m1 n1000 k2048 float32"])
def test_short_workloads_of_the_documents_parse(short):
    assert short in (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8")
    full, graph = _native.parse_workload(short)
    assert _native.parse_workload(full)[0] == full
    assert len(graph.nodes) == 1


def test_whole_workloads_of_the_documents_parse_and_print_the_same():
    text = (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(?:y|y1|t0) = .*$", text, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        assert _native.parse_workload(line)[0] == line


def test_the_graph_of_the_documents_parses():
    text = (ROOT / "docs" / "ir.md").read_text(encoding="utf-8")
    graph = text.partition("```\n")[2].partition("```")[0]
    graph = re.sub(r" #[0-9a-f]+", " splat 0.5", graph)
    parsed = _native.parse_graph(graph)
    assert _native.parse_graph(str(parsed)).print() == str(parsed)

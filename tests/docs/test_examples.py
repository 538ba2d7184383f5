"""Every example of the documents runs: blocks of Python in order, and lines of a shell after ``$``.

The blocks of one page share their names and an empty directory, in which a page that does not make its own model finds
one, and an input for it. What it imports it says itself, so that it may be pasted. A line of a shell that starts neo runs the neo that is tested.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import neo
import onnx
import pytest
from neo import demo

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if BLOCK.search(p.read_text("utf-8"))]


def example_model():
    """The digits' network under the names that documents use for any network: input, conv1, y."""
    model = onnx.load_model_from_string(demo.model_bytes())
    names = {"image": "input", "probabilities": "y", "block.conv": "conv1"}
    for node in model.graph.node:
        node.name = names.get(node.name, node.name)
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in [*model.graph.input, *model.graph.output]:
        value.name = names[value.name]
    return model.SerializeToString()


def names_of(page):
    """What the examples of a page find under names they do not make."""
    x = demo.images()[0][:8]
    return {"x": x, "y": neo.compile("model.onnx")(x), "model": "model.onnx"}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """An empty directory with the digits' network, another name for it, and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "neo").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m neo "$@"\n')
    (commands / "neo").chmod(0o755)
    (commands / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    package = str(Path(neo.__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])))
    for name in ("model.onnx", "a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(example_model())
    return tmp_path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_examples_run(path, directory):
    names = names_of(path.stem)
    for language, text in BLOCK.findall(path.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, f"{path.name}:{text.splitlines()[0]}", "exec"), names)
            continue
        for line in re.findall(r"^\$ (.*?)(?<!\\)$", text, re.MULTILINE | re.DOTALL):
            result = subprocess.run(["sh", "-ec", line], capture_output=True, text=True, check=False)
            assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
    for name, value in list(names.items()):  # a test of an example runs as pytest would run it
        if name.startswith("test_"):
            value()


def test_the_first_page_is_pasted_into_an_empty_folder(directory):
    names = {}
    for name in directory.glob("*.onnx"):
        name.unlink()
    for language, text in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, "README.md", "exec"), names)


def test_compilers_are_the_same_everywhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    found = [re.findall(r"GCC\s+(\d+)|Clang\s+(\d+)", page.read_text(encoding="utf-8")) for page in pages]
    assert {numbers for page in found for numbers in page} == {("11", ""), ("", "14")}


def test_nothing_is_installed_by_a_name_that_no_index_has():
    places = [*(ROOT / "python").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    for path in places:
        assert "pip install neo" not in path.read_text(encoding="utf-8").replace('"', "").replace("'", ""), path


#: What stands before the fragments of a page that are no whole source, and behind them.
AROUND = {
    ("quantize", "c"): (
        "#include <neo.h>\n#include <stdio.h>\nint example(void) {\n",
        "return neo_release(module);\n}\n",
    ),
    ("kernel_ir", "cpp"): (
        '#include "kernel_ir/builder.h"\n#include "kernel_ir/language.h"\n#include "kernel_ir/print.h"\n'
        "using namespace neo;\nusing namespace neo::kernel;\nvoid example(const Features& features) {\n",
        "}\n",
    ),
}
COMPILERS = {"c": ["cc", "-xc", "-std=c11", "-Icsrc/capi"], "cpp": ["c++", "-xc++", "-std=c++20", "-Icsrc"]}
COMPILED = [
    pytest.param((path.stem, language), text, id=f"{path.stem}-{language}")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for language, text in re.findall(r"^```(c|cpp)\n(.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize(("place", "text"), COMPILED)
def test_the_examples_of_c_and_cpp_compile(place, text):
    before, behind = AROUND.get(place, ("", ""))
    command = [*COMPILERS[place[1]], "-Wall", "-Werror", "-Wno-unused-variable", "-fsyntax-only", "-"]
    done = subprocess.run(command, input=before + text + behind, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr

"""Check the few words that neither compiler nor formatter knows about.

Usage: ``python tools/check_names.py [checkout]``

A bare ``throw`` is refused outside csrc/base/check.*: NEO_CHECK and ``fail`` format every message alike. Passing on an
error that Python has set is none. A type of namespace ``neo`` is defined in one file: two of one name are merged by the
linker into whichever it meets first. The sources of a folder of csrc are compiled together, so no two of them define one
name in an unnamed namespace, other than functions of different parameters. File names are lower case with underscores, and none is called utils, helpers, common
or misc. The words that docs/naming.md replaces are no names in code, others not in text. A sentence of a comment has a subject: it does not
begin with Of, So or What, nor with Where unless a main clause follows behind a comma. A path in a comment is the end of
that of a file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

THROW = re.compile(r"\bthrow\b(?!\s*(?:;|py::error_already_set\(\)))")
COMMENT_OR_TEXT = re.compile(r"//.*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"")
NAMESPACE = re.compile(r"^namespace(?P<name> [\w:]+)? {|^}  // namespace(?P<end>.*)", re.M)
TYPE = re.compile(r"^(?:struct|class|enum(?: class)?|union) (?P<type>\w+)(?: final)?(?: :[^;{]*)? {", re.M)
VALUE = re.compile(
    r"^(?:(?:constexpr|const|static|thread_local) )+[^=(){};]*?(?P<value>\w+)(?:\[[^\]]*\])* (?:=|{)", re.M
)
STATEMENT = re.compile(r"[^;]*;")
BRACKETS = re.compile(r"\([^(){}]*\)|\{[^(){}]*\}|<[^<>;]*>")
FURTHER_VALUE = re.compile(r",\s*(\w+)(?:\[[^\]]*\])*(?=\s*(?:=|$))")
ALIAS = re.compile(r"^using (?P<alias>\w+) =", re.M)
FUNCTION = re.compile(
    r"^(?!using |return |namespace )[A-Za-z_][\w:<>,&* ]*[ &*](?P<function>\w+)\((?P<parameters>[^{};]*)\) {", re.M
)
PARAMETER_NAME = re.compile(r"\s*\b\w+(?: = [^,]*)?(?=,|$)")
FILE_NAME = re.compile(r"[a-z0-9_]+(\.isa)?\.(h|cpp|py|pyi)")
CODE_IN_DOCUMENT = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
KEY = re.compile(r"\"\w+\"")
TEXT_AND_COMMENTS = {
    ".py": re.compile(r'#.*|"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"),
    ".cpp": re.compile(r'//.*|"(?:\\.|[^"\\\n])*"'),
}
LINE_COMMENT = {".py": re.compile(r"(?:^|\s)#:?\s+(.*)"), ".cpp": re.compile(r"(?:^|\s)//+<?\s+(.*)")}
WITHOUT_SUBJECT = re.compile(r"(?:^|(?<=[.:!?] ))(?:(?:Of|So|What)\b[^.]*|Where\b[^.,]*(?:\.(?!\w)|$))")
PATH = re.compile(r"(?<![\w./<{*-])(?:[\w-]+/)+[\w.-]+\.(?:hpp|h|cpp|inc|pyi|py|cmake|json|md|sh)\b")
EMPTY_WORDS = {"utils", "util", "helpers", "helper", "common", "misc"}


def types(text: str) -> Iterator[str]:
    """Yield the types that a file defines in a named namespace, with the namespace before them."""
    names: list[str | None] = []
    found = sorted([*NAMESPACE.finditer(text), *TYPE.finditer(text)], key=lambda match: match.start())
    for match in found:
        if match.re is TYPE:
            if None not in names:
                yield "::".join([*filter(None, names), match["type"]])
        elif match["end"] is None:
            names.append(match["name"] and match["name"].strip())
        elif names:
            names.pop()


def check_types(csrc: Path) -> Iterator[str]:
    """Yield one line for every type that two files define; kernels have a namespace for each instruction set."""
    homes: dict[str, Path] = {}
    for path in sorted(p for p in csrc.rglob("*") if p.suffix in {".h", ".cpp"}):
        if path.parent.name == "simd" or ".isa." in path.name:
            continue
        for name in types(path.read_text(encoding="utf-8")):
            home = homes.setdefault(name, path)
            if home != path:
                yield f"{path.relative_to(csrc.parent)}: {name} is defined in {home.relative_to(csrc.parent)} too"


def further_values(text: str, start: int) -> Iterator[str]:
    """Yield the names that a declaration of several defines after its first one: ``constexpr int a = 0, b = 1;``."""
    statement = STATEMENT.match(text, start)
    rest = statement[0].rstrip(";") if statement else ""
    for _ in range(rest.count("(") + rest.count("{") + rest.count("<")):
        rest = BRACKETS.sub("", rest)
    yield from FURTHER_VALUE.findall(rest)


def local_names(text: str) -> Iterator[str]:
    """Yield what a file defines in an unnamed namespace, with the namespace before it; of functions the parameters too."""
    names: list[str | None] = []
    patterns = (NAMESPACE, TYPE, VALUE, ALIAS, FUNCTION)
    for match in sorted((m for p in patterns for m in p.finditer(text)), key=lambda match: match.start()):
        if match.re is not NAMESPACE:
            if None in names:
                name = next(filter(None, match.groups()))
                if match.re is FUNCTION:
                    parameters = " ".join(match["parameters"].split())
                    name += f"({PARAMETER_NAME.sub('', parameters)})"
                further = further_values(text, match.start()) if match.re is VALUE else ()
                yield from ("::".join([*filter(None, names), each]) for each in (name, *further))
        elif match["end"] is None:
            names.append(match["name"] and match["name"].strip())
        elif names:
            names.pop()


def check_local_names(csrc: Path) -> Iterator[str]:
    """Yield one line for every name of an unnamed namespace that two sources of a folder define."""
    homes: dict[tuple[str, str], Path] = {}
    for path in sorted(p for p in csrc.rglob("*.cpp") if ".isa." not in p.name):
        parts = path.relative_to(csrc).parts
        folder = "/".join(parts[:2]) if parts[:2] == ("routines", "gpu") else parts[0]
        for name in local_names(path.read_text(encoding="utf-8")):
            home = homes.setdefault((folder, name), path)
            if home != path:
                yield f"{path.relative_to(csrc.parent)}: {name} is defined in {home.relative_to(csrc.parent)} too"


def refused_words(root: Path, title: str) -> dict[str, str]:
    """Return the words that the table of this title of docs/naming.md refuses, each with the one to use."""
    page = root / "docs" / "naming.md"
    if not page.is_file():
        return {}
    table = page.read_text(encoding="utf-8").partition(f"\n| {title} |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    return {word: right.strip() for left, right in rows for word in re.findall(r"`([^`]+)`", left)}


def pattern_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return what matches one of the words; one that ends in ``...`` stands for all that go on with a capital."""
    parts = [re.escape(w[:-3]) + r"(?:[A-Z]\w*)?" if w.endswith("...") else re.escape(w) for w in words]
    return re.compile(rf"\b(?:{'|'.join(parts) or '(?!)'})\b")


def check_words(root: Path) -> Iterator[str]:
    """Yield one line for every name in code that docs/naming.md refuses."""
    refused = refused_words(root, "refused")
    pattern = pattern_of(refused)
    for folder in ("csrc", "fuzz", "python", "tests"):
        for path in sorted((root / folder).rglob("*")):
            ignored = TEXT_AND_COMMENTS.get({".h": ".cpp", ".pyi": ".py"}.get(path.suffix, path.suffix))
            if ignored is None:
                continue
            text = ignored.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))
            for number, line in enumerate(text.splitlines(), 1):
                for name in sorted(set(pattern.findall(line))):
                    (right,) = (refused[word] for word in refused if pattern_of([word]).fullmatch(name))
                    yield f"{path.relative_to(root)}:{number}: {name}; use {right} (docs/naming.md)"


def check_text(root: Path) -> Iterator[str]:
    """Yield one line for every word that docs/naming.md refuses in comments, texts and documents."""
    refused = refused_words(root, "refused in text")
    pattern = re.compile(pattern_of(refused).pattern, re.IGNORECASE)
    folders = [p for name in ("csrc", "docs", "fuzz", "python") for p in sorted((root / name).rglob("*"))]
    for path in [*sorted(root.glob("*.md")), *folders]:
        name = path.relative_to(root).as_posix()
        if path.suffix not in {".h", ".cpp", ".py", ".md"} or name == "docs/naming.md":
            continue
        text = path.read_text(encoding="utf-8")
        # Blocks of documents are code, as is what stands between backticks; a text of one word is a key.
        ignored = CODE_IN_DOCUMENT if path.suffix == ".md" else KEY
        text = ignored.sub(lambda match: "\n" * match[0].count("\n"), text)
        for number, line in enumerate(text.splitlines(), 1):
            for word in pattern.findall(line):
                yield f"{name}:{number}: {word}; write {refused[word.lower()]} (docs/naming.md)"


def comments(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the comments of a file, those of lines that follow one another as one, each with its first line's number."""
    first, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.search(line)
        follows = match is not None and not line[: match.start()].strip()
        if parts and not follows:
            yield first, " ".join(parts)
            parts = []
        if match is not None:
            first = first if parts else number
            parts.append(match[1])
    if parts:
        yield first, " ".join(parts)


def check_sentences(root: Path) -> Iterator[str]:
    """Yield one line for every sentence of a comment that begins without a subject."""
    for folder in ("csrc", "python"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            pattern = LINE_COMMENT.get({".h": ".cpp", ".pyi": ".py"}.get(path.suffix, path.suffix))
            if pattern is None:
                continue
            for number, comment in comments(path.read_text(encoding="utf-8"), pattern):
                for match in WITHOUT_SUBJECT.finditer(comment):
                    yield f"{name}:{number}: a sentence must have a subject. Got {match[0][:60]!r}"


def check_paths(root: Path) -> Iterator[str]:
    """Yield one line for every path in a comment that leads to no file."""
    folders = [root / name for name in ("benchmarks", "cmake", "csrc", "docs", "fuzz", "python", "tests", "tools")]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    ends = {"/".join(parts[i:]) for parts in (p.relative_to(root).parts for p in files) for i in range(len(parts))}
    for path in files:
        kind = {".h": ".cpp", ".inc": ".cpp", ".cmake": ".py"}.get(path.suffix, path.suffix)
        name = path.relative_to(root).as_posix()
        if kind not in LINE_COMMENT or name.startswith(("docs/", "tests/")):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            comment = LINE_COMMENT[kind].search(line)
            for found in PATH.findall(comment[1]) if comment else ():
                if found not in ends:
                    yield f"{name}:{number}: a path in a comment must lead to a file. Got {found}"


def check(root: Path) -> Iterator[str]:
    """Yield one line for every broken rule."""
    csrc = root / "csrc"
    for path in sorted(p for p in csrc.rglob("*") if p.suffix in {".h", ".cpp"}):
        if path.relative_to(csrc).as_posix() in {"base/check.h", "base/check.cpp"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if THROW.search(COMMENT_OR_TEXT.sub("", line)):
                yield f"{path.relative_to(root)}:{number}: a bare throw; use NEO_CHECK or neo::fail"
    yield from check_types(csrc)
    yield from check_local_names(csrc)
    yield from check_words(root)
    yield from check_text(root)
    yield from check_sentences(root)
    yield from check_paths(root)
    for folder in ("csrc", "python", "tests", "tools"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".py", ".pyi"}:
                continue
            if not FILE_NAME.fullmatch(path.name):
                yield f"{path.relative_to(root)}: file names are lower case with underscores"
            if path.name.partition(".")[0] in EMPTY_WORDS:
                yield f"{path.relative_to(root)}: name the file after the one thing inside"


def main() -> int:
    """Print the broken rules and return the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    problems = list(check(root))
    print(*problems, f"check_names: {len(problems)} broken rules", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

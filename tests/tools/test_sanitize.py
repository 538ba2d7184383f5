import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "sanitize.sh"
FAKES = {
    ".venv/bin/cmake": """
case "$1" in
  --install) exit 0 ;;
  --preset) exit 0 ;;
esac
mkdir -p "build/$3"
cp cpp_tests "build/$3/neo_cpp_tests"
[ ! -e "no-build-of-$3" ]
""",
    ".venv/bin/python": """
case "$*" in
  *pytest*tests/bad) cat bad.log; exit "$(cat bad.status)" ;;
  *pytest*) echo "12 passed, 1 skipped, 3 deselected in 0.10s" ;;
  -c*) echo 3.11 ;;
esac
""",
    ".venv/bin/fake-cxx": 'case "$1" in --version) echo "g++ 12" ;; esac',
    "cpp_tests": '[ "$GTEST_SHARD_INDEX" != 0 ] || echo "[  PASSED  ] 40 tests."',
}


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose tools only say what the real ones would."""
    for name, script in FAKES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    for folder in ("good", "bad", "tools"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_{folder}.py").touch()
    for folder in ("tools", "docs", "python/neo"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (SCRIPT.name, "cpp_tests.sh"):
        shutil.copy(SCRIPT.parent / name, tmp_path / "tools" / name)
    (tmp_path / "tools" / "tsan.supp").write_text("# none\n")
    (tmp_path / "bad.log").write_text("5 passed in 0.10s\n")
    (tmp_path / "bad.status").write_text("0")
    git = ["git", "-c", "user.name=neo", "-c", "user.email=neo@localhost"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "start"], cwd=tmp_path, check=True)
    return tmp_path


def run(checkout: Path) -> tuple[int, str]:
    done = subprocess.run(
        [checkout / "tools" / SCRIPT.name, "all"],
        env={**os.environ, "CXX": "fake-cxx"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (checkout / "docs" / "sanitizers.md").read_text()


def rows(summary: str) -> list[list[str]]:
    """The cells of every row, without the seconds."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in summary.splitlines() if line[:1] == "|"]
    return [[*row[:4], row[5]] for row in cells if row[0] != "part" and not row[0].startswith("---")]


def test_the_summary_counts_what_ran(checkout):
    status, summary = run(checkout)
    assert status == 0
    each = [
        ["build", "0", "0", "0", "clean"],
        ["C++ tests", "40", "0", "0", "clean"],
        ["demo", "0", "0", "0", "clean"],
        ["tests/bad", "5", "0", "0", "clean"],
        ["tests/good", "12", "0", "1", "clean"],
        ["all", "57", "0", "1", "clean"],
    ]
    assert rows(summary) == each * 2
    assert re.search(r"revision: [0-9a-f]{12}\n", summary)
    assert "compiler: g++ 12\n" in summary
    assert "suppressions in `tools/*.supp`: none\n" in summary


def test_failed_tests_are_counted(checkout):
    (checkout / "bad.log").write_text("FAILED tests/bad::test - assert\n2 failed, 3 passed in 1.00s\n")
    (checkout / "bad.status").write_text("1")
    status, summary = run(checkout)
    assert status == 1
    assert ["tests/bad", "3", "2", "0", "**failed**, exit status 1"] in rows(summary)
    assert ["all", "55", "2", "1", "1 failed"] in rows(summary)


def test_a_process_that_a_sanitizer_ended_is_not_clean(checkout):
    (checkout / "bad.log").write_text("==1==ERROR: AddressSanitizer: heap-buffer-overflow\n")
    (checkout / "bad.status").write_text("134")
    status, summary = run(checkout)
    assert status == 1
    assert ["tests/bad", "0", "0", "0", "**failed**, exit status 134"] in rows(summary)


def test_a_build_that_fails_is_not_clean(checkout):
    (checkout / "no-build-of-tsan").touch()
    status, summary = run(checkout)
    assert status == 1
    thread = rows(summary.partition("## ThreadSanitizer")[2])
    assert thread == [
        ["build", "0", "0", "0", "**failed**, exit status 1"],
        ["all", "0", "0", "0", "1 failed"],
    ]


def test_suppressions_are_named(checkout):
    (checkout / "tools" / "tsan.supp").write_text("# why\nrace:libother.so\n")
    assert "suppressions in `tools/*.supp`: race:libother.so\n" in run(checkout)[1]


def test_needs_the_environment(checkout):
    (checkout / ".venv" / "bin" / "python").unlink()
    done = subprocess.run([checkout / "tools" / SCRIPT.name, "all"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "sanitize: no environment; run ./test first\n"
    assert not (checkout / "docs" / "sanitizers.md").exists()

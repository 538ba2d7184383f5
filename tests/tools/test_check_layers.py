import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


CMAKE = """
neo_folder(base)
neo_folder(ir DEPENDS base SMALL CALLED graph)
neo_folder(simd DEPENDS base)
neo_folder(routines DEPENDS ir simd
           SMALL_FOLDERS gpu)
"""


ARROWS = """# parts, and what each may import
_neo:
errors:
_native: _neo
report: errors
select: errors
module: _native report
cli: module
__main__: cli
"""


def run(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "check_layers.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    write(tmp_path, "csrc/routines/cpu/x/b.h", "#include <stdint.h>\n")
    write(tmp_path, "csrc/routines/cpu/y/a.h", '#include "routines/cpu/x/b.h"\n')
    write(tmp_path, "CMakeLists.txt", CMAKE)
    write(tmp_path, "csrc/base/span.h", "#include <stdint.h>\n")
    write(tmp_path, "csrc/ir/graph.h", '#include "base/span.h"\n')
    write(tmp_path, "python/neo/_native.py", "from neo import _neo\n")
    write(tmp_path, "python/arrows.txt", ARROWS)
    write(tmp_path, "python/neo/__main__.py", "from neo.cli import main\n")
    return tmp_path


def test_the_checkout_follows_its_arrows():
    result = run(ROOT)
    assert result.returncode == 0, result.stdout


def test_accepts_what_follows_the_arrows(checkout):
    write(checkout, "csrc/simd/vec.h", '#include <immintrin.h>\n#include "base/span.h"\n')
    write(checkout, "csrc/routines/cpu/x/kernel.h", "#include <stdint.h>\n")
    write(checkout, "csrc/routines/cpu/x/x.isa.cpp", '#include "routines/cpu/x/kernel.h"\n#include "simd/vec.h"\n')
    assert run(checkout).returncode == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("csrc/base/a.h", '#include "ir/graph.h"\n', 'a.h:1: csrc/base must not include "ir/graph.h"'),
        ("csrc/ir/a.cpp", '\n#include "graph.h"\n', "a.cpp:2: includes are written from csrc"),
        ("csrc/ir/a.cpp", '#include "base/none.h"\n', "does not exist"),
        ("csrc/other/a.cpp", "", "csrc/other is not a known folder"),
        ("csrc/routines/gpu/x/a.h", '#include "routines/cpu/x/b.h"\n', 'gpu must not include "routines/cpu/x/b.h"'),
        ("csrc/routines/patterns/a.h", '#include "routines/cpu/x/b.h"\n', "csrc/routines/patterns must not include"),
        ("csrc/routines/cpu/x/a.h", '#include "routines/cpu/y/a.h"\n', "include each other in a circle"),
        ("csrc/routines/a.isa.cpp", "#include <vector>\n", "kernels include C headers only, not <vector>"),
        ("csrc/routines/a.isa.cpp", '#include "ir/graph.h"\n', "kernels include simd/, base/span.h"),
        ("csrc/simd/a.h", "#include <cstdint>\n", "kernels include C headers only, not <cstdint>"),
        ("python/neo/report/a.py", "import neo._neo\n", "a.py:1: report must not import neo._neo"),
        ("python/neo/report/a.py", "def f():\n    from neo import cli\n", "a.py:2: report must not import neo"),
        ("python/neo/report/a.py", "if TYPE_CHECKING:\n    from neo.module import M\n", "must not import neo.module"),
        ("python/neo/report/a.py", "from . import errors\n", "imports are absolute"),
        ("python/neo/report/a.py", "def f():\n    from neo.report import b\n", "a and neo.report.b import each other"),
        ("python/neo/select/dp.py", "from neo._native import Graph\n", "does not import neo._native"),
        ("python/neo/other.py", "", "other is not a part of python/arrows.txt"),
        ("python/neo/report/b.py", "import json\n", "report does not import errors, which python/arrows.txt allows"),
        (
            "python/arrows.txt",
            "_neo:\n_native: _neo cli\ncli:\n__main__: cli\n",
            "arrows.txt:2: _native may import parts",
        ),
    ],
)
def test_names_what_breaks_an_arrow(checkout, name, text, words):
    if name.startswith("python/neo/report"):
        write(checkout, "python/neo/report/b.py", "from neo.errors import Error\nimport neo.report.a\n")
    write(checkout, name, text)
    result = run(checkout)
    assert result.returncode == 1
    assert words in result.stdout


def test_follows_the_headers_that_a_kernel_includes(checkout):
    write(checkout, "csrc/routines/x.isa.cpp", '#include "routines/x.h"\n')
    write(checkout, "csrc/routines/x.h", "#include <string>\n")
    result = run(checkout)
    assert result.returncode == 1
    assert "x.h:1: kernels include C headers only, not <string>" in result.stdout

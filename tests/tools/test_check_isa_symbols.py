import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CLEAN = """
namespace neo::avx2 {
template <class T> T twice(T x) { return x + x; }
template float twice<float>(float);
struct Table { static const int* get() { static int values[4] = {}; return values; } };
const int* table() { return Table::get(); }
static float local(float x) { return x; }
float use(float x) { return local(x); }
}
"""


def compile_and_check(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    objects = folder / "CMakeFiles" / "neo_routines_avx2.dir" / "csrc"
    objects.mkdir(parents=True)
    (folder / "kernel.isa.cpp").write_text(source)
    compiler = os.environ.get("CXX", "c++")
    target = str(objects / "kernel.isa.cpp.o")
    subprocess.run([compiler, "-std=c++20", "-c", str(folder / "kernel.isa.cpp"), "-o", target], check=True)
    command = [sys.executable, str(ROOT / "tools" / "check_isa_symbols.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_accepts_symbols_of_the_tier(tmp_path):
    result = compile_and_check(tmp_path, CLEAN)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("source", "symbol"),
    [
        ("template <class T> T dot(T x) { return x; }\ntemplate float dot<float>(float);\n", "float dot<float>(float)"),
        ("namespace neo { inline int f() { return 1; } int (*g)() = f; }\n", "neo::f()"),
        ("namespace neo::avx512 { void h() {} }\n", "neo::avx512::h()"),
        ("#include <vector>\nnamespace neo::avx2 { void push(std::vector<int>& v) { v.push_back(1); } }\n", "std::"),
    ],
)
def test_names_a_symbol_outside_the_tier(tmp_path, source, symbol):
    result = compile_and_check(tmp_path, source)
    assert result.returncode == 1
    assert symbol in result.stdout


def test_refuses_a_folder_without_kernels(tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "check_isa_symbols.py"), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "no kernel objects found" in result.stdout

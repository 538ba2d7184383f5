#!/usr/bin/env bash
# tools/aarch64.sh [FOLDER [pytest argument...]]
# Builds neo's Python package for 64-bit Arm and runs the demo and pytest with it under qemu-aarch64.
# FOLDER (build/aarch64-python) becomes an Arm Python environment, or is used again: FOLDER/bin/python -m neo ... runs by
# hand. Needs the environment that ./test makes and the packages of tools/apt.txt, no root and no binfmt_misc.
# onnxruntime's answers on the small models of the zoo are computed here and stored in FOLDER/answers. Without arguments
# pytest runs these models and the tests of the CPU's routines on the tier neon; plain C++ says the same on every machine.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mkdir -p "${1:-$root/build/aarch64-python}" && cd "${1:-$root/build/aarch64-python}" && pwd)
[ $# -eq 0 ] || shift
cd "$root"
host_python=$root/.venv/bin/python
[ -x "$host_python" ] || { echo "aarch64: no environment; run ./test first" >&2; exit 2; }
export PATH=$root/.venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1

# shellcheck source=tools/debian_python.sh
. tools/debian_python.sh

if [ ! -f "$folder/pyvenv.cfg" ] && [ -n "$(ls -A "$folder")" ]; then
  echo "aarch64: FOLDER must be empty or made by this script. Got $folder" >&2
  exit 2
fi
if [ ! -f "$folder/made" ]; then
  touch "$folder/pyvenv.cfg"
  unpack_python "$folder/root" arm64 ""
  make_environment "$folder" "$folder/root" "$host_python" hypothesis numpy onnx pillow pybind11 pytest pytest-xdist rich
  touch "$folder/made"
fi
version=$(cat "$folder/root/version")

build() {
  cmake --preset aarch64 -DNEO_BUILD_PYTHON=ON -DPython_EXECUTABLE="$folder/bin/python" \
    -DPython_INCLUDE_DIR="$folder/root/usr/include/python$version" &&
    cmake --build --preset aarch64 --target _neo -j "$(nproc)"
}
build >"$folder/build.log" 2>&1 || { cat "$folder/build.log" >&2; exit 1; }
rm -rf "$folder/neo"
mkdir -p "$folder/neo"
cp -R python/neo "$folder/neo/neo"
cmake --install build/aarch64 --component python --prefix "$folder/neo" >>"$folder/build.log"
printf '%s\n' "$folder/neo" >"$folder/lib/python$version/site-packages/neo.pth"

export NEO_TEST_MODELS=${NEO_TEST_MODELS:-$root/../shared/models}
[ $# -gt 0 ] || set -- tests/routines --ignore=tests/routines/gpu tests/models/test_models.py -k "not scalar"
if [ -d "$NEO_TEST_MODELS" ]; then
  rm -rf "$folder/answers"
  "$host_python" -m tests.models.store_answers "$folder/answers"
  export NEO_TEST_ANSWERS=$folder/answers
fi
export PYTHONPATH=$root/tools
"$folder/bin/python" -m neo demo
"$folder/bin/python" -m pytest -p no:cacheprovider -p pytest_ring -n "$(nproc)" "$@"

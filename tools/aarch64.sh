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

# Unpacks Debian's Arm packages into $folder/root. Package lists and state are its own: the system's stay as they are.
unpack_system() {
  local apt=$folder/apt package
  rm -rf "$folder/root" "$apt"
  mkdir -p "$folder/root" "$apt/state/lists/partial" "$apt/cache/archives/partial"
  : >"$apt/status"
  cat >"$apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
END
  APT_CONFIG=$apt/apt.conf apt-get -qq update
  APT_CONFIG=$apt/apt.conf apt-get -qq -y --no-install-recommends --download-only \
    install python3 libpython3-dev libstdc++6 >"$apt/log"
  for package in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$folder/root"
  done
  rm -rf "$apt"
}

# A virtual environment whose python is a script, so that what Python starts as sys.executable runs under qemu as well.
make_environment() {
  local version
  printf 'home = %s\n' "$folder/root/usr/bin" >"$folder/pyvenv.cfg"
  unpack_system
  version=$(readlink "$folder/root/usr/bin/python3")
  version=${version#python}
  # Debian's pyconfig.h includes the one of the architecture by a path below /usr/include.
  mkdir -p "$folder/bin" "$folder/root/usr/include/python$version/aarch64-linux-gnu"
  cp -R "$folder/root/usr/include/aarch64-linux-gnu/python$version" "$folder/root/usr/include/python$version/aarch64-linux-gnu"
  cat >"$folder/bin/python" <<END
#!/bin/sh
exec qemu-aarch64 -L '$folder/root' -0 '$folder/bin/python' '$folder/root/usr/bin/python$version' "\$@"
END
  chmod +x "$folder/bin/python"
  "$host_python" -m pip install -q --disable-pip-version-check --upgrade --target "$folder/lib/python$version/site-packages" \
    --implementation cp --python-version "$version" --only-binary=:all: \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    hypothesis numpy onnx pillow pybind11 pytest pytest-xdist rich
  printf '%s\n' "$version" >"$folder/version"
}

if [ ! -f "$folder/pyvenv.cfg" ] && [ -n "$(ls -A "$folder")" ]; then
  echo "aarch64: FOLDER must be empty or made by this script. Got $folder" >&2
  exit 2
fi
[ -f "$folder/version" ] || make_environment
version=$(cat "$folder/version")

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

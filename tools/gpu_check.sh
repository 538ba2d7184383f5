#!/usr/bin/env bash
# tools/gpu_check.sh [--carried FOLDER] [--target cuda] [--out gpu_check] [--seconds 530] [--few]
#   [--only PART,PART] [--results FOLDER]
# Finds out what a machine with a GPU can tell in less than nine minutes: docs/gpu_check.md. Results are summary.md,
# results.json and details.tar.gz in OUT, or in the folder of --results; a second run goes on where the first one ended.
# neo is the checkout's, as it is built or installed there; else FOLDER's modules, where they fit the interpreter (PYTHON,
# else .venv, else python3); else they are compiled against FOLDER's libraries, which takes a compiler, Python's headers
# and about a minute of 16 cores.
#
# tools/gpu_check.sh --prepare FOLDER [MEGABYTES]
# Writes FOLDER on a machine with a network: libraries and modules of build/release, wheels that a bare machine may lack,
# and of NEO_TEST_MODELS the smaller models, MEGABYTES in all (20). It says what it weighs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
export PYTHONPATH="$root:$root/tools${PYTHONPATH:+:$PYTHONPATH}"
# The package of the checkout comes before an installed one where it is built, or is to be.
if compgen -G "python/neo/_neo.*.so" >/dev/null || ! "$python" -c 'import neo' 2>/dev/null; then
  export PYTHONPATH="$root/python:$PYTHONPATH"
fi

prepare() {
  local folder=$1 left=$((${2:-20} * 1000000)) model
  rm -rf "$folder"
  mkdir -p "$folder/core" "$folder/modules" "$folder/wheels" "$folder/models"
  cmake --build --preset release
  cp build/release/libneo_*.a "$folder/core"
  strip --strip-debug "$folder"/core/*.a
  for module in _neo _kernels _gpu_programs; do
    cp build/release/$module.*.so "$folder/modules"
  done
  strip --strip-unneeded "$folder"/modules/*.so
  tar -cJf "$folder/built.tar.xz" -C "$folder" core modules
  rm -r "$folder/core" "$folder/modules"
  "$python" -m pip download -q --no-deps -d "$folder/wheels" pybind11 rich markdown-it-py mdurl pygments
  # shellcheck disable=SC2012
  for model in $(cd "${NEO_TEST_MODELS:?must name the folder of the models}" && du -sb -- */ | sort -n | cut -f2); do
    left=$((left - $(du -sb "$NEO_TEST_MODELS/$model" | cut -f1)))
    [ $left -lt 0 ] || cp -r "$NEO_TEST_MODELS/$model" "$folder/models"
  done
  du -sh "$folder"/*
  du -sh "$folder"
}

has_modules() {
  "$python" -c 'import neo; from tests.built import load_extension as load; load("_kernels"); load("_gpu_programs")' 2>/dev/null
}

# compile_module NAME OPTIMIZATION SOURCE...: one extension module against the carried libraries, into python/neo.
compile_module() {
  local name=$1 level=$2 objects=$work/$1
  shift 2
  mkdir -p "$objects"
  printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c \
    "\${CXX:-c++} -std=c++20 $level -w -fPIC -fvisibility=hidden -ffp-contract=off -DNEO_HAVE_AVX2=1 -DNEO_HAVE_AVX512=1 \
      -DNEO_HAVE_SCALAR=1 -Icsrc -I. $includes -c {} -o $objects/\$(basename {}).o"
  "${CXX:-c++}" -shared -o "python/neo/$name$suffix" "$objects"/*.o -Wl,--version-script=csrc/bindings/module.map \
    -Wl,--start-group "$work"/core/*.a -Wl,--end-group -ldl -lpthread
}

find_modules() {
  local carried=$1 package
  [ -d "$carried" ] || return 0
  for package in rich:rich markdown_it:markdown_it_py mdurl:mdurl pygments:pygments pybind11:pybind11; do
    "$python" -c "import ${package%%:*}" 2>/dev/null ||
      "$python" -m pip install -q --no-index --no-deps --target "$work/site" "$carried"/wheels/"${package##*:}"-*.whl
  done
  export PYTHONPATH="$PYTHONPATH:$work/site"
  [ ! -d "$carried/models" ] || export NEO_TEST_MODELS="${NEO_TEST_MODELS:-$carried/models}"
  has_modules && return
  tar -xJf "$carried/built.tar.xz" -C "$work"
  suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
  if [ -f "$work/modules/_neo$suffix" ]; then
    cp "$work"/modules/*"$suffix" python/neo
    has_modules && return
  fi
  includes="$("$python" -m pybind11 --includes)"
  compile_module _neo -O1 csrc/bindings/*.cpp &
  compile_module _kernels -O0 tests/kernel_ir/*.cpp &
  compile_module _gpu_programs -O0 tests/routines/gpu/*.cpp &
  wait
}

if [ "${1:-}" = --prepare ]; then
  prepare "${2:?FOLDER must be named}" "${3:-20}"
  exit
fi
carried=
if [ "${1:-}" = --carried ]; then
  carried=$(cd "$2" && pwd)
  shift 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find_modules "$carried"
"$python" -m benchmarks.gpu_check "$@"

#!/usr/bin/env bash
# tools/sanitize.sh asan|tsan [pytest argument...]
# Builds neo with AddressSanitizer and UndefinedBehaviorSanitizer, or with ThreadSanitizer, and runs the C++ tests, the
# demo and pytest with it. Needs the environment that ./test makes. Without arguments pytest runs all but slow tests.
# Suppressions are for third-party code only and are listed in tools/<sanitizer>.supp.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
preset=${1:-}
case $preset in
  asan) libraries=(libasan.so libubsan.so libstdc++.so.6) ;;
  tsan) libraries=(libtsan.so libstdc++.so.6) ;;
  *) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac
shift
set_headers=()
python=$root/.venv/bin/python
[ -x "$python" ] || { echo "sanitize: no environment; run ./test first" >&2; exit 2; }
export PATH=$root/.venv/bin:$PATH

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
headers=$root/build/python-$version-headers/usr/include
if [ -d "$headers" ]; then
  export CPLUS_INCLUDE_PATH=$headers
  set_headers=(-DPython_INCLUDE_DIR="$headers/python$version")
fi
cmake --preset "$preset" -DPython_EXECUTABLE="$python" "${set_headers[@]}"
cmake --build --preset "$preset" -j "$(nproc)"
site=$root/build/$preset/site
rm -rf "$site"
mkdir -p "$site"
cp -R python/neo "$site/neo"
cmake --install "build/$preset" --component python --prefix "$site"

options=halt_on_error=1:print_stacktrace=1
export UBSAN_OPTIONS=$options
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$root/tools/tsan.supp
# Fixed addresses: ThreadSanitizer finds its shadow memory taken otherwise.
unshuffled=(setarch "$(uname -m)" -R)

if [ -x "build/$preset/neo_cpp_tests" ]; then
  ASAN_OPTIONS=detect_leaks=1:$options "${unshuffled[@]}" "build/$preset/neo_cpp_tests" --gtest_brief=1
fi

preload=""
for library in "${libraries[@]}"; do
  preload+="${preload:+ }$("${CXX:-c++}" -print-file-name="$library")"
done
# BLAS threads synchronise in code that no sanitizer sees.
export OPENBLAS_NUM_THREADS=1
# The interpreter itself leaks on purpose; its own allocator would hide errors from the sanitizer.
export ASAN_OPTIONS=detect_leaks=0:$options PYTHONMALLOC=malloc PYTHONPATH=$site
LD_PRELOAD=$preload "${unshuffled[@]}" "$python" -m neo demo
# File descriptors stay uncaptured: a report is written just before the process ends.
LD_PRELOAD=$preload "${unshuffled[@]}" "$python" -m pytest -p no:cacheprovider --capture=sys "$@"

#!/usr/bin/env bash
# tools/sanitize.sh asan|tsan [pytest argument...]
# tools/sanitize.sh all
# Builds neo with AddressSanitizer and UndefinedBehaviorSanitizer, or with ThreadSanitizer, and runs the C++ tests, the
# demo and pytest with it. Needs the environment that ./test makes. Arguments draw a sample as those of ./test do.
# `all` does that with both at once, every folder of tests in a process of its own, and writes to docs/sanitizers.md
# what ran and what failed. Suppressions are for third-party code only and are listed in tools/<sanitizer>.supp.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
python=$root/.venv/bin/python
# These run no code of neo's core.
left_out=(tests/tools)
# Fixed addresses: ThreadSanitizer finds its shadow memory taken otherwise.
unshuffled=(setarch "$(uname -m)" -R)

usage() {
  sed -n '2,7s/^# //p' "$0" >&2
  exit 2
}

# use asan|tsan: sets what the functions below need, for this sanitizer.
use() {
  preset=$1
  case $preset in
    asan) name="AddressSanitizer, UndefinedBehaviorSanitizer" libraries=(libasan.so libubsan.so libstdc++.so.6) ;;
    tsan) name="ThreadSanitizer" libraries=(libtsan.so libstdc++.so.6) ;;
    *) usage ;;
  esac
  site=$root/build/$preset/site
  local options=halt_on_error=1:print_stacktrace=1 library
  export UBSAN_OPTIONS=$options
  # Code that no sanitizer has instrumented synchronises by means that it does not see.
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1
  TSAN_OPTIONS+=:suppressions=$root/tools/tsan.supp
  export ASAN_OPTIONS=detect_leaks=1:$options
  preload=""
  for library in "${libraries[@]}"; do
    preload+="${preload:+ }$("${CXX:-c++}" -print-file-name="$library")"
  done
}

build() {
  local version headers set_headers=()
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  headers=$root/build/python-$version-headers/usr/include
  if [ -d "$headers" ]; then
    export CPLUS_INCLUDE_PATH=$headers
    set_headers=(-DPython_INCLUDE_DIR="$headers/python$version")
  fi
  cmake --preset "$preset" -DPython_EXECUTABLE="$python" "${set_headers[@]}" &&
    cmake --build --preset "$preset" -j "$(nproc)" &&
    rm -rf "$site" && mkdir -p "$site" && cp -R python/neo "$site/neo" && rm -f "$site"/neo/*.so &&
    cmake --install "build/$preset" --component python --prefix "$site"
}

cpp_tests() {
  "${unshuffled[@]}" tools/cpp_tests.sh "build/$preset/neo_cpp_tests"
}

# The interpreter itself leaks on purpose; its own allocator would hide errors from the sanitizer. BLAS threads
# synchronise in code that no sanitizer sees.
run_python() {
  LD_PRELOAD=$preload ASAN_OPTIONS=${ASAN_OPTIONS/detect_leaks=1/detect_leaks=0} OPENBLAS_NUM_THREADS=1 \
    PYTHONMALLOC=malloc PYTHONPATH=$site:$root/tools "${unshuffled[@]}" "$python" "$@"
}

demo() {
  run_python -m neo demo
}

# File descriptors stay uncaptured: a report is written just before the process ends.
python_tests() {
  run_python -m pytest -p no:cacheprovider -p pytest_ring --capture=sys "$@"
}

# Every folder and file of tests that runs here, one a line.
folders() {
  local path
  for path in tests/*/ tests/test_*.py; do
    path=${path%/}
    case " ${left_out[*]} " in *" $path "*) continue ;; esac
    [ -z "$(find "$path" -name 'test_*.py' -print -quit)" ] || printf '%s\n' "$path"
  done
}

# part <label> <command>...: runs it, keeps its output below build/<preset>/logs and appends a row to $rows. The counts
# are those that GoogleTest and pytest print last; a process that ended before it could count has none.
part() {
  local label=$1 start=$SECONDS status=0 log counts passed failed skipped
  shift
  log=build/$preset/logs/$(tr -c 'a-zA-Z0-9\n' _ <<<"$label").log
  mkdir -p "$(dirname "$log")"
  printf -- '--- %s: %s\n' "$preset" "$label"
  "$@" >"$log" 2>&1 || status=$?
  counts=$(tail -n 40 "$log" | grep -E '^\[  (PASSED|FAILED|SKIPPED )|^=*[ 0-9a-z,]* in [0-9.]+s' || true)
  count() {
    grep -oE "([0-9]+ $1|$2 *\] [0-9]+)" <<<"$counts" | grep -oE '[0-9]+' | tail -n 1 || printf 0
  }
  passed=$(count passed PASSED) failed=$(count '(failed|errors?)' FAILED) skipped=$(count skipped SKIPPED)
  if [ $status -eq 0 ]; then
    printf '| %s | %s | %s | %s | %s | clean |\n' "$label" "$passed" "$failed" "$skipped" $((SECONDS - start))
  else
    tail -n 30 "$log" >&2
    printf '| %s | %s | %s | %s | %s | **failed**, exit status %s |\n' \
      "$label" "$passed" "$failed" "$skipped" $((SECONDS - start)) $status
  fi >>"$rows"
  return $status
}

# all_parts asan|tsan FILE: writes a section of the summary to the file; fails if a part did.
all_parts() {
  local status=0 folder rows
  use "$1"
  rows=build/$preset-rows.md
  : >"$rows"
  if part build build; then
    part "C++ tests" cpp_tests || status=1
    part demo demo || status=1
    while IFS= read -r folder; do
      part "$folder" python_tests -q --all "$folder" || status=1
    done < <(folders)
  else
    status=1
  fi
  {
    printf '\n## %s\n\n| part | passed | failed | skipped | seconds | result |\n|---|---|---|---|---|---|\n' "$name"
    cat "$rows"
    awk -F'|' '{ passed += $3; failed += $4; skipped += $5; seconds += $6; if ($7 !~ /clean/) bad++ }
      END { printf "| all | %d | %d | %d | %d | %s |\n", passed, failed, skipped, seconds, bad ? bad " failed" : "clean" }' "$rows"
  } >"$2"
  return $status
}

# The revision that ran, and whether the checkout differed from it.
revision() {
  git rev-parse --short=12 HEAD
  [ -z "$(git status --porcelain --untracked-files=no)" ] || printf ', with changes that are not committed'
}

# The lines of tools/*.supp that suppress something.
suppressions() {
  grep -hEv '^(#|$)' tools/*.supp | paste -sd' ' | grep . || printf none
}

run_all() {
  local status=0 preset text=$root/build/sanitizers.md sections=() running=()
  mkdir -p build
  cat >"$text" <<END
# Sanitizers

Written by \`tools/sanitize.sh all\`, which runs the C++ tests, the demo and every folder of tests, each in a process of
its own, and stops a process at its first report. That takes more than an hour and is run by hand: the tables are of the revision and
day below. \`.ci/run\` runs a sample of the tests under the sanitizers for each change.

- revision: $(revision)
- date: $(date -u +%F)
- compiler: $("${CXX:-c++}" --version | head -n 1)
- left out: ${left_out[*]}, which run no code of the core; what is marked slow, gpu or bench
- suppressions in \`tools/*.supp\`: $(suppressions)
END
  # Side by side: most tests use one core.
  for preset in asan tsan; do
    sections+=("$root/build/$preset-section.md")
    all_parts $preset "${sections[-1]}" &
    running+=($!)
  done
  for preset in "${running[@]}"; do
    wait "$preset" || status=1
  done
  cat "$text" "${sections[@]}" >docs/sanitizers.md
  return $status
}

[ -x "$python" ] || { echo "sanitize: no environment; run ./test first" >&2; exit 2; }
export PATH=$root/.venv/bin:$PATH

case ${1:-} in
  all)
    [ $# -eq 1 ] || usage
    run_all
    ;;
  *)
    use "${1:-}"
    shift
    build
    cpp_tests
    demo
    python_tests "$@"
    ;;
esac

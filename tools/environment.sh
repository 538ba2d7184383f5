# shellcheck shell=bash
# Sourced by ./demo and ./test, which set `root` to the checkout: finds what a build needs, makes $root/.venv and
# installs neo from the checkout into it.

fail() {
  printf 'neo: %s\n' "$1" >&2
  exit 1
}

# Sets `python` to an interpreter >= 3.10 that can make environments.
find_python() {
  local candidate found=""
  for candidate in ${NEO_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    found=$candidate
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      python=$candidate
      "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "Python's venv module is missing. Install it: apt install python3-venv"
      return
    fi
  done
  [ -z "$found" ] || fail "Python >= 3.10 is needed, $found is $("$found" -V 2>&1). Install a newer python3, or name one in NEO_PYTHON"
  fail "Python >= 3.10 is missing. Install it: apt install python3 python3-venv"
}

# Sets and exports CXX to a compiler that understands C++20.
find_compiler() {
  local candidate found="" candidates=(c++ g++ clang++)
  [ -z "${CXX:-}" ] || candidates=("$CXX")
  for candidate in "${candidates[@]}"; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    found=$candidate
    if printf '#include <span>\nstatic_assert(__cplusplus >= 202002L);\n' |
      "$candidate" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
      export CXX=$candidate
      return
    fi
  done
  [ -z "$found" ] || fail "a C++20 compiler is needed, $found is not one. Install a newer one (GCC >= 11 or Clang >= 14): apt install g++"
  fail "a C++20 compiler is missing. Install one: apt install g++"
}

# Python.h is in a package of its own on Debian. Without it the headers of that very version are unpacked below build/.
find_headers() {
  local include version folder
  include=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [ ! -f "$include/Python.h" ] || return 0
  version=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  folder=$root/build/python-$version-headers
  if [ ! -f "$folder/usr/include/python$version/Python.h" ]; then
    unpack_headers "libpython$version-dev" "$folder" >"$log" 2>&1 ||
      fail "Python's header files are missing. Install them: apt install python3-dev (see $log)"
  fi
  export CPLUS_INCLUDE_PATH="$folder/usr/include${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}"
  defines+=("Python_INCLUDE_DIR=$folder/usr/include/python$version")
}

# unpack_headers <Debian package> <folder>: needs no root and installs nothing; the package lists are the system's
# where it has them, else they are read into the folder.
unpack_headers() {
  local lists=$2/lists options=()
  command -v apt-get && command -v dpkg-deb || return 1
  printf 'neo: Python.h is missing; unpacking %s below build/\n' "$1" >&3
  rm -rf "$2"
  mkdir -p "$2" "$lists/partial"
  if ! (cd "$2" && apt-get -q download "$1"); then
    options=(-o "Dir::State::lists=$lists" -o "APT::Sandbox::User=")
    apt-get -q "${options[@]}" update && (cd "$2" && apt-get -q "${options[@]}" download "$1") || return 1
  fi
  dpkg-deb -x "$2"/*.deb "$2"
  rm -rf "$lists" "$2"/*.deb
}

# A hash of all that the installed package, and what else is named, is made from.
fingerprint() {
  (
    cd "$root" || exit
    {
      find CMakeLists.txt pyproject.toml LICENSE cmake csrc python "$@" -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum
      "$venv/bin/python" -VV
      printf '%s\n' "$CXX"
    } | sha256sum
  )
}

# Passes pip's lines to the log and a short account of them to the terminal.
show_progress() {
  local line step percent last="" shown=-10
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    step=""
    if [[ $line =~ \[([0-9]+)/([0-9]+)\]\ (Building|Linking) ]]; then
      percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      if [ -t 3 ] || [ $percent -ge $((shown + 10)) ] || [ $percent -eq 100 ]; then
        step="compiling ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
        shown=$percent
      fi
    elif [[ $line =~ ^\ *(Collecting|Installing\ collected|Preparing|Installing\ build\ dependencies) ]]; then
      step=${line#"${line%%[![:space:]]*}"}
    fi
    if [ -n "$step" ] && [ "$step" != "$last" ]; then
      if [ -t 3 ]; then printf '\r\033[K  %.*s' 100 "$step" >&3; else printf '  %.100s\n' "$step" >&3; fi
      last=$step
    fi
  done
  if [ -t 3 ]; then printf '\r\033[K' >&3; fi
}

# requirements_of <name>...: what pyproject.toml lists under these names, one requirement a line.
requirements_of() {
  "$venv/bin/python" - "$root/pyproject.toml" "$@" <<'END'
import ast, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
for name in sys.argv[2:]:
    print(*ast.literal_eval(re.search(rf"^{name} = (\[.*?\])$", text, re.M | re.S)[1]), sep="\n")
END
}

# fail_install <log>: ends with the errors that are in it.
fail_install() {
  grep -E 'error:|ERROR:|CMake Error|^no such' "$1" | head -n 20 >&2 || true
  fail "the installation failed; the whole log is in $1"
}

# pip_install <argument>...: with the progress on the terminal and everything in the log. Python compiles what is
# imported; to compile all of it takes longer.
pip_install() {
  "$venv/bin/python" -m pip install -v --no-compile --disable-pip-version-check "$@" 2>&1 | show_progress ||
    fail_install "$log"
}

# install_neo [extra [NAME=VALUE...]]: brings $root/.venv up to date with the checkout, built in $root/build/venv with
# the given CMake variables. Sets `venv`. With the extra `test`, tests/cpp and tests/kernel_ir belong to what is built.
install_neo() {
  local extra=${1:-} sources wanted stamp defines requirements fetching watched=()
  [ $# -eq 0 ] || shift
  defines=("$@")
  venv=$root/.venv
  log=$root/build/install.log
  mkdir -p "$root/build"
  exec 3>&2
  find_python
  find_compiler
  if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    printf 'neo: making the environment .venv\n' >&3
    "$python" -m venv --clear "$venv" >"$log" 2>&1 ||
      fail "making $venv failed (see $log). Install what is missing: apt install python3-venv"
  fi
  find_headers

  [ "$extra" != test ] || [ ! -d "$root/tests/cpp" ] || watched=(tests/cpp tests/kernel_ir)
  stamp=$venv/neo${extra:+-$extra}.stamp
  sources=$(fingerprint)
  wanted="$(fingerprint "${watched[@]}") $*"
  if [ "$(cat "$venv/neo.stamp" 2>/dev/null)" = "$sources" ] &&
    { [ -z "$extra" ] || [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; }; then
    return 0
  fi

  printf 'neo: building and installing (some minutes the first time; log in build/install.log)\n' >&3
  : >"$log"
  rm -f "$venv"/neo*.stamp
  # The build tools stay in the environment, so that a second build compiles only what changed.
  mapfile -t requirements < <(requirements_of requires)
  pip_install "${requirements[@]}" "cmake>=3.22" "ninja>=1.10"  # the backend would fetch the last two
  # What neo needs to run is fetched while it is compiled.
  mapfile -t requirements < <(requirements_of dependencies ${extra:+"$extra"})
  "$venv/bin/python" -m pip install --no-compile --disable-pip-version-check "${requirements[@]}" \
    >"$root/build/requirements.log" 2>&1 &
  fetching=$!
  trap 'kill $fetching 2>/dev/null' EXIT
  SKBUILD_BUILD_DIR=$root/build/venv SKBUILD_CMAKE_DEFINE=$(IFS=";" && printf '%s' "${defines[*]}") \
    pip_install --no-build-isolation --no-deps "$root"
  wait $fetching || fail_install "$root/build/requirements.log"
  trap - EXIT
  printf '%s\n' "$sources" >"$venv/neo.stamp"
  [ -z "$extra" ] || printf '%s\n' "$wanted" >"$stamp"
}

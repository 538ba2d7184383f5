# shellcheck shell=bash
# Sourced by tools/aarch64.sh and tools/wheels.sh: what Debian's packages hold for other processors and of other releases,
# unpacked into folders without root. The system's own packages, package lists and state stay as they are.

# unpack_packages <folder> <architecture> <release> <package>...: these and what they depend on. An empty release is the
# one that this system installs from; NEO_MIRROR names another mirror than deb.debian.org for all others.
unpack_packages() {
  local folder=$1 architecture=$2 release=$3 apt=$1.apt package links
  shift 3
  rm -rf "$folder" "$apt"
  mkdir -p "$folder" "$apt/state/lists/partial" "$apt/cache/archives/partial"
  : >"$apt/status"
  cat >"$apt/apt.conf" <<END
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "";
Acquire::Check-Valid-Until "false";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
END
  if [ -n "$release" ]; then
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
      "${NEO_MIRROR:-http://deb.debian.org/debian}" "$release" >"$apt/sources.list"
    printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "-";\n' "$apt/sources.list" >>"$apt/apt.conf"
  fi
  APT_CONFIG=$apt/apt.conf apt-get -qq update
  APT_CONFIG=$apt/apt.conf apt-get -qq -y --no-install-recommends --download-only install "$@" >"$apt/log"
  for package in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$folder"
  done
  # From Debian 13 on packages hold /usr/lib alone, and an installed system has a link beside it.
  for links in lib lib64; do
    [ -e "$folder/$links" ] || [ ! -d "$folder/usr/$links" ] || ln -s "usr/$links" "$folder/$links"
  done
  rm -rf "$apt"
}

# unpack_python <folder> <architecture> <release>: Debian's Python with its headers. <folder>/version is its version.
unpack_python() {
  local folder=$1 architecture=$2 version triple
  unpack_packages "$folder" "$architecture" "$3" python3 libpython3-dev libstdc++6
  version=$(readlink "$folder/usr/bin/python3")
  version=${version#python}
  case $architecture in
    arm64) triple=aarch64-linux-gnu ;;
    amd64) triple=x86_64-linux-gnu ;;
  esac
  # Debian's pyconfig.h includes the one of the architecture by a path below /usr/include.
  mkdir -p "$folder/usr/include/python$version/$triple"
  cp -R "$folder/usr/include/$triple/python$version" "$folder/usr/include/python$version/$triple"
  printf '%s\n' "${triple%%-*}" >"$folder/processor"
  printf '%s\n' "$version" >"$folder/version"
}

# make_environment <folder> <unpacked Python> <Python of this machine> <package>...: a virtual environment with these
# packages of PyPI. Its python is a script, so that what Python starts as sys.executable runs in the same way.
make_environment() {
  local folder=$1 system=$2 host_python=$3 processor version start
  shift 3
  processor=$(cat "$system/processor")
  version=$(cat "$system/version")
  case $processor in
    aarch64) start="qemu-aarch64 -L '$system' -0 '$folder/bin/python'" ;;
    x86_64) start="'$system/lib64/ld-linux-x86-64.so.2' --argv0 '$folder/bin/python' --library-path '$system/lib/x86_64-linux-gnu:$system/usr/lib/x86_64-linux-gnu'" ;;
  esac
  mkdir -p "$folder/bin"
  printf 'home = %s\n' "$system/usr/bin" >"$folder/pyvenv.cfg"
  printf "#!/bin/sh\nexec %s '%s' \"\$@\"\n" "$start" "$system/usr/bin/python$version" >"$folder/bin/python"
  chmod +x "$folder/bin/python"
  "$host_python" -m pip install -q --disable-pip-version-check --upgrade --target "$folder/lib/python$version/site-packages" \
    --implementation cp --python-version "$version" --only-binary=:all: \
    --platform "manylinux_2_28_$processor" --platform "manylinux_2_27_$processor" \
    --platform "manylinux_2_17_$processor" --platform "manylinux2014_$processor" "$@"
}

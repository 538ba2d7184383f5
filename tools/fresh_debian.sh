#!/usr/bin/env bash
# tools/fresh_debian.sh FOLDER [COMMAND]
# Tries the checkout's HEAD on a fresh Debian that holds python3, python3-venv, g++ and git, nothing else: makes the
# system in FOLDER with debootstrap (reused when it is there), clones the checkout into it and runs COMMAND as a plain
# user, './demo && ./test' by default. Needs root, debootstrap and git. The network is reached as on this machine:
# resolv.conf, certificates and the settings of proxies and of pip are carried over. NEO_SUITE names another release than
# bookworm (Debian 12), sid for the newest compiler and Python; NEO_MIRROR names another mirror.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "fresh_debian: needs root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "fresh_debian: debootstrap is missing (apt install debootstrap)" >&2; exit 2; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$1"
system=$(cd "$1" && pwd)
command=${2:-./demo && ./test}

if [ ! -e "$system/made" ]; then
  # shellcheck disable=SC2086
  debootstrap --variant=minbase --include=ca-certificates "${NEO_SUITE:-bookworm}" "$system" ${NEO_MIRROR:-}
  cp -L /etc/resolv.conf "$system/etc/resolv.conf"
  DEBIAN_FRONTEND=noninteractive chroot "$system" sh -ec '
    apt-get -q -o Acquire::Check-Valid-Until=false update  # a mirror of sid may lag
    apt-get -q install -y --no-install-recommends python3 python3-venv g++ git
    useradd --create-home user'
  touch "$system/made"
fi

cp -L /etc/resolv.conf "$system/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/ca-certificates.crt"
checkout=$system/home/user/neo
rm -rf "$checkout"
git clone -q "$root" "$checkout"
chroot "$system" chown -R user: /home/user/neo

settings=(HOME=/home/user PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8)
for name in PIP_INDEX_URL PIP_CERT PIP_DEFAULT_TIMEOUT SSL_CERT_FILE REQUESTS_CA_BUNDLE http_proxy https_proxy no_proxy; do
  [ -z "${!name:-}" ] || settings+=("$name=${!name}")
done
# /proc and the memory that processes share belong to a mount namespace of its own and are gone with the command.
mkdir -p "$system/dev/shm"
# shellcheck disable=SC2016  # the shell inside expands its own
exec unshare --mount --pid --fork --mount-proc="$system/proc" \
  sh -c 'mount -t tmpfs -o mode=1777 shm "$0/dev/shm" && exec chroot --userspec=user:user "$0" /usr/bin/env -i "$@"' \
  "$system" "${settings[@]}" bash -c "cd ~/neo && $command"

#!/usr/bin/env bash
# Fetches Debian's strongSwan with its IPsec of user space and unpacks it: tests/gateway/strongswan.sh DIRECTORY
#
# Not installed, since that would begin an IKE daemon on this machine; the benchmark lays DIRECTORY/usr over /usr in its
# own namespace of mounts.
set -euo pipefail

directory=$(realpath -m "${1:?usage: strongswan.sh DIRECTORY}")
[ -x "$directory/usr/lib/ipsec/charon" ] && exit 0
packages=(libstrongswan libstrongswan-standard-plugins strongswan-libcharon strongswan-charon strongswan-swanctl
    libcharon-extra-plugins)
if ! command -v apt-get >/dev/null; then
    echo "strongswan: no apt-get here; going on without" >&2
    exit 0
fi
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
chmod 755 "$fetched"
if ! (cd "$fetched" && apt-get download -qq "${packages[@]}") 2>/dev/null; then
    echo "strongswan: its packages cannot be had here; going on without" >&2
    exit 0
fi
mkdir -p "$directory"
for package in "$fetched"/*.deb; do
    dpkg-deb --extract "$package" "$directory"
done

#!/usr/bin/env bash
# Prints the folder with etcd and etcdctl: that of the installed ones, or where they are unpacked from Debian's packages, which are
# not installed because that would begin a server on this machine. Prints nothing where they cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

if installed=$(command -v etcd) && command -v etcdctl >/dev/null; then
    dirname "$installed"
    exit 0
fi
directory=$(realpath -m "${CARGO_TARGET_DIR:-target}")/etcd
if ! [ -x "$directory/usr/bin/etcd" ]; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    chmod 755 "$fetched"
    (cd "$fetched" && apt-get download -qq etcd-server etcd-client) >/dev/null 2>&1 || exit 0
    mkdir -p "$directory"
    for package in "$fetched"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$directory" ./usr/bin
    done
fi
echo "$directory/usr/bin"

#!/usr/bin/env bash
# The alerting rules of docs/alerts.yml by Prometheus's own checker, and what they do with figures over time.
#
# promtool is taken where it is installed, or unpacked from Debian's package, which is not installed because that would begin
# a server on this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."

promtool=$(command -v promtool || true)
if [ -z "$promtool" ]; then
    directory=$(realpath -m "${CARGO_TARGET_DIR:-target}")/promtool
    promtool=$directory/usr/bin/promtool
    if ! [ -x "$promtool" ]; then
        fetched=$(mktemp -d)
        trap 'rm -rf "$fetched"' EXIT
        chmod 755 "$fetched"
        if ! (cd "$fetched" && apt-get download -qq prometheus) >/dev/null 2>&1; then
            echo "alerts: SKIPPED, promtool cannot be had here (Debian: prometheus)"
            exit 0
        fi
        mkdir -p "$directory"
        dpkg-deb --fsys-tarfile "$fetched"/*.deb | tar -x -C "$directory" ./usr/bin/promtool
    fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work" ${fetched:+"$fetched"}' EXIT
cp docs/alerts.yml "$work/alerts.rules.yml"
cp tests/docs/alerts.yml "$work/"
"$promtool" check rules "$work/alerts.rules.yml"
"$promtool" test rules "$work/alerts.yml"

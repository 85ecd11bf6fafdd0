#!/usr/bin/env bash
# Builds the documentation as a site into target/site and says where it is: scripts/site.sh [installed]
#
# mdbook is taken from the PATH or from target/tools. Otherwise it is installed: a Debian package if there is one, else
# built by cargo into target/tools. With `installed` nothing is installed. Where it cannot be had, the site is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.5.4

# Older versions have other names in their pages and settings.
suits() { [ "$(printf '%s\n' "mdbook v0.5.0" "$("$1" --version 2>/dev/null)" | sort -V | tail -1)" != "mdbook v0.5.0" ]; }

find_mdbook() {
    for tool in mdbook "$PWD/target/tools/bin/mdbook"; do
        if command -v "$tool" >/dev/null && suits "$tool"; then
            mdbook=$tool
            return 0
        fi
    done
    return 1
}

if ! command -v python3 >/dev/null; then
    echo "docs: SKIPPED, python3 is not installed"
    exit 0
fi
if ! find_mdbook && [ "${1:-}" != installed ]; then
    candidate=$(apt-cache policy mdbook 2>/dev/null | sed -n 's/ *Candidate: *\([0-9]\)/\1/p' || true)
    if [ -n "$candidate" ] && dpkg --compare-versions "$candidate" ge 0.5; then
        scripts/setup.sh docs
    fi
    if ! find_mdbook; then
        echo "docs: building mdbook $version into target/tools"
        cargo install --quiet --locked --no-default-features --features search "mdbook@$version" --root target/tools || true
    fi
fi
if ! find_mdbook; then
    echo "docs: SKIPPED, mdbook cannot be had here"
    exit 0
fi
python3 scripts/site.py "$mdbook"
if [ -t 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then
    xdg-open target/site/index.html
fi

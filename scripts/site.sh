#!/usr/bin/env bash
# Builds the documentation as a site into target/site and says where it is.
#
# mdbook is taken from the PATH or from target/tools. Otherwise it is fetched: a Debian package if there is a new one, else built
# by cargo into target/tools, which takes a minute or two once. Where it cannot be had, this fails; DOCS=skip, for machines
# without a registry, says so and goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.5.4

give_up() {
    if [ "${DOCS:-}" = skip ]; then
        echo "docs: SKIPPED (DOCS=skip), $1"
        exit 0
    fi
    echo "docs: $1; install it ($2), or set DOCS=skip to go on without the site" >&2
    exit 2
}

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

command -v python3 >/dev/null || give_up "python3 is missing" "apt-get install python3"
if ! find_mdbook; then
    candidate=$(apt-cache policy mdbook 2>/dev/null | sed -n 's/ *Candidate: *\([0-9]\)/\1/p' || true)
    if [ -n "$candidate" ] && dpkg --compare-versions "$candidate" ge 0.5; then
        scripts/setup.sh docs
    fi
    if ! find_mdbook; then
        echo "docs: building mdbook $version into target/tools"
        scripts/tool.sh "mdbook@$version" target/tools --no-default-features --features search ||
            give_up "mdbook cannot be had here" "cargo install mdbook --version $version"
    fi
fi
find_mdbook || give_up "mdbook is missing" "cargo install mdbook --version $version"
python3 scripts/site.py "$mdbook"
if [ -t 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then
    xdg-open target/site/index.html
fi

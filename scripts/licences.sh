#!/usr/bin/env bash
# Licences, sources and advisories of everything that is built in (deny.toml).
set -euo pipefail

if ! cargo deny --version >/dev/null 2>&1; then
    echo "licences: installing cargo-deny (some minutes, once)"
    "$(dirname "$0")/tool.sh" cargo-deny "${CARGO_HOME:-$HOME/.cargo}" --no-default-features
fi
cargo deny --all-features check licenses bans sources
# What the playground has in a browser only.
cargo deny --manifest-path crates/workbench/playground/Cargo.toml --target wasm32-unknown-unknown check --hide-inclusion-graph licenses bans sources

# The advisory database is fetched from the network; a machine that cannot reach it cannot check.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if cargo deny check advisories >"$log" 2>&1 && ! grep -q 'failed to fetch advisory database' "$log"; then
    echo "advisories ok"
elif grep -q 'failed to fetch advisory database' "$log"; then
    echo "advisories: SKIPPED, the database cannot be reached from here"
else
    cat "$log"
    exit 1
fi

#!/usr/bin/env bash
# Compares the interface of the library `forebay` with an earlier one, and fails if a change would break programs that
# depend on it and the version does not say so (cargo-semver-checks).
#
#   scripts/semver.sh [REVISION]      by default the last tag; without a tag there is nothing to compare
#
# What `forebay` re-exports belongs to its interface, so the crates that it re-exports from are compared too; a change of
# an item that it does not re-export is for a person to judge.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(forebay)
for name in time scheduler crypto crypto-aws-lc drops spd reassembly iptfs replay tunnel ipsec engine diagnostics scenario sim workbench sas config state netlink links privileges control taps worker gateway; do
    packages+=("forebay-$name")
done
base=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if [ -z "$base" ]; then
    echo "semver: SKIPPED, there is no tag; name a revision with BASE="
    exit 0
fi
if ! git cat-file -e "$base:crates/forebay/Cargo.toml" 2>/dev/null; then
    echo "semver: SKIPPED, $base has no library forebay"
    exit 0
fi
version=0.51.0
tool=$PWD/target/tools/bin/cargo-semver-checks
if ! "$tool" semver-checks --version 2>/dev/null | grep -qF " $version"; then
    echo "semver: building cargo-semver-checks $version into target/tools"
    if ! cargo install --quiet --locked "cargo-semver-checks@$version" --root target/tools; then
        echo "semver: SKIPPED, cargo-semver-checks cannot be had here"
        exit 0
    fi
fi
words=()
for package in "${packages[@]}"; do words+=(--package "$package"); done
"$tool" semver-checks check-release --baseline-rev "$base" --all-features "${words[@]}"

#!/usr/bin/env bash
# cargo, for maturin: builds the Python module together with the workspace and its tests, and everything else as cargo does.
#
# A package that is built by itself has fewer features of its dependencies than in the workspace with all tests, and so nearly
# every crate would be compiled a second time for the module. maturin takes the module out of the messages of either.
set -euo pipefail

if [ "${1:-}" != rustc ]; then
    exec cargo "$@"
fi
profile=dev
while [ $# -gt 0 ]; do
    case $1 in
    --profile) profile=$2 && shift ;;
    --target) echo "cargo_as_tested: builds for this machine only, not for $2" >&2 && exit 2 ;;
    esac
    shift
done
# What build scripts of other crates link is none of the module's business: its C libraries are static.
cargo build --workspace --lib --tests --profile "$profile" --locked --message-format json-render-diagnostics |
    grep --line-buffered -v '"reason":"build-script-executed"'

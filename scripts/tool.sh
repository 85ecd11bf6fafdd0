#!/usr/bin/env bash
# Builds a program out of Rust's registry: scripts/tool.sh NAME@VERSION ROOT [ARGUMENT OF CARGO INSTALL...]
#
# With little optimisation and crate by crate, whatever its own profile says: it runs for seconds and is built for minutes.
set -euo pipefail
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0
exec "${CARGO:-cargo}" install --quiet --locked "$1" --root "$2" "${@:3}"

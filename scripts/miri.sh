#!/usr/bin/env bash
# Runs tests that need neither a kernel nor C under Miri, which finds undefined behaviour and data races.
#
#   scripts/miri.sh [full|short]
#
# `short` runs what holds all unsafe code that Miri can reach: the rings and places of AF_XDP, the memory of packets, and the pointers that
# libipsec-mb is given (a stand-in in Rust has the library's place). `full` adds the engine with a thread of an emulated card, headers,
# replay windows and the map of SPIs. Property tests run few cases: Miri takes a thousand times as long. The scheduler has
# neither unsafe code nor threads, and its tests would take hours.
#
# Nightly Rust with Miri is fetched by rustup. Where it cannot be had this says so and ends with 0, or with 2 if
# MIRI_REQUIRED=1 is set.
set -euo pipefail
cd "$(dirname "$0")/.."
extent=${1:-full}
: "${CARGO_TARGET_DIR:=$PWD/target}"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/miri CARGO_TERM_COLOR=never
# Miri does not optimise; debug information of the dependencies only costs time.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only

have() { cargo +nightly miri --version >/dev/null 2>&1; }
if ! have && command -v rustup >/dev/null; then
    echo "miri: fetching nightly Rust with Miri"
    { rustup toolchain install nightly --profile minimal --component miri --component rust-src --no-self-update ||
        rustup component add --toolchain nightly miri rust-src; } >/dev/null 2>&1 || true
fi
if ! have; then
    echo "miri: SKIPPED, nightly Rust with Miri cannot be had here (rustup toolchain install nightly --component miri --component rust-src)"
    [ "${MIRI_REQUIRED:-0}" = 0 ] || exit 2
    exit 0
fi

run() { # flags of Miri, package, arguments of cargo test
    local began=$SECONDS
    MIRIFLAGS="-Zmiri-strict-provenance $1" cargo +nightly miri test --quiet --locked --package "$2" "${@:3}"
    echo "miri: $2 ${*:3}: $((SECONDS - began)) s"
}
# Property tests look for saved cases in files.
properties='-Zmiri-disable-isolation -Zmiri-env-forward=PROPTEST_CASES'
export PROPTEST_CASES=${PROPTEST_CASES:-4}

run '' forebay-links-xdp --lib
run '' forebay-packet --lib
run '' forebay-crypto-ipsec-mb --test round_trip
[ "$extent" = full ] || exit 0
run '' forebay-links-sys --lib
run '' forebay-wire --lib
run "$properties" forebay-crypto --lib -- layout:: fault::
run "$properties" forebay-replay --lib
run "$properties" forebay-ipsec --lib -- spi_map::
# Three orders of the threads each: Miri's seed decides when they are preempted.
for seed in ${MIRI_SEEDS:-1 2 3}; do
    run "-Zmiri-seed=$seed" forebay-engine --test rust_only
done

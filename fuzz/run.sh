#!/usr/bin/env bash
# Fuzzes every target for SECONDS each (default 600), after one that must fail, so that a dead fuzzer is seen. Ends with 1
# and the name of the failing input if a target fails; `cargo +nightly fuzz run --features libfuzzer TARGET INPUT` runs it
# again.
#
#     fuzz/run.sh [SECONDS [TARGET...]]
#
# JOBS=n fuzzes so many targets at a time (default: one). With MINIMISE=1 those inputs of up to 1024 bytes that reach code
# which no seed reaches become seeds too.
#
# Nightly Rust is fetched by rustup, and cargo-fuzz is built into target/tools. Where they cannot be had this says so and
# ends with 0, or with 2 if FUZZ_REQUIRED=1 is set.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-600} jobs=${JOBS:-1}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(
    wire_ip capture sas_file gateway_file imports http_head netlink words esp_open esp_seal ah_open ah_seal
    nested bursts policies path_mtu iptfs fragments aggfrag offload
)

# Whole-program optimisation of twenty programs would take most of an hour.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

version=0.13.2 tools=$PWD/../target/tools
PATH=$tools/bin:$PATH
skip() {
    echo "fuzz: SKIPPED, $1"
    [ "${FUZZ_REQUIRED:-0}" = 0 ] || exit 2
    exit 0
}
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: fetching nightly Rust"
    { command -v rustup && rustup toolchain install nightly --profile minimal --no-self-update; } >/dev/null 2>&1 ||
        skip "nightly Rust cannot be had here (rustup toolchain install nightly)"
fi
if ! cargo fuzz --version 2>/dev/null | grep -qF "$version"; then
    echo "fuzz: building cargo-fuzz $version into target/tools"
    cargo install --quiet --locked "cargo-fuzz@$version" --root "$tools" || skip "cargo-fuzz cannot be had here"
fi

fuzz() { # target, seconds
    local folders=("corpus/$1" "seeds/$1")
    mkdir -p "corpus/$1"
    if [ "$1" = capture ] && [ -d ../../shared/corpora/malformed ]; then
        folders+=(../../shared/corpora/malformed)
    fi
    # One gibibyte of memory and five seconds an input: no parser here has reason for either.
    cargo +nightly fuzz run --features libfuzzer "$1" "${folders[@]}" -- \
        -max_total_time="$2" -max_len=4096 -rss_limit_mb=1024 -timeout=5 -use_value_profile=1 -print_final_stats=1
}

run() { # target: its figures in one line, or the end of its log and 1
    local log status=0
    log=$(mktemp)
    fuzz "$1" "$seconds" >"$log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        tail -n 60 "$log" >&2
        echo "$1 failed or was interrupted; inputs that fail are under fuzz/artifacts/$1" >&2
    else
        # libFuzzer's last line of progress has the edges covered (cov), the features and the size of the corpus.
        echo "$1: $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs," \
            "$(grep -o 'cov: [0-9]* ft: [0-9]* corp: [^ ]*' "$log" | tail -n 1)"
    fi
    rm -f "$log"
    return $status
}

cargo +nightly fuzz build --features libfuzzer
echo "must_fail: looking for what a working fuzzer finds"
if fuzz must_fail 120 >/dev/null 2>&1; then
    echo "must_fail did not fail: the fuzzer is dead" >&2
    exit 1
fi
failed=0
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || failed=1; done
    [ $failed = 0 ] || break
    run "$target" &
done
while [ -n "$(jobs -p)" ]; do wait -n || failed=1; done
[ $failed = 0 ] || exit 1

[ "${MINIMISE:-0}" = 1 ] || exit 0
for target in "${targets[@]}"; do
    # Only inputs that reach what no seed reaches are added.
    cargo +nightly fuzz run --features libfuzzer "$target" "seeds/$target" "corpus/$target" -- \
        -merge=1 -max_len=1024 -use_counters=0 >/dev/null 2>&1
    echo "$target: $(find "seeds/$target" -type f | wc -l) seeds"
done

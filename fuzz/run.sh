#!/usr/bin/env bash
# Fuzzes every target for SECONDS each (default 600), after one that must fail, so that a dead fuzzer is
# seen. Wants nightly Rust and cargo-fuzz (`cargo install cargo-fuzz --locked`). Ends with 1 and the name
# of the failing input if a target fails; `cargo +nightly fuzz run --features libfuzzer TARGET INPUT` runs it again.
#
#     fuzz/run.sh [SECONDS [TARGET...]]
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-600}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(
    wire_ip capture sas_file gateway_file imports netlink words esp_open esp_seal ah_open ah_seal
    nested bursts policies path_mtu iptfs fragments aggfrag offload
)

if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz/run.sh needs nightly Rust and cargo-fuzz: cargo install cargo-fuzz --locked" >&2
    exit 2
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

cargo +nightly fuzz build --features libfuzzer
echo "must_fail: looking for what a working fuzzer finds"
if fuzz must_fail 120 >/dev/null 2>&1; then
    echo "must_fail did not fail: the fuzzer is dead" >&2
    exit 1
fi
for target in "${targets[@]}"; do
    echo "$target: $seconds s"
    log=$(mktemp)
    if ! fuzz "$target" "$seconds" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        echo "$target failed or was interrupted; inputs that fail are under fuzz/artifacts/$target" >&2
        exit 1
    fi
    grep -E 'stat::number_of_executed_units|stat::peak_rss_mb|^Done ' "$log"
    rm -f "$log"
done

#!/usr/bin/env bash
# Mutation testing: changes the code in small ways, one at a time, and runs the tests of its crate. A change that no test
# notices is reported; .cargo/mutants.toml says which code is changed and what is left out. Crates whose tests are those of
# the crates above them are tried with these, and what these do not notice is tried once more with whole simulated gateways
# (crates/gateway/simulation), which break a rule when packets are lost, repeated or let out.
#
#   scripts/mutants.sh [PACKAGE...]        some of: drops spd reassembly iptfs replay tunnel ipsec scheduler engine sas state
#                                          worker; without any, all of them
#
# SEEDS=n runs so many simulated gateways for each (default 150; 0 leaves this out). SAMPLE=1/100 takes every hundredth mutant of each package (the whole is thousands, of some seconds to a minute each);
# SEED=n begins with the n-th. MINUTES=n ends after so many minutes, with what is done by then. What was missed is left in
# target/mutants/PACKAGE/mutants.out and target/mutants/simulated/mutants.out.
#
# Ends with 1 if fewer than LEAST percent (default 97) of the mutants that compile were caught.
set -euo pipefail
cd "$(dirname "$0")/.."
sample=${SAMPLE:-1/1} least=${LEAST:-97} seed=${SEED:-1} seeds=${SEEDS:-150}
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(drops spd reassembly iptfs replay tunnel ipsec scheduler engine sas state worker)
version=27.1.0
tool=$PWD/target/tools/bin/cargo-mutants
if ! "$tool" mutants --version 2>/dev/null | grep -qF " $version"; then
    echo "mutants: building cargo-mutants $version into target/tools"
    if ! cargo install --quiet --locked "cargo-mutants@$version" --root target/tools; then
        echo "mutants: SKIPPED, cargo-mutants cannot be had here"
        exit 0
    fi
fi
# Changes are made to a copy, which keeps what it has built: the tree itself stays as it is.
out=$PWD/target/mutants
tree=$out/tree
rm -rf "$tree" && mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard | tar --null --create --files-from=- | tar --extract --directory "$tree"
every=${sample#*/}
limit=()
[ -z "${MINUTES:-}" ] || limit=(timeout --signal=INT --kill-after=30 "$((MINUTES * 60))")

# The packages whose tests are run for a mutant of a package.
tests_of() {
    case $1 in
        drops | tunnel) echo ipsec ;;
        spd | reassembly | iptfs | replay) echo "$1" ipsec ;;
        *) echo "$1" ;;
    esac
}

# What a mutant takes is mostly building: without debug information, and of what is changed alone. Inputs that a mutant
# failed on are not kept, or they would catch others that the tests would not.
mutate() {
    local package=$1 words=() test
    for test in $(tests_of "$package"); do words+=(--test-package "forebay-$test"); done
    [ "$every" -le 1 ] || words+=(--sharding round-robin --shard "$((seed % every))/$every")
    tried "$package" --package "forebay-$package" "${words[@]}"
}
tried() { # where, arguments of cargo-mutants
    mkdir -p "$out/$1"
    (cd "$tree" && CARGO_TARGET_DIR=$out/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=1 SEEDS=$seeds \
        PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 "$tool" mutants --in-place --no-shuffle --colors never --no-times \
        --output "$out/$1" "${@:2}") || true
}
# A test program ends with its first failure, which the tests' harness knows as an option that is not stable yet.
# shellcheck disable=SC2016
printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec "$@" -Zunstable-options --fail-fast\n' >"$out/runner"
chmod +x "$out/runner"
host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
export "CARGO_TARGET_${host}_RUNNER=$out/runner"
export -f mutate tried tests_of
export out tree tool every seed seeds
for package in "${packages[@]}" simulated; do rm -rf "${out:?}/$package"; done
"${limit[@]}" bash -c 'for package in "$@"; do mutate "$package"; done' mutate "${packages[@]}" || true

of() { cat "$out/$1/mutants.out/$2.txt" 2>/dev/null || true; }
lines() { for package in "${packages[@]}"; do of "$package" "$1"; done; }
count() { lines "$1" | wc -l; }
caught=$(($(count caught) + $(count timeout))) missed=$(count missed) unviable=$(count unviable)
echo "mutants: $caught caught ($(count timeout) of them by running on), $missed missed, $unviable do not compile (sample $sample)"

# Those are named by regular expressions.
again=()
while read -r name; do again+=(--re "^$(sed 's/[^A-Za-z0-9_ ]/\\&/g' <<<"$name")\$"); done < <(lines missed)
if [ "$seeds" -gt 0 ] && [ $missed -gt 0 ]; then
    for package in "${packages[@]}"; do again+=(--package "forebay-$package"); done
    tried simulated --test-package forebay-gateway-sim "${again[@]}"
    found=$(($(of simulated caught | wc -l) + $(of simulated timeout | wc -l)))
    echo "mutants: $found of the missed are caught by simulated gateways"
    caught=$((caught + found)) missed=$((missed - found))
fi
lines missed | grep -vxF -f <(of simulated caught; of simulated timeout) || true
[ $((caught + missed)) -gt 0 ] || { echo "mutants: none was tried" >&2; exit 2; }
[ $((100 * caught)) -ge $((least * (caught + missed))) ] || exit 1

#!/usr/bin/env bash
# Mutation testing: changes the code in small ways, one at a time, and runs the tests of its crate. A change that no test
# notices is reported; .cargo/mutants.toml says which code is changed and what is left out. Crates whose tests are those of
# the crates above them are tried with these.
#
#   scripts/mutants.sh [PACKAGE...]        some of: drops spd reassembly iptfs replay tunnel ipsec scheduler engine sas state
#                                          worker; without any, all of them
#
# SAMPLE=1/100 takes every hundredth mutant of each package (the whole is thousands, of some seconds to a minute each);
# SEED=n begins with the n-th. MINUTES=n ends after so many minutes, with what is done by then. What was missed is left in
# target/mutants/PACKAGE/mutants.out.
#
# Ends with 1 if fewer than LEAST percent (default 97) of the mutants that compile were caught.
set -euo pipefail
cd "$(dirname "$0")/.."
sample=${SAMPLE:-1/1} least=${LEAST:-97} seed=${SEED:-1}
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
# Changes are made to a copy: the tree itself stays as it is. What was built of an earlier copy may be a mutant, so that all
# files count as new.
out=$PWD/target/mutants
tree=$out/tree
rm -rf "$tree" && mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard | tar --null --create --files-from=- | tar --extract --touch --directory "$tree"
every=${sample#*/}
limit=()
[ -z "${MINUTES:-}" ] || limit=(timeout --signal=INT --kill-after=30 "$((MINUTES * 60))")

# The packages whose tests are run for a mutant of a package.
tests_of() {
    case $1 in
        tunnel) echo ipsec ;;
        drops | spd | reassembly | iptfs | replay) echo "$1" ipsec ;;
        *) echo "$1" ;;
    esac
}

# What a mutant takes is mostly building: without debug information, and of what is changed alone. Inputs that a mutant
# failed on are not kept, or they would catch others that the tests would not.
mutate() {
    local package=$1 words test
    words=(mutants --in-place --no-shuffle --colors never --no-times --output "$out/$package" --package "forebay-$package")
    for test in $(tests_of "$package"); do words+=(--test-package "forebay-$test"); done
    [ "$every" -le 1 ] || words+=(--sharding round-robin --shard "$((seed % every))/$every")
    mkdir -p "$out/$package"
    (cd "$tree" && CARGO_TARGET_DIR=$out/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=1 \
        PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 "$tool" "${words[@]}") || true
}
# A test program ends with its first failure, which the tests' harness knows as an option that is not stable yet.
# shellcheck disable=SC2016
printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec "$@" -Zunstable-options --fail-fast\n' >"$out/runner"
chmod +x "$out/runner"
host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
export "CARGO_TARGET_${host}_RUNNER=$out/runner"
export -f mutate tests_of
export out tree tool every seed
for package in "${packages[@]}"; do rm -rf "${out:?}/$package"; done
"${limit[@]}" bash -c 'for package in "$@"; do mutate "$package"; done' mutate "${packages[@]}" || true

lines() { for package in "${packages[@]}"; do cat "$out/$package/mutants.out/$1.txt" 2>/dev/null || true; done; }
count() { lines "$1" | wc -l; }
caught=$(($(count caught) + $(count timeout))) missed=$(count missed) unviable=$(count unviable)
echo "mutants: $caught caught ($(count timeout) of them by running on), $missed missed, $unviable do not compile (sample $sample)"
lines missed
[ $((caught + missed)) -gt 0 ] || { echo "mutants: none was tried" >&2; exit 2; }
[ $((100 * caught)) -ge $((least * (caught + missed))) ] || exit 1

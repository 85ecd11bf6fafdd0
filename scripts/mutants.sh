#!/usr/bin/env bash
# Mutation testing: changes the code in small ways, one at a time, and runs the tests of its crate. A change that no test
# notices is reported; .cargo/mutants.toml says which code is changed and what is left out.
#
#   scripts/mutants.sh [PACKAGE...]        some of: drops spd reassembly iptfs replay tunnel ipsec scheduler engine sas state
#                                          worker; without any, all of them
#
# SAMPLE=1/100 takes about every hundredth mutant (the whole is thousands, of some seconds to a minute each); SEED=n takes
# others. MINUTES=n ends after so many minutes, with what is done by then. The list of what was missed is left in
# target/mutants/mutants.out.
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
# Changes are made to a copy, which keeps what it has built: the tree itself stays as it is.
out=$PWD/target/mutants
tree=$out/tree
rm -rf "$tree" && mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard | tar --null --create --files-from=- | tar --extract --directory "$tree"
words=(mutants --in-place --no-shuffle --colors never --no-times --output "$out")
for package in "${packages[@]}"; do words+=(--package "forebay-$package"); done
every=${sample#*/}
[ "$every" -le 1 ] || words+=(--sharding round-robin --shard "$((seed % every))/$every")
limit=()
[ -z "${MINUTES:-}" ] || limit=(timeout --signal=INT --kill-after=30 "$((MINUTES * 60))")
(cd "$tree" && CARGO_TARGET_DIR=$out/build "${limit[@]}" "$tool" "${words[@]}") || true

result=$out/mutants.out
count() { if [ -e "$result/$1.txt" ]; then wc -l <"$result/$1.txt"; else echo 0; fi; }
caught=$(($(count caught) + $(count timeout))) missed=$(count missed) unviable=$(count unviable)
echo "mutants: $caught caught, $missed missed, $unviable do not compile (sample $sample)"
cat "$result/missed.txt" 2>/dev/null || true
[ $((caught + missed)) -gt 0 ] || { echo "mutants: none was tried" >&2; exit 2; }
[ $((100 * caught)) -ge $((least * (caught + missed))) ] || exit 1

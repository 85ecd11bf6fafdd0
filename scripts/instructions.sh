#!/bin/sh
# Counts the instructions that the data path takes per packet, and compares with the recorded counts.
#
#   scripts/instructions.sh            compare; fails where a count is over the recorded one by more than 3 %
#   scripts/instructions.sh --update   record the counts of this tree
#
# Instructions and not time, because a shared machine's time says little and its instructions do not
# change from run to run. The crypto library chooses its code by the processor, and valgrind shows it
# an old one; so the library's instructions are counted separately, and only ours are compared.
#
# TOLERANCE: percent. PACKETS: per run; each case is run with as many and with twice as many, and the
# difference counts. CARGO_TARGET_DIR is heeded.
set -eu
cd "$(dirname "$0")/.."

if ! command -v valgrind > /dev/null; then
    echo 'instructions: skipped, there is no valgrind (Debian: apt-get install valgrind)'
    exit 0
fi
cargo build --release --locked --quiet --package forebay-engine --example hot_path
exec python3 scripts/instructions.py "${CARGO_TARGET_DIR:-target}/release/examples/hot_path" "$@"

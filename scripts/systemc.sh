#!/bin/sh
# The simulator beside SystemC: the host model of tests/systemc/host.cpp on the same packets, in turns, so that
# a machine that changes its speed changes it for both. Prints packets a second of both and how far their
# figures agree.
#
#   scripts/systemc.sh FOREBAY [PACKETS] [ROUNDS]
set -eu
cd "$(dirname "$0")/.."
forebay=${1:?usage: scripts/systemc.sh FOREBAY [PACKETS] [ROUNDS]}
packets=${2:-1000000}
rounds=${3:-5}
cards=2
rate=1000000000

if ! command -v c++ >/dev/null || ! printf '#include <systemc>\nint sc_main(int, char **) { return 0; }\n' |
    c++ -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
    echo 'systemc: skipped, there is no SystemC here (Debian: apt-get install g++ libsystemc-dev)'
    exit 0
fi
python3=$(command -v python3) || { echo 'systemc: skipped, it wants python3'; exit 0; }

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT INT TERM
c++ -O3 -march=native -DNDEBUG -std=c++17 tests/systemc/host.cpp -o "$run/host" -lsystemc
"$python3" scripts/systemc.py "$forebay" "$run" "$packets" "$rounds" "$cards" "$rate"

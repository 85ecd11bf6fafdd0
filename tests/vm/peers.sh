#!/usr/bin/env bash
# Every event with other people's IKE daemons, then a thousand rekeys with one, and the table of docs/interop.md. Hours.
#
#   tests/vm/peers.sh FOREBAY all|PEER,...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
results=$(realpath "$here/../..")/target/vm/peers.json
python=/usr/bin/python3
[ -x "$python" ] || python=python3
mkdir -p "${results%/*}"
status=0
"$python" "$here/peers.py" "$1" --peers "$2" --json "$results" --merge || status=$?
[ "$2" != all ] || "$python" "$here/peers.py" "$1" --rekeys 1000 --json "$results" --merge || status=$?
[ ! -e "$results" ] || "$python" "$here/peers.py" --table "$results"
exit $status

#!/usr/bin/env bash
# Forebay against Linux's own IPsec and strongSwan, in virtual machines of software emulation.
#
#   tests/vm/interop.sh FOREBAY FOLLOW quick|full
#
# FOREBAY is the command; FOLLOW is the example of crates/dataplane/xfrm. Needs root, or user namespaces that anybody may make;
# what is missing is said and skipped.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
forebay=$(realpath "$1") follow=$(realpath "$2") extent=$3
python=/usr/bin/python3
[ -x "$python" ] || python=python3
quick=()
[ "$extent" = quick ] && quick=(--quick)

run() { # seconds, script, arguments
    local seconds=$1
    shift
    timeout --kill-after=10 "$seconds" "$python" "$here/$1" "${@:2}"
}

small=$(mktemp -d)
trap 'rm -rf "$small"' EXIT
strip -o "$small/follow" "$follow"

run 300 wire.py "$forebay" "${quick[@]}"
run 900 interop.py "$forebay" "${quick[@]}"
run 300 mirror.py "$small/follow"
run 300 ike_mirror.py "$small/follow"
run 300 policies.py "$forebay"
run 600 ike_gateway.py "$forebay" --rekeys "$([ "$extent" = quick ] && echo 10 || echo 100)"
run 300 ike_gateway.py "$forebay" --rekeys 10 --queues 2
run 600 ike_gateway.py "$forebay" --encap --rekeys 10
for way in "psk udp" "cert udp" "psk raw"; do
    [ "$extent" = full ] || [ "$way" = "cert udp" ] || continue
    run 600 tunnel_new.py "$forebay" --ike "${way% *}" --link "${way#* }"
done
run 900 kernel_sas.py "$forebay" --sas "$([ "$extent" = quick ] && echo 1000 || echo 10000)"
run 600 pair_power.py "$forebay"
run 600 ike_takeover.py "$forebay"
"$python" "$here/test_peer_table.py"
run 2400 peers.py "$forebay" --events short # fetches packages of another release at first

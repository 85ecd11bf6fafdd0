#!/usr/bin/env bash
# The Verilog cores in simulation: published vectors and random jobs, what scapy and tshark say of packets that each has sealed, and
# two gateways whose packets go to a core of the CPU and an engine in turn. Needs Verilator and namespaces (scripts/setup.sh
# hardware lab).
#
#   scripts/rtl.sh [vm]      with vm: Linux in a virtual machine as the peer too
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO_TARGET_DIR:=target}" "${JOBS:=10000}"

JOBS=$JOBS cargo test --locked --package forebay-crypto-rtl
cargo test --locked --package forebay-processors --features rtl --lib
cargo build --locked --package forebay-cli --features rtl --bin forebay
forebay=$CARGO_TARGET_DIR/debug/forebay
processors='[[bus]]
[[processor]]
kind = "core"
'
for core in esp-ctr-sha1 esp-cbc-sha256 esp-3des-sha1 esp-gcm esp-chacha20poly1305; do
    scripts/device_interop.sh "$forebay" "rtl:$core"
    processors+="[[processor]]
kind = \"rtl\"
name = \"$core\"
core = \"$core\"
"
done
processors+='[scheduler]
policy = "round-robin"
'
PROCESSORS=$processors scripts/lab.sh "$forebay" run tests/gateway/two_sites.py
if [ "${1:-}" = vm ]; then
    python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    timeout --kill-after=10 1800 "$python" tests/vm/interop.py "$forebay" --quick --processors "$processors"
fi

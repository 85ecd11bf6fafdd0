#!/usr/bin/env bash
# Crypto devices by DPDK: published vectors and random jobs on DPDK's software devices, and two gateways whose packets go to
# them in turn. Needs libdpdk-dev and namespaces (scripts/setup.sh dpdk).
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO_TARGET_DIR:=target}"

cargo test --locked --package forebay-crypto-dpdk
cargo build --locked --package forebay-cli --features dpdk --bin forebay
PROCESSORS='[[processor]]
kind = "core"
[[processor]]
kind = "dpdk"
name = "multi-buffer"
device = "crypto_aesni_mb0"
[[processor]]
kind = "dpdk"
name = "openssl"
device = "crypto_openssl0"
[scheduler]
policy = "round-robin"
' scripts/lab.sh "$CARGO_TARGET_DIR/debug/forebay" run tests/gateway/two_sites.py

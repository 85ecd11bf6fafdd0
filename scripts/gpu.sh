#!/usr/bin/env bash
# GPUs: published vectors and random jobs, sessions, faults, and two gateways whose packets go to a core and a GPU in turn. Where
# there is no GPU, pocl computes what one would on the CPU. Needs an OpenCL device and namespaces (scripts/setup.sh gpu lab).
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO_TARGET_DIR:=target}"

cargo test --locked --package forebay-crypto-gpu
cargo build --locked --package forebay-cli --features gpu --bin forebay
scripts/device_interop.sh "$CARGO_TARGET_DIR/debug/forebay" gpu:0
PROCESSORS='[[processor]]
kind = "core"
[[processor]]
kind = "gpu"
[scheduler]
policy = "round-robin"
' scripts/lab.sh "$CARGO_TARGET_DIR/debug/forebay" run tests/gateway/two_sites.py

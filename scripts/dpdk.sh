#!/usr/bin/env bash
# DPDK. Crypto devices: published vectors, random jobs and faults on DPDK's software devices, and two gateways whose packets go to
# the devices in turn. Links: tests of the link with virtual network devices, two gateways over them, and what goes wrong behind one. The
# shim's tests run under the address and undefined behaviour sanitizers as well. Last, where QEMU is installed (software emulation): a
# guest behind vhost-user and containers behind memif with Linux as peer (six minutes), and virtio-crypto in a virtual machine (two
# minutes). Needs libdpdk-dev and namespaces (scripts/setup.sh dpdk lab, and vm for the virtual machine).
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO_TARGET_DIR:=target}"

cargo test --locked --package forebay-crypto-dpdk --features faults
cargo test --locked --package forebay-links-dpdk

# The sanitizers' libraries have to come first in the program. Memory that stays is leaks.rs's to find: DPDK keeps some.
library() { cc -print-file-name="$1"; }
if [ -e "$(library libasan.so)" ] && [ -e "$(library libubsan.so)" ]; then
    host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
    env FOREBAY_DPDK_SANITIZE=address,undefined \
        "CARGO_TARGET_${host}_RUNNER=env LD_PRELOAD=$(library libasan.so):$(library libubsan.so) \
ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1" \
        cargo test --locked --package forebay-crypto-dpdk --features faults --test faults --test sessions --test vectors
    env FOREBAY_DPDK_SANITIZE=address,undefined \
        "CARGO_TARGET_${host}_RUNNER=env LD_PRELOAD=$(library libasan.so):$(library libubsan.so) \
ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1" \
        cargo test --locked --package forebay-links-dpdk --tests
else
    echo "dpdk: SKIPPED the sanitizers, whose libraries are not here (Debian: libgcc-12-dev)"
fi

cargo build --locked --package forebay-cli --features dpdk --bin forebay
for device in crypto_aesni_mb0 crypto_openssl0; do
    scripts/device_interop.sh "$CARGO_TARGET_DIR/debug/forebay" "dpdk:$device"
done
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
scripts/lab.sh "$CARGO_TARGET_DIR/debug/forebay" run tests/gateway/dpdk.py
timeout --kill-after=10 300 scripts/lab.sh "$CARGO_TARGET_DIR/debug/forebay" run tests/gateway/port_faults.py
timeout --kill-after=10 900 tests/vm/ports.py "$CARGO_TARGET_DIR/debug/forebay"
timeout 900 tests/vm/virtio_crypto.py "$CARGO_TARGET_DIR/debug/forebay"

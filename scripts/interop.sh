#!/usr/bin/env bash
# Forebay against other people's software: scapy and tshark, in processes of their own.
#
#   scripts/interop.sh target/debug/forebay quick|full
set -euo pipefail

forebay=$1
extent=$2
here=$(cd "$(dirname "$0")/.." && pwd)
python=/usr/bin/python3 # Debian's own, which sees Debian's scapy
[ -x "$python" ] || python=python3

if ! "$python" -c 'import scapy.layers.ipsec, cryptography' 2>/dev/null; then
    echo "interop: SKIPPED, scapy is not installed (scripts/setup.sh test)"
    exit 0
fi
quick=()
[ "$extent" = quick ] && quick=(--quick)
"$python" "$here/tests/interop/scapy_matrix.py" --forebay "$forebay" "${quick[@]}"
"$python" "$here/tests/interop/ah_matrix.py" --forebay "$forebay"

# The embedded firmware, built for this machine, and the core's own program under qemu.
make -s -C "$here/firmware" build/ipsec-host
firmware=("$here/firmware/build/ipsec-host")
if command -v qemu-riscv32 >/dev/null; then
    firmware+=("qemu-riscv32 $here/firmware/prebuilt/ipsec-plain.elf")
else
    echo "interop: the firmware under qemu SKIPPED, qemu-riscv32 is not installed (scripts/setup.sh test)"
fi
for command in "${firmware[@]}"; do
    "$python" "$here/tests/interop/firmware_matrix.py" --firmware "$command" --forebay "$forebay" "${quick[@]}" \
        --vectors "$here/../shared/corpora/esp-ah/vectors.jsonl"
done

if ! command -v tshark >/dev/null; then
    echo "interop: tshark SKIPPED, it is not installed (scripts/setup.sh test)"
    exit 0
fi
"$python" "$here/tests/interop/tshark_icv.py" --forebay "$forebay"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$forebay" demo --out "$work" --repeat 1 --comparison 0 --json >/dev/null
"$python" "$here/tests/interop/tshark_icv.py" --sealed "$work/sealed.pcapng" --esp-sa "$work/esp_sa"

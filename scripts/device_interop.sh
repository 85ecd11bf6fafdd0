#!/usr/bin/env bash
# Packets that a device has sealed, to scapy and tshark, and scapy's packets to the device.
#
#   scripts/device_interop.sh FOREBAY DEVICE      such as target/debug/forebay gpu:0
set -euo pipefail
cd "$(dirname "$0")/.."
forebay=$(realpath "$1") device=$2
python=/usr/bin/python3 # Debian's own, which sees Debian's scapy
[ -x "$python" ] || python=python3
if ! "$python" -c 'import scapy.layers.ipsec, cryptography' 2>/dev/null; then
    echo "interop: SKIPPED, scapy is not installed (scripts/setup.sh test)"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/forebay" <<END
#!/bin/sh
case \$1 in
seal | open) command=\$1 && shift && exec "$forebay" "\$command" --device "$device" "\$@" ;;
*) exec "$forebay" "\$@" ;;
esac
END
chmod +x "$work/forebay"
"$python" tests/interop/scapy_matrix.py --forebay "$work/forebay" --quick
if command -v tshark >/dev/null; then
    "$python" tests/interop/tshark_icv.py --forebay "$work/forebay"
else
    echo "interop: tshark SKIPPED, it is not installed (scripts/setup.sh test)"
fi
echo "interop: $device agrees with scapy and tshark"

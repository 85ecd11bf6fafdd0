#!/usr/bin/env bash
# Forebay on arm64, in user-mode emulation on x86-64 or as it is on arm64.
#
#   scripts/test_arm64.sh [FOREBAY]
#
# 1. The published vectors and the tests of the crypto backend (AWS-LC, with the arm64 code that the emulated processor
#    has instructions for: NEON, AES, SHA), of the engine and of checksums.
# 2. Captures: the arm64 command and FOREBAY (the x86-64 command, which uses libipsec-mb; by default target/debug/forebay,
#    which is built) each open what the other has sealed, to the same bytes.
# 3. Errors for what only x86-64 has.
#
# `scripts/setup.sh cross-arm64` installs what it uses.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" != --inside ]; then
    if [ $# -eq 0 ]; then
        cargo build --quiet --locked --package forebay-cli --bin forebay
        set -- "${CARGO_TARGET_DIR:-target}/debug/forebay"
    fi
    exec scripts/cross.sh arm64 "$0" --inside "$(realpath "$1")"
fi
reference=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "arm64: $*" >&2; exit 1; }
began=$SECONDS
lap() { echo "arm64: $1: $((SECONDS - began)) s"; began=$SECONDS; }

crypto=(--package forebay-crypto --package forebay-crypto-aws-lc --package forebay-crypto-ipsec-mb --package forebay-links-sys)
engine=(--package forebay-engine --lib --test suite)
for test in crates/dataplane/engine/tests/*.rs; do
    # Packets come in real time there, and in emulation the cores are many times slower beside emulated cards than bounds
    # on losses assume.
    [ "$(basename "$test")" = faults.rs ] && [ -n "${FOREBAY_RUN:-}" ] && continue
    engine+=(--test "$(basename "$test" .rs)")
done
cargo test --locked --no-run "${crypto[@]}"
cargo test --locked --no-run "${engine[@]}"
cargo build --locked --package forebay-cli --bin forebay
lap 'built'

cargo test --quiet --locked "${crypto[@]}"
cargo test --quiet --locked "${engine[@]}"
lap 'vectors, checksums, engine'

read -ra run <<<"${FOREBAY_RUN:-}"
run+=("${CARGO_TARGET_DIR:-target}/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}debug/forebay")

hex() { printf '%02x' $(seq "$1" $(($1 + $2 - 1))); } # bytes from, how many
sa() { # direction, proposal, bytes of key with salt, bytes of key of integrity
    local local=192.0.2.1 remote=192.0.2.2
    [ "$1" = out ] || { local=192.0.2.2 remote=192.0.2.1; }
    printf '[[sa]]\nname = "%s"\ndirection = "%s"\nspi = 0x1001\nproposal = "%s"\nlocal = "%s"\nremote = "%s"\nkey = "%s"\n' \
        "$2" "$1" "$2" "$local" "$remote" "$(hex 1 "$3")"
    [ "$4" = 0 ] || echo "auth_key = \"$(hex 101 "$4")\""
}
export XDG_STATE_HOME=$work/state
arm() { "${run[@]}" "$@"; }
same() { cmp -s "$work/$1" "$work/$2" || fail "$proposal: $1 and $2 differ"; }

plain=demo/traffic.pcap
while read -r proposal key auth; do
    for direction in out in; do
        sa $direction "$proposal" "$key" "$auth" >"$work/$direction.toml"
    done
    chmod 600 "$work"/*.toml
    "$reference" seal --sas "$work/out.toml" "$plain" -o "$work/x86.pcap" >"$work/x86.seal"
    arm seal --sas "$work/out.toml" "$plain" -o "$work/arm.pcap" >"$work/arm.seal"
    "$reference" open --sas "$work/in.toml" "$work/x86.pcap" -o "$work/x86-by-x86.pcap" >"$work/opened"
    "$reference" open --sas "$work/in.toml" "$work/arm.pcap" -o "$work/arm-by-x86.pcap" >"$work/opened"
    arm open --sas "$work/in.toml" "$work/x86.pcap" -o "$work/x86-by-arm.pcap" >"$work/opened"
    same arm-by-x86.pcap x86-by-x86.pcap
    same x86-by-arm.pcap x86-by-x86.pcap
    echo "arm64: $proposal: $(sed 's/ to .*//' "$work/opened"), sealed and opened alike"
done <<'END'
aes128gcm16 20 0
aes256gcm16 36 0
chacha20poly1305 36 0
aes128ccm16 19 0
aes128-sha256 16 32
aes256-sha512 32 64
3des-sha1 24 20
END
lap 'captures'

# What only x86-64 has is refused by name, with what to use instead.
expect() { # text, what was said, which may be broken into lines
    LC_ALL=C tr -cs '[:graph:]' ' ' <<<"$2" | grep -qF -e "$1" || fail "not '$1' but: $2"
}
said=$(arm seal --backend ipsec-mb --sas "$work/out.toml" "$plain" -o "$work/never.pcap" 2>&1) &&
    fail "--backend ipsec-mb is accepted"
expect 'libipsec-mb is for x86-64' "$said"
expect '--backend aws-lc' "$said"
mkdir "$work/keys"
hex 1 20 >"$work/keys/east-out.key"
hex 2 20 >"$work/keys/east-in.key"
printf '[[processor]]\nkind = "core"\nbackend = "ipsec-mb"\n' | cat packaging/gateway.toml - >"$work/gateway.toml"
chmod 600 "$work"/keys/*
expect 'libipsec-mb is for x86-64' "$(arm check --config "$work/gateway.toml" 2>&1)"
echo "arm64: ok"

#!/usr/bin/env bash
# Runs a command with what builds for another architecture than this machine's, and runs what was built.
#
#   scripts/cross.sh ARCHITECTURE COMMAND [ARGUMENT...]
#
# ARCHITECTURE is Debian's word for it: this machine's own, for which nothing is set, or arm64 on x86-64. Then the command
# has, in its environment:
#
#   CARGO_BUILD_TARGET   the target's triple: cargo builds for it, into target/TRIPLE
#   STRIP                strip(1) for the target's programs
#   FOREBAY_RUN          what to put in front of the target's programs to run them here
#
# `scripts/setup.sh cross-arm64` installs what it uses.
set -euo pipefail

[ $# -ge 2 ] || { sed -n 's/^#   \(scripts\)/usage: \1/p' "$0" >&2; exit 2; }
arch=$1 && shift

case "$(uname -m)" in
x86_64) own=amd64 ;;
aarch64) own=arm64 ;;
*) own=$(uname -m) ;;
esac
if [ "$arch" = "$own" ]; then
    exec "$@"
fi
if [ "$own-$arch" != amd64-arm64 ]; then
    echo "cross: cannot build for '$arch' on $own; use ARCH=$own$([ $own != amd64 ] || echo ' or ARCH=arm64')" >&2
    exit 2
fi

triple=aarch64-unknown-linux-gnu tools=aarch64-linux-gnu
for tool in "$tools-gcc" "$tools-strip"; do
    if ! command -v "$tool" >/dev/null; then
        echo "cross: $tool is not installed; run: scripts/setup.sh cross-$arch" >&2
        exit 2
    fi
done
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then
    echo "cross: Rust's standard library for $triple is not installed; run: rustup target add $triple" >&2
    exit 2
fi
export CARGO_BUILD_TARGET=$triple STRIP=$tools-strip
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$tools-gcc
# Debian's cross libc6 is below /usr/aarch64-linux-gnu, where qemu looks for the dynamic linker and libraries.
export FOREBAY_RUN="qemu-aarch64 -L /usr/$tools"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$FOREBAY_RUN
exec "$@"

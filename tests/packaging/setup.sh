#!/usr/bin/env bash
# What scripts/setup.sh says on machines whose compiler is missing or too old. Nothing is installed: all programs are made up.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
for tool in bash sh dirname sed sort head tail awk uname env cat grep printf; do ln -s "$(command -v "$tool")" "$work/bin/"; done

program() { # name, what it prints
    printf '#!/bin/sh\ncat <<END\n%s\nEND\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
expect() { # what is said
    local said
    if said=$(PATH="$work/bin" bash scripts/setup.sh 2>&1); then
        [ "$1" = good ] && return
        echo "setup: it went on: $said" >&2 && exit 1
    fi
    [[ $said == *"$1"* ]] && [ "$(wc -l <<<"$said")" -le 2 ] || { echo "setup: '$said', not '$1'" >&2 && exit 1; }
}

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
expect "cargo is missing; Forebay needs Rust $needed or newer, make and a C compiler. To install Rust: curl"
program cargo 'cargo 1.63.0'
program rustc 'rustc 1.63.0 (4b91a6ea7 2022-08-08)'
expect "Rust 1.63.0 is too old; Forebay needs $needed or newer. To install it: curl"
program apt-cache ' rustc | 1.63.0+dfsg1-2 | http://deb.debian.org/debian bookworm/main amd64 Packages'
expect 'To install it: curl'
program apt-cache ' rustc-web | 1.99.0+dfsg1-1~deb12u1 | http://deb.debian.org/debian bookworm/main amd64 Packages'
expect 'To install it: apt-get install rustc-web cargo-web'
program apt-cache ' rustc | 1.99.0+dfsg1-1~bpo13+1 | http://deb.debian.org/debian trixie-backports/main amd64 Packages'
expect 'To install it: apt-get install -t trixie-backports rustc cargo'
program apt-cache ' rustup | 1.27.1-3 | http://deb.debian.org/debian trixie/main amd64 Packages'
expect 'To install it: apt-get install rustup && rustup default stable'
program apt-cache ' rustc | 1.75.0+dfsg0ubuntu1-0ubuntu7 | http://archive.ubuntu.com/ubuntu noble/main amd64 Packages
rustc-1.76
rustc-1.99
rustc-1.85'
expect 'To install it: apt-get install rustc-1.99 cargo-1.99 && export PATH=/usr/lib/rust-1.99/bin:$PATH'
program rustc 'rustc 1.99.0-nightly (4b91a6ea7 2022-08-08)'
expect 'cc is missing; Forebay needs a C compiler'
program cc ''
expect good
program rustc "rustc $needed.0"
expect good
echo "setup: a missing, an old and a new compiler"

#!/usr/bin/env bash
# Installs the Debian packages that are missing, where it may; says what to do where it may not.
#
#   scripts/setup.sh build          the library for fast crypto on x86-64
#   scripts/setup.sh build test     and the peers of the tests: scapy, tshark, valgrind, jsonschema, qemu's RISC-V
#   scripts/setup.sh dpdk           DPDK's headers and libraries, for crypto devices and links
#   scripts/setup.sh dpdk-bench     and its own benchmark of them
#   scripts/setup.sh gpu            OpenCL, and pocl, a device of it that computes on the CPU
#   scripts/setup.sh lab            what the laboratory of namespaces uses
#   scripts/setup.sh routing        FRR and keepalived, for cluster.py --bgp and pair.py --vrrp
#   scripts/setup.sh bench          what the gateways' benchmark measures with
#   scripts/setup.sh browser        Chromium and Firefox, which look at reports, the playground and the live page
#   scripts/setup.sh hdtv           GStreamer, and perf to see where time goes
#   scripts/setup.sh python         virtual environments, for the Python package
#   scripts/setup.sh vm             what virtual machines of Linux are made with
#   scripts/setup.sh deb            cargo-deb, in target/tools
#   scripts/setup.sh userlands      what makes roots of Debian and Ubuntu, in which packages are tried
#   scripts/setup.sh hardware       Verilator, yosys and nextpnr, for the cores in Verilog
#   scripts/setup.sh docs           mdBook, which makes the site of the documentation
#   scripts/setup.sh cross-arm64    what builds for arm64 on x86-64, and runs it: Rust's library, a C compiler, qemu
#
# Nothing here is needed to build or run: without libipsec-mb the portable backend does all crypto,
# and tests whose peer is missing say that they were skipped.
set -euo pipefail

declare -A PACKAGES=(
    [build]=""
    [test]="python3-scapy python3-cryptography python3-jsonschema tshark valgrind iproute2 iputils-ping procps ethtool nftables mandoc groff qemu-user binutils-riscv64-unknown-elf"
    [dpdk]="libdpdk-dev pkg-config"
    [dpdk-bench]="dpdk-dev"
    [gpu]="ocl-icd-libopencl1 pocl-opencl-icd"
    [lab]="iproute2 iputils-ping procps iperf3 openssl umoci crun"
    [routing]="frr keepalived"
    [hdtv]="gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gir1.2-gst-plugins-base-1.0 python3-gi python3-gst-1.0 linux-perf iproute2 procps"
    [bench]="python3 iproute2 procps iperf3 iputils-ping wireguard-tools util-linux"
    [browser]="chromium firefox-esr"
    [deb]="dpkg-dev lintian"
    [userlands]="mmdebstrap gpgv debian-archive-keyring iproute2 iputils-ping nftables util-linux"
    [docs]="mdbook"
    [python]="python3-venv"
    [hardware]="verilator yosys iverilog nextpnr-ice40 qflow-tech-osu018 g++ make python3 python3-cryptography zlib1g-dev"
    [cross-arm64]="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
    [vm]="qemu-system-x86 debootstrap gpgv cpio xz-utils debian-archive-keyring binutils iproute2 gcc libc6-dev util-linux"
)
case "$(uname -m)" in
x86_64) PACKAGES[build]="libipsec-mb-dev" ;;
aarch64) # Nothing is crossed to this architecture.
    PACKAGES[cross-arm64]=""
    echo "setup: arm64: building with the portable crypto backend (libipsec-mb is for x86-64)" ;;
*) echo "setup: $(uname -m): building with the portable crypto backend (libipsec-mb is for x86-64)" ;;
esac

# These are often there from elsewhere, newer.
command -v go >/dev/null || PACKAGES[bench]+=" golang-go"
command -v perf >/dev/null || PACKAGES[bench]+=" linux-perf"

here=$(cd "$(dirname "$0")/.." && pwd)
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$here/Cargo.toml")
reaches() { [ "$(printf '%s\n' "$needed" "$1" | sort -V | head -1)" = "$needed" ]; } # version

# Where a compiler that is new enough can be had here: the distribution's packages, if they serve, else rustup.
rust_from() {
    local package version origin newest
    if command -v apt-cache >/dev/null; then
        # Ubuntu has newer compilers beside its own, each in a package and a folder with its version.
        newest=$(apt-cache pkgnames rustc-1. 2>/dev/null | sed -n 's/^rustc-\(1\.[0-9]*\)$/\1/p' | sort -V | tail -1)
        while IFS='| ' read -r package version origin; do
            version=${version%%[+~-]*}
            case $package in
            rustc-web) reaches "$version" && echo "apt-get install rustc-web cargo-web" && return ;;
            rustc) reaches "$version" && [[ $origin != *backports* ]] && echo "apt-get install rustc cargo" && return
                reaches "$version" && echo "apt-get install -t $(sed -n 's/.* \([a-z]*-backports\).*/\1/p' <<<"$origin") rustc cargo" && return ;;
            versioned) [ -n "$newest" ] && reaches "$newest" &&
                echo "apt-get install rustc-$newest cargo-$newest && export PATH=/usr/lib/rust-$newest/bin:\$PATH" && return ;;
            rustup) echo "apt-get install rustup && rustup default stable" && return ;;
            esac
        done < <(apt-cache madison rustc rustc-web 2>/dev/null; echo " versioned | 0 | "; apt-cache madison rustup 2>/dev/null)
    fi
    echo "curl --proto '=https' -sSf https://sh.rustup.rs | sh"
}

if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    echo "setup: cargo is missing; Forebay needs Rust $needed or newer, make and a C compiler. To install Rust: $(rust_from)" >&2
    exit 2
fi
found=$(rustc --version 2>/dev/null | awk '{ print $2 }')
if ! reaches "${found:-0}"; then
    echo "setup: Rust ${found:-of an unknown version} is too old; Forebay needs $needed or newer. To install it: $(rust_from)" >&2
    exit 2
fi
if ! command -v cc >/dev/null; then
    compiler="a C compiler (gcc, with make)"
    command -v apt-get >/dev/null && compiler="apt-get install gcc libc6-dev make"
    command -v dnf >/dev/null && compiler="dnf install gcc make"
    echo "setup: cc is missing; Forebay needs a C compiler. To install it: $compiler" >&2
    exit 2
fi

cargo_deb=3.8.0
if [[ " $* " == *" deb "* ]] && ! target/tools/bin/cargo-deb --version 2>/dev/null | grep -qx "\(cargo-deb \)\?$cargo_deb"; then
    echo "setup: building cargo-deb $cargo_deb into target/tools"
    cargo install --quiet --locked "cargo-deb@$cargo_deb" --root target/tools
fi

triple=aarch64-unknown-linux-gnu
if [[ " $* " == *" cross-arm64 "* ]] && ! [ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then
    if command -v rustup >/dev/null; then
        echo "setup: fetching Rust's standard library for $triple"
        rustup target add "$triple" 2>/dev/null ||
            echo "setup: it cannot be had here; going on without (rustup target add $triple)"
    else
        echo "setup: Rust's standard library for $triple is missing, and there is no rustup to fetch it; going on without"
    fi
fi

missing=()
for group in "$@"; do
    for package in ${PACKAGES[$group]}; do
        if command -v dpkg-query >/dev/null &&
            [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ]; then
            continue
        fi
        missing+=("$package")
    done
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
    echo "setup: no apt-get here; going on without: ${missing[*]}"
    exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        as_root=(sudo)
    else
        echo "setup: these packages are missing and only root can install them; going on without. To install:"
        echo "    sudo apt-get install --no-install-recommends ${missing[*]}"
        exit 0
    fi
fi

export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq || echo "setup: the package lists could not be updated; trying with what is there"
for package in "${missing[@]}"; do
    echo "setup: installing $package"
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
        echo "setup: $package cannot be had here; going on without"
done

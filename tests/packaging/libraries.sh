#!/usr/bin/env bash
# A library that is installed after the first build is found by the next one, one that is missing has nothing compiled twice, and
# one that is too old is left alone.
# The directories of the library are hidden in a namespace of mounts; SKIPPED where none can be made.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! unshare --mount true 2>/dev/null; then
    echo "libraries: SKIPPED, it needs a namespace of mounts: run it as root"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/prefix" "$work/empty"
touch "$work/status"

# Says whether the package was compiled: with the library hidden, and a list of packages of our own.
built() {
    unshare --mount bash -c 'mount --bind "$1/empty" /usr/include && mount --bind "$1/status" /var/lib/dpkg/status &&
        exec cargo build --offline --locked --package ipsec-mb-sys --target-dir "$1/target" 2>&1' - "$work" |
        grep -c 'Compiling ipsec-mb-sys' || true
}
expect() { [ "$(built)" = "$1" ] || { echo "libraries: $2" >&2 && exit 1; }; }
[ "$(uname -m)" = x86_64 ] || { echo "libraries: SKIPPED, ipsec-mb is of x86-64" && exit 0; }
unset IPSEC_MB_DIR FOREBAY_NO_IPSEC_MB
[ -e /var/lib/dpkg/status ] || { echo "libraries: SKIPPED, there is no list of Debian's packages here" && exit 0; }
expect 1 "nothing was compiled at first"
expect 0 "without the library everything is compiled every time"
sleep 1 && touch "$work/status"
expect 1 "the build script does not look again when a package was installed"
mkdir -p "$work/old/include" "$work/old/lib"
echo '#define IMB_VERSION_NUM 0x10200' >"$work/old/include/intel-ipsec-mb.h"
touch "$work/old/lib/libIPSec_MB.a"
said=$(IPSEC_MB_DIR=$work/old cargo build --offline --locked --package ipsec-mb-sys --target-dir "$work/target" 2>&1) ||
    { echo "libraries: with a library that is too old the build fails: $said" >&2 && exit 1; }
grep -q 'libipsec-mb-dev is older than 1.3' <<<"$said" || { echo "libraries: nothing is said of a library that is too old" >&2 && exit 1; }
echo "libraries: found when it is installed and new enough; nothing is compiled twice without it"

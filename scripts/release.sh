#!/usr/bin/env bash
# Makes everything of a version that a person would upload, in one directory, and uploads nothing.
#
#   scripts/release.sh [DIRECTORY]        default: target/release-VERSION
#
# For each architecture: the programs, built once by zig as C compiler and linker for a C library that old systems have; the two
# Debian packages, and an archive of the programs with manual pages, completions and licences; a wheel of the Python package.
# Then its source distribution, the crates in the order in which they are published, an image of the gateway, bills of materials
# (CycloneDX) of all programs, provenance.json (an in-toto statement with the provenance of SLSA), and SHA256SUMS. What the
# version still lacks is said at the end.
#
#   ARCHES       architectures, this machine's own by default; "amd64 arm64" builds on x86-64 for both
#   PROFILE      Cargo's profile, `release` by default; `quick` to try this script in minutes
#   AGAIN=1      builds all a second time, in another directory, and names the files that have other bytes
#
# zig, maturin and cargo-zigbuild come from PyPI (python/requirements-release.txt).
set -euo pipefail
cd "$(dirname "$0")/.."

own=$(dpkg --print-architecture)
profile=${PROFILE:-release} arches=${ARCHES:-$own}
# The oldest C library on which the programs and wheels run: that of manylinux_2_28 (docs/operation.md).
glibc=2.28
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
out=$(realpath -m "${1:-target/release-$version}")
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CARGO_TARGET_DIR=$target
# No path of this machine in what is built.
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/forebay --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$target=/target"

fail() {
    echo "release: $*" >&2
    exit 2
}

[ -n "$version" ] || fail "Cargo.toml has no version in [workspace.package]"
[ -z "$(git status --porcelain)" ] || [ -n "${DIRTY:-}" ] ||
    fail "there are changes that are not committed; a version is made from a commit (DIRTY=1 to try this script)"
rm -rf "$out" && mkdir -p "$out"

triple() { # architecture
    case $1 in
    amd64) echo x86_64-unknown-linux-gnu ;;
    arm64) echo aarch64-unknown-linux-gnu ;;
    *) fail "'$1': expected amd64 or arm64" ;;
    esac
}

# Intel's library in a folder of its own: beside it in /usr/include are the headers of this machine's C library, and zig has its own.
stage_ipsec_mb() {
    local folder=$target/release-ipsec-mb
    [ -e /usr/include/intel-ipsec-mb.h ] || return 0
    rm -rf "$folder" && mkdir -p "$folder"/{include,lib}
    cp /usr/include/intel-ipsec-mb.h "$folder/include"
    cp /usr/lib/x86_64-linux-gnu/libIPSec_MB.a "$folder/lib"
    export IPSEC_MB_DIR=$folder
}

programs() { # architecture
    local zig=(target/python/bin/cargo-zigbuild zigbuild --profile "$profile" --target "$(triple "$1").$glibc" --locked --package forebay-cli)
    PATH=$PWD/target/python/bin:$PATH "${zig[@]}" --bin forebay
    PATH=$PWD/target/python/bin:$PATH "${zig[@]}" --bin forebay-gateway --no-default-features
}

archive() { # architecture; in the environment of scripts/cross.sh
    scripts/cross.sh "$1" bash -euo pipefail -c '
        arch=$1 in=$2 version=$3 out=$4
        scripts/deb.sh "$in/forebay-gateway" "$in/forebay" "$out"
        name=forebay-$version-linux-$arch
        stage=$(mktemp -d)
        trap "rm -rf \"$stage\"" EXIT
        mkdir -p "$stage/$name"/{bin,completions,licences}
        install -m 755 "$in/forebay" "$in/forebay-gateway" "$stage/$name/bin"
        "${STRIP:-strip}" --strip-unneeded "$stage/$name/bin/"*
        cp "$stage/$name/bin/forebay-gateway" "$in/forebay-gateway.stripped"
        read -ra run <<<"${FOREBAY_RUN:-}"
        date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)
        "${run[@]}" "$in/forebay" man --date "$date" "$stage/$name/man"
        for shell in bash zsh fish; do "${run[@]}" "$in/forebay" completions "$shell" >"$stage/$name/completions/forebay.$shell"; done
        cp README.md CHANGELOG.md SECURITY.md "$stage/$name"
        cp LICENSE-* "$stage/$name/licences"
        python3 scripts/third_party.py >"$stage/$name/licences/third-party"
        python3 scripts/sbom.py >"$out/$name.cdx.json"
        python3 scripts/sbom.py --no-default-features >"$out/forebay-gateway-$version-linux-$arch.cdx.json"
        python3 scripts/sbom.py --no-default-features --with-libc >"$out/forebay-image-$version-linux-$arch.cdx.json"
        python3 scripts/sbom.py --of-package forebay-python >"$out/forebay-wheel-$version-linux-$arch.cdx.json"
        cp "$out/$name.cdx.json" "$stage/$name"
        chmod -R u=rwX,go=rX "$stage/$name"
        tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --pax-option=delete=atime,delete=ctime \
            -C "$stage" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
        tests/packaging/packages.sh "$out"
    ' - "$1" "$target/$(triple "$1")/$profile" "$version" "$out"
}

wheels() {
    local triples=()
    for arch in $arches; do triples+=("$(triple "$arch")"); done
    CARGO_TARGET_DIR=$target WHEEL_PROFILE=$profile GLIBC=$glibc scripts/python.sh wheels "${triples[@]}"
    cp target/wheels/forebay-* "$out"
}

image() {
    local programs=()
    for arch in $arches; do programs+=("$arch=$target/$(triple "$arch")/$profile/forebay-gateway.stripped"); done
    scripts/image.py "$out/forebay-$version-oci.tar" "$version" "${programs[@]}"
    tests/packaging/image.py "$out/forebay-$version-oci.tar"
}

# The packages as `cargo publish` would upload them, numbered by the order in which they refer to each other.
crates() {
    mkdir -p "$out/crates"
    PACKAGES=$out/crates scripts/publish.sh check
}

lacking() {
    grep -q "^## \[\?$version" CHANGELOG.md || echo "CHANGELOG.md has no section for $version: rename Unreleased"
    [ "$(git describe --tags --exact-match 2>/dev/null)" = "v$version" ] || echo "the commit has no tag v$version"
    grep -q '^repository = ""' project.toml && echo "project.toml names no public repository"
    grep -q '^contact = ""' project.toml && echo "project.toml names nobody to report vulnerabilities to"
    grep -q '^crates-io = false' project.toml && echo "the crates are not registered (make publish-check tries them)"
    grep -q '^pypi = false' project.toml && echo "the Python package is not registered"
    echo "the files are not signed: sign SHA256SUMS with the key that users know"
}

groups=(build deb lab python)
[[ " $arches " != *" arm64 "* || $own = arm64 ]] || groups+=(cross-arm64)
scripts/setup.sh "${groups[@]}"
scripts/python.sh zig
case " $arches " in *" amd64 "*) stage_ipsec_mb ;; esac
for arch in $arches; do
    programs "$arch"
    archive "$arch"
done
wheels
image
crates
tests/packaging/glibc.py "$glibc" "$out"/*.tar.gz "$out"/*.whl
scripts/provenance.py "$out" PROFILE="$profile" ARCHES="$arches" >"$out.provenance" && mv "$out.provenance" "$out/provenance.json"
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)

if [ -n "${AGAIN:-}" ]; then
    other=$(mktemp -d)
    AGAIN='' CARGO_TARGET_DIR=$other/target DIRTY=1 scripts/release.sh "$other/out" >/dev/null
    differ=$(cd "$out" && find . -type f -printf '%P\n' | LC_ALL=C sort | while read -r file; do cmp -s "$file" "$other/out/$file" || echo "$file"; done)
    rm -rf "$other"
    echo "release: of two builds these files have other bytes: ${differ:-none}"
fi
find "$out" -type f -printf '%s %P\n' | LC_ALL=C sort -k2 | grep -v ' crates/' | awk '{ printf "release: %8.1f MB  %s\n", $1 / 1e6, $2 }'
echo "release: in $out. Before it is published:"
lacking | sed 's/^/release:   /'

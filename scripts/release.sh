#!/usr/bin/env bash
# Makes everything of a version that a person would upload, in one directory, and uploads nothing.
#
#   scripts/release.sh [DIRECTORY]        default: target/release-VERSION
#
# For each architecture: the two Debian packages, and an archive of the programs with manual pages, completions, licences and
# bills of materials (CycloneDX). Then the wheel and the source distribution of the Python package, SHA256SUMS, and
# provenance.json: the commit, the tools, and the commands. What the version still lacks is said at the end.
#
#   ARCHES       architectures, this machine's own by default; "amd64 arm64" builds on x86-64 for both
#   PROFILE      Cargo's profile, `release` by default; `quick` to try this script in minutes
#   AGAIN=1      builds all a second time, in another directory, and names the files that have other bytes
#
# The programs need the C library of the system on which they are built, or a newer one; the version is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

own=$(dpkg --print-architecture)
profile=${PROFILE:-release} arches=${ARCHES:-$own}
cargo=${CARGO:-cargo}
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

programs() { # architecture
    scripts/cross.sh "$1" sh -c '
        cargo=$1 profile=$2
        $cargo build --profile "$profile" --locked --package forebay-cli --bin forebay
        $cargo build --profile "$profile" --locked --package forebay-cli --bin forebay-gateway --no-default-features
    ' - "$cargo" "$profile"
}

archive() { # architecture; in the environment of scripts/cross.sh
    scripts/cross.sh "$1" bash -euo pipefail -c '
        arch=$1 profile=$2 version=$3 out=$4
        in=$CARGO_TARGET_DIR/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile
        scripts/deb.sh "$in/forebay-gateway" "$in/forebay" "$out"
        name=forebay-$version-linux-$arch
        stage=$(mktemp -d)
        trap "rm -rf \"$stage\"" EXIT
        mkdir -p "$stage/$name"/{bin,completions,licences}
        install -m 755 "$in/forebay" "$in/forebay-gateway" "$stage/$name/bin"
        "${STRIP:-strip}" --strip-unneeded "$stage/$name/bin/"*
        read -ra run <<<"${FOREBAY_RUN:-}"
        date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)
        "${run[@]}" "$in/forebay" man --date "$date" "$stage/$name/man"
        for shell in bash zsh fish; do "${run[@]}" "$in/forebay" completions "$shell" >"$stage/$name/completions/forebay.$shell"; done
        cp README.md CHANGELOG.md SECURITY.md "$stage/$name"
        cp LICENSE-* "$stage/$name/licences"
        python3 scripts/third_party.py >"$stage/$name/licences/third-party"
        python3 scripts/sbom.py >"$out/$name.cdx.json"
        python3 scripts/sbom.py --no-default-features >"$out/forebay-gateway-$version-linux-$arch.cdx.json"
        cp "$out/$name.cdx.json" "$stage/$name"
        chmod -R u=rwX,go=rX "$stage/$name"
        tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --pax-option=delete=atime,delete=ctime \
            -C "$stage" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
        libc=$(objdump -T "$stage/$name/bin/forebay" | grep -o "GLIBC_[0-9.]*" | sort -Vu | tail -1)
        echo "release: $name: needs ${libc:-no C library}"
    ' - "$1" "$profile" "$version" "$out"
}

python_package() {
    CARGO_TARGET_DIR=$target WHEEL_PROFILE=$profile scripts/python.sh wheel
    cp target/wheels/forebay-* "$out"
}

provenance() {
    python3 - "$version" "$profile" "$arches" "$(git rev-parse HEAD)" <<'END' >"$out/provenance.json"
import hashlib, json, pathlib, subprocess, sys, os
version, profile, arches, commit = sys.argv[1:]
says = lambda *words: subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
lock = hashlib.sha256(pathlib.Path("Cargo.lock").read_bytes()).hexdigest()
tools = {"rustc": says("rustc", "--version"), "cargo": says("cargo", "--version"), "cc": says("cc", "--version").splitlines()[0]}
system = {key: value.strip('"') for key, _, value in (line.partition("=") for line in open("/etc/os-release").read().split("\n")) if key}
print(json.dumps({
    "version": version,
    "commit": commit,
    "source_date_epoch": int(os.environ["SOURCE_DATE_EPOCH"]),
    "cargo_lock_sha256": lock,
    "built_on": system.get("PRETTY_NAME", ""),
    "tools": tools,
    "command": f"PROFILE={profile} ARCHES='{arches}' scripts/release.sh",
}, indent=1))
END
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

scripts/setup.sh build deb $(case " $arches " in *" arm64 "*) [ "$own" = arm64 ] || echo cross-arm64 ;; esac)
for arch in $arches; do
    programs "$arch"
    archive "$arch"
done
python_package
provenance
(cd "$out" && sha256sum -- * >SHA256SUMS)

if [ -n "${AGAIN:-}" ]; then
    other=$(mktemp -d)
    AGAIN='' CARGO_TARGET_DIR=$other/target DIRTY=1 scripts/release.sh "$other/out" >/dev/null
    differ=$(cd "$out" && for file in *; do cmp -s "$file" "$other/out/$file" || echo "$file"; done)
    rm -rf "$other"
    echo "release: of two builds these files have other bytes: ${differ:-none}"
fi
ls -l "$out" | awk 'NR > 1 { printf "release: %8.1f MB  %s\n", $5 / 1e6, $9 }'
echo "release: in $out. Before it is published:"
lacking | sed 's/^/release:   /'

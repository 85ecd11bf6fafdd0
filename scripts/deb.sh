#!/usr/bin/env bash
# Makes the two Debian packages of binaries that are built already, and of what the binaries write of themselves: manual
# pages and completions.
#
#   scripts/deb.sh GATEWAY FOREBAY DIRECTORY
#
# GATEWAY is forebay-gateway, which the package `forebay` installs as /usr/bin/forebay; FOREBAY is the whole command,
# which the package `forebay-workbench` installs as /usr/bin/forebay-workbench. Written are
# DIRECTORY/forebay_VERSION_ARCHITECTURE.deb and DIRECTORY/forebay-workbench_VERSION_ARCHITECTURE.deb.
#
# Run by scripts/cross.sh, it packages binaries of another architecture, and runs them in emulation to have their pages.
#
# cargo-deb is the one of target/tools (scripts/setup.sh deb), or CARGO_DEB.
set -euo pipefail

cd "$(dirname "$0")/.."
gateway=$(realpath "$1") forebay=$(realpath "$2") out=$(mkdir -p "$3" && realpath "$3")
: "${CARGO_DEB:=target/tools/bin/cargo-deb}" "${CARGO_TARGET_DIR:=$PWD/target}"
export CARGO_TARGET_DIR
# Of scripts/cross.sh; empty for this machine's own architecture.
target=${CARGO_BUILD_TARGET:-} strip=${STRIP:-strip}
read -ra run <<<"${FOREBAY_RUN:-}"
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)

# Where cargo-deb looks for what the manifest's lists name.
stage=$CARGO_TARGET_DIR/${target:+$target/}release/package
rm -rf "$stage" && mkdir -p "$stage"/{gateway,workbench}/doc
install -m 755 "$gateway" "$stage/gateway/forebay"
install -m 755 "$forebay" "$stage/workbench/forebay-workbench"
"$strip" --strip-unneeded "$stage/gateway/forebay" "$stage/workbench/forebay-workbench"

"${run[@]}" "$gateway" man --date "$date" "$stage/gateway/man"
for shell in bash zsh fish; do "${run[@]}" "$gateway" completions "$shell" >"$stage/gateway/forebay.$shell"; done
# The pages of the whole command but for those that the gateway's package has.
"${run[@]}" "$forebay" man --date "$date" "$stage/workbench/man"
sed -e '1s/FOREBAY/FOREBAY\\-WORKBENCH/' -e '0,/^forebay /s//forebay\\-workbench /' "$stage/workbench/man/forebay.1" >"$stage/workbench/man/forebay-workbench.1"
for page in "$stage"/gateway/man/*; do rm "$stage/workbench/man/$(basename "$page")"; done
gzip -9n "$stage"/*/man/*

# Of the C library a package needs what the newest symbol version in its program says. dpkg-shlibdeps says more: for a library of
# another architecture it knows the version of the compiler's package only, and functions that moved into libc.so count as new.
# It also names that library with its architecture, `libc6:arm64`, which policy 7.1 has no place for.
mkdir "$stage/bin"
cat >"$stage/bin/dpkg-shlibdeps" <<END
#!/bin/bash
set -eo pipefail
# Relative relocations (GLIBC_ABI_DT_RELR) are read from 2.36 on.
newest=\$(readelf --version-info --wide "\${@: -1}" | grep -o 'GLIBC_[0-9A-Z_.]*' | sed 's/^GLIBC_//; s/^ABI_DT_RELR$/2.36/' | sort -uV | tail -n 1) || :
[[ "\$newest" == [0-9]* ]] || {
    echo "deb.sh: \${@: -1} asks for '\$newest' of the C library, expected a version such as 2.34" >&2
    exit 1
}
$(command -v dpkg-shlibdeps) "\$@" | sed -E 's/:[a-z0-9]+( \(|,|\$)/\1/g; s/(libc6 \(>= )[^)]*/\1'"\$newest/"
END
chmod +x "$stage/bin/dpkg-shlibdeps"
export PATH=$stage/bin:$PATH

version=$("${run[@]}" "$forebay" --version | cut -d' ' -f2)
maintainer=$(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/cli/Cargo.toml)
for package in gateway:forebay workbench:forebay-workbench; do
    doc=$stage/${package%:*}/doc
    features=()
    [ "$package" = workbench:forebay-workbench ] || features=(--no-default-features)
    python3 scripts/third_party.py "${features[@]}" | gzip -9n >"$doc/third-party.gz"
    gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
    gzip -9n >"$doc/changelog.Debian.gz" <<TEXT
${package#*:} ($version-1) unstable; urgency=medium

  * What is new in each version: /usr/share/doc/${package#*:}/changelog.gz

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
    "$CARGO_DEB" --package forebay-cli --variant "${package%:*}" ${target:+--target "$target"} --no-build --no-strip --locked \
        --output "$out"
done

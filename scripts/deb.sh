#!/usr/bin/env bash
# Makes a Debian package of a binary that is built already, and of what the binary writes of itself: manual pages and
# completions.
#
#   scripts/deb.sh FOREBAY DIRECTORY      writes DIRECTORY/forebay_VERSION_ARCHITECTURE.deb
#
# cargo-deb is the one of target/tools (scripts/setup.sh deb), or CARGO_DEB.
set -euo pipefail

cd "$(dirname "$0")/.."
forebay=$(realpath "$1") out=$(mkdir -p "$2" && realpath "$2")
: "${CARGO_DEB:=target/tools/bin/cargo-deb}" "${CARGO_TARGET_DIR:=$PWD/target}"
export CARGO_TARGET_DIR
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

# Where cargo-deb looks for what the manifest's list names.
stage=$CARGO_TARGET_DIR/release/package
rm -rf "$stage" && mkdir -p "$stage"
[ "$forebay" -ef "$CARGO_TARGET_DIR/release/forebay" ] || install -m 755 "$forebay" "$CARGO_TARGET_DIR/release/forebay"
"$forebay" man --date "$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)" "$stage/man"
gzip -9n "$stage"/man/*
for shell in bash zsh fish; do "$forebay" completions "$shell" >"$stage/forebay.$shell"; done
mkdir "$stage/doc"
python3 scripts/third_party.py | gzip -9n >"$stage/doc/third-party.gz"
gzip -9nc CHANGELOG.md >"$stage/doc/changelog.gz"
version=$("$forebay" --version | cut -d' ' -f2)
maintainer=$(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/cli/Cargo.toml)
gzip -9n >"$stage/doc/changelog.Debian.gz" <<TEXT
forebay ($version-1) unstable; urgency=medium

  * What is new in each version: /usr/share/doc/forebay/changelog.gz

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
"$CARGO_DEB" --package forebay --no-build --strip --locked --output "$out"

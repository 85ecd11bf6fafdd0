#!/usr/bin/env bash
# Checks that the library `forebay` and the crates behind it could be published as they are.
#
#   scripts/publish.sh check    makes every package and has cargo check its manifest and its dependencies; compiles nothing
#   scripts/publish.sh build    the same, and builds the library from nothing but the packages: its examples, and each feature alone
#
# PACKAGES=DIRECTORY copies the packages there, numbered by the order in which they are published.
#
# Nothing is uploaded. Without a registry, the packages are listed only, and the output says so.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-check}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# What is published must build without the replaced crates of [patch.crates-io], which no package carries along.
replaced=$(sed -n '/^\[patch\.crates-io\]/,/^\[/s/^\([a-z0-9_-]*\) = .*/\1/p' Cargo.toml)
for name in $replaced; do
    if cargo tree --locked --package forebay --all-features --edges normal,build --prefix none | grep -q "^$name "; then
        echo "publish: forebay depends on $name, which is replaced in Cargo.toml" >&2
        exit 1
    fi
done

published=$(cargo metadata --locked --no-deps --format-version=1 |
    python3 -c 'import json, sys; print(*(one["name"] for one in json.load(sys.stdin)["packages"] if one["publish"] is None))')
count=$(wc -w <<<"$published")
if cargo publish --workspace --dry-run --no-verify --allow-dirty --locked >"$log" 2>&1; then
    [ "$(grep -c 'aborting upload due to dry run' "$log")" = "$count" ] || { cat "$log" >&2; exit 1; }
    echo "publish: $count packages are ready"
elif grep -qiE 'could not resolve host|failed to connect|network|offline|failed to query replaced source|download of config.json failed' "$log"; then
    for name in $published; do cargo package --package "$name" --list --allow-dirty --offline >/dev/null; done
    echo "publish: $count packages listed; SKIPPED their manifests, dependencies and contents, without the registry"
    exit 0
else
    cat "$log" >&2
    exit 1
fi
if grep '^warning: manifest has no' "$log"; then exit 1; fi
if [ -n "${PACKAGES:-}" ]; then
    number=0
    for name in $(sed -n 's/^ *Uploading \(forebay[a-z0-9-]*\|[a-z-]*-sys\) v.*/\1/p' "$log"); do
        number=$((number + 1))
        file=$(echo "$target"/package/tmp-registry/"$name"-[0-9]*.crate)
        cp "$file" "$PACKAGES/$(printf %02d "$number")-$(basename "$file")"
    done
    [ "$number" = "$count" ] || { echo "publish: $number of $count packages have a place in the order" >&2 && exit 1; }
fi
[ "$what" = build ] || exit 0

# A workspace of the packages' files alone, each in the place of the registry's crate of its name.
work=$target/publish
rm -rf "$work" && mkdir -p "$work"
{
    echo '[workspace]'
    echo 'resolver = "3"'
    echo 'members = ["forebay"]'
    sed -n '/^\[profile\.dev/,/^$/p' Cargo.toml
    echo '[patch.crates-io]'
    for name in $published; do [ "$name" = forebay ] || echo "$name = { path = \"$name\" }"; done
} >"$work/Cargo.toml"
for name in $published; do
    mkdir "$work/$name"
    # With the time of now: cargo gives all files an old one, by which changed files would look built.
    tar --extract --touch --file "$target"/package/tmp-registry/"$name"-[0-9]*.crate --directory "$work/$name" --strip-components 1
done
cp Cargo.lock "$work/"
(cd "$work" && CARGO_TARGET_DIR=$target cargo build --quiet --package forebay --examples)
for feature in scheduler ipsec aws-lc simulation gateway pair cluster; do
    (cd "$work" && CARGO_TARGET_DIR=$target cargo build --quiet --package forebay --lib --no-default-features --features "$feature")
done
echo "publish: forebay builds from the packages, with its examples and with each feature alone"

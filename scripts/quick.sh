#!/usr/bin/env bash
# Format, clippy and tests of the crates that changed, and of the workspace's crates that depend on them: scripts/quick.sh [list]
#
# Changed is what differs from the branch main (BASE= names another revision), committed or not; on main itself what differs from
# its last commit. Documents and scripts have checks of their own, which run if one of them changed. `list` only names the crates.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${BASE:-}
if [ -z "$base" ]; then
    base=HEAD
    [ "$(git branch --show-current)" = main ] || base=$(git merge-base HEAD main 2>/dev/null || echo HEAD)
fi
changed=$(git diff --name-only "$base"; git ls-files --others --exclude-standard)
# First those that changed, then those that depend on them.
names=$(cargo metadata --format-version 1 --locked --offline --no-deps 2>/dev/null | CHANGED=$changed python3 -c '
import json, os, pathlib, sys
packages = json.load(sys.stdin)["packages"]
root = pathlib.Path.cwd()
folders = {one["name"]: pathlib.Path(one["manifest_path"]).parent.relative_to(root).as_posix() for one in packages}
changed, paths = set(), os.environ["CHANGED"].splitlines()
for path in paths:
    owners = [name for name, folder in folders.items() if path.startswith(folder + "/")]
    if owners:
        changed.add(max(owners, key=lambda name: len(folders[name])))
# A new member of the workspace or a new dependency changes these as well; by themselves they concern everybody.
if not changed and {"Cargo.toml", "Cargo.lock", "rustfmt.toml", "clippy.toml"} & set(paths):
    changed.update(folders)
needs = {one["name"]: {need["name"] for need in one["dependencies"]} & folders.keys() for one in packages}
reached = set(changed)
while more := {name for name, of in needs.items() if of & reached} - reached:
    reached |= more
print(*sorted(changed), "/", *sorted(reached - changed))
')
own=${names%/*} dependent=${names#*/}
echo "quick: since $(git rev-parse --short "$base") changed: ${own:-nothing of Rust}"
[ -z "${dependent// /}" ] || echo "quick: depend on it:$dependent"
[ "${1:-}" != list ] || exit 0

packages=()
for name in $own $dependent; do packages+=(--package "$name"); done
if [ ${#packages[@]} -gt 0 ]; then
    formatted=()
    for name in $own; do formatted+=(--package "$name"); done
    cargo fmt "${formatted[@]}" --check
    cargo clippy "${packages[@]}" --all-targets --locked -- -D warnings
    cargo test "${packages[@]}" --locked
fi
if grep -qE '\.(md|yml|svg)$|^project\.toml$|^scripts/docs\.py$' <<<"$changed"; then scripts/docs.py; fi
if grep -q '\.sh$' <<<"$changed" && command -v shellcheck >/dev/null; then
    grep '\.sh$' <<<"$changed" | xargs -r ls 2>/dev/null | xargs -r shellcheck --severity=warning
fi
echo "quick: ok in $SECONDS s"

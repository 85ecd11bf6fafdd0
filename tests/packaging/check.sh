#!/usr/bin/env bash
# What the packages bring: the gateway's own binary, manual pages, completions, the systemd unit, the example. Seconds.
#
#   tests/packaging/check.sh GATEWAY FOREBAY
#
# GATEWAY is forebay-gateway, which the package `forebay` installs as `forebay`; FOREBAY is the whole command, which
# `forebay-workbench` installs under that name.
#
# A tool that is missing is said, and what it would have looked at is skipped.
set -euo pipefail

cd "$(dirname "$0")/../.."
gateway=$(realpath "$1") whole=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "packaging: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null || { echo "packaging: SKIPPED, without $1: $2" && false; }; }

# The gateway's binary has none of what only the workbench needs.
inside=$(cargo tree --offline --locked --package forebay-cli --no-default-features --edges normal --prefix none 2>/dev/null | cut -d' ' -f1 | sort -u)
grep -qx forebay-engine <<<"$inside" || fail "cargo tree says nothing of the gateway's dependencies"
for crate in parquet ratatui crossterm indicatif forebay-sim forebay-study; do
    ! grep -qx "$crate" <<<"$inside" || fail "$crate is in the gateway's binary"
done
# Its bill of materials and its licences are those of this binary, and not of the workspace's crates together.
python3 scripts/sbom.py --no-default-features >"$work/gateway.cdx.json"
python3 scripts/sbom.py >"$work/whole.cdx.json"
python3 scripts/third_party.py --no-default-features >"$work/licences"
for crate in parquet ratatui; do
    ! grep -qF "pkg:cargo/$crate@" "$work/gateway.cdx.json" || fail "$crate is in the gateway's bill of materials"
    ! grep -q "^$crate " "$work/licences" || fail "$crate is in the gateway's licences"
    grep -qF "pkg:cargo/$crate@" "$work/whole.cdx.json" || fail "$crate is not in the bill of materials of the whole command"
done
# What looks for a C library that is too new sees one.
! tests/packaging/glibc.py 2.2 "$gateway" >/dev/null || fail "glibc.py lets pass what needs more than glibc 2.2"
tests/packaging/glibc.py 2.999 "$gateway" >/dev/null || fail "glibc.py refuses every program"

# As installed: it runs the workbench for the workbench's commands, and says what to install where there is none.
mkdir "$work/bin"
cp --reflink=auto "$gateway" "$work/bin/forebay"
forebay=$work/bin/forebay
said=$("$forebay" simulate --help 2>&1) && fail "forebay simulate runs without the workbench"
grep -q 'install the package forebay-workbench' <<<"$said" || fail "no hint at the workbench: $said"
ln -s "$whole" "$work/bin/forebay-workbench"
"$forebay" simulate --help | grep -q 'virtual time' || fail "forebay simulate does not run the workbench"
# Kept for their names: the commands of the gateway are those of the whole command too.
commands() { "$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' | grep -v help; }
for name in $(commands "$forebay"); do
    [ "$("$forebay" "$name" --help)" = "$("$whole" "$name" --help)" ] || fail "$name is not the same in both"
done
echo "packaging: $(commands "$forebay" | wc -l) of $(commands "$whole" | wc -l) commands are in the gateway's own binary"

# A page for each command that the command names, and one for the file with each of its sections.
"$whole" man --date 2026-01-31 "$work/man"
for name in $(commands "$whole"); do
    [ -s "$work/man/forebay-$name.1" ] || fail "no page forebay-$name(1)"
done
"$forebay" man --date 2026-01-31 "$work/gateway-man"
for page in "$work"/gateway-man/*; do
    [ "$page" = "$work/gateway-man/forebay.1" ] || cmp -s "$page" "$work/man/$(basename "$page")" || fail "$page differs"
done
cp "$work/gateway-man/forebay.1" "$work/man/forebay.gateway.1"
for section in $(sed -n 's/^## .*`\(\[.*\]\)`.*/\1/p' docs/gateway.md); do
    grep -qxF ".SH $section" "$work/man/forebay.toml.5" || fail "forebay.toml(5) has no $section"
done
if has mandoc 'lint of the pages'; then
    mandoc -Tlint "$work"/man/* || fail "mandoc complains"
fi
if has groff 'warnings of groff'; then
    said=$(for page in "$work"/man/*; do groff -man -ww -Tutf8 -z "$page" 2>&1; done)
    [ -z "$said" ] || fail "$said"
fi
echo "packaging: $(ls "$work/man" | wc -l) manual pages"

for shell in bash zsh fish; do "$forebay" completions $shell >"$work/forebay.$shell"; done
# What bash would offer for these words.
offered() {
    env -i PATH="$PATH" bash --norc --noprofile -c '
        source "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        "$(complete -p forebay | sed "s/.*-F \([^ ]*\) .*/\1/")" forebay "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
        echo "${COMPREPLY[*]}"' bash "$work/forebay.bash" "$@"
}
expect() { # what is offered, the words
    local wanted=$1 got
    got=$(offered "${@:2}")
    [ "$got" = "$wanted" ] || fail "completing '${*:2}': '$got', not '$wanted'"
}
expect gateway forebay ga
expect --config forebay gateway --conf
expect 'reload' forebay rel
case " $(offered forebay '') " in *' completions '*) ;; *) fail "forebay offers: $(offered forebay '')" ;; esac
case " $(offered forebay show '') " in *' sas '*) ;; *) fail "show offers: $(offered forebay show '')" ;; esac
if has zsh 'syntax of its completions'; then zsh -n "$work/forebay.zsh"; fi
if has fish 'syntax of its completions'; then fish --no-execute "$work/forebay.fish"; fi
echo "packaging: completions of bash, zsh and fish"

# The example is a whole gateway.
mkdir "$work/keys"
cp packaging/gateway.toml "$work/"
"$forebay" keygen --proposal aes128-sha256 "$work/keys/east-out.key" "$work/keys/east-in.key" >"$work/keygen"
chmod 600 "$work"/keys/*
"$forebay" check --config "$work/gateway.toml" | grep -q 'no warnings' || fail "the example has warnings"

if has systemd-analyze 'the unit'; then
    # With a program that is here in the place of one that is not.
    for unit in forebay-guard.service forebay.service; do
        sed "s|/usr/bin/forebay|$forebay|" "packaging/$unit" >"$work/$unit"
    done
    for unit in "$work"/*.service; do
        said=$(systemd-analyze verify --man=no "$unit" 2>&1 | grep -F forebay || true)
        [ -z "$said" ] || fail "$said"
        if systemd-analyze --help | grep -q -- --offline; then
            systemd-analyze security --offline=true --threshold=30 "$unit" >"$work/exposure" ||
                fail "$(tail -1 "$work/exposure")"
            LC_ALL=C sed -n 's/.*\(Overall exposure level.*: [0-9.]*\).*/packaging: \1/p' "$work/exposure" | sed 's/[^ -~]//g'
        fi
    done
fi
echo "packaging: ok"

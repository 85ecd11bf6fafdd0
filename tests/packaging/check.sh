#!/usr/bin/env bash
# What a package brings beside the binary: manual pages, completions, the systemd unit, the example. Seconds.
#
#   tests/packaging/check.sh FOREBAY
#
# A tool that is missing is said, and what it would have looked at is skipped.
set -euo pipefail

cd "$(dirname "$0")/../.."
forebay=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "packaging: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null || { echo "packaging: SKIPPED, without $1: $2" && false; }; }

# A page for each command that the command names, and one for the file with each of its sections.
"$forebay" man --date 2026-01-31 "$work/man"
for name in $("$forebay" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' | grep -v help); do
    [ -s "$work/man/forebay-$name.1" ] || fail "no page forebay-$name(1)"
done
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
case " $(offered forebay '') " in *' completions '* | *' man '*) fail "hidden commands are offered" ;; esac
case " $(offered forebay show '') " in *' sas '*) ;; *) fail "show offers: $(offered forebay show '')" ;; esac
if has zsh 'syntax of its completions'; then zsh -n "$work/forebay.zsh"; fi
if has fish 'syntax of its completions'; then fish --no-execute "$work/forebay.fish"; fi
echo "packaging: completions of bash, zsh and fish"

# The example is a whole gateway.
mkdir "$work/keys"
cp packaging/gateway.toml "$work/"
for key in east-out east-in; do head -c 20 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/keys/$key.key"; done
chmod 600 "$work"/keys/*
"$forebay" check --config "$work/gateway.toml" | grep -q 'no warnings' || fail "the example has warnings"

if has systemd-analyze 'the unit'; then
    # With a program that is here in the place of one that is not.
    sed "s|/usr/bin/forebay|$forebay|" packaging/forebay.service >"$work/forebay.service"
    said=$(systemd-analyze verify --man=no "$work/forebay.service" 2>&1 | grep -F forebay || true)
    [ -z "$said" ] || fail "$said"
    if systemd-analyze --help | grep -q -- --offline; then
        systemd-analyze security --offline=true --threshold=30 "$work/forebay.service" >"$work/exposure" ||
            fail "$(tail -1 "$work/exposure")"
        LC_ALL=C sed -n 's/.*\(Overall exposure level.*: [0-9.]*\).*/packaging: \1/p' "$work/exposure" | sed 's/[^ -~]//g'
    fi
fi
echo "packaging: ok"

#!/usr/bin/env bash
# The two Debian packages as they were built: control data, files, and the programs in them. Seconds.
#
#   tests/packaging/packages.sh DIRECTORY
#
# Run by scripts/cross.sh, it looks at the packages of that architecture, whose programs run in emulation.
set -euo pipefail

cd "$(dirname "$0")/../.."
directory=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "packages: $*" >&2; exit 1; }
case "${CARGO_BUILD_TARGET:-$(uname -m)}" in
aarch64*) arch=arm64 machine=AArch64 ;;
x86_64*) arch=amd64 machine='Advanced Micro Devices X86-64' ;;
*) fail "no packages are made for ${CARGO_BUILD_TARGET:-$(uname -m)}" ;;
esac
read -ra run <<<"${FOREBAY_RUN:-}"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

commands() { "${run[@]}" "$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]\+\) .*/\1/p' | grep -v help; }
for name in forebay forebay-workbench; do
    package=$directory/${name}_$version-1_$arch.deb root=$work/$name
    [ -s "$package" ] || fail "$package was not made"
    field() { dpkg-deb --field "$package" "$1"; }
    [ "$(field Package) $(field Version) $(field Architecture)" = "$name $version-1 $arch" ] ||
        fail "$package is $(field Package) $(field Version) $(field Architecture)"
    depends=$(field Depends)
    # Intel's library is linked statically.
    ! grep -qE 'ipsec-mb|-cross' <<<"$depends" || fail "$name depends on: $depends"
    [ "$name" = forebay-workbench ] || grep -q adduser <<<"$depends" || fail "$name does not depend on adduser: $depends"

    dpkg-deb --extract "$package" "$root"
    program=$root/usr/bin/$name doc=$root/usr/share/doc/$name
    readelf -h "$program" | grep -q "Machine: *$machine\$" || fail "$name is for: $(readelf -h "$program" | grep Machine)"
    ! readelf -S "$program" | grep -qF .debug_info || fail "$name is not stripped"
    # The oldest C library that has all that the program asks for, so that a package for an old system installs there.
    # Relative relocations (GLIBC_ABI_DT_RELR) are read from 2.36 on.
    newest=$(readelf --version-info --wide "$program" | grep -o 'GLIBC_[0-9A-Z_.]*' | sed 's/^GLIBC_//; s/^ABI_DT_RELR$/2.36/' | sort -uV | tail -n 1) || :
    [[ "$newest" == [0-9]* ]] || fail "$name asks for '$newest' of the C library, expected a version such as 2.34"
    grep -qF "libc6 (>= $newest)" <<<"$depends" || fail "$name asks for GLIBC_$newest and depends on: $depends"
    [ "$("${run[@]}" "$program" --version)" = "forebay $version" ] || fail "$name --version: $("${run[@]}" "$program" --version)"
    for file in copyright changelog.gz changelog.Debian.gz third-party.gz; do
        [ -s "$doc/$file" ] || fail "$name has no $file"
    done
    zgrep -q '^aws-lc-sys ' "$doc/third-party.gz" || fail "third-party.gz of $name does not name AWS-LC"
    if zgrep -q 'Intel IPsec multi-buffer library' "$doc/third-party.gz"; then
        [ "$arch" = amd64 ] || fail "third-party.gz of $name names Intel's library"
    fi
    if command -v lintian >/dev/null; then
        # Debian's own uploads close a bug; and until project.toml names a contact, the maintainer has no address.
        suppressed=initial-upload-closes-no-bugs
        ! grep -q '^contact = ""' project.toml || suppressed+=,bogus-mail-host,bogus-mail-host-in-debian-changelog
        said=$(lintian --allow-root --fail-on error,warning --suppress-tags "$suppressed" "$package" 2>&1) || fail "lintian: $said"
    else
        echo "packages: SKIPPED, without lintian: what Debian's policy says of $name"
    fi
    echo "packages: $(basename "$package"): $(du -k "$package" | cut -f1) KiB, $(du -k "$program" | cut -f1) KiB of program; $depends"
done

root=$work/forebay
for file in lib/systemd/system/forebay.service lib/systemd/system/forebay-guard.service usr/share/bash-completion/completions/forebay \
    usr/share/zsh/vendor-completions/_forebay usr/share/fish/vendor_completions.d/forebay.fish \
    usr/share/doc/forebay/README.md usr/share/doc/forebay/docs/README.md usr/share/doc/forebay/docs/operation.md usr/share/doc/forebay/docs/grafana.json usr/share/doc/forebay/docs/alerts.yml \
    usr/share/doc/forebay/examples/gateway.toml usr/share/man/man5/forebay.toml.5.gz; do
    [ -s "$root/$file" ] || [ -s "$root/usr/$file" ] || fail "no /$file"
done
dpkg-deb --control "$directory/forebay_$version-1_$arch.deb" "$work/control"
for script in postinst prerm postrm; do
    [ -x "$work/control/$script" ] || fail "no $script"
done

# Each command has its page, in one of the two packages; no page is in both.
for name in $(commands "$work/forebay-workbench/usr/bin/forebay-workbench"); do
    in=$(ls "$work"/*/usr/share/man/man1/"forebay-$name.1.gz" 2>/dev/null | wc -l)
    [ "$in" = 1 ] || fail "forebay-$name(1) is in $in packages"
done
for name in $(commands "$root/usr/bin/forebay"); do
    [ -s "$root/usr/share/man/man1/forebay-$name.1.gz" ] || fail "forebay-$name(1) is not in the gateway's package"
done

# The installed program checks the installed example.
cp "$root/usr/share/doc/forebay/examples/gateway.toml" "$work/"
mkdir "$work/keys"
"${run[@]}" "$root/usr/bin/forebay" keygen --proposal aes128-sha256 "$work/keys/east-out.key" "$work/keys/east-in.key" >"$work/keygen"
chmod 600 "$work"/keys/*
"${run[@]}" "$root/usr/bin/forebay" check --config "$work/gateway.toml" 2>"$work/warnings" | grep -q 'no warnings' ||
    fail "the example has warnings: $(cat "$work/warnings")"
echo "packages: ok, $arch"

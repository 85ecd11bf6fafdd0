#!/usr/bin/env bash
# Makes a kernel and initramfs archives for the virtual machines of these tests out of Debian packages, which are
# fetched and unpacked into a folder of their own: nothing is installed on this machine.
#
#   tests/vm/image.sh DIRECTORY [RELEASE]
#
# Without RELEASE: the packages that this machine's apt knows; writes DIRECTORY/vmlinuz, initramfs, and initramfs-ike
# (with strongSwan). With it: that release of Debian (bookworm, trixie, trixie-backports, sid), from the mirror that this
# machine's apt uses; also initramfs-libreswan and initramfs-openiked. It is made once; remove DIRECTORY for newer packages.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
directory=$(mkdir -p "$1" && cd "$1" && pwd)
release=${2:-}

# Programs of the virtual machine with all they depend on, as if nothing were installed. Daemons conflict with each
# other as packages, so each is fetched by itself.
programs=(busybox-static dash libgcc-s1 iproute2 iperf3 iputils-ping nftables tcpdump)
wanted=(lib64/ld-linux-x86-64.so.2 bin/dash lib/x86_64-linux-gnu/libgcc_s.so.1 bin/iperf3 bin/ping bin/ip sbin/tc sbin/nft
    bin/tcpdump)
programs_ike=(charon-systemd strongswan-swanctl libstrongswan-standard-plugins libstrongswan-extra-plugins)
wanted_ike=(sbin/swanctl sbin/charon-systemd)
daemons=(ike)
if [ -n "$release" ]; then
    daemons+=(libreswan openiked)
    programs+=(conntrack)
    wanted+=(sbin/conntrack)
fi
programs_libreswan=(libreswan libnss3-tools)
wanted_libreswan=(sbin/ipsec bin/certutil bin/modutil libexec/ipsec lib/x86_64-linux-gnu/lib{softokn3,freebl3,freeblpriv3,nssdbm3,nssckbi}.so
    lib/x86_64-linux-gnu/nss/lib{softokn3,freebl3,freeblpriv3,nssdbm3,nssckbi}.so)
programs_openiked=(openiked openssl)
wanted_openiked=(sbin/iked sbin/ikectl bin/openssl lib/x86_64-linux-gnu/ossl-modules/legacy.so)
# What charon needs of its plugins to negotiate with keys and certificates and to reach the kernel.
plugins=(aes cmac constraints gcm gmp hmac kdf kernel-netlink ml nonce openssl pem pkcs1 pkcs8 pubkey random
    sha1 sha2 socket-default updown vici x509)
# Folders of kernel modules that may be asked for by name while the machine runs, and single ones.
module_folders=(crypto arch/x86/crypto lib/crypto net/xfrm net/netfilter net/ipv4/netfilter net/ipv6/netfilter net/key)
modules=(drivers/net/{tun,veth,dummy,virtio_net,net_failover} drivers/virtio/{virtio,virtio_ring,virtio_pci}
    drivers/virtio/virtio_pci_{modern,legacy}_dev drivers/char/virtio_console net/core/failover
    net/sched/{sch_netem,sch_ingress,cls_bpf,act_mirred,act_gact,cls_u32,cls_matchall}
    net/ipv4/{esp4,ah4,ipcomp,xfrm4_tunnel,tunnel4,ip_tunnel,udp_tunnel,esp4_offload}
    net/ipv6/{esp6,ah6,ipcomp6,xfrm6_tunnel,tunnel6,ip6_tunnel,ip6_udp_tunnel,esp6_offload}
    drivers/block/virtio_blk fs/ext4/ext4 fs/jbd2/jbd2 fs/mbcache crypto/crc32c_generic
    lib/libcrc32c lib/crc/libcrc32c lib/crc16 lib/crc/crc16 drivers/uio/{uio,uio_pci_generic})

fail() { echo "vm image${release:+ of $release}: $*" >&2; exit 2; }
for tool in apt-get apt-cache dpkg-deb cpio objdump xz; do
    command -v "$tool" >/dev/null || fail "'$tool' is missing (scripts/setup.sh vm)"
done

# Rebuilt only if something it is made of has changed.
options=(-o Debug::NoLocking=1 -o APT::Sandbox::User=root)
if [ -z "$release" ]; then
    kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -1)
    [ -n "$kernel" ] || fail "apt knows no linux-image-cloud-amd64: run apt-get update"
else
    kernel="the newest of $release"
fi
stamp=$({ cat "$here/image.sh" "$here/init"; echo "$kernel"; } | sha256sum)
[ -f "$directory/initramfs" ] && [ "$(cat "$directory/stamp" 2>/dev/null)" = "$stamp" ] && exit 0

# Lists of another release, in a folder of their own, by the mirror and the keys that this machine has.
if [ -n "$release" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
        awk '$2 == "main" && $3 == "Debian" { print $1; exit }')
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -n "$mirror" ] || fail "this machine's apt names no mirror of Debian"
    [ -f "$keys" ] || fail "there is no $keys (package debian-archive-keyring)"
    mkdir -p "$directory/lists/partial"
    for suite in ${release%-backports} $([[ $release == *-backports ]] && echo "$release"); do
        echo "deb [signed-by=$keys] $mirror $suite main"
    done >"$directory/sources.list"
    options+=(-o "Dir::Etc::SourceList=$directory/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$directory/lists" -o Dir::State::Status=/dev/null
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
    # A mirror that is slow to answer should not hold a test up.
    timeout 120 apt-get "${options[@]}" -qq update >/dev/null 2>&1 || fail "the mirror does not serve it, or cannot be reached"
    # The kernel's package names one of a version, which names others in newer releases.
    target=()
    [[ $release == *-backports ]] && target=(-t "$release")
    kernel=$(apt-get "${options[@]}" "${target[@]}" -s --no-install-recommends install linux-image-cloud-amd64 2>/dev/null |
        sed -n 's/^Inst \(linux-\(image\|modules\|binary\|base\)-[0-9][^ ]*\) .*/\1/p')
    [ -n "$kernel" ] || fail "it has no linux-image-cloud-amd64"
fi

# A package of its own in newer releases, without which iked does not start.
! apt-cache "${options[@]}" show openssl-provider-legacy >/dev/null 2>&1 || programs_openiked+=(openssl-provider-legacy)
packages=$directory/packages root=$directory/root tree=$directory/tree
base=/nowhere
rm -rf "$root" "$tree" "$directory/base" && mkdir -p "$packages/partial" "$tree"
apt=(apt-get "${options[@]}" -o Dir::State::status=/dev/null -o "Dir::Cache::archives=$packages" -y -qq --no-install-recommends)
echo "vm image${release:+ of $release}: fetching packages"
"${apt[@]}" autoclean >/dev/null # what is left of an earlier attempt
"${apt[@]}" --download-only install "${programs[@]}" >/dev/null || fail "the packages could not be fetched"
for daemon in "${daemons[@]}"; do
    declare -n of_daemon=programs_$daemon
    "${apt[@]}" --download-only install "${of_daemon[@]}" >/dev/null || fail "the packages of $daemon could not be fetched"
done
# shellcheck disable=SC2086 # several names
(cd "$packages" && apt-get "${options[@]}" -qq download $kernel >/dev/null) || fail "$kernel could not be fetched"

# Programs and libraries below /usr, also those of packages that have them elsewhere.
merged() {
    mkdir -p "$1"/usr/{bin,sbin,lib,lib64}
    for name in bin sbin lib lib64; do ln -s "usr/$name" "$1/$name"; done
}
merged "$root"
for package in "$packages"/*.deb; do
    name=${package##*/}
    case $name in linux-*-[0-9]*) [[ " ${kernel//$'\n'/ } " == *" ${name%%_*} "* ]] || continue ;; esac
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root" ||
        fail "$name could not be unpacked"
done
version=$(ls "$root/usr/lib/modules")

# A program and the libraries that it names, found by name in the unpacked packages.
declare -A library=()
while read -r path; do library[${path##*/}]=$path; done < <(
    cd "$root" && find usr/lib -not -type d \( -name '*.so' -o -name '*.so.*' \) | sort -r)
add() { # path in the packages, from /usr on
    local path=$1 name
    [[ $path == usr/* ]] || path=usr/$path
    [ -e "$root/$path" ] || path=${path/#usr\/sbin/usr\/bin} # programs have moved
    [ -e "$tree/$path" ] || [ -e "$base/$path" ] && return
    mkdir -p "$tree/${path%/*}" && cp -L "$root/$path" "$tree/$path"
    for name in $(objdump -p "$root/$path" 2>/dev/null | sed -n 's/^ *NEEDED *//p'); do
        [ -n "${library[$name]:-}" ] || fail "$path needs $name, which no package has"
        add "${library[$name]}"
    done
}
add_all() { # paths, of which a folder stands for its files, and what a release lacks is left out
    local path file
    for path in "$@"; do
        if [ -d "$root/usr/$path" ]; then
            while read -r file; do add "$file"; done < <(cd "$root" && find "usr/$path" -type f)
        elif [ -e "$root/usr/$path" ] || [[ $path == sbin/* ]]; then
            add "$path"
        fi
    done
}
merged "$tree"
[ -e "$root/lib64/ld-linux-x86-64.so.2" ] || cp -L "$(find "$root" -name ld-linux-x86-64.so.2 | head -1)" "$root/lib64/"
for path in "${wanted[@]}"; do add "$path"; done

from=$root/usr/lib/modules/$version to=$tree/usr/lib/modules/$version
mkdir -p "$to"
for folder in "${module_folders[@]}"; do
    [ ! -d "$from/kernel/$folder" ] ||
        (cd "$from" && find "kernel/$folder" -name '*.ko*' -print0 | cpio -0pdm --quiet "$to" 2>/dev/null)
done
for module in "${modules[@]}"; do
    for file in "$from/kernel/$module".ko*; do
        [ ! -f "$file" ] || { mkdir -p "$to/kernel/${module%/*}" && cp "$file" "$to/kernel/${module%/*}/"; }
    done
done
cp "$from"/modules.{order,builtin} "$to/"
find "$to" -name '*.ko.xz' -print0 | xargs -0r xz -d
sed -i 's/\.ko\.xz$/.ko/' "$to"/modules.{order,builtin}

mkdir -p "$tree"/{dev,proc,sys,tmp,run,root,var/run,var/empty,etc}
cp "$root/bin/busybox" "$tree/bin/busybox"
for applet in $("$tree/bin/busybox" --list); do
    [ "$applet" = sh ] || [ -e "$tree/bin/$applet" ] || [ -e "$tree/sbin/$applet" ] || ln -s busybox "$tree/bin/$applet"
done
ln -s ../bin/busybox "$tree/sbin/modprobe" # where the kernel looks for it
# Not busybox, whose shell takes its own programs before those of the same name.
ln -s dash "$tree/bin/sh"
install -m 755 "$here/init" "$tree/init"
"$tree/bin/busybox" depmod -b "$tree" "$version"
printf 'root:x:0:0:root:/root:/bin/sh\n_iked:x:100:100::/var/empty:/bin/false\n' >"$tree/etc/passwd"
printf 'root:x:0:\n_iked:x:100:\n' >"$tree/etc/group"
printf 'icmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nesp 50 ESP\nah 51 AH\nipv6-icmp 58 IPv6-ICMP\n' >"$tree/etc/protocols"
: >"$tree/etc/resolv.conf" # pluto reads it
printf '127.0.0.1 localhost\n::1 localhost\n' >"$tree/etc/hosts"

pack() { (cd "$tree" && find . -print0 | sort -z | cpio -0o --quiet -H newc); }
pack >"$directory/initramfs.new"

# More archives behind the first: what a daemon needs beyond it.
base=$directory/base
mv "$tree" "$base"
sizes=()
for daemon in "${daemons[@]}"; do
    merged "$tree" && mkdir -p "$tree/etc"
    declare -n of_daemon=wanted_$daemon
    add_all "${of_daemon[@]}"
    if [ "$daemon" = ike ]; then
        for name in "${plugins[@]}"; do add_all "lib/ipsec/plugins/libstrongswan-$name.so"; done
    fi
    for path in swanctl strongswan.conf strongswan.d ipsec.conf ipsec.d iked.conf iked; do
        [ ! -e "$root/etc/$path" ] || case $daemon:$path in
            ike:sw* | ike:strong* | libreswan:ipsec* | openiked:iked*) cp -r "$root/etc/$path" "$tree/etc/" ;;
        esac
    done
    pack | cat "$directory/initramfs.new" - >"$directory/initramfs-$daemon"
    sizes+=("$(du -h "$directory/initramfs-$daemon" | cut -f1) with $daemon")
    rm -rf "$tree"
done

for file in "$root/boot/vmlinuz-$version" "$root/usr/lib/modules/$version/vmlinuz"; do
    [ ! -f "$file" ] || cp "$file" "$directory/vmlinuz"
done
mv "$directory/initramfs.new" "$directory/initramfs"
rm -rf "$root" "$base"
[ -z "$release" ] || rm -rf "$packages" "$directory/lists"
echo "$stamp" >"$directory/stamp"
echo "vm image${release:+ of $release}: Linux $version, $(du -h "$directory/initramfs" | cut -f1), $(printf '%s, ' "${sizes[@]}" | sed 's/, $//')"

#!/usr/bin/env bash
# Makes a kernel and an initramfs for the virtual machines of these tests out of Debian packages, which are
# fetched and unpacked into a folder of their own: nothing is installed on this machine.
#
#   tests/vm/image.sh DIRECTORY       writes DIRECTORY/vmlinuz, initramfs, initramfs-ike (with strongSwan)
#                                     and keeps the packages there
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
directory=$(mkdir -p "$1" && cd "$1" && pwd)

# Programs of the virtual machine with all they depend on, as if nothing were installed.
programs=(busybox-static dash libgcc-s1 iproute2 iperf3 iputils-ping nftables tcpdump
    charon-systemd strongswan-swanctl libstrongswan-standard-plugins libstrongswan-extra-plugins)
wanted=(bin/dash lib/x86_64-linux-gnu/libgcc_s.so.1 usr/bin/iperf3 bin/ping bin/ip sbin/tc usr/sbin/nft usr/bin/tcpdump)
wanted_ike=(usr/sbin/swanctl usr/sbin/charon-systemd)
# What charon needs of its plugins to negotiate with keys and certificates and to reach the kernel.
plugins=(aes cmac constraints gcm gmp hmac kdf kernel-netlink nonce openssl pem pkcs1 pkcs8 pubkey random
    sha1 sha2 socket-default updown vici x509)
# Folders of kernel modules that may be asked for by name while the machine runs, and single ones.
module_folders=(crypto arch/x86/crypto lib/crypto net/xfrm net/netfilter net/ipv4/netfilter net/ipv6/netfilter)
modules=(drivers/net/{tun,veth,dummy,virtio_net,net_failover} drivers/virtio/{virtio,virtio_ring,virtio_pci}
    drivers/virtio/virtio_pci_{modern,legacy}_dev drivers/char/virtio_console net/core/failover
    net/sched/{sch_netem,sch_ingress,cls_bpf,act_mirred,act_gact,cls_u32,cls_matchall}
    net/ipv4/{esp4,ah4,ipcomp,xfrm4_tunnel,tunnel4,ip_tunnel,udp_tunnel,esp4_offload}
    net/ipv6/{esp6,ah6,ipcomp6,xfrm6_tunnel,tunnel6,ip6_tunnel,ip6_udp_tunnel,esp6_offload}
    lib/libcrc32c lib/crc16 drivers/uio/{uio,uio_pci_generic})

fail() { echo "vm image: $*" >&2; exit 2; }
for tool in apt-get apt-cache dpkg-deb cpio objdump; do
    command -v "$tool" >/dev/null || fail "'$tool' is missing (scripts/setup.sh vm)"
done

# Rebuilt only if something it is made of has changed.
kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -1)
[ -n "$kernel" ] || fail "apt knows no linux-image-cloud-amd64: run apt-get update"
stamp=$({ cat "$here/image.sh" "$here/init"; echo "$kernel"; } | sha256sum)
[ -f "$directory/initramfs" ] && [ "$(cat "$directory/stamp" 2>/dev/null)" = "$stamp" ] && exit 0

packages=$directory/packages root=$directory/root tree=$directory/tree
base=/nowhere
rm -rf "$root" "$tree" "$directory/base" && mkdir -p "$packages/partial" "$root" "$tree"
apt=(apt-get -o Dir::State::status=/dev/null -o "Dir::Cache::archives=$packages" -o Debug::NoLocking=1
    -o APT::Sandbox::User=root -y -qq --no-install-recommends)
echo "vm image: fetching packages"
"${apt[@]}" --download-only install "${programs[@]}" >/dev/null || fail "the packages could not be fetched"
(cd "$packages" && apt-get -o APT::Sandbox::User=root -qq download "$kernel" >/dev/null) ||
    fail "$kernel could not be fetched"
for package in "$packages"/*.deb; do
    case ${package##*/} in linux-image-*) [[ ${package##*/} == "$kernel"_* ]] || continue ;; esac
    dpkg-deb -x "$package" "$root"
done
version=$(ls "$root/lib/modules")

# A program and the libraries that it names, found by name in the unpacked packages.
declare -A library=()
while read -r path; do library[${path##*/}]=$path; done < <(
    cd "$root" && find lib usr/lib -not -type d \( -name '*.so' -o -name '*.so.*' \) | sort -r)
add() { # path in the packages
    local path=$1 name
    [ -e "$tree/$path" ] || [ -e "$base/$path" ] && return
    mkdir -p "$tree/${path%/*}" && cp -L "$root/$path" "$tree/$path"
    for name in $(objdump -p "$root/$path" 2>/dev/null | sed -n 's/^ *NEEDED *//p'); do
        [ -n "${library[$name]:-}" ] || fail "$path needs $name, which no package has"
        add "${library[$name]}"
    done
}
add lib64/ld-linux-x86-64.so.2 2>/dev/null || { # usr-merged packages keep the loader elsewhere
    mkdir -p "$tree/lib64" && cp -L "$(find "$root" -name ld-linux-x86-64.so.2 | head -1)" "$tree/lib64/"
}
for path in "${wanted[@]}"; do add "$path"; done
mkdir -p "$tree/etc"

for folder in "${module_folders[@]}"; do
    (cd "$root/lib/modules/$version" && find "kernel/$folder" -name '*.ko' -print0 |
        cpio -0pdm --quiet "$tree/lib/modules/$version" 2>/dev/null) || mkdir -p "$tree/lib/modules/$version"
done
for module in "${modules[@]}"; do
    from=lib/modules/$version/kernel/$module.ko
    [ -f "$root/$from" ] && mkdir -p "$tree/${from%/*}" && cp "$root/$from" "$tree/$from"
done
cp "$root/lib/modules/$version"/modules.{order,builtin} "$tree/lib/modules/$version/"

mkdir -p "$tree"/{bin,sbin,dev,proc,sys,tmp,run,root,var/run,etc,usr/bin,usr/sbin}
cp "$root/bin/busybox" "$tree/bin/busybox"
for applet in $("$tree/bin/busybox" --list); do
    [ "$applet" = sh ] || [ -e "$tree/bin/$applet" ] || [ -e "$tree/usr/bin/$applet" ] || [ -e "$tree/sbin/$applet" ] ||
        ln -s busybox "$tree/bin/$applet"
done
ln -sf ../bin/busybox "$tree/sbin/modprobe"
# Not busybox, whose shell takes its own programs before those of the same name.
ln -s dash "$tree/bin/sh"
install -m 755 "$here/init" "$tree/init"
"$tree/bin/busybox" depmod -b "$tree" "$version"
echo "root:x:0:0:root:/root:/bin/sh" >"$tree/etc/passwd"
echo "root:x:0:" >"$tree/etc/group"
printf 'icmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nesp 50 ESP\nah 51 AH\nipv6-icmp 58 IPv6-ICMP\n' >"$tree/etc/protocols"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$tree/etc/hosts"

pack() { (cd "$tree" && find . -print0 | sort -z | cpio -0o --quiet -H newc); }
pack >"$directory/initramfs.new"

# A second archive behind the first: what charon needs beyond it.
base=$directory/base
mv "$tree" "$base" && mkdir -p "$tree/etc"
for path in "${wanted_ike[@]}"; do add "$path"; done
for name in "${plugins[@]}"; do
    path=usr/lib/ipsec/plugins/libstrongswan-$name.so
    [ -f "$root/$path" ] && add "$path"
done
cp -r "$root"/etc/{swanctl,strongswan.conf,strongswan.d} "$tree/etc/"
pack | cat "$directory/initramfs.new" - >"$directory/initramfs-ike"

cp "$root/boot/vmlinuz-$version" "$directory/vmlinuz"
mv "$directory/initramfs.new" "$directory/initramfs"
rm -rf "$root" "$tree" "$base"
echo "$stamp" >"$directory/stamp"
echo "vm image: Linux $version, $(du -h "$directory/initramfs" | cut -f1)," \
    "$(du -h "$directory/initramfs-ike" | cut -f1) with strongSwan"

#!/usr/bin/env bash
# A laboratory of network namespaces: two sites, a gateway each, and a network between them that sees only ESP.
#
#      host-a                gw-a                              gw-b                host-b
#   +-----------+      +---------------+    "Internet"   +---------------+      +-----------+
#   | 10.1.0.10 |------| 10.1.0.1      |                 |      10.2.0.1 |------| 10.2.0.10 |
#   |  eth0     | lan  |  lan     wan  |-----------------|  wan     lan  | lan  |  eth0     |
#   +-----------+      | TUN fb0       | 192.0.2.1   .2  |       fb0 TUN |      +-----------+
#                      | forebay gateway                 forebay gateway |
#                      +---------------+                 +---------------+
#
# The hosts run ordinary programs and know nothing of it: gw-a routes 10.2.0.0/16 into its TUN, where Forebay takes
# the packets, seals them and sends them to 192.0.2.2; gw-b opens them and writes them to its own TUN, and the kernel
# routes them on.
#
#   scripts/lab.sh FOREBAY shell         a shell in the lab: ip netns exec host-a ping 10.2.0.10
#   scripts/lab.sh FOREBAY show          traffic for ten seconds, and `forebay top` of gateway A beside it
#   scripts/lab.sh FOREBAY run COMMAND   a command in the lab, in the place of the shell
#
# ENCAPSULATION (udp or none), PROPOSAL, MTU (of the network between; above 1500 of the sites too), BUFFER (of the
# sockets between), PROCESSORS (TOML), QUEUES (cores that move packets, each gateway) and TUNNELS change it: of several
# tunnels each is to a network 10.2.0.0/24, 10.2.1.0/24, ..., and host-b has an address .10 in each. All is in namespaces
# of mounts, network and processes: when it ends, however it ends, the kernel takes everything away.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
if [ "${FOREBAY_LAB_INSIDE:-}" != 1 ]; then
    forebay=$(realpath "${1:?usage: lab.sh FOREBAY shell|show|run COMMAND}")
    shift
    words=(unshare --mount --net --pid --fork --kill-child=KILL --mount-proc)
    [ "$(id -u)" -eq 0 ] || words+=(--user --map-root-user)
    if ! "${words[@]}" true 2>/dev/null || ! command -v ip >/dev/null || [ ! -e /dev/net/tun ]; then
        if [ "${LAB_OPTIONAL:-}" = 1 ]; then
            echo "lab: SKIPPED, it needs namespaces, iproute2 and TUN"
            exit 0
        fi
        echo "lab: namespaces cannot be made here: run it as root, or allow unprivileged user namespaces; it needs iproute2 and TUN too" >&2
        exit 2
    fi
    FOREBAY_LAB_INSIDE=1 exec "${words[@]}" "$0" "$forebay" "$@"
fi

forebay=$1
what=${2:-shell}
: "${ENCAPSULATION:=udp}" "${PROPOSAL:=aes128gcm16}" "${MTU:=1500}" "${BUFFER:=4 MiB}" "${PROCESSORS:=}"
: "${QUEUES:=1}" "${TUNNELS:=1}"
mount -t tmpfs none /run
mkdir -p /run/netns /run/lab
lab=/run/lab
# Where rules of the guard are saved by the names of files.
export FOREBAY_STATE=$lab/saved
umask 077

# The cipher key and salt, and the key of an integrity algorithm where there is one: as long as the suite wants them.
key_lengths() {
    local cipher
    case $PROPOSAL in
    aes128gcm* | aes128ccm* | aes128ctr-*) cipher=20 ;;
    aes256gcm* | aes256ctr-*) cipher=36 ;;
    aes192gcm*) cipher=28 ;;
    chacha20poly1305) cipher=36 ;;
    *) echo 'lab: PROPOSAL: an AEAD, or counter mode with integrity, please' >&2 && exit 2 ;;
    esac
    case $PROPOSAL in
    *-sha1) echo $cipher 20 ;;
    *-sha256) echo $cipher 32 ;;
    *-sha384) echo $cipher 48 ;;
    *-sha512) echo $cipher 64 ;;
    *) echo $cipher ;;
    esac
}
secret() { head -c "$1" /dev/urandom | od -An -tx1 | tr -d ' \n'; }

link() { # namespace and interface, twice
    ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"
    ip -n "$1" link set "$2" up
    ip -n "$3" link set "$4" up
}
for name in host-a gw-a gw-b host-b; do
    ip netns add "$name"
    ip -n "$name" link set lo up
    ip netns exec "$name" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1
done
link host-a eth0 gw-a lan
link gw-a wan gw-b wan
link gw-b lan host-b eth0
for end in gw-a:wan gw-b:wan host-a:eth0 gw-a:lan host-b:eth0 gw-b:lan; do
    [ "${end#*:}" != wan ] && [ "$MTU" -le 1500 ] || ip -n "${end%:*}" link set "${end#*:}" mtu "$MTU"
done
ip -n host-a addr add 10.1.0.10/16 dev eth0
ip -n host-a route add default via 10.1.0.1
ip -n gw-a addr add 10.1.0.1/16 dev lan
ip -n gw-a addr add 192.0.2.1/24 dev wan
ip -n gw-b addr add 192.0.2.2/24 dev wan
ip -n gw-b addr add 10.2.0.1/16 dev lan
ip -n host-b addr add 10.2.0.10/16 dev eth0
ip -n host-b route add default via 10.2.0.1
for ((n = 1; n < TUNNELS; n++)); do
    ip -n host-b addr add "10.2.$n.10/16" dev eth0
done

read -r cipher integrity <<<"$(key_lengths)"
tunnel() { [ "$1" = 0 ] || echo "-$1"; } # what stands behind names of all tunnels but the first
for ((n = 0; n < TUNNELS; n++)); do
    for way in a-to-b b-to-a; do
        secret "$cipher" >"$lab/$way$(tunnel $n).key"
        [ -z "$integrity" ] || secret "$integrity" >"$lab/$way$(tunnel $n).auth"
    done
done
auth_of() { [ -z "$integrity" ] || echo "auth_key_file = \"${1%.key}.auth\""; }
# Packets are to fit the buffers too.
limits=
[ "$MTU" -le 1900 ] || [[ $PROCESSORS == *'[limits]'* ]] || limits="[limits]
packet_size = $((MTU + 200))"
sa() { # name, direction, SPI, key, own number, peer's number, own and peer's network
    cat <<-TOML

	[[sa]]
	name = "$1"
	direction = "$2"
	spi = $3
	key_file = "$4"
	$(auth_of "$4")
	proposal = "$PROPOSAL"
	encapsulation = "$ENCAPSULATION"
	$([ "$2" = out ] || echo replay_window = 4096)
	local = "192.0.2.$5"
	remote = "192.0.2.$6"
	local_ts = ["$7"]
	remote_ts = ["$8"]
	TOML
}
gateway() { # letter and number, peer's letter and number
    local inside_mtu=$((MTU - 100)) n
    cat >"$lab/$1.toml" <<-TOML
	[inside]
	name = "fb0"
	mtu = $inside_mtu
	answer = ["10.$2.0.1"]
	queues = $QUEUES

	[[outside]]
	kind = "$([ "$ENCAPSULATION" = udp ] && echo udp || echo raw)"
	$([ "$ENCAPSULATION" = udp ] && echo "listen = \"192.0.2.$2:4500\"")
	buffer = "$BUFFER"

	[keys]
	state = "state-$1"

	[control]
	socket = "$lab/$1.sock"

	$PROCESSORS

	$limits
	TOML
    for ((n = 0; n < TUNNELS; n++)); do
        local end nets=(10.1.0.0/16 "10.2.$n.0/$([ "$TUNNELS" = 1 ] && echo 16 || echo 24)")
        end=$(tunnel "$n")
        local here=${nets[$2 - 1]} there=${nets[$4 - 1]}
        sa "to-peer$end" out "$(printf '%#x' $(($2 * 0x1000 + 1 + n)))" "$1-to-$3$end.key" "$2" "$4" "$here" "$there"
        sa "from-peer$end" in "$(printf '%#x' $(($4 * 0x1000 + 1 + n)))" "$3-to-$1$end.key" "$2" "$4" "$here" "$there"
    done >>"$lab/$1.toml"
    ip netns exec "gw-$1" "$forebay" gateway --config "$lab/$1.toml" 2>"$lab/$1.log" &
}
gateway a 1 b 2
gateway b 2 a 1
for letter in a b; do
    for _ in $(seq 100); do
        # The routes come before the control socket.
        ip -n "gw-$letter" route show | grep -q 'dev fb0' && [ -S "$lab/$letter.sock" ] && continue 2
        sleep 0.1
    done
    echo "lab: gateway $letter did not start:" >&2
    cat "$lab/$letter.log" >&2
    exit 1
done

case $what in
shell)
    echo 'lab: host-a 10.1.0.10, host-b 10.2.0.10, gateways gw-a and gw-b; logs and control sockets in /run/lab.'
    echo 'Try: ip netns exec host-a ping 10.2.0.10'
    PS1='lab# ' bash --norc -i || true
    ;;
show)
    command -v iperf3 >/dev/null || { echo 'lab: iperf3 is not installed (scripts/setup.sh lab)' >&2; exit 2; }
    ip netns exec host-b iperf3 -s -D >/dev/null
    sleep 0.3
    ip netns exec host-a iperf3 -c 10.2.0.10 -t 10 >$lab/iperf.txt &
    traffic=$!
    if [ -t 1 ]; then
        timeout 10 "$forebay" top --socket $lab/a.sock || true
    else
        sleep 5
        "$forebay" status --socket $lab/a.sock || true
    fi
    wait $traffic
    tail -4 $lab/iperf.txt
    ;;
run)
    shift 2
    FOREBAY=$forebay LAB=$lab "$@"
    ;;
*)
    echo "lab: '$what': shell, show or run" >&2
    exit 2
    ;;
esac

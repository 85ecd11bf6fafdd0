#!/usr/bin/env bash
#
# Records demo/traffic.pcap: real programs talking between two network
# namespaces, Ethernet framing, nanosecond stamps, both IP families.
#
#   ┌───────── east ─────────┐      ┌───── middle ─────┐      ┌───────── west ─────────┐
#   │ curl, dig, ssh, ping,  │      │  routes          │      │ http.server, dnsmasq,  │
#   │ call.py                │      │ at 100 Mbit/s    │      │ sshd, call.py          │
#   │                        │ veth │                  │ veth │                        │
#   │        east0 ●─────────┼──────┼─● east1  west1 ●─┼──────┼─────────● west0        │
#   │ 10.1.0.11 .12          │      │ ▲ .254      .254 │      │ 10.2.0.10 web          │
#   │ fd00:1::11 ::12        │      │ │ ::fe      ::fe │      │ 10.2.0.22 ssh          │
#   └────────────────────────┘      └─┼────────────────┘      │ 10.2.0.30 call         │
#                                     │                       │ 10.2.0.53 dns          │
#                                  tcpdump                    │ fd00:2::10 ::22 ::53   │
#                                                             └────────────────────────┘
#
# All offloads are off, so what is recorded is what a wire would have carried:
# whole checksums, no frame over 1514 bytes. Only packets between the two
# networks are kept: no ARP, no neighbour discovery.
#
# Usage: sudo demo/record.sh [OUTPUT.pcap]        (about 25 seconds)

set -euo pipefail

readonly here=$(cd "$(dirname "$0")" && pwd)
readonly output=$(realpath -m "${1:-$here/traffic.pcap}")
readonly patience=90 # seconds, for the whole recording
readonly east=east-$$ middle=middle-$$ west=west-$$

# ---------------------------------------------------------------- programs

readonly -A package_of=(
    [ip]=iproute2 [tc]=iproute2 [ethtool]=ethtool [tcpdump]=tcpdump [curl]=curl [dig]=bind9-dnsutils
    [dnsmasq]=dnsmasq-base [sshd]=openssh-server [ssh]=openssh-client [scp]=openssh-client
    [ssh-keygen]=openssh-client [ping]=iputils-ping [python3]=python3 [timeout]=coreutils
)

need_programs() {
    local missing=() program
    PATH=$PATH:/usr/sbin:/sbin
    for program in "${!package_of[@]}"; do
        command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
    done
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u | sed '/^$/d')
    if ((EUID != 0)); then
        echo "record.sh makes network namespaces and needs root: sudo $0" >&2
        ((${#missing[@]} == 0)) || echo "missing: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 2
    fi
    ((${#missing[@]} == 0)) && return
    echo "installing ${missing[*]}" >&2
    if ! timeout 300 env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null; then
        echo "could not install; try: apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 2
    fi
}

# ------------------------------------------------------- start, stop, clean

scratch='' servers=() clients=()

# Runs a command in a namespace; `ip netns exec` becomes the command, so $! is its own id.
in_ns() { ip netns exec "$@"; }

serve() { # NAMESPACE COMMAND...: runs until the end of the recording
    ip netns exec "$1" timeout -k 2 "$patience" "${@:2}" </dev/null >>"$scratch/log" 2>&1 &
    servers+=($!)
}

client() { # FUNCTION: one person's traffic, in the background
    "$1" </dev/null >>"$scratch/log" 2>&1 &
    clients+=($!)
}

clean_up() {
    local status=$? namespace pid
    trap - EXIT INT TERM HUP
    set +e
    for pid in "${clients[@]}" "${servers[@]}"; do kill "$pid" 2>/dev/null; done
    # Children of those (an ssh session, a shell) live in namespaces of ours alone.
    for namespace in "$east" "$west" "$middle"; do
        for pid in $(ip netns pids "$namespace" 2>/dev/null); do kill "$pid" 2>/dev/null; done
    done
    wait 2>/dev/null
    for namespace in "$east" "$west" "$middle"; do ip netns delete "$namespace" 2>/dev/null; done
    if [[ -n $scratch ]]; then
        ((status == 0)) || { echo "record.sh failed; the last of its log:" >&2; tail -n 20 "$scratch/log" >&2; }
        rm -rf "$scratch"
    fi
    exit "$status"
}

wait_for() { # WHAT COMMAND...: tries for five seconds
    local what=$1 try
    shift
    for try in {1..50}; do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
    echo "$what did not start" >&2
    return 1
}

# ------------------------------------------------------------------ network

make_network() {
    local namespace side
    for namespace in "$east" "$middle" "$west"; do
        ip netns add "$namespace"
        # No duplicate address detection: addresses work at once.
        in_ns "$namespace" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
        ip -n "$namespace" link set lo up
    done
    ip -n "$east" link add east0 address 02:00:00:01:00:01 type veth \
        peer name east1 address 02:00:00:01:00:fe netns "$middle"
    ip -n "$west" link add west0 address 02:00:00:02:00:01 type veth \
        peer name west1 address 02:00:00:02:00:fe netns "$middle"
    for side in "$east east0" "$middle east1" "$middle west1" "$west west0"; do
        set -- $side
        in_ns "$1" ethtool -K "$2" rx off tx off sg off tso off gso off gro off >/dev/null 2>&1
        ip -n "$1" link set "$2" mtu 1500 up
    done
    local host
    for host in 11 12; do
        ip -n "$east" address add "10.1.0.$host/24" dev east0
        ip -n "$east" address add "fd00:1::$host/64" dev east0 nodad
    done
    for host in 10 22 30 53; do
        ip -n "$west" address add "10.2.0.$host/24" dev west0
        ip -n "$west" address add "fd00:2::$host/64" dev west0 nodad
    done
    ip -n "$middle" address add 10.1.0.254/24 dev east1
    ip -n "$middle" address add 10.2.0.254/24 dev west1
    ip -n "$middle" address add fd00:1::fe/64 dev east1 nodad
    ip -n "$middle" address add fd00:2::fe/64 dev west1 nodad
    in_ns "$middle" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    ip -n "$east" route add default via 10.1.0.254
    ip -n "$west" route add default via 10.2.0.254
    ip -n "$east" route add default via fd00:1::fe
    ip -n "$west" route add default via fd00:2::fe
    # A line's pace, so that packets come as they would from one: 100 Mbit/s, and where the
    # kernel can delay packets, a town's distance too.
    local device
    for device in east1 west1; do
        tc -n "$middle" qdisc add dev "$device" root netem delay 4ms rate 100mbit limit 2000 2>/dev/null ||
            tc -n "$middle" qdisc add dev "$device" root tbf rate 100mbit burst 16k latency 50ms
    done
}

# ------------------------------------------------------------------ servers

make_pages() {
    mkdir "$scratch/www"
    python3 - "$scratch/www" <<'PYTHON'
import pathlib, random, sys
random.seed(1)
www = pathlib.Path(sys.argv[1])
words = "water basin turbine gate weir spill head race penstock flow level mill".split()
def text(n): return " ".join(random.choice(words) for _ in range(n // 5))[:n].encode()
for name, size in [("index.html", 3_900), ("style.css", 11_000), ("app.js", 46_000), ("news.html", 900), ("empty", 0)]:
    (www / name).write_bytes(text(size))
for name, size in [("logo.bin", 2_300), ("photo.bin", 140_000), ("archive.tar", 520_000), ("icon.bin", 318)]:
    (www / name).write_bytes(random.randbytes(size))
PYTHON
}

start_servers() {
    make_pages
    serve "$west" python3 -m http.server --bind :: --protocol HTTP/1.1 --directory "$scratch/www" 80

    { # a zone of a hundred hosts
        local i
        for i in {1..100}; do printf '10.2.0.%d host%d.west.example\nfd00:2::%x host%d.west.example\n' "$i" "$i" "$i" "$i"; done
    } >"$scratch/hosts"
    serve "$west" dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --pid-file= \
        --no-resolv --no-hosts --no-poll --addn-hosts="$scratch/hosts" --bind-interfaces \
        --listen-address=10.2.0.53,fd00:2::53 --local=/example/ \
        --txt-record=west.example,"v=spf1 ip4:10.2.0.0/24 ip6:fd00:2::/64 -all" \
        --txt-record=long.west.example,"$(printf 'forebay%.0s' {1..30})","$(printf 'penstock%.0s' {1..28})" \
        --mx-host=west.example,host25.west.example,10 --srv-host=_sip._udp.west.example,host30.west.example,5060

    # Throw-away keys: made here, gone with the scratch directory.
    ssh-keygen -q -t ed25519 -N '' -C throw-away -f "$scratch/host_key"
    ssh-keygen -q -t ed25519 -N '' -C throw-away -f "$scratch/user_key"
    cp "$scratch/user_key.pub" "$scratch/authorized_keys"
    cat >"$scratch/sshd_config" <<CONFIG
Port 2222
ListenAddress 10.2.0.22
ListenAddress fd00:2::22
HostKey $scratch/host_key
AuthorizedKeysFile $scratch/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
SetEnv HISTFILE=/dev/null
Subsystem sftp internal-sftp
CONFIG
    cat >"$scratch/ssh_config" <<CONFIG
Host *
    Port 2222
    User root
    IdentityFile $scratch/user_key
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile $scratch/known_hosts
    ConnectTimeout 5
CONFIG
    mkdir -p /run/sshd
    serve "$west" "$(command -v sshd)" -D -e -f "$scratch/sshd_config"

    wait_for "the web server" in_ns "$east" curl -s --max-time 1 -o /dev/null http://10.2.0.10/empty
    wait_for "the name server" in_ns "$east" dig +time=1 +tries=1 @10.2.0.53 host1.west.example
    wait_for "the ssh server" in_ns "$east" ssh -F "$scratch/ssh_config" 10.2.0.22 true
    wait_for "IPv6" in_ns "$east" ping -6 -c 1 -W 1 fd00:2::10
}

# ------------------------------------------------------------------ clients

fetch() { in_ns "$east" curl -sS --max-time 20 --limit-rate 4M --output-dir "$scratch" "$@"; }

browse() {
    local web
    for web in 10.2.0.10 '[fd00:2::10]'; do
        # One connection for a page and what it names, as a browser does.
        fetch --interface "$([[ $web == 10* ]] && echo 10.1.0.11 || echo fd00:1::11)" \
            "http://$web/index.html" -o a "http://$web/style.css" -o b "http://$web/app.js" -o c \
            "http://$web/logo.bin" -o d "http://$web/icon.bin" -o e
        sleep 0.8
        fetch "http://$web/photo.bin" -o f
        sleep 0.5
        fetch "http://$web/news.html" -o g "http://$web/missing" -o h "http://$web/empty" -o i
        sleep 0.6
    done
    fetch http://10.2.0.10/archive.tar -o j
    sleep 0.4
    fetch 'http://[fd00:2::10]/archive.tar' -o k -r 0-399999
    for _ in {1..45}; do fetch http://10.2.0.10/news.html -o l; sleep 0.07; done # a page that polls
}

resolve() {
    local i server type
    for i in {1..110}; do
        for server in 10.2.0.53 fd00:2::53; do
            for type in A AAAA; do
                printf '@%s host%d.west.example %s +noall\n' "$server" $((i * 7 % 110 + 1)) "$type"
            done
        done
    done >"$scratch/questions"
    split -l 40 "$scratch/questions" "$scratch/questions."
    for i in "$scratch"/questions.*; do
        in_ns "$east" timeout 20 dig +time=2 +tries=1 -f "$i"
        sleep 0.4
    done
    for type in 'west.example TXT' 'long.west.example TXT' 'west.example MX' '_sip._udp.west.example SRV' '-x 10.2.0.25'; do
        in_ns "$east" timeout 5 dig +time=2 +tries=1 @10.2.0.53 $type
        in_ns "$east" timeout 5 dig +time=2 +tries=1 +tcp @fd00:2::53 $type
    done
}

log_in() { in_ns "$east" timeout 40 python3 "$here/typist.py" ssh -tt -F "$scratch/ssh_config" -b 10.1.0.12 10.2.0.22 ; }

copy_files() {
    sleep 3
    in_ns "$east" timeout 20 scp -q -F "$scratch/ssh_config" "$scratch/www/photo.bin" "10.2.0.22:$scratch/up.jpg"
    sleep 2
    in_ns "$east" timeout 20 scp -q -F "$scratch/ssh_config" "[fd00:2::22]:$scratch/www/app.js" "$scratch/down.js"
}

call() {
    in_ns "$west" timeout 20 python3 "$here/call.py" 10.2.0.30 10.1.0.11 --seed 2 &
    in_ns "$east" timeout 20 python3 "$here/call.py" 10.1.0.11 10.2.0.30 --seed 1
    wait $!
}

probe() {
    local pids=()
    in_ns "$east" timeout 20 ping -q -c 30 -i 0.3 10.2.0.10 & pids+=($!)
    in_ns "$east" timeout 20 ping -6 -q -c 30 -i 0.3 fd00:2::10 & pids+=($!)
    in_ns "$east" timeout 20 ping -q -c 6 -i 0.7 -s 1400 10.2.0.22 & pids+=($!)
    in_ns "$west" timeout 20 ping -6 -q -c 6 -i 0.7 -s 512 fd00:1::12 & pids+=($!)
    wait "${pids[@]}"
}

# ---------------------------------------------------------------- recording

main() {
    need_programs
    scratch=$(mktemp -d)
    touch "$scratch/log"
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    make_network
    start_servers

    local both='(net 10.1.0.0/24 and net 10.2.0.0/24) or (ip6 and net fd00:1::/64 and net fd00:2::/64)'
    serve "$middle" tcpdump -i east1 --nano -n -p -U -s 0 -B 16384 -Z root -w "$scratch/traffic.pcap" "$both"
    local recorder=${servers[-1]}
    wait_for "tcpdump" grep -q 'listening on' "$scratch/log"

    echo "recording: a call, a browser, a name client, a person at a terminal, file copies, pings" >&2
    local person failed=0
    for person in call browse resolve log_in copy_files probe; do client "$person"; done
    for person in "${clients[@]}"; do wait "$person" || failed=1; done
    ((failed == 0)) || { echo "a client failed" >&2; exit 1; }
    sleep 0.5
    kill -INT "$recorder"
    wait "$recorder" || true
    grep -E 'packets? (captured|dropped by kernel)' "$scratch/log" >&2
    grep -q '^0 packets dropped by kernel' "$scratch/log" || { echo "the recorder lost packets" >&2; exit 1; }

    install -D -m 644 "$scratch/traffic.pcap" "$output"
    echo "wrote $output" >&2
    python3 "$here/figures.py" "$output"
}

main

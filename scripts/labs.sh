#!/usr/bin/env bash
# The tests in the laboratory of network namespaces, each in a laboratory of its own, several at a time: they wait more than
# they compute. What each says comes when it has ended.
#
#   scripts/labs.sh FOREBAY quick|full [NAME...]
#
# JOBS is how many run at a time, 4 by default.
# `full` has ten thousand SAs instead of a thousand, all settings of AF_XDP, and a longer soak. Without namespaces or TUN they are skipped.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tests=$here/../tests/gateway
forebay=$(realpath "$1") extent=$2
shift 2
# The longest first.
[ $# -gt 0 ] || set -- keys guard two_sites image tunnel_new icmp families restart roll_over replay pair cluster page privileges links \
    hostile offloads peer_names queues per_cpu per_cpu_acquire taps beside_ike xdp many_sas icmp_load soak
if [ $# -gt 1 ]; then
    logs=$(mktemp -d)
    trap 'rm -rf "$logs"' EXIT
    # shellcheck disable=SC2016 # for the inner shell
    printf '%s\n' "$@" | xargs -P "${JOBS:-4}" -I{} bash -c \
        '"$0" "$1" "$2" "$3" >"$4/$3" 2>&1 && ok=0 || ok=255; cat "$4/$3"; exit $ok' "$0" "$forebay" "$extent" {} "$logs"
    exit
fi

pairs=500 soak=8 cards="driver-udp-4-cores generic-udp-6"
[ "$extent" = full ] && pairs=5000 soak=60 cards=

lab() { # variables, then a test and its arguments
    local began=$SECONDS
    timeout --kill-after=10 600 env LAB_OPTIONAL=1 "${@:2}" "$here/lab.sh" "$forebay" run ${1}
    echo "labs: $name in $((SECONDS - began)) s"
}

for name in "$@"; do
    case $name in
    replay)
        lab "$tests/replay.py"
        [ "$extent" = quick ] || lab "$tests/replay.py" ESN=1 ENCAPSULATION=none
        ;;
    # It makes a laboratory of its own, with three gateways.
    pair)
        began=$SECONDS
        timeout --kill-after=10 600 "$tests/pair.py" "$forebay"
        [ "$extent" = quick ] || timeout --kill-after=10 600 "$tests/pair.py" "$forebay" --ipv6
        echo "labs: pair in $((SECONDS - began)) s"
        ;;
    # The same, with three servers of etcd.
    cluster)
        began=$SECONDS
        few="--gateways 3 --takeovers 4 --seed 3"
        [ "$extent" = full ] && few=
        # shellcheck disable=SC2086 # words
        PATH=$("$here/etcd.sh"):$PATH timeout --kill-after=10 600 "$tests/cluster.py" "$forebay" $few
        echo "labs: cluster in $((SECONDS - began)) s"
        ;;
    # Containers in it, one for each command. The gateway's own program is what packages and images have.
    image)
        began=$SECONDS
        program=$(dirname "$forebay")/forebay-gateway
        [ -x "$program" ] || program=$forebay
        timeout --kill-after=10 600 "$here/../tests/packaging/image.py" --of "$program"
        echo "labs: image in $((SECONDS - began)) s"
        ;;
    page) lab "$tests/page.py" TUNNELS=50 ;;
    peer_names) lab "$tests/peer_names.py" ENCAPSULATION=none ;;
    queues) lab "$tests/queues.py" QUEUES=2 TUNNELS=4 ;;
    per_cpu) lab "$tests/per_cpu.py" QUEUES=2 ;;
    many_sas) lab "$tests/many_sas.py $pairs" ;;
    icmp_load) lab "$tests/icmp_load.py $pairs $((soak / 4))" ;;
    xdp) lab "$tests/xdp.py $cards" ;;
    soak) lab "$tests/soak.py $soak" ;;
    *) lab "$tests/$name.py" ;;
    esac
done

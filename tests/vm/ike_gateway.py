#!/usr/bin/env python3
"""`forebay gateway` with keys from strongSwan, against Linux with strongSwan.

Both ends are virtual machines (ike.py); on ours the kernel only keeps what charon installs, and Forebay does the work.
Under pings that never pause: rekeys by either end without a packet lost, deletion without a packet in the clear,
connection by a packet that wants one, a killed gateway and a restarted peer. With --encap ESP goes in UDP, beside charon,
which has the port.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ike
from vm import HERE, VmError, enter

LINKS = {False: 'kind = "raw"', True: 'kind = "udp"\nbeside_ike = true'}

CONFIGURATION = f"""
[inside]
name = "forebay0"
mtu = 1400
queues = QUEUES

[[outside]]
LINK

[keys]
source = "xfrm"
mark = {ike.MARK:#x}

[limits]
in_flight = 256
packet_size = 10240

[control]
socket = "/run/control.sock"
"""


def start(a):
    count = "grep -c 'gateway started' /tmp/gateway.log || true"
    a.sh(f"mkdir -p /var/lib; touch /tmp/gateway.log; before=$({count})\n"
         "setsid /tmp/forebay gateway --config /tmp/gateway.toml >>/tmp/gateway.log 2>&1 &\n"
         f"for try in $(seq 200); do [ $({count}) -gt $before ] && exit 0; usleep 200000; done; "
         "tail -20 /tmp/gateway.log; exit 1", seconds=120)


def lost(output):
    """Numbers of a ping's packets that did not come back, those on their way at its end aside; and the last that did."""
    back = [int(number) for number in re.findall(r"icmp_seq=(\d+)", output)]
    if len(back) != len(set(back)) or not back:
        raise VmError(f"nothing came back, or something twice\n{output[-2000:]}")
    return sorted(set(range(1, max(back) + 1)) - set(back)), max(back)


def established(vm):
    """Rekeyed child SAs so far."""
    return int(vm.sh("grep -c 'outbound CHILD_SA net{.*established' /tmp/charon.log || true"))


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path)
    parser.add_argument("--rekeys", type=int, default=10)
    parser.add_argument("--queues", type=int, default=1, help="cores that move packets")
    parser.add_argument("--encap", action="store_true")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(dir="/run"))
    subprocess.run(["strip", "-o", work / "forebay", arguments.forebay], check=True)
    encap = "encap = yes" if arguments.encap else ""
    ours = ike.connection(1, 2, child=f"{ike.MARKED}\n start_action = trap", extra=encap)
    for wire, a, b in ike.pair(ours, ike.connection(2, 1, extra=encap), memory=768):
        b.sh("ip route add 10.1.0.0/16 via 192.0.2.1 src 10.2.0.1")
        a.put(work / "forebay", "/tmp/forebay", 0o755)
        configuration = CONFIGURATION.replace("QUEUES", str(arguments.queues)).replace("LINK", LINKS[arguments.encap])
        a.put(configuration.encode(), "/tmp/gateway.toml")
        a.sh("modprobe tun; mkdir -p /dev/net; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200")
        watch = wire.start([sys.executable, HERE / "watch.py", "a", "10."], stdout=subprocess.PIPE, text=True)
        watch.stdout.readline()
        try:
            start(a)
            steps(a, b, arguments.rekeys)
            if arguments.encap:
                beside(a)
        finally:
            (work / "gateway.log").write_text(a.sh("cat /tmp/gateway.log", check=False)[1])
        watch.terminate()
        seen = json.loads(watch.communicate(timeout=20)[0])
        sealed, clear = seen["esp"], seen["clear"]
        if clear or not sealed:
            raise VmError(f"{sealed} sealed; in the clear:\n" + "\n".join(clear))
        print(f"ike_gateway: {sealed} packets sealed, none in the clear")
    print("ike_gateway: ok")


def steps(a, b, rekeys):
    # The first packet meets a trap: the gateway asks charon for SAs.
    a.sh("ping -c 20 -i 0.5 -W 2 -I 10.1.0.1 10.2.0.1 || { ip xfrm state; ip xfrm policy; ip route; cat /proc/net/xfrm_stat; exit 1; }", seconds=40)
    print("ike_gateway: connected by a packet")

    before = established(a)
    b.begin(f"ping -i 0.05 -w {300 + 6 * rekeys} -I 10.2.0.1 10.1.0.1 >/tmp/ping.out & echo $!")
    process = b.end().strip()
    for number in range(rekeys):
        (a, b)[number % 2].sh("swanctl --rekey --child net >/dev/null")
        time.sleep(0.3)
        if sys.stderr.isatty():
            print(f"\rike_gateway: {number + 1} of {rekeys} rekeys", end="" if number + 1 < rekeys else "\n", file=sys.stderr)
    deadline = time.monotonic() + 30
    while established(a) - before < rekeys and time.monotonic() < deadline:
        time.sleep(0.5)
    time.sleep(1)
    b.sh(f"kill -INT {process}; sleep 0.5")
    missing, sent = lost(b.sh("cat /tmp/ping.out"))
    # Linux drops what it was about to seal with an SA that its own rekey has just deleted: that is not ours.
    theirs = sum(int(count) for count in re.findall(r"XfrmOut\w+\s+(\d+)", b.sh("cat /proc/net/xfrm_stat")))
    engines = json.loads(a.sh("/tmp/forebay status --socket /run/control.sock --json"))["engines"]
    print(f"ike_gateway: {sum(one['strangers'] for one in engines)} packets came before the news of their SA, and waited")
    print(f"ike_gateway: {established(a) - before} rekeys under {sent} pings, lost: {missing}, {theirs} of them by Linux itself")
    if len(missing) > theirs or established(a) - before < rekeys:
        of_ours = ("grep WARN /tmp/gateway.log | grep -v ff02 | tail -20; ip -s link show forebay0; cat /proc/net/xfrm_stat; "
                   "for spi in $(sed -n 's/.*in_no_states.* spi=0x\\([0-9a-f]*\\).*/\\1/p' /tmp/gateway.log | sort -u); do "
                   "grep -i -C 3 $spi /tmp/gateway.log; done")
        raise VmError(b.sh("tail -5 /tmp/ping.out; cat /proc/net/xfrm_stat") + a.sh(of_ours))

    shown = a.sh("swanctl --list-sas 2>/dev/null")
    print("".join(line + "\n" for line in shown.splitlines() if "packets" in line), end="")
    # Of the pair in use; the others ended between two reports.
    if re.search(r" 0 bytes,\s+0 packets", shown[shown.index("INSTALLED") :]):
        raise VmError(f"charon does not see what passes\n{shown}")

    # Big packets: in pieces, both ways.
    for size in (1300, 4000, 9000):
        a.sh(f"ping -c 2 -W 3 -s {size} -I 10.1.0.1 10.2.0.1; ")
        b.sh(f"ping -c 2 -W 3 -s {size} -I 10.2.0.1 10.1.0.1")
    print("ike_gateway: fragments ok")

    # A killed gateway goes on with the SAs that the kernel keeps, and with numbers not used before. What its replay
    # window may have taken counts as taken: as many packets as the SA received in its last second are refused.
    a.sh("kill -9 $(pidof forebay); sleep 0.5")
    start(a)
    missing, sent = lost(a.sh("ping -c 100 -i 0.05 -W 2 -I 10.1.0.1 10.2.0.1"))
    drops = json.loads(a.sh("/tmp/forebay status --socket /run/control.sock --json"))["drops"]
    print(f"ike_gateway: killed and restarted; of {sent} pings {len(missing)} were refused: {drops}")
    # 9000 bytes both ways are some 30 packets; the SA was not used more in the second before.
    if len(missing) > 60 or missing != list(range(1, len(missing) + 1)):
        raise VmError(f"lost after the restart: {missing}")

    a.sh("swanctl --terminate --ike net", seconds=30)
    a.sh("ping -c 20 -i 0.5 -W 2 -I 10.1.0.1 10.2.0.1 >/dev/null", seconds=40)
    print("ike_gateway: deleted, and connected again by a packet")

    b.sh("kill -9 $(pidof charon-systemd); sleep 0.5; ip xfrm state flush; ip xfrm policy flush")
    ike.begin(b)
    b.sh("swanctl --initiate --child net --timeout 20 >/dev/null", seconds=40)
    b.sh("ping -c 5 -i 0.2 -W 2 -I 10.2.0.1 10.1.0.1")
    print("ike_gateway: peer restarted")


def beside(a):
    """The kernel has silently dropped the packets that the gateway received on the shared UDP port."""
    kernel = a.sh("cat /proc/net/xfrm_stat /proc/net/snmp")
    dropped = int(re.search(r"XfrmInNoStates\s+(\d+)", kernel)[1])
    names, counts = [line.split() for line in kernel.splitlines() if line.startswith("Icmp:")]
    unreachable = int(counts[names.index("OutDestUnreachs")])
    print(f"ike_gateway: beside charon; its kernel dropped {dropped} copies in silence")
    if unreachable or dropped < 100:
        raise VmError(f"{unreachable} ICMP messages, {dropped} copies\n{kernel}")


if __name__ == "__main__":
    main()

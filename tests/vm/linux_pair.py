#!/usr/bin/env python3
"""Linux against Linux through the harness: two virtual machines on one wire, ESP between them.

    a 192.0.2.1 (10.1.0.1) -- tap a -- bridge in namespace "wire" -- tap b -- b 192.0.2.2 (10.2.0.1)
"""

import time

from vm import Namespace, Vm, VmError, enter

KEY = "0x" + "11" * 16 + "22" * 4


def main():
    enter()
    began = time.monotonic()
    wire = Namespace("wire")
    wire.tap("a", "br"), wire.tap("b", "br")
    with Vm("a", [(wire, "a")]) as a, Vm("b", [(wire, "b")]) as b:
        for vm, own, peer in ((a, 1, 2), (b, 2, 1)):
            uptime = vm.wait()
            print(f"{vm.name}: started in {uptime} s of its time, {time.monotonic() - began:.1f} s of ours")
        for vm, own, peer in ((a, 1, 2), (b, 2, 1)):
            vm.sh(f"""
                ip addr add 192.0.2.{own}/24 dev eth0; ip addr add 10.{own}.0.1/16 dev lo; ip link set eth0 up
                ip route add 10.{peer}.0.0/16 via 192.0.2.{peer} src 10.{own}.0.1""")
            for source, target in ((own, peer), (peer, own)):
                vm.sh(f"ip xfrm state add src 192.0.2.{source} dst 192.0.2.{target} proto esp spi 0x100{source} reqid 1 "
                      f"mode tunnel replay-window 64 aead 'rfc4106(gcm(aes))' {KEY} 128")
                ways = ["out"] if source == own else ["in", "fwd"]
                for way in ways:
                    vm.sh(f"ip xfrm policy add src 10.{source}.0.0/16 dst 10.{target}.0.0/16 dir {way} "
                          f"tmpl src 192.0.2.{source} dst 192.0.2.{target} proto esp reqid 1 mode tunnel")
        watch = wire.start(["timeout", "20", "tcpdump", "-nni", "br", "-c", "6", "-l", "esp"], text=True, stdout=-1, stderr=-3)
        time.sleep(0.5)
        print(a.sh("ping -c 3 -i 0.2 -W 2 10.2.0.1"))
        seen = watch.communicate()[0]
        print(seen)
        if "ESP(spi=0x00001001" not in seen or "ESP(spi=0x00001002" not in seen:
            raise VmError("no ESP on the wire")
    print(f"linux_pair: ok, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()

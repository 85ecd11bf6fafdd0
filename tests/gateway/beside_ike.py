#!/usr/bin/env python3
"""A gateway beside an IKE daemon that has UDP port 4500, and one that passes IKE on to a daemon elsewhere.

The daemon is a stand-in, which does with its socket what charon and pluto do. Runs in the laboratory:

    scripts/lab.sh FOREBAY run tests/gateway/beside_ike.py
"""

import os
import signal
import subprocess
import sys
import time

from two_sites import ASK, FOREBAY, HOST_A, HOST_B, LAB, SEND, SERVE, SIZES, ask, gateway_of, inside, program, run, start

# Says what it hears, and answers. 17, 100, 2: SOL_UDP, UDP_ENCAP, UDP_ENCAP_ESPINUDP.
DAEMON = """
import socket, sys
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket_.bind(("0.0.0.0", int(sys.argv[1])))
if int(sys.argv[2]):
    socket_.setsockopt(17, 100, 2)
print("ready", flush=True)
while True:
    data, sender = socket_.recvfrom(65535)
    print(data[:40], flush=True)
    socket_.sendto(bytes(4) + b"an answer to " + data[4:], sender)
"""
# Of a peer: messages get answers from the port that they went to.
IKE = """
import socket
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); peer.settimeout(5)
for n in range(20):
    message = b"message %d" % n
    peer.sendto(bytes(4) + message, ("192.0.2.1", 4500))
    assert peer.recvfrom(65535) == (bytes(4) + b"an answer to " + message, ("192.0.2.1", 4500))
peer.sendto(b"\\xff", ("192.0.2.1", 4500))
"""


class Daemon:
    def __init__(self, port, encapsulates):
        words = program("gw-a", DAEMON, port, int(encapsulates))
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        """What it has heard."""
        self.process.kill()
        return self.process.stdout.read().splitlines()


def end_gateways():
    for letter in "ab":
        os.kill(gateway_of(letter), signal.SIGTERM)
        while os.path.exists(f"{LAB}/{letter}.sock"):
            time.sleep(0.05)


def start_gateways(setting):
    """Starts both, gateway A with another setting of its link; both, since sequence numbers begin anew."""
    with open(f"{LAB}/a.toml", encoding="utf-8") as file:
        text = file.read()
    for line in ["beside_ike = true\n", 'keepalive = "1 s"\n', 'ike_forward = "127.0.0.1:4501"\n']:
        text = text.replace(line, "")
    listen = 'listen = "192.0.2.1:4500"\n'
    assert listen in text
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(text.replace(listen, listen + setting))
    for letter in "ab":
        start(letter)


def counter(file, name):
    """A counter of the kernel's in gateway A's namespace."""
    said = subprocess.run(inside("gw-a", "cat", f"/proc/net/{file}"), check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in said.splitlines()]
    for names, values in zip(lines, lines[1:]):
        if name in names and names[0] == values[0]:
            return int(values[names.index(name)])
    return next((int(line[1]) for line in lines if line[0] == name), None)


def traffic():
    run("host-a", ASK, HOST_B, *SIZES)
    run("host-b", ASK, HOST_A, *SIZES)
    run("host-a", SEND, HOST_B, 20_000_000)
    run("host-b", SEND, HOST_A, 20_000_000)


def main():
    servers = [subprocess.Popen(program(name, SERVE), stdout=subprocess.PIPE, text=True) for name in ("host-a", "host-b")]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    end_gateways()

    daemon = Daemon(4500, True)
    start_gateways('beside_ike = true\nkeepalive = "1 s"\n')
    subprocess.run(program("gw-b", IKE), check=True, timeout=30)
    ike = subprocess.Popen(program("gw-b", IKE))
    traffic()
    assert ike.wait(timeout=30) == 0
    # The first look after the traffic sees that there was some.
    time.sleep(4)
    status = ask("status")
    assert status["engines"][0]["keepalives"] >= 2, status["engines"]
    heard = daemon.end()
    assert len(heard) == 40 and all("message" in line for line in heard), heard
    unreachable, no_states = counter("snmp", "OutDestUnreachs"), counter("xfrm_stat", "XfrmInNoStates")
    # A kernel without ESP answers its copies by ICMP, another one drops them in silence.
    known = ["ip", "-n", "gw-a", "xfrm", "state", "add", "src", "192.0.2.7", "dst", "192.0.2.8", "proto", "esp", "spi", "9",
             "aead", "rfc4106(gcm(aes))", "0x0102030405060708090a0b0c0d0e0f1011121314", "128"]
    silent = subprocess.run(known, capture_output=True).returncode == 0
    if silent:
        assert unreachable == 0, f"{unreachable} ICMP messages went out"
        assert no_states is None or no_states > 1_000, no_states
    link = next(link for link in status["links"] if link["side"] == "outside")
    assert link["packets_in"] > 10_000 and not link["drops"], link
    assert not any(status["drops"].values()), status["drops"]
    print(f"beside IKE: {link['packets_in']} packets of ESP in UDP in, {link['packets_out']} out, beside a daemon that heard "
          f"{len(heard)} messages of IKE and nothing else; "
          + (f"the kernel dropped {no_states} copies in silence" if silent else "this kernel has no ESP to drop its copies"))
    end_gateways()

    daemon = Daemon(4501, False)
    start_gateways('ike_forward = "127.0.0.1:4501"\n')
    ike = [subprocess.Popen(program("gw-b", IKE)) for _ in range(5)]
    traffic()
    assert all(one.wait(timeout=30) == 0 for one in ike)
    heard = daemon.end()
    assert len(heard) == 100 and all("message" in line for line in heard), heard
    print(f"ike_forward: {len(heard)} messages of 5 peers were passed on, and answered from port 4500")
    for server in servers:
        server.kill()


if __name__ == "__main__":
    main()

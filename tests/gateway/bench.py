#!/usr/bin/env python3
"""Gateways side by side: Forebay, wireguard-go, strongSwan's libipsec, and the veth without any."""
import argparse, json, sys, time
from benchmark import namespaces, peers, traffic

def main():
    p = argparse.ArgumentParser()
    p.add_argument("forebay"); p.add_argument("--wireguard-go"); p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--seconds", type=float, default=2); p.add_argument("--only"); p.add_argument("--peers")
    o = p.parse_args()
    namespaces.enter()
    ways = [peers.Peer(), peers.Forebay(o.forebay), peers.FourProcessors(o.forebay), peers.WireGuardGo(o.wireguard_go), peers.Strongswan()]
    for w in ways:
        try: w.begin(); print(w.title, w.version())
        except Exception as e: print("FAILED", w.title, e); sys.stdout.flush(); import os; os.system("cat /run/lab/*/log /run/lab/*/*.log") ; raise
    for r in range(o.rounds):
        for name, title, how, share in traffic.ALL:
            if o.only and name not in o.only.split(","): continue
            for w in ways:
                if o.peers and w.key not in o.peers.split(","): continue
                f = how(w, max(1, round(o.seconds * share)))
                print(name, w.key, {k: round(v, 3) if isinstance(v, float) else v for k, v in f.items()}, flush=True)
main()

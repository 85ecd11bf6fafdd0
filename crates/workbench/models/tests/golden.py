#!/usr/bin/env python3
"""Solves [N]'s chain by scipy's sparse LU and writes golden.csv.

An independent writing of models.md section 2: the states are tuples in a dictionary, vanishing
states are eliminated by a linear solve over all of them at once, and the equations are solved
directly. Needs numpy and scipy.

    python3 golden.py > golden.csv
"""

import itertools

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as la

TIMES = dict(R=27.3e-6, A=32e-6, C=12.6e-6, B=49e-6, T=27.3e-6)


def interrupt_driven(lam, buf, ts0, ts1, td):
    """All states (R, A, C, B, T, PCS); timed transitions and immediate ones."""
    mu = {k: 1 / v for k, v in TIMES.items()}
    bR, bA, bC, bB, bT = buf
    timed, now = [], {}
    for s in itertools.product(*(range(b + 1) for b in buf), range(4)):
        R, A, C, B, T, P = s
        if P == 0 and B > 0 and T < bT and (A == 0 or C == bC):
            now[s] = (R, A, C, B, T, 2)
            continue
        if P == 1 and A > 0 and C < bC and (B == 0 or T == bT):
            now[s] = (R, A, C, B, T, 3)
            continue
        if P in (2, 3) and td == 0:
            now[s] = (R, A, C, B, T, 1 if P == 2 else 0)
            continue
        if R < bR:
            timed.append((s, (R + 1, A, C, B, T, P), lam))
        if R > 0 and A < bA:
            timed.append((s, (R - 1, A + 1, C, B, T, P), mu["R"]))
        if A > 0 and P == 0 and C < bC:
            timed.append((s, (R, A - 1, C + 1, B, T, P), mu["A"]))
        if C > 0 and B < bB:
            timed.append((s, (R, A, C - 1, B + 1, T, P), mu["C"]))
        if B > 0 and P == 1 and T < bT:
            timed.append((s, (R, A, C, B - 1, T + 1, P), mu["B"]))
        if T > 0:
            timed.append((s, (R, A, C, B, T - 1, P), mu["T"]))
        if P == 0 and A > 0 and B > 0 and T < bT:
            timed.append((s, (R, A, C, B, T, 2), 1 / ts0))
        if P == 1 and A > 0 and B > 0 and C < bC:
            timed.append((s, (R, A, C, B, T, 3), 1 / ts1))
        if P == 2:
            timed.append((s, (R, A, C, B, T, 1), 1 / td))
        if P == 3:
            timed.append((s, (R, A, C, B, T, 0), 1 / td))
    return timed, now


def busy_waiting(lam, buf, *_):
    """States (R, Q, phase, T): Q packets at the core, the first of them in A, C or B."""
    mu = {k: 1 / v for k, v in TIMES.items()}
    bR, bQ, _, _, bT = buf
    timed = []
    for R, Q, T in itertools.product(range(bR + 1), range(bQ + 1), range(bT + 1)):
        for f in "ACB" if Q else "A":
            s = (R, Q, f, T)
            if R < bR:
                timed.append((s, (R + 1, Q, f, T), lam))
            if R and Q < bQ:
                timed.append((s, (R - 1, Q + 1, f, T), mu["R"]))
            if Q and f == "A":
                timed.append((s, (R, Q, "C", T), mu["A"]))
            if Q and f == "C":
                timed.append((s, (R, Q, "B", T), mu["C"]))
            if Q and f == "B" and T < bT:
                timed.append((s, (R, Q - 1, "A", T + 1), mu["B"]))
            if T:
                timed.append((s, (R, Q, f, T - 1), mu["T"]))
    return timed, {}


def stationary(timed, now):
    """Q = Q_tt + Q_tv (I - P_vv)^-1 P_vt over the tangible states reached from the first."""
    tangible = sorted({s for s, _, _ in timed}, key=str)
    vanishing = sorted(now, key=str)
    t = {s: i for i, s in enumerate(tangible)}
    v = {s: i for i, s in enumerate(vanishing)}
    tt, tv = sp.lil_matrix((len(t), len(t))), sp.lil_matrix((len(t), max(len(v), 1)))
    for s, to, rate in timed:
        if to in t:
            tt[t[s], t[to]] += rate
        else:
            tv[t[s], v[to]] += rate
    q = tt.tocsc()
    if v:
        vt, vv = sp.lil_matrix((len(v), len(t))), sp.lil_matrix((len(v), len(v)))
        for s, to in now.items():
            if to in t:
                vt[v[s], t[to]] = 1
            else:
                vv[v[s], v[to]] = 1
        onward = la.splu((sp.identity(len(v)) - vv).tocsc()).solve(vt.toarray())
        q = (tt.tocsr() + tv.tocsr() @ sp.csr_matrix(onward)).tocsc()
    # Only the closed class, or the equations have more than one solution.
    n, label = sp.csgraph.connected_components(q, directed=True, connection="strong")
    coo = q.tocoo()
    leaves = np.zeros(n, bool)
    leaves[label[coo.row[label[coo.row] != label[coo.col]]]] = True
    closed = [c for c in range(n) if not leaves[c]]
    assert len(closed) == 1
    keep = np.flatnonzero(label == closed[0])
    q = q[keep][:, keep].tolil()
    q.setdiag(0)
    q = q.tocsc()
    q = (q - sp.diags(np.asarray(q.sum(axis=1)).ravel())).T.tolil()
    # One equation is superfluous. Setting the last state to 1 instead keeps the matrix sparse.
    m = len(keep)
    a = q[: m - 1, : m - 1].tocsc()
    rhs = -np.asarray(q[: m - 1, m - 1].todense()).ravel()
    x = np.append(la.spsolve(a, rhs), 1.0)
    x /= x.sum()
    return [tangible[k] for k in keep], x


def row(kind, lam, buf, ts0, ts1, td):
    build = interrupt_driven if kind == "interrupt-driven" else busy_waiting
    states, x = stationary(*build(lam, buf, ts0, ts1, td))
    loss = sum(p for s, p in zip(states, x) if s[0] == buf[0])
    if kind == "interrupt-driven":
        occupancy = [sum(p * s[k] for s, p in zip(states, x)) for k in range(5)]
        works = sum(
            p
            for s, p in zip(states, x)
            if (s[5] == 0 and s[1] > 0 and s[2] < buf[2]) or (s[5] == 1 and s[3] > 0 and s[4] < buf[4])
        )
    else:
        inside = [sum(p for s, p in zip(states, x) if s[1] and s[2] == f) for f in "ACB"]
        waiting = sum(p * (s[1] - 1) for s, p in zip(states, x) if s[1])
        occupancy = [
            sum(p * s[0] for s, p in zip(states, x)),
            waiting + inside[0],
            inside[1],
            inside[2],
            sum(p * s[3] for s, p in zip(states, x)),
        ]
        works = sum(p for s, p in zip(states, x) if s[1] and (s[2] == "A" or (s[2] == "B" and s[3] < buf[4])))
    cells = [kind, lam, *buf, ts0, ts1, td, len(states), lam * (1 - loss), loss, *occupancy, works]
    print(",".join(c if isinstance(c, str) else repr(float(c)) if isinstance(c, float) else str(c) for c in cells))


if __name__ == "__main__":
    print("discipline,rate,R,A,C,B,T,run_a,run_b,switch,tangible,throughput,loss,occ_r,occ_a,occ_c,occ_b,occ_t,core")
    for lam in (10_000.0, 12_500.0, 14_285.0):
        for ts0, ts1, td in ((100e-6, 100e-6, 0.0), (50e-6, 200e-6, 5e-6), (20e-6, 20e-6, 40e-6)):
            row("interrupt-driven", lam, (4, 4, 4, 4, 4), ts0, ts1, td)
        row("interrupt-driven", lam, (2, 7, 1, 5, 3), 100e-6, 100e-6, 1e-6)
        row("busy-waiting", lam, (15, 15, 1, 1, 15), 0.0, 0.0, 0.0)

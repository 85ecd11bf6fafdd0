"""Claims of [G] and observations, with the parameters and the band of each."""

from __future__ import annotations

from forebay.study import Study, StudyScenario, join

# An IP packet of the paper's MTU, and what of it is payload: the headers are IP 20, ESP 8, IV 8, trailer 2,
# and TCP 20 or UDP 8 and RTP 12.
MTU, PAYLOAD = 9000, 8942
# Transfers over main memory for each packet that are tried.
TRANSFERS = [0, 2, 4, 5, 6, 7, 8, 9, 10, 12]


def declare(s: Study) -> None:
    """Declares all claims and observations, before the first run."""
    controls(s)
    claims = Claims(s)
    claims.throughput()
    claims.processors()
    claims.memory()
    claims.circuits()
    claims.alternatives()
    claims.observations()


def controls(s: Study) -> None:
    """Wrong cards, under which the claims that name them must fail."""

    def slow_memory(one: StudyScenario) -> StudyScenario:
        return one.set("resource.memory.rate", "4 Gbit/s") if one.value("resource.memory.rate") is not None else one

    def wide_bus(one: StudyScenario) -> StudyScenario:
        if one.value("resource.pci.rate") is not None:
            return one.set("resource.pci.rate", "21.1 Gbit/s")
        return one.set("bus.bandwidth", "21.1 Gbit/s") if one.value("bus") is not None else one

    s.control("slow-memory", says="Main memory has half of its rate.", change=slow_memory)
    s.control("wide-bus", says="The bus carries ten times as much.", change=wide_bus)


class Claims:
    """The claims and observations, with their bands, and the parameters that several have."""

    def __init__(self, s: Study) -> None:
        self.s = s
        self.rates = s.printed(
            "resource.*.rate",
            "memory 8, PCI 2.11, I/O 1.06, AES 1.06 Gbit/s",
            "section 15.7.1 and figure 15.4, measured",
        )
        self.transfers = s.printed("memory_transfers", 6, "section 15.7.1")
        self.packets = s.assumed(
            "payload, headers, framing",
            f"{PAYLOAD}, {MTU - PAYLOAD} and 38 bytes",
            f"the MTU of {MTU} is printed (section 15.5.2), no header is: ESP with AES counter mode (RFC "
            "3686) without authentication, no options; on the line of 1 Gbit/s preamble, header, check "
            "sequence and gap",
        )
        self.smp = s.printed("resource.cpu", "53 % of two processors at 989 Mbit/s", "figure 15.3, iperf-SMP")
        self.video = s.printed("offered", "890 Mbit/s", "section 15.7.1")

    def throughput(self) -> None:
        s = self.s
        common = [self.rates, self.transfers, self.packets]
        smooth = s.assumed(
            "distribution", "constant", "a capture card delivers video evenly; the text has no gaps"
        )
        seen = s.printed("resource.cpu", "38 % of two processors at 893 Mbit/s", "figure 15.3, HDTV-SMP")
        s.claim(
            "video-rate",
            basis="consistency",
            because="The rate is the least of the printed rates of the parts.",
            says="The video's 890 Mbit/s are carried in full.",
            quote="The HDTV application achieved full-rate transmission",
            where="[G] section 15.7.1",
            parameters=[*common, self.video, seen, smooth],
            band=s.band(
                0.995, None, "of the rate", "full rate; half a per cent for the packets in flight at the end"
            ),
        )
        s.claim(
            "video-loss",
            control="slow-memory",
            says="No packet of the video is lost.",
            quote="with no packets dropped",
            where="[G] section 15.7.1",
            parameters=[
                *common,
                self.video,
                seen,
                smooth,
                s.assumed(
                    "buffer",
                    64,
                    "packets that each resource holds; any number gives the same with even arrivals",
                ),
            ],
            band=s.band(0, 0, "packets", "printed: none"),
        )
        s.claim(
            "bulk-rate",
            basis="consistency",
            because="The rate is that of a full line less headers, and no part has a lower printed rate.",
            says="A bulk transfer reaches 989 Mbit/s with two processors.",
            quote="iperf-SMP 989 Mbps",
            where="[G] figure 15.3",
            parameters=[*common, self.smp, s.assumed("offered", "1 Gbit/s", "as much as the line carries")],
            band=s.band(
                984,
                994,
                "Mbit/s",
                "printed 989; half a per cent for TCP options, which the text does not name",
            ),
        )
        s.claim(
            "line-speed",
            basis="consistency",
            because="The line is the part with the least printed rate.",
            says="The bulk transfer fills the line.",
            quote="this system running at full 1 Gbps line speed with end-to-end encryption",
            where="[G] section 15.8",
            parameters=[*common, self.smp],
            band=s.band(99.5, 100.0, "%", "full line speed; half a per cent"),
        )

    def processors(self) -> None:
        s = self.s
        s.claim(
            "only-idle-changes",
            basis="arithmetic",
            because="Two rows of the printed figure are compared.",
            says="Each column of iperf-UP but idle is twice that of iperf-SMP.",
            quote="the only change (after taking into account the 2X factor of available CPU time under SMP) "
            "is the amount of idle time",
            where="[G] section 15.7.1, figure 15.3",
            parameters=[
                s.printed(
                    "figure 15.3", "iperf-SMP 35, 4, 4, 2, 8; iperf-UP 70, 9, 4, 3, 12 %", "figure 15.3"
                )
            ],
            band=s.band(
                -1.5, 1.5, "points", "all values are rounded to 1 %: twice half a point, and half a point"
            ),
        )
        s.claim(
            "bulk-one",
            basis="consistency",
            because="The processor's limit is computed from the printed busy share.",
            says="With one processor, which has twice the work of each of two, a bulk transfer is as fast.",
            quote="Yet in essence, the performance of the system was unchanged.",
            where="[G] section 15.7.1, figure 15.3",
            parameters=[
                self.rates,
                self.transfers,
                self.packets,
                s.printed("resource.cpu.busy", 1.06, "figure 15.3: 53 % of two processors, the 2X factor"),
            ],
            band=s.band(979, 999, "Mbit/s", "printed 989 in both rows; one per cent"),
        )
        s.claim(
            "software",
            basis="consistency",
            because="Two processors of the printed 90 Mbit/s each carry 180.",
            says="With encryption in software the processors do not carry the video.",
            quote="adding IPsec encryption is not feasible without hardware offload",
            where="[G] section 15.5.2",
            parameters=[
                self.transfers,
                self.packets,
                self.video,
                s.printed(
                    "resource.core.rate",
                    "90 Mbit/s per processor",
                    "section 15.1: 40 to 90 Mbps, depending on the encryption used; the upper value",
                ),
                s.assumed("processors", 2, "those of section 15.7.1, both wholly for encryption"),
            ],
            band=s.band(None, 0.99 * 890, "Mbit/s", "not feasible: less than the video's 890 Mbit/s"),
        )

    def memory(self) -> None:
        s = self.s
        common = [self.rates, self.packets]
        s.claim(
            "memory",
            basis="consistency",
            because="The printed rates of memory and line decide which is fuller.",
            says="In the bulk transfer main memory is busier than the line.",
            quote="we conclude that main memory is indeed the system bottleneck",
            where="[G] section 15.7.1",
            parameters=[
                *common,
                self.transfers,
                s.assumed(
                    "efficiency of memory",
                    "100 % of the measured peak",
                    "the paper names other processes and a lower efficiency, and prints no figure for them",
                ),
            ],
            band=s.band(
                1.0, None, "times", "the bottleneck: memory's utilisation over the line's is at least 1"
            ),
        )
        s.claim(
            "memory-8",
            basis="consistency",
            because="The printed rate of memory is divided by the printed line.",
            says="At gigabit speed a packet can cross main memory up to eight times.",
            quote="each packet can be transferred at most 8 times to/from main memory",
            where="[G] section 15.7.1",
            parameters=[
                *common,
                s.assumed("memory_transfers", join(TRANSFERS), "whole numbers, to find the largest"),
            ],
            band=s.band(
                8, 8, "transfers", "printed: at most 8, with which the line must still be what limits"
            ),
        )
        s.claim(
            "dma-first",
            basis="consistency",
            because="Memory's printed rate is divided by the transfers that each proposal leaves.",
            says="Direct DMA gains more throughput than the other two proposals do, on a card of ten times "
            "the rates.",
            quote="The first and most beneficial is a direct DMA transfer between the grabber/display card "
            "and the GRIP board.",
            where="[G] section 15.8",
            parameters=[
                self.packets,
                s.printed("resource.*.rate", "10 Gbit/s", "section 15.8: 10 Gbps end-to-end security"),
                s.assumed(
                    "memory_transfers",
                    "direct DMA 0, either of the others 5",
                    "DMA leaves main memory out; an avoided copy saves one of the six transfers that section "
                    "15.7.1 counts",
                ),
                s.assumed(
                    "resource.memory.rate", "8 Gbit/s", "memory as it is: what the proposals are against"
                ),
            ],
            band=s.band(1.0, None, "times", "most beneficial: its limit over the best of the others'"),
        )

    def circuits(self) -> None:
        s = self.s
        device = s.printed("figure 15.4", "CLBs and block RAM of each design", "figure 15.4")
        s.claim(
            "static",
            basis="consistency",
            because="The printed rates of the parts are compared with the line.",
            says="Each part of the packet-processing infrastructure carries a gigabit line in full.",
            quote="the static packet-processing infrastructure easily achieves 1 Gbps throughput",
            where="[G] section 15.7.2, figure 15.4",
            parameters=[
                self.packets,
                s.printed(
                    "resource.*.rate",
                    "2.11, 1.06, 1.06 Gbit/s",
                    "figure 15.4, measured: X0 PCI, X0 I/O, GRIP",
                ),
            ],
            band=s.band(984, None, "Mbit/s", "the payload of a full line, printed 989, less half a per cent"),
        )
        s.claim(
            "margins",
            basis="arithmetic",
            because="Printed rates are compared.",
            says="The AES and SHA cores have less margin over 1 Gbit/s than every other design.",
            quote="Only the AES and SHA cores have low timing margins.",
            where="[G] section 15.7.2, figure 15.4",
            parameters=[
                device,
                s.printed("resource.core.rate", "each design's predicted rate", "figure 15.4"),
                s.assumed("margin", "predicted rate over 1 Gbit/s", "a margin before the circuit is built"),
            ],
            band=s.band(
                1.0, None, "times", "low: the least margin of the others over the largest of AES and SHA"
            ),
        )
        s.claim(
            "resources",
            basis="arithmetic",
            because="Printed shares are added.",
            says="AES and SHA-1 together fit into one FPGA.",
            quote="there are more than enough resources on SLAAC-1V to combine both AES encryption and a "
            "secure hash function at gigabit speeds",
            where="[G] section 15.7.2, figure 15.4",
            parameters=[device, s.assumed("hash", "SHA-1", "the hash of figure 15.4 that reaches a gigabit")],
            band=s.band(None, 100.0, "%", "all of one Virtex 1000"),
        )
        s.claim(
            "hash-rate",
            basis="consistency",
            because="The printed rate of the hash core is compared with those of the other parts.",
            says="With the SHA-1 core beside the AES core, bulk transfers are as fast as before.",
            quote="A 1 Gbps secure hash core could easily be added to the processing pipelines to give "
            "accelerated encryption and authentication simultaneously.",
            where="[G] section 15.8",
            parameters=[
                self.rates,
                self.transfers,
                self.packets,
                self.smp,
                s.printed("resource.hash.rate", "1.14 Gbit/s", "figure 15.4, SHA-1 measured"),
                s.printed("resource.hash.rate", "1.00 Gbit/s", "section 15.8, and figure 15.4 predicted"),
            ],
            band=s.band(984, 994, "Mbit/s", "printed 989 without the hash; half a per cent"),
        )

    def alternatives(self) -> None:
        s = self.s
        s.claim(
            "lookaside",
            control="wide-bus",
            says="A lookaside card on the same bus does not carry the video.",
            quote="The host-based crypto-accelerator reduces the CPU overhead by offloading cryptography, "
            "but overwhelms the PCI bus at high data rates.",
            where="[G] section 15.6",
            parameters=[
                self.rates,
                self.packets,
                self.video,
                s.assumed(
                    "resource.pci.crossings",
                    3,
                    "to the accelerator, back, and to the network interface, all on the bus whose rate "
                    "figure 15.4 gives",
                ),
            ],
            band=s.band(
                None, 0.99 * 890, "Mbit/s", "overwhelmed: less than the video's 890 Mbit/s, in both models"
            ),
        )

    def observations(self) -> None:
        s = self.s
        s.observation(
            "proposals-now",
            basis="input",
            because="The printed rate of the line is the least with each proposal.",
            says="The three proposals change nothing in the throughput of the system as measured.",
            where="[G] section 15.8 makes them for multi-gigabit speeds",
            band=s.band(0.99, 1.01, "times", "the limit with a proposal over that as built; one per cent"),
        )
        s.observation(
            "same",
            says="The chain of resources and the host model agree on the lookaside card.",
            band=s.band(0.97, 1.03, "times", "two models of one bus, one by rates, one packet by packet"),
        )
        s.observation(
            "mtu",
            basis="input",
            because="A cost per packet was put in; the growth with the size is that.",
            says="If a packet costs the processors the same whatever its size, 1500 bytes do not carry the "
            "video and 9000 do.",
            where="[G] section 15.5.2 says so of the system before GRIP, whose costs are not printed",
            parameters=[
                s.assumed(
                    "resource.cpu.overhead",
                    "30.44 µs per packet",
                    "all of the 38 % at 893 Mbit/s of figure 15.3 by the packet, as the paper's interrupts "
                    "and DMA",
                )
            ],
            band=s.band(
                1.0,
                None,
                "times",
                "890 Mbit/s over what 1500 bytes carry; what 9000 bytes carry over 890 Mbit/s",
            ),
        )
        s.observation(
            "profile",
            basis="input",
            because="The recording in profile.json is what is read out.",
            says="With IPsec in software, processors of today spend less of their time on the video than "
            "GRIP's host did.",
            where="docs/hdtv.md, beside [G] figure 15.3",
            parameters=[s.assumed("profile.json", "one recording", "see the table for machine and command")],
            band=s.band(62.0, 100.0, "% idle", "GRIP's host: 62 % idle"),
        )

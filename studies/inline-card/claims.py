"""Claims of [G] and observations, with the parameters and the band of each."""

from __future__ import annotations

from forebay.study import Study, StudyScenario, join

# An IP packet of the paper's MTU, and what of it is payload: the headers are IP 20, ESP 8, IV 8, trailer 2,
# and TCP 20 or UDP 8 and RTP 12.
MTU, PAYLOAD = 9000, 8942
# Blocks in the pipeline of the AES core: two interleaved streams fill it (section 15.3.2).
CHAINED_DEPTH = 2
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
    claims.offload()
    claims.observations()


def controls(s: Study) -> None:
    """Wrong cards, under which the claims that name them must fail."""

    def slow_memory(one: StudyScenario) -> StudyScenario:
        return one.set("resource.memory.rate", "4 Gbit/s") if one.value("resource.memory.rate") is not None else one

    def wide_bus(one: StudyScenario) -> StudyScenario:
        if one.value("resource.pci.rate") is not None:
            return one.set("resource.pci.rate", "21.1 Gbit/s")
        return one.set("bus.bandwidth", "21.1 Gbit/s") if one.value("bus") is not None else one

    def at_intervals(one: StudyScenario) -> StudyScenario:
        if one.value("resource.cpu.interrupt") is None:
            return one
        return one.set("resource.cpu.interrupt_packets", 64).set("resource.cpu.interrupt_timeout", "500 us")

    def small_transfers(one: StudyScenario) -> StudyScenario:
        return one.set("transfer_packets", 1) if one.value("transfer_packets") is not None else one

    def unchained(one: StudyScenario) -> StudyScenario:
        return one.set("resource.core.depth", 1) if one.value("resource.core.depth") is not None else one

    def slow_loading(one: StudyScenario) -> StudyScenario:
        if one.value("server.fpga.switch_delay") is None:
            return one
        return one.set("server.fpga.switch_delay", "150 ms")

    def stays(one: StudyScenario) -> StudyScenario:
        if one.value("server.fpga.run_length") is None:
            return one
        return one.set("server.fpga.run_length", "2 ms")

    s.control("at-intervals", says="Interrupts come every 500 µs, whatever packets come.", change=at_intervals)
    s.control("small-transfers", says="A transfer is one packet.", change=small_transfers)
    s.control("unchained", says="No block of the core's pipeline depends on another.", change=unchained)
    s.control("slow-loading", says="Loading a core takes ten times as long.", change=slow_loading)
    s.control("short-turns", says="The FPGA stays with a suite for 2 ms at most.", change=stays)
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

    def offload(self) -> None:
        s = self.s
        cost = s.assumed(
            "resource.cpu.interrupt, .overhead",
            "8 and 22.44 µs",
            "figure 15.3 gives 30.44 µs a packet in all, and no text the part of the interrupt",
        )
        s.claim(
            "less-frequent",
            control="at-intervals",
            says="With packets of 9000 bytes there are as many interrupts as there are packets fewer than with 1500.",
            quote="larger packets mean less-frequent interrupts",
            where="[G] section 15.8",
            parameters=[
                self.packets,
                cost,
                s.assumed("offered", "200 Mbit/s", "a rate that both sizes carry; the ratio does not depend on it"),
            ],
            band=s.band(5.5, 6.5, "times", "six times the bytes in a packet, with headers of 58 bytes in each"),
        )
        s.observation(
            "mitigation",
            control="at-intervals",
            says="An interrupt for 8 packets leaves more of the processors idle, and packets wait for each other.",
            where="[G] section 15.3.1 names programmable interrupt mitigation, without figures",
            parameters=[
                cost,
                s.assumed("resource.cpu.interrupt_packets", 8, "any number but 1; all are in the plot"),
            ],
            band=s.band(0.98, 1.02, "times", "what a packet takes longer, simulated over worked by hand"),
        )
        s.claim(
            "transfers",
            control="small-transfers",
            says="With transfers of six packets the video is carried in packets of 1500 bytes.",
            quote="The GRIP system could leverage this by incorporating TCP/IP fragmentation and reassembly, such that PCI "
            "bus transfers are larger than what is supported by the physical medium.",
            where="[G] section 15.8",
            parameters=[
                self.rates,
                self.transfers,
                self.video,
                s.assumed("transfer_packets", 6, "transfers of the 9000 bytes that the MTU had"),
                s.assumed(
                    "resource.cpu.overhead",
                    "30.44 µs per transfer",
                    "all of the 38 % at 893 Mbit/s of figure 15.3 by what is handed over, as the paper's interrupts and DMA",
                ),
            ],
            band=s.band(0.995, None, "of the rate", "full rate; half a per cent for the packets in flight at the end"),
        )
        depth = s.printed("resource.core.depth", CHAINED_DEPTH, "section 15.3.2: two interleaved streams fill it")
        s.claim(
            "two-streams",
            basis="input",
            because="The depth of the pipeline is read off this sentence.",
            says="One stream with CBC has half of the core, two have all of it, and counter mode has all with one.",
            quote="the CBC-mode circuit requires two interleaved streams for full throughput",
            where="[G] section 15.3.2",
            parameters=[self.rates, depth],
            band=s.band(
                0.5, 1.0, "of the rate", "two streams over counter mode is 1; one stream over two is a half"
            ),
        )
        s.claim(
            "counter-mode",
            control="unchained",
            says="The video, one stream, would not be carried with CBC.",
            quote="For this reason, counter mode was used in the demonstration system.",
            where="[G] section 15.3.2",
            parameters=[
                self.rates,
                self.packets,
                self.video,
                depth,
                s.assumed("resource.core.streams", 1, "the video is one SA; its packets are not interleaved"),
            ],
            band=s.band(None, 0.99 * 890, "Mbit/s", "the reason: less than the video's 890 Mbit/s"),
        )
        s.observation(
            "sha-512",
            basis="input",
            because="The printed rate of the SHA-512 core is below that of the video.",
            says="One SHA-512 core beside AES does not carry the video, and two in parallel do.",
            where="[G] section 15.8 names multiple units in parallel for cyclic transforms",
            parameters=[
                s.printed("resource.hash.rate", "0.67 Gbit/s", "figure 15.4, measured"),
                s.assumed(
                    "resource.hash.overhead_bytes",
                    192,
                    "HMAC (RFC 2104) with the states behind the key kept: half a block of padding and an outer block",
                ),
            ],
            band=s.band(
                0.99, None, "times", "890 Mbit/s over what one core carries; what two carry over 890 Mbit/s"
            ),
        )
        s.claim(
            "receive",
            basis="consistency",
            because="Both directions cross the same resources with the same rates.",
            says="The processors are as busy on the receiving side as on the sending one.",
            quote="Transmitter and receiver profiling results are comparable",
            where="[G] section 15.7.1",
            parameters=[
                self.rates,
                s.assumed("memory_transfers", 6, "printed for the sender only; taken for the receiver as well"),
            ],
            band=s.band(0.0, 1.0, "points", "comparable: figure 15.3 is rounded to 1 %"),
        )
        load = s.assumed(
            "server.fpga.switch_delay",
            "15 ms",
            "called rapid, without a time: 6.1 Mbit of a Virtex 1000 by 8 bits at 50 MHz",
        )
        s.claim(
            "on-demand",
            control="short-turns",
            says="SAs of two suites share an FPGA that holds one of them at a time, at 400 Mbit/s together.",
            quote="More functions could be combined by using the rapid reconfiguration capabilities of SLAAC-1V to switch "
            "between a large number of accelerator functions on-demand.",
            where="[G] section 15.8",
            parameters=[
                s.printed("stage.*.rate", "1.06 and 1.69 Gbit/s", "figure 15.4, AES and 3DES measured"),
                load,
                s.assumed("server.fpga.run_length", "50 ms", "turns of a few times the loading; all are in the plot"),
                s.assumed("stage.*.buffer", 500, "packets of 9000 bytes, in ten banks of 1 MB (15.3.1)"),
                s.assumed("arrivals.mean", "180 µs", "400 Mbit/s; packets come by chance, half for each suite"),
            ],
            band=s.band(0.98, 1.02, "of the load", "all of it, as far as packets come by chance"),
        )
        s.observation(
            "cycle",
            control="slow-loading",
            says="What the FPGA carries is that of a cycle in which each suite is worked for and loaded once.",
            parameters=[load],
            band=s.band(0.95, 1.05, "times", "simulated over the cycle: packets come by chance, and cycles are whole"),
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

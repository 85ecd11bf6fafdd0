"""What samples are counted as, and what a stream is called: `python3 -m unittest television.test_television`."""

import unittest

from television import counters, report, shares
from television.stream import Format, is_whole

FOREBAY = "/usr/bin/forebay"
NAMESPACES = {"host-a": 0xF0000001, "gw-a": 0xF0000002, "gw-b": 0xF0000003, "host-b": 0xF0000004}
# As `perf script` writes them.
NAMESPACE = """            bash {pid}/{pid} 1.000000: PERF_RECORD_NAMESPACES {pid}/{pid} - nr_namespaces: 7
\t\t[0/net: 4/0x{net:x}, 1/uts: 4/0xeffffffe, 2/ipc: 4/0xefffffff, 3/pid: 4/0xf0000197,
\t\t 4/user: 4/0xeffffffd, 5/mnt: 4/0xf0000151, 6/cgroup: 4/0xeffffffb]
"""
SAMPLES = """         swapper     0/0        10.000001: cpu-clock:  ffffffff821f9d6b pv_native_safe_halt ([kernel.kallsyms])
         swapper     0/0        10.000002: cpu-clock:  ffffffff81e383bf veth_poll ([kernel.kallsyms])
     ksoftirqd/1    21/21       10.000003: cpu-clock:  ffffffff81e383bf net_rx_action ([kernel.kallsyms])
           rustc   900/901      10.000004: cpu-clock:      7f1234567890 compile (/usr/bin/rustc)
           rustc   900/901      10.000005: cpu-clock:  ffffffff815edb1b __handle_mm_fault ([kernel.kallsyms])
    forebay-loop   102/102      10.000006: cpu-clock:  ffffffff81b6c6b4 _copy_from_iter ([kernel.kallsyms])
    forebay-loop   102/102      10.000007: cpu-clock:      5629a5734210 ..@303._16_blocks_ok (/usr/bin/forebay)
    forebay-loop   102/102      10.000008: cpu-clock:      5629a5734210 <forebay_links::tun::TunQueue as forebay_links::link::Link>::send (/usr/bin/forebay)
    forebay-loop   102/102      10.000009: cpu-clock:      7f3d71c3c000 __memmove_avx512_unaligned_erms (/usr/lib/x86_64-linux-gnu/libc.so.6)
    queue0:src     101/101      10.000010: cpu-clock:      7f3d71c3c000 gst_rtp_vraw_pay (/usr/lib/x86_64-linux-gnu/gstreamer-1.0/libgstrtp.so)
    forebay-loop   102/102      99.000000: cpu-clock:  ffffffff81b6c6b4 _copy_from_iter ([kernel.kallsyms])
"""


class Shares(unittest.TestCase):
    def test_every_sample_has_its_column(self):
        lines = "".join(
            NAMESPACE.format(pid=pid, net=net) for pid, net in ((101, 0xF0000001), (102, 0xF0000002), (901, 0xEFFFFFF9))
        )
        found = shares.count((lines + SAMPLES).splitlines(), FOREBAY, NAMESPACES, (9.0, 11.0))
        self.assertEqual(found["samples"], 10)
        both = {column: round(10 * share) for column, share in found["sides"]["both ends"].items()}
        wanted = {"idle": 1, "kernel": 3, "IPsec": 1, "links": 1, "application": 1, "libc": 1, "others": 2}
        self.assertEqual(both, wanted)
        alone = {column: round(10 * share) for column, share in found["sides"]["transmitter alone"].items()}
        self.assertEqual(
            alone, {"idle": 5, "kernel": 1, "IPsec": 1, "links": 1, "application": 1, "libc": 1, "others": 0}
        )
        self.assertEqual(round(found["sides"]["receiver alone"]["idle"]), 1)


class Verdict(unittest.TestCase):
    WHOLE = {
        "format": "720p60", "seconds": 10, "took_s": 10.3, "bits_per_second": 884_736_000,
        "frames": {"sent": 600, "right": 600, "wrong": 0, "missing": 0}, "rtp": {"lost": 0},
        "packets": {"sent": 125_400, "received": 125_400, "lost": 0}, "lost_at": {},
        "processor": {"idle": 0.7, "sender user": 0.05, "sender kernel": 0.05},
    }  # fmt: skip

    def test_a_stream_is_whole_only_if_all_of_it_came_in_time(self):
        self.assertTrue(is_whole(self.WHOLE))
        for change in (
            {"frames": {"sent": 600, "right": 599, "wrong": 1, "missing": 0}},
            {"packets": {"sent": 125_400, "received": 125_399, "lost": 1}},
            {"packets": {"sent": 0, "received": 0, "lost": 0}},
            {"rtp": {"lost": 1}},
            {"took_s": 11.0},
        ):
            self.assertFalse(is_whole(self.WHOLE | change), change)

    def test_the_limit_is_in_front_of_the_first_loss(self):
        lossy = self.WHOLE | {"format": "1080p60", "packets": {"sent": 9, "received": 8, "lost": 1}}
        text = report.limit([self.WHOLE, lossy, self.WHOLE])
        self.assertTrue(text.startswith("whole up to 720p60 (885 Mbit/s); not 1080p60"), text)
        self.assertEqual(report.limit([self.WHOLE]), "all whole")

    def test_rates_of_formats(self):
        rates = {"720p60": 884_736_000, "720p60-10bit": 1_105_920_000, "2160p30": 3_981_312_000}
        for name, rate in rates.items():
            self.assertEqual(Format(name).bits_per_second, rate)

    def test_losses_are_those_that_moved(self):
        before = {
            "gw-b UDP RcvbufErrors (trains)": 1,
            "gw-b UDP InErrors (trains)": 1,
            "host-b UDP InDatagrams": 0,
            "gw-a fb0 tx dropped": 2,
        }
        after = {
            "gw-b UDP RcvbufErrors (trains)": 4,
            "gw-b UDP InErrors (trains)": 4,
            "host-b UDP InDatagrams": 9,
            "gw-a fb0 tx dropped": 2,
        }
        self.assertEqual(counters.losses(before, after), {"gw-b UDP RcvbufErrors (trains)": 3})


if __name__ == "__main__":
    unittest.main()

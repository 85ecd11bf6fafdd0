#!/usr/bin/env python3
"""The tables of peer_table.py, of results of every kind."""

import tempfile
import unittest
from pathlib import Path

import peer_table

VERSIONS = {"daemon": "someone 1.0", "kernel": "6.1.0", "gateway": "strongSwan 5.9, Linux 6.1.0"}
RESULTS = {
    "one": {
        "versions": VERSIONS,
        "events": {
            "connects": {"outcome": "ok"},
            "rekeyed": {"outcome": "ok", "sent": 120, "lost": 3, "by_linux": 3, "sealed": 240, "clear": 0},
            "moved": {"outcome": "unable", "why": "the daemon\n cannot | does not"},
        },
        "rekeys": {"rekeys": 1000, "sent": 5000, "lost": 1, "by_linux": 1, "sealed": 10000, "clear": 0},
    },
    "two": {"versions": VERSIONS, "events": {"moved": {"outcome": "failed", "why": "no answer"}}},
}


class Tables(unittest.TestCase):
    def test_results_become_rows_with_numbered_reasons(self):
        text = peer_table.tables(RESULTS, ["connects", "rekeyed", "moved", "never run"])
        self.assertIn("| one | someone 1.0 | 6.1.0 | strongSwan 5.9, Linux 6.1.0 | 10240 | 0 |", text)
        self.assertIn("| connects | ok | not run |", text)
        self.assertIn("| rekeyed | ok, 3 of 120 lost | not run |", text)
        self.assertIn("| moved | – [1] | **failed** [2] |", text)
        self.assertIn("1. the daemon cannot / does not\n2. no answer\n", text)
        self.assertIn("1000 rekeys one after the other under 5000 pings, 1 lost, 1 of them", text)
        self.assertNotIn("never run", text)

    def test_only_what_is_between_the_marks_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text(f"before\n{peer_table.BEGIN}\nold\n{peer_table.END}\nafter\n")
            for _ in range(2):
                peer_table.write(RESULTS, ["connects"], page)
            text = page.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
        self.assertNotIn("old", text)
        self.assertEqual(text.count("| connects |"), 1)


if __name__ == "__main__":
    unittest.main()

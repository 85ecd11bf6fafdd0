"""Numbers as the pages write them: three significant digits and a unit."""

from __future__ import annotations

from forebay import _forebay

__all__ = ["bits", "digits", "percent", "plain", "time"]


def digits(value: float) -> str:
    """Three significant digits, thousands apart: ``"1.23"``, ``"240,000"``."""
    return str(_forebay.digits(float(value)))


def percent(share: float) -> str:
    """A share in per cent: 0.25 is ``"25.0 %"``."""
    return str(_forebay.percent(float(share)))


def bits(rate: float) -> str:
    """A rate in bit/s with a prefix: ``"1.20 Gbit/s"``."""
    return str(_forebay.bits(float(rate)))


def time(seconds: float) -> str:
    """A time in seconds with a prefix: ``"17.6 µs"``."""
    return str(_forebay.time(float(seconds)))


def plain(text: str) -> str:
    """The text for a terminal, with plain spaces."""
    return text.replace("\u00a0", " ")

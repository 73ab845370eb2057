"""Durations as people write them."""

from __future__ import annotations


def lasting(seconds: float) -> str:
    """``8 s``, ``12 min``, ``1 h 05 min``."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"

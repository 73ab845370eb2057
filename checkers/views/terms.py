"""Leadership terms: the intervals in which each replica led, or followed, in one leader epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Term(NamedTuple):
    """A node's time in one role and epoch, from its first row in them to its first row in others.

    Attributes:
        last_row_ns: its last row in them.
        end_ns: None while there is no row in others.
        first_log_end: its log end offset at the beginning: what it started the epoch with.
        log_end: the highest log end offset that it reported; ``high_watermark`` and ``log_start`` likewise.
    """

    node: int
    incarnation: int
    role: str | None
    leader_epoch: int
    begin_ns: int
    end_ns: int | None
    first_sequence: int
    first_log_end: int
    log_end: int
    high_watermark: int
    log_start: int
    last_row_ns: int


def terms(groups: Iterable[list[Row]]) -> list[Term]:
    """The terms of one replica, in their order; ``groups``: its rows by incarnation, role and leader epoch."""
    ordered = sorted((sorted(g, key=lambda r: int(r["sequence"])) for g in groups), key=_birth)
    ends = [group[0]["time_ns"] for group in ordered[1:]]
    return [_term(group, end) for group, end in zip(ordered, [*ends, None], strict=True)]


def _birth(group: list[Row]) -> tuple[int, int]:
    return group[0]["incarnation"], group[0]["sequence"]


def _term(group: list[Row], end_ns: int | None) -> Term:
    first = group[0]
    return Term(
        first["node"], first["incarnation"], first["role"], first["leader_epoch"],
        first["time_ns"], end_ns, first["sequence"], first["log_end_offset"] or 0,
        max(row["log_end_offset"] or 0 for row in group), max(row["high_watermark"] or 0 for row in group),
        max(row["log_start_offset"] or 0 for row in group), group[-1]["time_ns"],
    )  # fmt: skip

"""Renders the page of an audit: what was lost, what each change of leaders has lost, and every window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports import static_page


@dataclass(frozen=True, slots=True)
class LossRow:
    """Lost records of a partition; ``offsets`` are inclusive, times in UTC."""

    window: int
    partition: int
    records: int
    offsets: str
    sent_in: str
    seen: str
    missed: str


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What an event has lost in a partition; ``source``: who tells of it."""

    at: str
    event: str
    source: str
    partition: int
    lost: str
    window: int
    is_lossy: bool


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One window; ``css`` is the class of its outcome, ``link`` its report; latencies are median, p99 and greatest."""

    window: int
    began: str
    outcome: str
    css: str
    link: str | None
    sends: str
    lost: int
    ack: str
    read: str
    availability: float
    gap: float
    notes: str


@dataclass(frozen=True, slots=True)
class Page:
    """The page; ``hidden``: how many windows it leaves out."""

    title: str
    css: str
    headline: str
    said: Sequence[str]
    losses: Sequence[LossRow]
    answers: Sequence[AnswerRow]
    unanswered: Sequence[str]
    windows: Sequence[WindowRow]
    hidden: int


def write(path: Path, page: Page) -> None:
    """Replace the page at once.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    static_page.write(path, "audit.html.j2", page=page)

"""Whether a leader ran undisturbed by faults for so long that one of Kafka's timeouts must have passed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from checkers.views.configured import Configured, lag_allowed_ns
from checkers.views.fault_journal import FaultJournal
from checkers.views.row import Row
from faults import traits_of


class Span(NamedTuple):
    """From when until when."""

    begin_ns: int
    end_ns: int


def had_time(
    configured: Configured, journal: FaultJournal, node: int, span: Span, disturbs: Callable[[Collection[str]], bool]
) -> bool:
    """Whether a leader had, undisturbed and in one piece, the time that a laggard may stay in the ISR.

    Args:
        configured: with how long a laggard may stay.
        journal: with the faults that may have disturbed it.
        node: the leader; it is disturbed for good when its clock has been wrong.
        span: in which it had something to do.
        disturbs: whether a fault of these nodes may have kept it from that.
    """
    allowed_ns = lag_allowed_ns(configured.guarantees)
    faults = sorted(found for fault in journal.excusing for found in _disturbing(fault, node, span, disturbs))
    return allowed_ns is not None and any(one.end_ns - one.begin_ns >= allowed_ns for one in _quiet(span, faults))


def _quiet(span: Span, faults: Collection[Span]) -> Iterator[Span]:
    """The times of a span in which no fault was in force."""
    begin_ns = span.begin_ns
    for fault in faults:
        yield Span(begin_ns, min(fault.begin_ns, span.end_ns))
        begin_ns = max(begin_ns, fault.end_ns)
    yield Span(begin_ns, span.end_ns)


def _disturbing(fault: Row, node: int, span: Span, disturbs: Callable[[Collection[str]], bool]) -> Iterator[Span]:
    begin_ns = fault["injected_ns"] if fault["injected_ns"] is not None else fault["aimed_ns"]
    healed_ns = span.end_ns if fault["heal_proven_ns"] is None else fault["heal_proven_ns"]
    if traits_of(fault["kind"]).moves_clock and str(node) in fault["nodes"]:
        yield Span(begin_ns, max(begin_ns, span.end_ns))
    elif disturbs(fault["nodes"]):
        yield Span(begin_ns, healed_ns)

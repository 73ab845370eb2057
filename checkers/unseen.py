"""Every acknowledged record is delivered to a consumer at some time.

``unseen``: a send ended ``ok``, no poll at any time delivered its value, and nothing proves that the record is gone:
the final read did not come to where it should be, or there was none. A record that is proven to be gone is a
``lost-write``.

Severity: ``INDETERMINATE``, for it may be lost, late, or out of the reach of a consumer that got stuck. ``WEAK`` when
the sender waited for less than all in-sync replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.row import ALL
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import Ground, attributed
from checkers.wire_tap.send_grounds import acknowledged
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Sampled,
    Unseen,
)
from harness.checker import Attribution, Evidence
from harness.findings import Finding

UNSEEN = AnomalyKind(
    name="unseen",
    invariants=("C10",),
    meaning="A send was acknowledged, no consumer ever read it, and nothing proves that it is gone.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (UNSEEN,)

_UNASKED = Ground(None, "no final read came so far that the frames show whether a broker would have sent it")


def left_open(finding: Finding, guarantees: Mapping[str, Any]) -> str:
    """Why it cannot be decided, always."""
    del finding, guarantees
    return "whether it would have been read later is not known"


def find(history: History, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every acknowledged record of one run that is neither delivered nor proven to be gone."""
    for send in history.sends:
        read = (send.where, send.value) in history.read_values
        if send.type == "ok" and not read and not ends.missing(send.where, send.offset, read=False):
            yield Finding(
                history.run, "unseen", *send.where,
                offset=send.offset,
                value=send.value,
                excuse=None if send.acks == ALL else "acks",
                row=send.row,
                time_ns=send.completed_ns,
                process=send.process,
                acks=send.acks,
            )  # fmt: skip


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    at = "" if finding.offset is None else f" at offset {finding.offset}"
    sentence = f"Value {finding.value} was acknowledged{at}"
    return f"{sentence}, no consumer ever read it, and no final read came to where it should be."


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the acknowledgement; what brokers would have sent to a final read is not known."""
    return attributed(acknowledged(frames, finding, finding.offset, finding.value), _UNASKED)


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The acknowledgement, and which replicas hold the record."""
    yield from witnesses.send(finding)
    yield from witnesses.holders(finding)

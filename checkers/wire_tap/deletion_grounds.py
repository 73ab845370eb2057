"""Compares the DeleteRecords that a run's orders name with the requests and responses that a wire tap captured."""

from __future__ import annotations

from checkers.views.frames import DELETE_RECORDS, Frames, is_between, place_of
from checkers.views.row import Row
from checkers.wire_tap.attribution import Ground, unless_blind
from harness.error_codes import ErrorCode
from harness.findings import Finding
from harness.model import NO_NODE


def not_asked(frames: Frames, finding: Finding) -> Ground:
    """That no client had asked the finding's node to delete up to where its log begins, as the run's orders say.

    One that was asked and refused it with OFFSET_OUT_OF_RANGE was to delete nothing. A request that names no offset is
    up to the high watermark of the time, so one that was under way may be the reason.
    """
    asked = [frame for frame in _asked(frames, finding) if frame["request_ns"] <= (finding.time_ns or 0)]
    node, at = _asked_one(finding), f"offset {finding.until}"
    own = [frame for frame in asked if frame["offset"] == finding.until]
    refused = [frame for frame in own if frame["error"] == ErrorCode.OFFSET_OUT_OF_RANGE]
    if own and len(refused) == len(own):
        return Ground(True, f"{node} refused to delete what lies before {at}, and deleted it", refused[-1:])
    if refused:
        return Ground(None, f"{node} was asked several times to delete what lies before {at}", own)
    if own:
        return Ground(False, f"a client asked {node} to delete what lies before {at}, and does not say so", own[-1:])
    unnamed = [frame for frame in asked if frame["offset"] is None and not _is_over(frame, finding.time_ns or 0)]
    if unnamed:
        return Ground(None, f"{node} was deleting up to its high watermark, which the request does not name", unnamed)
    return unless_blind(
        frames, Ground(True, f"no client asked {node} to delete what lies before {at}", asked[-2:]), DELETE_RECORDS
    )


def obeyed(frames: Frames, finding: Finding) -> Ground:
    """That a broker answered that what lies before the finding's ``until`` is deleted, while an order was under way."""
    told = [
        frame
        for frame in frames.of[DELETE_RECORDS, place_of(finding)]
        if frame["error"] == 0 and is_between(frame, finding.since_ns, finding.by_ns or 0)
        and finding.until == (frame["log_start_offset"] if frame["offset"] is None else frame["offset"])
    ]  # fmt: skip
    if told:
        return Ground(True, f"a broker answered that what lies before offset {finding.until} is deleted", told[-1:])
    words = f"no broker answered that what lies before offset {finding.until} is deleted"
    return unless_blind(frames, Ground(False, words), DELETE_RECORDS)


def not_obeyed(frames: Frames, finding: Finding) -> Ground:
    """That the finding's node refused an order with the error code ``until``, or None: did not answer it in time."""
    asked = [
        frame
        for frame in _asked(frames, finding)
        if frame["offset"] == finding.offset
        and (finding.since_ns or 0) <= frame["request_ns"] <= (finding.time_ns or 0)
    ]
    node, what = f"node {finding.node}", "the high watermark" if finding.offset is None else f"offset {finding.offset}"
    if not asked:
        words = f"no client asked {node} to delete what lies before {what}"
        return unless_blind(frames, Ground(False, words), DELETE_RECORDS)
    answered = [frame for frame in asked if _is_over(frame, finding.time_ns or 0)]
    if finding.until is None and answered:
        return Ground(None, f"{node} answered, and the frames do not show whether the client heard it", answered)
    if finding.until is None:
        return Ground(True, f"{node} did not answer the request to delete what lies before {what}", asked)
    told = [frame for frame in answered if frame["error"] == finding.until]
    if told:
        return Ground(True, f"{node} answered with error {finding.until}", told[-1:])
    words = f"{node} did not answer with error {finding.until}"
    return unless_blind(frames, Ground(False, words, asked), DELETE_RECORDS)


def _asked(frames: Frames, finding: Finding) -> list[Row]:
    """The requests to the finding's node about its partition; to all, where it has none."""
    about = frames.of[DELETE_RECORDS, place_of(finding)]
    return about if finding.node == NO_NODE else [frame for frame in about if frame["node"] == finding.node]


def _asked_one(finding: Finding) -> str:
    return "a broker" if finding.node == NO_NODE else f"node {finding.node}"


def _is_over(frame: Row, at_ns: int) -> bool:
    return frame["response_ns"] is not None and bool(frame["response_ns"] <= at_ns)

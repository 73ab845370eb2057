"""Compares what share consumers report with the requests and responses that a wire tap captured."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.views.frames import Frames, client_id_of, is_between, place_of
from checkers.views.row import Row, where
from checkers.wire_tap.attribution import Ground, unless_blind
from harness.findings import Finding

FETCH = "SHARE_FETCH"
ACKNOWLEDGE = "SHARE_ACKNOWLEDGE"

_TERMINAL = frozenset({"accept", "reject"})
_SETTLED = _TERMINAL | {"gap"}
"""After which a broker is done with a record; ``gap``: the consumer says that there is none."""

_UNDER_WAY_NS = 1_000_000_000
"""How long a consumer may take to report what it was given."""


def confirmed(frames: Frames, finding: Finding) -> Ground:
    """That a broker confirmed the accept, or the reject, of the finding's offset, as the row ``until`` says."""
    row = frames.rows.get(-1 if finding.until is None else finding.until)
    if row is None:
        return Ground(None, "the acknowledgement is not known")
    begun_ns, client = frames.asked.get((row["op"], where(row))), client_id_of(row["process"])
    sent = [
        frame
        for frame in _acknowledging(frames, finding, row["group"])
        if frame["client_id"] == client and is_between(frame, begun_ns, row["time_ns"])
    ]
    taken = [frame for frame in sent if _is_confirmed(frame)]
    own = [frame for frame in taken if frame["acknowledgement"] in _TERMINAL]
    who, at = f"process {row['process']}", f"offset {finding.offset}"
    if own:
        return Ground(True, f"a broker confirmed the {own[-1]['acknowledgement']} of {at} by {who}", own[-1:])
    if taken:
        words = f"{who} sent a {taken[-1]['acknowledgement']} of {at}, and reports a {row['acknowledgement']}"
    elif sent:
        words = f"the broker refused what {who} acknowledged of {at}"
    else:
        words = f"no broker answered an acknowledgement of {at} by {who} while it was under way"
    return unless_blind(frames, Ground(False, words, taken or sent), FETCH, ACKNOWLEDGE)


def given(frames: Frames, finding: Finding, delivery: int | None = None) -> Ground:
    """That a broker gave the finding's process the record; ``delivery``: as which one by its count, None: any."""
    row = frames.rows.get(-1 if finding.row is None else finding.row)
    if row is None or finding.offset is None:
        return Ground(None, "the delivery is not known")
    client, who, at = client_id_of(row["process"]), f"process {row['process']}", f"offset {finding.offset}"
    told = [
        frame
        for frame in _giving(frames, finding, row["group"])
        if frame["client_id"] == client and is_between(frame, None, row["time_ns"])
    ]
    if not told:
        return unless_blind(frames, Ground(False, f"no broker gave {who} {at} before it reports it"), FETCH)
    held = {_value_at(frames, finding, frame) for frame in told}
    if finding.value not in held and None not in held:
        return Ground(False, f"the batch that a broker gave {who} does not hold value {finding.value} at {at}", told)
    counted = [frame for frame in told if delivery in (None, frame["delivery_count"])]
    if not counted:
        return Ground(False, f"a broker gave {who} {at} as delivery {told[-1]['delivery_count']}", told)
    return Ground(True, f"a broker gave {who} {at} as delivery {counted[-1]['delivery_count']}", counted[-1:])


def withheld(frames: Frames, finding: Finding) -> Ground:
    """That the brokers did not give a group the record while it was drained, and that the group had not settled it."""
    row = frames.rows.get(-1 if finding.row is None else finding.row)
    if row is None:
        return Ground(None, "the share group is not known")
    group, at = row["group"], f"offset {finding.offset}"
    settled = [
        frame
        for frame in _acknowledging(frames, finding, group)
        if frame["acknowledgement"] in _SETTLED and (frame["response_ns"] is None or _is_confirmed(frame))
    ]
    if settled:
        who, what = settled[-1]["client_id"], settled[-1]["acknowledgement"]
        return Ground(False, f"{who} sent a {what} of {at}, and does not report it", settled)
    since_ns, last = frames.drained.get((group, place_of(finding))), frames.taker.get(group)
    if since_ns is None or last is None:
        return Ground(None, f"what share group {group!r} was given in its drain is not known")
    told = [frame for frame in _giving(frames, finding, group) if (frame["response_ns"] or 0) >= since_ns]
    unsaid = [frame for frame in told if frame["client_id"] == client_id_of(last)]
    if unsaid:
        in_time = unsaid[0]["response_ns"] + _UNDER_WAY_NS <= (finding.time_ns or 0)
        words = f"a broker gave {at} to process {last}, which does not report it"
        return Ground(False if in_time else None, words, unsaid)
    if told:
        words = f"a broker gave {at} to {told[-1]['client_id']}, and not again when that had gone"
        return Ground(True if finding.excuse is None else None, words, told)
    words = f"no broker gave share group {group!r} {at} while it was drained"
    return unless_blind(frames, Ground(True, words), FETCH, ACKNOWLEDGE)


def _acknowledging(frames: Frames, finding: Finding, group: str) -> list[Row]:
    """The frames by which consumers of the group say something of the finding's offset."""
    several = [*frames.of[FETCH, place_of(finding)], *frames.of[ACKNOWLEDGE, place_of(finding)]]
    said = [frame for frame in several if frame["acknowledgement"] is not None and _is_about(frame, finding, group)]
    return sorted(said, key=lambda frame: int(frame["request_ns"]))


def _giving(frames: Frames, finding: Finding, group: str) -> Sequence[Row]:
    """The frames by which brokers gave the group the record at the finding's offset; without one there is no batch."""
    return [
        frame
        for frame in frames.of[FETCH, place_of(finding)]
        if frame["delivery_count"] is not None and frame["batch_crc"] is not None and _is_about(frame, finding, group)
    ]


def _is_about(frame: Row, finding: Finding, group: str) -> bool:
    first, end = frame["base_offset"], frame["end_offset"]
    known = None not in (first, end, finding.offset) and frame["group"] == group
    return known and bool(first <= finding.offset < end)


def _is_confirmed(frame: Row) -> bool:
    """Whether the broker took an acknowledgement; what its response says of the fetch beside it does not matter."""
    return bool(frame["acknowledge_error"] == 0)


def _value_at(frames: Frames, finding: Finding, frame: Row) -> int | None:
    """The value that a log holds at the finding's offset in the batch of a frame; None: unknown."""
    held = (row for row in frames.logged[place_of(finding)] if row["batch_crc"] == frame["batch_crc"])
    return next(
        (int(row["value"]) for row in held if row["offset"] == finding.offset and row["value"] is not None), None
    )

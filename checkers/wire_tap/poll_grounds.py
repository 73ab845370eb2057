"""Compares the polls and lookups that clients report with the requests and responses that a wire tap captured."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.views.frames import DELETE_RECORDS, Frames, client_id_of, identity, is_between, place_of
from checkers.views.row import Row, where
from checkers.wire_tap.attribution import Ground, gravest, unless_blind
from harness.client_ports import TRUNCATED
from harness.error_codes import ErrorCode
from harness.findings import Finding


def delivered(frames: Frames, finding: Finding, offset: int | None, value: int | None) -> Ground:
    """That a broker sent ``value`` at ``offset``, where a client says so; it holds where none does."""
    reads = [row for row in frames.read[place_of(finding), -1 if offset is None else offset] if row["value"] == value]
    grounds = [_delivered(frames, finding, row) for row in reads[:1]]
    return gravest(grounds) or Ground(True, "")


def _delivered(frames: Frames, finding: Finding, read: Row) -> Ground:
    place, offset, value = where(read), read["offset"], read["value"]
    given = frames.given(place, offset, read["process"], read["time_ns"])
    if not given:
        words = f"no Fetch response had offset {offset} in it before process {read['process']} reports it"
        return unless_blind(frames, Ground(False, words), "FETCH")
    values = {frames.value_in(finding, row, offset) for row in given}
    if value in values or value is None:
        return Ground(True, f"a broker sent {_named(value)} at offset {offset}", given)
    if None in values:
        return Ground(None, f"a broker sent a batch with offset {offset}, whose records are not known", given)
    held = _named(min(one for one in values if one is not None))
    return Ground(False, f"the batch that a broker sent holds {held} at offset {offset}", given)


def stored_damaged(frames: Frames, finding: Finding) -> Ground:
    """That the brokers stored the record damaged which a poll delivered so; the frames do not have its bytes."""
    held = [row for row in frames.logged[place_of(finding)] if row["offset"] == finding.offset]
    if any(not row["intact"] for row in held):
        return Ground(True, f"a log holds a damaged record at offset {finding.offset}")
    return Ground(None, "the frames' bytes are not recorded, and no log holds a damaged record there")


def sent_uncommitted(frames: Frames, finding: Finding) -> Ground:
    """That a broker sent a record that was not stable yet, as the poll says that delivered it."""
    place, offset = place_of(finding), finding.offset
    if offset is None or finding.process is None:
        return Ground(None, "the offset is not known")
    given = frames.given(place, offset, finding.process, finding.time_ns or 0)
    early = [row for row in given if row["last_stable_offset"] is not None and row["last_stable_offset"] <= offset]
    if early:
        return Ground(True, f"a broker sent offset {offset} above its last stable offset", early)
    return Ground(None, "the frames do not show whether the client asked for committed records alone", given)


def sent_again(frames: Frames, finding: Finding) -> Ground:
    """That a broker sent the finding's offset after the other one, as the polls say that went back."""
    place, offset, before = place_of(finding), finding.offset, finding.other_offset
    if offset is None or before is None or finding.process is None:
        return Ground(None, "the offsets are not known")
    until_ns = finding.time_ns or 0
    lower, higher = (frames.given(place, one, finding.process, until_ns) for one in (offset, before))
    if not lower or not higher:
        return Ground(None, "no Fetch response has these offsets in it", [*lower, *higher])
    first = higher[0]
    again = [row for row in lower if row is not first and _comes_later(row, first)]
    if not again:
        words = f"no broker sent offset {offset} after offset {before}, and the client delivered it after that"
        return Ground(False, words, [lower[0], first])
    unasked = [row for row in again if row["offset"] is not None and row["end_offset"] <= row["offset"]]
    unasked += [row for row in again if identity(row) == identity(first)]
    if unasked:
        return Ground(True, f"a broker sent offset {offset} behind offset {before} without being asked", unasked)
    return Ground(None, f"the frames do not show why the client asked for offset {offset} again", again)


def withheld(frames: Frames, finding: Finding) -> Ground:
    """That no broker sent the finding's process what is at its offset, as the poll says that skips it."""
    place, offset, until = place_of(finding), finding.offset, finding.until
    if offset is None or until is None or finding.process is None:
        return Ground(None, "the skipped offset is not known")
    until_ns, client = finding.time_ns or 0, client_id_of(finding.process)
    sent, beyond = (
        [row for row in frames.given(place, one, finding.process, until_ns) if row["client_id"] == client]
        for one in (offset, until)
    )
    if not beyond:
        return Ground(None, "no Fetch response to the client could be recognized", sent)
    in_time = [row for row in sent if row is beyond[0] or not _comes_later(row, beyond[0])]
    if in_time and _is_asked_again(offset, in_time, beyond):
        words = f"a broker sent the client offset {offset}, and did not when the client asked again"
        return Ground(None, words, [*in_time, *beyond])
    return _left_out(offset, in_time) if in_time else _jumped(frames, offset, sent, beyond, until)


def _is_asked_again(offset: int, sent: Sequence[Row], beyond: Sequence[Row]) -> bool:
    """Whether the client asked again for an offset that it was sent, and was sent what comes after it.

    A consumer drops what it has fetched when its assignment changes, or its position has to be validated.
    """
    last_ns, known = max(row["response_ns"] for row in sent), {identity(row) for row in sent}
    again = (row for row in beyond if row["request_ns"] >= last_ns and identity(row) not in known)
    return any(row["offset"] is not None and row["offset"] <= offset for row in again)


def _left_out(offset: int, sent: Sequence[Row]) -> Ground:
    """Of an offset that the client was sent before what its poll delivers after it."""
    kept = [row for row in sent if not row["aborted"]]
    if kept:
        return Ground(False, f"a broker sent the client offset {offset}, and its poll left it out", kept)
    return Ground(True, f"the broker listed the transaction at offset {offset} as aborted", sent)


def _jumped(frames: Frames, offset: int, sent: Sequence[Row], beyond: Sequence[Row], until: int) -> Ground:
    """Of an offset that the client was not sent before ``until``."""
    if sent:
        return Ground(True, f"a broker sent offset {offset} only behind offset {until}", [beyond[0], *sent])
    passed = [row for row in beyond if row["offset"] is not None and row["offset"] <= offset]
    if passed:
        words = f"a broker was asked for offset {passed[0]['offset']} and sent what comes after offset {offset}"
        return unless_blind(frames, Ground(True, words, passed), "FETCH")
    return Ground(None, f"no Fetch of the client asked for offset {offset}", beyond)


def withheld_in_the_end(frames: Frames, finding: Finding) -> Ground:
    """That the brokers did not send the record of the finding to the final read, as the final read says."""
    place, offset = place_of(finding), finding.offset
    readers = {client_id_of(process) for process in frames.final[place]}
    if offset is None:
        return Ground(None, "the offset is not known")
    sent = frames.covering("FETCH", place, offset)
    had = [row for row in sent if frames.value_in(finding, row, offset) == finding.value]
    if had and not readers:
        return Ground(None, "which client did the final read is not known", had)
    had = [row for row in had if row["client_id"] in readers]
    if had and all(row["aborted"] for row in had):
        return Ground(True, "the brokers listed its transaction as aborted to the final read", had)
    if had := [row for row in had if not row["aborted"]]:
        words = f"a broker sent the final read value {finding.value} at offset {offset}, and it does not report it"
        return Ground(False, words, had)
    deleting = [row for row in frames.of[DELETE_RECORDS, place] if _may_delete(row, offset)]
    if deleting:
        words = (
            f"a client asked to delete what lies before {_named_end(deleting[0])}, which the run's orders have or lack"
        )
        return Ground(None, words, deleting)
    return Ground(True, "no broker sent it to the final read")


def _may_delete(row: Row, offset: int) -> bool:
    """Whether a DeleteRecords may have deleted the record at an offset.

    The answer tells where the watermark was, unless it is that followers have not deleted yet what the leader has.
    """
    if row["error"] == ErrorCode.OFFSET_OUT_OF_RANGE:
        return False
    watermark = row["log_start_offset"] if row["error"] == 0 else None
    end = watermark if row["offset"] is None else row["offset"]
    return end is None or bool(end > offset)


def _named_end(row: Row) -> str:
    return "the high watermark" if row["offset"] is None else f"offset {row['offset']}"


def sent_as_asked(frames: Frames, finding: Finding) -> Ground:
    """That a client delivers the finding's offset because of what brokers sent: the coordinator told it to begin there.

    Else it has asked for it, or delivers what it was sent before it was given the partition, or behind what it had
    asked for.
    """
    if finding.offset is None or finding.process is None:
        return Ground(None, "the delivery is not known")
    given = frames.given(place_of(finding), finding.offset, finding.process, finding.time_ns or 0)
    asked = [row for row in given if row["offset"] is not None and row["offset"] <= finding.offset]
    if again := [row for row in asked if row["request_ns"] >= (finding.since_ns or 0)]:
        told = _returned_to(frames, finding, finding.process, finding.offset)
        if told:
            words = f"the coordinator returned offset {told[-1]['offset']} to the client, which began there"
            return Ground(True, words, told[-1:])
        words = f"the client asked for offset {again[-1]['offset']} when it was given the partition"
        return unless_blind(frames, Ground(False, words, again), "OFFSET_FETCH")
    return Ground(False, f"the client kept offset {finding.offset} from before it was given the partition", given)


def _returned_to(frames: Frames, finding: Finding, process: int, offset: int) -> list[Row]:
    """The answers to a client since the finding's begin by which its group has committed ``offset``, or less."""
    return [
        frame
        for frame in frames.of["OFFSET_FETCH", place_of(finding)]
        if frame["client_id"] == client_id_of(process) and frame["error"] == 0
        and frame["offset"] is not None and 0 <= frame["offset"] <= offset
        and is_between(frame, finding.since_ns, finding.time_ns or 0)
    ]  # fmt: skip


def refused_position(frames: Frames, finding: Finding) -> Ground:
    """That a broker answered a fetch from the finding's other offset with OFFSET_OUT_OF_RANGE.

    The frames do not have the answers by which a client learns of a truncation (KIP-320).
    """
    row = frames.rows.get(-1 if finding.row is None else finding.row)
    if row is None or finding.process is None:
        return Ground(None, "the row is not known")
    asked = [
        frame
        for frame in frames.of["FETCH", place_of(finding)]
        if frame["offset"] == finding.other_offset and frame["client_id"] == client_id_of(finding.process)
        and is_between(frame, None, finding.time_ns or 0)
    ]  # fmt: skip
    told = [frame for frame in asked if frame["error"] == ErrorCode.OFFSET_OUT_OF_RANGE]
    if told:
        return Ground(True, f"a broker answered that offset {finding.other_offset} is out of range", told[-1:])
    if row["error"] == TRUNCATED:
        return Ground(None, "the frames do not show what brokers answered the client about leader epochs", asked[-1:])
    words = f"no broker answered the client that offset {finding.other_offset} is out of range"
    return unless_blind(frames, Ground(False, words, asked[-1:]), "FETCH")


def answered_for_time(frames: Frames, finding: Finding) -> Ground:
    """That a broker answered the consumer's lookup by time with the finding's other offset, None: with none."""
    if finding.process is None:
        return Ground(None, "the client is not known")
    answered = [
        frame
        for frame in frames.of["LIST_OFFSETS", place_of(finding)]
        if frame["client_id"] == client_id_of(finding.process) and is_between(frame, None, finding.time_ns or 0)
        and frame["error"] == 0
    ][-1:]  # fmt: skip
    answer = "no offset" if finding.other_offset is None else f"offset {finding.other_offset}"
    if answered and answered[0]["offset"] == finding.other_offset:
        return Ground(True, f"a broker answered the lookup with {answer}", answered)
    words = f"no broker answered the lookup with {answer}"
    return unless_blind(frames, Ground(False, words, answered), "LIST_OFFSETS")


def _comes_later(row: Row, other: Row) -> bool:
    """Whether the client was sent a batch after another one, in a later response or behind it in the same."""
    if identity(row) == identity(other):
        return bool(row["batch"] > other["batch"])
    return bool(row["response_ns"] >= other["response_ns"])


def _named(value: int | None) -> str:
    return "a record" if value is None else f"value {value}"

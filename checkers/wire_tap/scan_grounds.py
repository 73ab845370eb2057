"""Compares what readers of a compacted log report with the requests and responses that a wire tap captured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checkers.views.frames import Frames, identity, is_between, place_of
from checkers.views.row import Row, where
from checkers.wire_tap.attribution import Ground, unless_blind
from harness.compacted import key_number, reader_name
from harness.findings import Finding


class _Sent(NamedTuple):
    """An offset of a batch that a broker sent a reader; ``value``: what the batch holds there, None: not known."""

    frame: Row
    offset: int
    value: int | None


def kept_from_reader(frames: Frames, finding: Finding) -> Ground:
    """That no broker sent a reader of the whole log the finding's record, or a later one of its key, as its scan says.

    What a log no longer has is of an unknown value, and the reader is believed what it reports of it; but what it does
    not report at all may have been of the key, and what it reports at the finding's offset is in question. The cleaner
    leaves the last batch of a producer without records, and such a batch tells nothing.
    """
    scan = frames.scanned[place_of(finding), -1 if finding.process is None else finding.process]
    end = next((row["offset"] for row in scan if row["type"] == "invoke"), None)
    given = _given(frames, finding)
    if finding.value is None or end is None or not given:
        return Ground(None, "no Fetch response to the reader could be recognized")
    told = {row["offset"] for row in scan if row["type"] == "ok"}
    sent = [one for one in _sent(frames, finding, given) if one.offset < end]
    of_key = [one for one in sent if one.value is not None and key_number(one.value) == key_number(finding.value)]
    unsaid = [one for one in of_key if one.offset != finding.offset or one.value == finding.value]
    if unsaid and _is_asked_again(unsaid[-1], given):
        words = f"a broker sent the reader value {unsaid[-1].value}, and the reader asked for it again"
        return Ground(None, words, [unsaid[-1].frame])
    if unsaid:
        what = f"value {unsaid[-1].value} at offset {unsaid[-1].offset}"
        return Ground(False, f"a broker sent the reader {what}, and its scan does not report it", [unsaid[-1].frame])
    unknown = [one for one in sent if one.value is None and (one.offset == finding.offset or one.offset not in told)]
    if unknown:
        words = f"a broker sent the reader a batch with offset {unknown[0].offset}, whose records are not known"
        return Ground(None, words, [one.frame for one in unknown])
    words = f"no broker sent the reader value {finding.value}, or a later one of key {key_number(finding.value)}"
    return unless_blind(frames, Ground(True, words, given[-1:]), "FETCH")


def none_refused(frames: Frames, finding: Finding) -> Ground:
    """That no later put of the finding's key was refused, as clients report; one that was stored may supersede it."""
    later = [row for row in frames.refused[place_of(finding)] if row["time_ns"] >= (finding.since_ns or 0)]
    own = [row for row in later if finding.value is not None and key_number(row["value"]) == key_number(finding.value)]
    if own:
        return Ground(
            None, f"a client reports that value {own[0]['value']} of the same key was refused, which may be untrue"
        )
    return Ground(True, "")


def _given(frames: Frames, finding: Finding) -> Sequence[Row]:
    """The batches that brokers sent the finding's reader."""
    if finding.process is None:
        return ()
    client = f"seawall-{reader_name(finding.process)}"
    return [
        frame
        for frame in frames.of["FETCH", place_of(finding)]
        if frame["client_id"] == client and frame["error"] == 0 and frame["base_offset"] is not None
        and frame["records"] and is_between(frame, None, finding.time_ns or 0)
    ]  # fmt: skip


def _sent(frames: Frames, finding: Finding, given: Sequence[Row]) -> Iterator[_Sent]:
    """What the batches hold at the finding's offset and behind it, by the logs, or by what was acknowledged there."""
    place, own = place_of(finding), _sums(frames, finding)
    logged = (row for row in frames.logged[place] if row["value"] is not None)
    held = {(row["batch_crc"], row["offset"]): int(row["value"]) for row in logged}
    for frame in given:
        for offset in range(max(frame["base_offset"], finding.offset or 0), frame["end_offset"]):
            value = held.get((frame["batch_crc"], offset))
            if value is None and offset == finding.offset and frame["batch_crc"] in own:
                value = finding.value
            yield _Sent(frame, offset, value)


def _sums(frames: Frames, finding: Finding) -> set[int]:
    """The checksums of the batches of which a broker answered the finding's own put that they are at its offset."""
    place = place_of(finding)
    begun_ns = frames.begun.get((place, finding.value or 0))
    acks = [row for row in frames.acks[place, finding.value or 0] if row["offset"] == finding.offset]
    return {
        frame["batch_crc"]
        for ack in acks
        for frame in frames.covering("PRODUCE", where(ack), ack["offset"])
        if is_between(frame, begun_ns, ack["time_ns"])
    }


def _is_asked_again(one: _Sent, given: Sequence[Row]) -> bool:
    """Whether the reader asked again for an offset that it was sent, for it had lost it, or dropped it."""
    others = (frame for frame in given if identity(frame) != identity(one.frame))
    later = (frame for frame in others if frame["request_ns"] >= one.frame["response_ns"])
    return any(frame["offset"] is not None and frame["offset"] <= one.offset for frame in later)

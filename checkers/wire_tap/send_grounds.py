"""Compares the sends that clients report with the requests and responses that a wire tap captured."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.views.frames import Frames, identity, is_between, place_of
from checkers.views.row import NO_ACKS, Row, where
from checkers.wire_tap.attribution import UNKNOWN_END, Ground, gravest, unless_blind
from harness.findings import Finding

_STORED_NOTHING = frozenset({2, 3, 10, 19, 29, 45, 87})
"""The error codes of a Produce by which a broker says that it has stored nothing: CORRUPT_MESSAGE,
UNKNOWN_TOPIC_OR_PARTITION, MESSAGE_TOO_LARGE, NOT_ENOUGH_REPLICAS, TOPIC_AUTHORIZATION_FAILED,
OUT_OF_ORDER_SEQUENCE_NUMBER and INVALID_RECORD. After such an answer a client sends the record again, rightly."""


def acknowledged(frames: Frames, finding: Finding, offset: int | None, value: int | None) -> Ground:
    """That a broker acknowledged ``value`` at ``offset``, where a client says so; it holds where none does."""
    place = place_of(finding)
    acks = [row for row in frames.acks[place, value or 0] if row["offset"] == offset and value is not None]
    grounds = [_acknowledged(frames, finding, row) for row in acks]
    return gravest(grounds) or Ground(True, "")


def _acknowledged(frames: Frames, finding: Finding, ack: Row) -> Ground:
    place, offset, value = where(ack), ack["offset"], ack["value"]
    if ack["acks"] == NO_ACKS or offset is None:
        return Ground(None, f"the send of value {value} was not answered with an offset (acks={ack['acks']})")
    begun = frames.begun.get((place, value)) if value in (finding.value, finding.other_value) else None
    answers = [row for row in frames.covering("PRODUCE", place, offset) if is_between(row, begun, ack["time_ns"])]
    real = [row for row in frames.batches_of(place, value) if is_between(row, begun, ack["time_ns"])]
    held = [frames.value_in(finding, row, offset) for row in answers]
    if value in held or (None in held and not real):
        own = [row for row, one in zip(answers, held, strict=True) if one in (value, None)]
        return Ground(True, f"a broker answered the send of value {value} with offset {offset}", own)
    if None in held:
        words = f"a broker answered a Produce with offset {offset} whose records no log has, and another one has value"
        return Ground(None, f"{words} {value}", [*real, *answers])
    said = "no broker answered a Produce" if not answers else "the Produce that was answered"
    words = f"{said} with offset {offset} {'while' if not answers else 'was not of value'} "
    words += f"the send of value {value} was under way" if not answers else str(value)
    given = [row["base_offset"] for row in real if row["base_offset"] is not None]
    words += f", whose batch was given base offset {given[0]}" if given else ""
    return unless_blind(frames, Ground(False, words, [*real, *answers]), "PRODUCE")


def order_of_sends(frames: Frames, finding: Finding) -> Ground:
    """That the producer sent the finding's value after the other one, as its client says."""
    place = place_of(finding)
    later, earlier = (
        [row for row in frames.batches_of(place, value) if row["base_offset"] is not None]
        for value in (finding.value, finding.other_value)
    )
    if later and earlier and later[-1]["request_ns"] < earlier[0]["request_ns"]:
        words = f"the client sent value {finding.value} before value {finding.other_value}, and not after it"
        return Ground(False, words, [later[-1], earlier[0]])
    if later and {identity(row) for row in later} & {identity(row) for row in earlier}:
        return Ground(False, f"the client put value {finding.value} first into a batch with both", later[:1])
    return Ground(True, "the client sent both in the order in which it says so", [*earlier[:1], *later[:1]])


def refused(frames: Frames, finding: Finding) -> Ground:
    """That the send of the finding's value failed, as its client says: refused, or its transaction aborted."""
    sent = frames.batches_of(place_of(finding), finding.value)
    if _is_transactional(frames, finding):
        return _ended(frames, finding, sent, commits=False)
    taken = [row for row in sent if row["error"] == 0]
    if taken:
        words = f"a broker acknowledged the batch of value {finding.value}"
        again = [row for row in sent if row["error"] != 0 and row["request_ns"] > taken[0]["request_ns"]]
        if again:  # the acknowledgement need not have arrived
            how = "did not answer" if again[-1]["error"] is None else "refused"
            return Ground(None, f"{words}, and {how} it when the client sent it again", [*taken, *again])
        return unless_blind(frames, Ground(False, words, taken), "PRODUCE")
    answered = [row for row in sent if row["error"] is not None]
    if answered:
        return Ground(True, f"the broker refused the batch of value {finding.value}, and has it", answered)
    return Ground(None, f"no frame shows how the send of value {finding.value} ended", sent)


def committed_if_transactional(frames: Frames, finding: Finding) -> Ground:
    """That the transaction of the finding's value was committed, where its client says so; it holds where none does."""
    if not frames.acks[place_of(finding), finding.value or 0] or not _is_transactional(frames, finding):
        return Ground(True, "")
    return _ended(frames, finding, frames.batches_of(place_of(finding), finding.value), commits=True)


def ended_as_reported(frames: Frames, finding: Finding, *, commits: bool) -> Ground:
    """That the transaction of the finding's value ended so, as its client says; not known if it does not say that."""
    if commits and not frames.acks[place_of(finding), finding.value or 0]:
        return UNKNOWN_END
    return _ended(frames, finding, frames.batches_of(place_of(finding), finding.value), commits=commits)


def ended_at_all(frames: Frames, finding: Finding) -> Ground:
    """That the coordinator has acknowledged some end of the transaction of the finding's value, which no log shows."""
    sent = frames.batches_of(place_of(finding), finding.value)
    ends = [_ended(frames, finding, sent, commits=commits) for commits in (True, False)]
    shown = next((end for end in ends if end.holds), None)
    return shown or Ground(
        None, "no frame shows that its client ended the transaction, which is left to a timeout", sent
    )


def _ended(frames: Frames, finding: Finding, sent: Sequence[Row], *, commits: bool) -> Ground:
    """By what the coordinator answered between the send and the report of the end.

    Another request may come between, which its client has sent for a transaction before, and given up (KAFKA-17754).
    """
    did, own = "commit" if commits else "abort", (place_of(finding), finding.value or 0)
    begun_ns, told_ns = frames.begun.get(own), frames.ended.get(own)
    for batch in sent:
        several = frames.endings[batch["producer_id"], batch["producer_epoch"]]
        ends = [
            row
            for row in several
            if (begun_ns or 0) <= row["request_ns"] and (told_ns is None or row["request_ns"] <= told_ns)
        ]
        done = [row for row in ends if row["commits"] is commits and row["error"] == 0]
        if done:
            return Ground(True, f"the coordinator acknowledged the {did} of its transaction", [batch, done[-1]])
        if other := [row for row in ends if row["commits"] is not commits and row["error"] in (0, None)]:
            return Ground(False, f"the client asked to {'abort' if commits else 'commit'} it", [batch, other[-1]])
    return Ground(None, f"no frame shows the {did} of the transaction of value {finding.value}", sent)


def _is_transactional(frames: Frames, finding: Finding) -> bool:
    sends = frames.acks[place_of(finding), finding.value or 0]
    held = [row for row in frames.logged[place_of(finding)] if row["value"] == finding.value]
    return any(row["txn"] for row in sends) or any(row["transactional"] for row in held)


def sent_by_a_client(frames: Frames, finding: Finding) -> Ground:
    """That no client sent the finding's value, as the history says: it holds where a log has it all the same."""
    held = [row for row in frames.logged[place_of(finding)] if row["value"] == finding.value]
    sent = frames.batches_of(place_of(finding), finding.value)
    if sent:
        return Ground(False, f"a client sent the batch of value {finding.value}, and does not say so", sent)
    if held and not frames.is_restamped(place_of(finding)):
        words = f"no client sent the batch in which a log holds value {finding.value}"
        return unless_blind(frames, Ground(True, words), "PRODUCE")
    return Ground(None, f"no log holds value {finding.value}, and no frame can be told to be of it")


def sent_once(frames: Frames, finding: Finding) -> Ground:
    """That the producer sent the finding's value once, and again only under the same sequence number."""
    place = place_of(finding)
    held = [row for row in frames.logged[place] if row["value"] == finding.value]
    sent = frames.batches_of(place, finding.value)
    copies = {row["offset"] for row in held}
    numbers = {_numbers(row) for row in held}
    for number in sorted(one for one in numbers if None not in one):
        offsets = [(row["node"], row["offset"]) for row in held if _numbers(row) == number]
        if len(set(offsets)) > len({node for node, _ in offsets}):
            said = "producer id {}, epoch {}, sequence {}".format(*number)
            return Ground(True, f"a log has the record of {said} twice, and a leader must know it again", sent)
    if frames.is_restamped(place):
        return Ground(None, "the topic has LogAppendTime, so that batches cannot be recognized", sent)
    requests = {identity(row) for row in sent if row["error"] not in _STORED_NOTHING}
    is_numbered = all(number[0] is not None for number in numbers)
    if len(requests) >= max(2, len(copies)) and (len(numbers) > 1 or not is_numbered):
        how = "each with a number of its own" if is_numbered else "without sequence numbers"
        words = f"the client sent value {finding.value} in {len(requests)} Produce requests, {how}"
        return Ground(False, words, sent)
    words = f"the client sent value {finding.value} in {_count(len({*map(identity, sent)}), 'Produce request')}"
    refused_ones = len({*map(identity, sent)}) - len(requests)
    words += f", of which brokers refused {refused_ones} without storing anything" if refused_ones else ""
    words += f", and the logs have it at {_count(len(copies), 'offset')}"
    return unless_blind(frames, Ground(True, words, sent), "PRODUCE")


def _numbers(row: Row) -> tuple[int | None, int | None, int | None]:
    """Of a record in a log."""
    return row["producer_id"], row["producer_epoch"], row["sequence"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

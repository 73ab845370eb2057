"""The story of a lost range: sentences in order of time, each with the row from which it was read.

It infers nothing that no row shows, and names what is missing; of a table that was too large to be drawn, or could not
be read, it says that, and uses what the checker concluded. In a sampled timeline it names the samples that it relies
on, and those between which something happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.verdicts.evidence_tiers import reads_logs
from harness.checker import Anomaly, offsets
from harness.downtime import in_force
from reports import rows, successive_samples
from reports.lost_range import Loss
from reports.scale import NS, seconds

_BEFORE_NS: Final = 5 * NS
"""How long before the acknowledgement a fault may have been healed and still be in the story."""
_SAME_KIND: Final = 12
"""How many truncations, elections or faults one story has."""
_HOLDS: Final = {
    "history": "What clients were acknowledged and what they read was",
    "timeline": "What the nodes reported was",
    "replica_logs": "What the brokers' disks hold was",
}
"""What each table holds."""


@dataclass(frozen=True, slots=True)
class Event:
    """One sentence of a story.

    Attributes:
        time_ns: None for what was found after the run.
        tone: acknowledged, committed, fault, election, loss, after or unknown: how it is marked.
        words: the sentence.
        source: table and row it was read from; empty for a sentence about missing rows.
    """

    time_ns: int | None
    tone: str
    words: str
    source: str


def events(loss: Loss) -> Sequence[Event]:
    """The story: the acknowledgements, the copies, what happened, what removed the last copy, and what is left."""
    events = [
        *_acknowledged(loss),
        *_committed(loss),
        *_delivered(loss),
        *_faults(loss),
        *_elections(loss),
        *_truncated(loss),
        *_fallen(loss),
        *_unseen(loss),
        *_replaced(loss),
    ]
    ordered = sorted(events, key=lambda e: e.time_ns or loss.run.start_ns)
    return [*ordered, *_left(loss), *_not_looked_at(loss), *_last_copies(loss)]


def _not_looked_at(loss: Loss) -> Iterator[Event]:
    """A sentence for each table that is not in the report, so that nothing is concluded from missing rows."""
    for table, what in _HOLDS.items():
        if table in loss.run.left_out:
            yield Event(None, "unknown", f"{what} not looked at: see the top.", "")


def _concluded(loss: Loss) -> Iterator[Event]:
    """The acknowledgements as the checker concluded them, where the history is not in the report."""
    for one in loss.found:
        where = offsets(one.first_offset, one.end_offset)
        lasted = (one.last_acknowledged_ns - one.first_acknowledged_ns) / NS
        by = "by an unknown leader" if one.acknowledged_by is None else f"by broker {one.acknowledged_by}"
        words = f"Acknowledged within {lasted:.3f} s: {where} (acks={_acks(one.acks)}), {by}."
        yield Event(one.first_acknowledged_ns, "acknowledged", words, "verdict.json")


def _acknowledged(loss: Loss) -> Iterator[Event]:
    acks = loss.acks
    if "history" in loss.run.left_out:
        yield from _concluded(loss)
        return
    if not acks:
        yield Event(None, "unknown", f"The history holds no acknowledgement of the values at {loss.where}.", "")
        return
    first, last = acks[0], acks[-1]
    leader = _leader_words(loss, first.time_ns)
    if len(acks) == 1:
        where = "at no offset" if first.offset is None else f"at offset {first.offset}"
        promise = f"Acknowledged to process {first.process}: value {first.value} {where}"
    else:
        lasted = (last.time_ns - first.time_ns) / NS
        processes = _several("process", "processes", sorted({a.process for a in acks}))
        promise = f"Acknowledged within {lasted:.3f} s: {len(acks)} values at {loss.where}, to {processes}"
    source = f"history, index {first.index}" + (f" to {last.index}" if len(acks) > 1 else "")
    yield Event(first.time_ns, "acknowledged", f"{promise} (acks={_acks(first.acks)}), {leader}.", source)
    yield from _looked_at(loss, last.time_ns) if loss.run.sampled else [_held(loss, last.time_ns)]


def _held(loss: Loss, time_ns: int) -> Event:
    then = [s for states in loss.known.states.values() if (s := successive_samples.at(states, time_ns)) is not None]
    holders = [s for s in then if (s.log_end_offset or 0) >= loss.end_offset]
    if not then:
        return Event(time_ns, "unknown", "No row shows which logs held it then.", "")
    if not holders:
        return Event(time_ns, "unknown", "No broker's log end covered the range at that moment.", "timeline")
    marks = "; ".join(f"broker {s.node} hw {s.high_watermark}, log end {s.log_end_offset}" for s in then)
    names = _brokers([s.node for s in holders])
    return Event(time_ns, "committed", f"Held at that moment by {names}. What each knew: {marks}.", _rows_of(then))


def _looked_at(loss: Loss, time_ns: int) -> Iterator[Event]:
    """The logs that held it by the last samples up to then, and those that did so only afterwards, in that term."""
    then = [s for states in loss.known.states.values() if (s := successive_samples.at(states, time_ns)) is not None]
    holders = [s for s in then if (s.log_end_offset or 0) >= loss.end_offset]
    if not then:
        yield Event(time_ns, "unknown", "No broker had been looked at by then.", "")
    else:
        whose = _several("the log of broker", "the logs of brokers", [s.node for s in holders])
        found = "; ".join(successive_samples.marks(s, time_ns) for s in then)
        words = f"At the last looks by then, {whose if holders else 'no log'} reached past it: {found}."
        yield Event(time_ns, "committed" if holders else "unknown", words, _rows_of(then))
    term = loss.term(time_ns)
    others = [states for node, states in loss.known.states.items() if node not in {s.node for s in holders}]
    later = [
        s
        for states in others
        if term is not None
        and (s := successive_samples.reached(states, time_ns, loss.end_offset, term.epoch)) is not None
    ]
    if later:
        found = "; ".join(successive_samples.marks(s, time_ns) for s in later)
        words = f"Seen to reach past it only afterwards, in the same epoch: {found}."
        yield Event(max(s.time_ns for s in later), "committed", words, _rows_of(later))


def _committed(loss: Loss) -> Iterator[Event]:
    leading = [
        s
        for states in loss.known.states.values()
        for s in states
        if s.role == "leader" and (s.high_watermark or 0) >= loss.end_offset and _of_its_epoch(loss, s)
    ]
    if not loss.run.watched:
        yield from _told(loss)
        return
    if not leading and "timeline" in loss.run.left_out:
        return
    if not leading:
        none = "No look found a leader of that epoch with" if loss.run.sampled else "No leader of that epoch reported"
        words = f"{none} a high watermark above {loss.where}: "
        yield Event(loss.acks[-1].time_ns if loss.acks else None, "unknown", words + "not shown to be committed.", "")
        return
    s = min(leading, key=lambda s: s.time_ns)
    be = "was" if loss.end_offset - loss.offset == 1 else "were"
    did = "was seen with its high watermark at" if loss.run.sampled else "raised its high watermark to"
    words = f"Committed: broker {s.node}, leading in epoch {s.leader_epoch}, {did}"
    yield Event(s.time_ns, "committed", f"{words} {s.high_watermark}: {loss.where} {be} below it.", _rows_of([s]))


def _told(loss: Loss) -> Iterator[Event]:
    """The first watermark above it that the cluster told a client."""
    above = [s for s in loss.known.told if (s.high_watermark or 0) >= loss.end_offset and _of_its_epoch(loss, s)]
    if above:
        s = min(above, key=lambda s: s.time_ns)
        words = (
            f"Clients were told the high watermark {s.high_watermark} in epoch {s.leader_epoch}, above {loss.where}."
        )
        yield Event(s.time_ns, "committed", words, _rows_of([s]))


def _of_its_epoch(loss: Loss, state: rows.State) -> bool:
    return not loss.epochs or state.leader_epoch in loss.epochs


def _delivered(loss: Loss) -> Iterator[Event]:
    polls = [p for p in loss.polls if p.value in loss.values and not p.final]
    if polls:
        first = polls[0]
        words = f"Delivered: a consumer (process {first.process}) got value {first.value} at offset {first.offset}"
        more = "." if len(polls) == 1 else f", the first of {len(polls)} such reads."
        yield Event(first.time_ns, "committed", words + more, f"history, index {first.index}")


def _faults(loss: Loss) -> Iterator[Event]:
    first_ns = loss.since_ns - _BEFORE_NS
    last_ns = max([loss.gone_ns, *(a.time_ns for a in loss.acks)])
    told_of = [
        f
        for f in loss.run.faults
        if f.injected_ns is not None and in_force(f.injected_ns, f.healed_ns, first_ns, last_ns)
    ]
    for f in told_of[-_SAME_KIND:]:
        proof = f"proven: {f.proof}" if f.proven else "NOT PROVEN to have taken effect"
        words = f"Fault {f.name}: {f.kind} on {', '.join(f.nodes)} injected ({proof})."
        yield Event(f.injected_ns, "fault", words, f"faults, {f.name}")
        if f.healed_ns is not None and f.healed_ns <= last_ns:
            yield Event(f.healed_ns, "fault", f"Fault {f.name} healed.", f"faults, {f.name}")


def _elections(loss: Loss) -> Iterator[Event]:
    for c in loss.elections(loss.since_ns)[:_SAME_KIND]:
        kind = {True: "Clean election", False: "UNCLEAN election", None: "Election"}[c.clean]
        who = "no leader" if c.leader < 0 else f"broker {c.leader} leads"
        isr = ",".join(map(str, c.isr))
        why = f" ({c.cause})" if c.cause else ""
        words = f"{kind}: {who} in epoch {c.leader_epoch}, ISR {{{isr}}}{why}."
        yield Event(c.time_ns, "election", words, f"timeline, controller, sequence {c.sequence}")


def _truncated(loss: Loss) -> Iterator[Event]:
    cuts = loss.cuts
    for t in cuts[:_SAME_KIND]:
        words = f"Gone from broker {t.node}: it truncated its log from {t.from_offset} to {t.to_offset} ({t.reason}), "
        words += f"{_removed(loss, t.to_offset, t.from_offset)} with it."
        yield Event(t.time_ns, "loss", words, f"timeline, node {t.node}, sequence {t.sequence}")
    if len(cuts) > _SAME_KIND:
        words = f"and {len(cuts) - _SAME_KIND} more truncations of the range."
        yield Event(cuts[_SAME_KIND].time_ns, "loss", words, "timeline")


def _fallen(loss: Loss) -> Iterator[Event]:
    """Logs that had become shorter between two successive samples."""
    for fall in loss.falls[:_SAME_KIND]:
        before, after = fall.before, fall.after
        times = " and ".join(seconds(s.time_ns - loss.run.start_ns) for s in (before, after))
        gone = _removed(loss, fall.start, fall.end)
        ends = f"its log was seen to end at {fall.end} and then at {fall.start}, {gone} with it"
        if fall.restarted:
            why = f"; in between, {fall.taken}." if fall.taken else "; in between it was started anew."
            words = f"Gone from broker {after.node} between {times}: {ends}{why}"
        else:
            words = f"Truncated by broker {after.node} between {times}: {ends}."
        yield Event(after.time_ns, "loss", words, _rows_of([before, after]))
    if len(loss.falls) > _SAME_KIND:
        words = f"and {len(loss.falls) - _SAME_KIND} more logs that were seen to have become shorter."
        yield Event(loss.falls[_SAME_KIND].after.time_ns, "loss", words, "timeline")


def _unseen(loss: Loss) -> Iterator[Event]:
    """What removed it where no log was seen to lose it."""
    closed = next((a for a in loss.run.verdict.anomalies if _closes(a, loss)), None)
    behind = successive_samples.ends_behind(loss.known.states, loss.end_offset - 1)
    if closed is not None:
        words = f"Hidden, not gone: {closed.why} A read_committed consumer is not given it."
        yield Event(loss.run.end_ns, "loss", words, "verdict.json")
    elif loss.cuts or loss.falls or "timeline" in loss.run.left_out:
        return
    elif behind:
        starts = "; ".join(f"broker {s.node} at {s.log_start_offset}" for s in behind)
        yield Event(loss.run.end_ns, "loss", f"In the end logs begin behind it: {starts}.", _rows_of(behind))
    elif loss.run.sampled:
        words = f"No look found a log that had lost {loss.where}: what removed it, and when, was not seen."
        yield Event(loss.run.end_ns, "unknown", words, "")
    else:
        words = f"No truncation that removed {loss.where} was recorded: what removed it is not known."
        yield Event(loss.run.end_ns, "unknown", words, "")


def _closes(anomaly: Anomaly, loss: Loss) -> bool:
    """Whether its sentence is that an abort marker closes what was lost."""
    here = (anomaly.topic, anomaly.partition) == loss.known.partition
    return here and anomaly.kind == "wrong-marker" and anomaly.value in loss.values


def _removed(loss: Loss, start: int, end: int) -> str:
    """What of the range lies from one offset to another, exclusive."""
    return offsets(max(loss.offset, start), min(loss.end_offset, end))


def _replaced(loss: Loss) -> Iterator[Event]:
    taken = loss.replacements
    if taken:
        first = taken[0]
        words = f"Its place is taken: value {first.value} was acknowledged at offset {first.offset}"
        more = "" if len(taken) == 1 else f", the first of {len(taken)} in the range"
        leader = _leader_words(loss, first.time_ns)
        yield Event(first.time_ns, "loss", f"{words}{more}, {leader}.", f"history, index {first.index}")


def _left(loss: Loss) -> Iterator[Event]:
    if "history" not in loss.run.left_out:
        yield _read_in_the_end(loss)
    if reads_logs(loss.run.manifest) and "replica_logs" not in loss.run.left_out:
        yield _disks(loss)


def _read_in_the_end(loss: Loss) -> Event:
    mine = loss.values
    final = [p for p in loss.polls if p.final]
    if loss.run.final_read_ns() is None:
        return Event(None, "unknown", "There was no final read.", "")
    if not final:
        return Event(None, "after", f"The final read returned nothing at {loss.where}.", "history")
    found = {p.value for p in final} & mine
    other = f"value {final[0].value} at offset {final[0].offset}"
    words = (
        f"returned {len(found)} of the {len(mine)} values there" if found else f"did not return it; it returned {other}"
    )
    return Event(None, "after", f"The final read {words}.", f"history, index {final[0].index}")


def _disks(loss: Loss) -> Event:
    mine = loss.values
    entries = loss.run.log(loss.known.partition, loss.offset, loss.end_offset)
    kept = Counter(node for node, value in {(e.node, e.value) for e in entries} if value in mine)
    if not kept:
        return Event(None, "after", "On disk after the run, no broker had it any more.", "replica_logs")
    if len(mine) == 1:
        only = "only " if len(kept) == 1 else ""
        words = f"On disk after the run, {only}{_brokers(sorted(kept))} still had it (see the logs below)."
        return Event(None, "after", words, "replica_logs")
    each = ", ".join(f"broker {node} has {number}" for node, number in sorted(kept.items()))
    words = f"On disk after the run, of the {len(mine)} values {each} (see the logs below)."
    return Event(None, "after", words, "replica_logs")


def _last_copies(loss: Loss) -> Iterator[Event]:
    """What took the last copy, as the checker concludes it."""
    for one in loss.found:
        lost = one.last_copy
        row = "" if lost is None else f", node {lost.node}, incarnation {lost.incarnation}, sequence {lost.sequence}"
        yield Event(None, "after", one.words, "verdict.json" + (f"; timeline{row}" if row else ""))


def _leader_words(loss: Loss, time_ns: int) -> str:
    if not loss.run.watched:
        return _told_leader(loss, time_ns)
    term = loss.term(time_ns)
    if term is None or term.leader < 0:
        return "with no leader known"
    return f"with broker {term.leader} leading in epoch {term.epoch}"


def _told_leader(loss: Loss, time_ns: int) -> str:
    """Who led by the last word of Metadata, which may be old."""
    told = [s.leader for s in loss.known.told if s.time_ns <= time_ns and s.leader is not None]
    if not told or told[-1] < 0:
        return "with no leader known"
    return f"with broker {told[-1]} leading, as clients were told"


def _acks(acks: int | None) -> str:
    return "all" if acks == -1 else str(acks)


def _brokers(nodes: Sequence[int]) -> str:
    return _several("broker", "brokers", nodes)


def _several(one: str, many: str, numbers: Sequence[int]) -> str:
    return f"{one if len(numbers) == 1 else many} {', '.join(map(str, numbers))}"


def _rows_of(states: Sequence[rows.State]) -> str:
    return "timeline, " + "; ".join(
        f"node {s.node}, {f'incarnation {s.incarnation}, ' if s.incarnation else ''}sequence {s.sequence}"
        for s in states
    )

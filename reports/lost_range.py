"""The rows of a run that tell of one range of lost records."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from harness.checker import Anomaly, LossStory, offsets
from reports import rows, successive_samples
from reports.glossary import is_gone
from reports.lanes.leadership import Term, believed, decided
from reports.run import PartitionRows, Run
from reports.scale import NS


@dataclass(frozen=True)
class Loss:
    """A lost range, and the rows of its story."""

    run: Run
    known: PartitionRows
    offset: int
    end_offset: int

    @cached_property
    def examples(self) -> Sequence[Anomaly]:
        """The anomalies that the verdict shows and by which a record of the range is gone."""
        return [
            a
            for a in self.run.verdict.anomalies
            if is_gone(a.kind)
            and (a.topic, a.partition) == self.known.partition
            and a.offset is not None
            and self.offset <= a.offset < self.end_offset
        ]

    @cached_property
    def found(self) -> Sequence[LossStory]:
        """The stories that the checker concluded of any of it."""
        here = [x for x in self.run.verdict.losses if (x.topic, x.partition) == self.known.partition]
        return [x for x in here if x.first_offset < self.end_offset and x.end_offset > self.offset]

    @cached_property
    def values(self) -> AbstractSet[int]:
        """The values that were acknowledged, or delivered, in the range, and that the final read does not deliver."""
        polls = self.polls
        final = {(p.offset, p.value) for p in polls if p.final}
        read = {p.value for p in polls if not p.final and (p.offset, p.value) not in final and p.value is not None}
        acked = {
            s.value
            for s in self.known.sends
            if s.type == rows.ACKNOWLEDGED
            and s.offset is not None
            and self.offset <= s.offset < self.end_offset
            and (s.offset, s.value) not in final
            and s.value is not None
        }
        return acked | read | {a.value for a in self.examples if a.value is not None}

    @cached_property
    def acks(self) -> Sequence[rows.Send]:
        """The acknowledgements that turned out to be void, by time."""
        return [s for s in self.known.sends if s.type == rows.ACKNOWLEDGED and s.value in self.values]

    @property
    def where(self) -> str:
        """The offsets in words."""
        return offsets(self.offset, self.end_offset)

    @property
    def since_ns(self) -> int:
        """When the first of it was acknowledged; if that is unknown, when the run began."""
        return self.acks[0].time_ns if self.acks else self.run.start_ns

    @cached_property
    def cuts(self) -> Sequence[rows.Truncation]:
        """The truncations that removed any of the range after its first acknowledgement, by time."""
        lost = range(self.offset, self.end_offset)
        return [
            t for t in self.known.truncations if t.time_ns >= self.since_ns and any(map(t.removes, (lost[0], lost[-1])))
        ]

    @cached_property
    def falls(self) -> Sequence[successive_samples.Fall]:
        """Every sample since in which a log had become so short that it lacks some of the range, by time."""
        found = [
            fall
            for states in self.known.states.values()
            for fall in successive_samples.falls(states, self.known.truncations, self.run.faults, self.known.partition)
            if fall.after.time_ns >= self.since_ns and fall.start < self.end_offset and fall.end > self.offset
        ]
        return sorted(found, key=lambda fall: fall.after.time_ns)

    @cached_property
    def replacements(self) -> Sequence[rows.Send]:
        """The acknowledgements of other values at its offsets, by time."""
        return [
            s
            for s in self.known.sends
            if s.type == rows.ACKNOWLEDGED
            and s.offset is not None
            and self.offset <= s.offset < self.end_offset
            and s.value not in self.values
        ]

    @property
    def gone_ns(self) -> int:
        """When it last went from a log; if that is not recorded, when it was replaced; else the run's end."""
        seen = [t.time_ns for t in self.cuts] + [fall.after.time_ns for fall in self.falls]
        if seen:
            return max(seen)
        acked_ns = self.acks[-1].time_ns if self.acks else self.run.start_ns
        return next((s.time_ns for s in self.replacements if s.time_ns >= acked_ns), self.run.end_ns)

    @cached_property
    def epochs(self) -> AbstractSet[int]:
        """The leader epochs of its records; in a sampled timeline, if unknown, those of the acknowledgements."""
        found = [*(a.leader_epoch for a in self.examples), *(x.leader_epoch for x in self.found)]
        named = {epoch for epoch in found if epoch is not None}
        if named or not self.run.sampled or not self.acks:
            return named
        first_ns, last_ns = self.acks[0].time_ns, self.acks[-1].time_ns
        terms = [t for t in self.terms if t.start_ns <= last_ns and first_ns < t.end_ns]
        return {t.epoch for t in terms if t.epoch is not None}

    @cached_property
    def polls(self) -> Sequence[rows.Poll]:
        """Every poll of its offsets, by index."""
        return self.run.polls(self.known.partition, self.offset, self.end_offset)

    @cached_property
    def terms(self) -> Sequence[Term]:
        """The leaders' terms, by time: by the controller's rows, or where it has none, by the leaders'."""
        until_ns = self.run.end_ns
        return decided(self.known.changes, until_ns) or sorted(
            t for states in self.known.states.values() for t in believed(states, until_ns) if t.leads
        )

    def term(self, time_ns: int) -> Term | None:
        """The leader's term at a time."""
        return next((t for t in reversed(self.terms) if t.start_ns <= time_ns), None)

    def elections(self, since_ns: int) -> Sequence[rows.Change]:
        """The elections from a time until the last log lost it."""
        until_ns = self.gone_ns if self.cuts or self.falls else self.run.end_ns
        return [c for c in self.known.changes if c.kind == "election" and since_ns <= c.time_ns <= until_ns]

    def closeup(self) -> tuple[int, int]:
        """When the story plays: from before the first acknowledgement to after the last truncation."""
        acks = self.acks
        start_ns = min([a.invoked_ns or a.time_ns for a in acks], default=self.run.start_ns)
        elections = [c.time_ns for c in self.elections(start_ns)]
        seen = [t.time_ns for t in self.cuts] + [fall.after.time_ns for fall in self.falls]
        end_ns = max([*seen, *elections, *(a.time_ns for a in acks)], default=self.run.end_ns)
        margin = max((end_ns - start_ns) // 8, NS // 20)
        return max(self.run.start_ns, start_ns - margin), min(self.run.end_ns, end_ns + margin)

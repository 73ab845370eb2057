"""What an operator demands of every window of an audit: Kafka promises neither a latency nor an availability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.audit.ledger import CanarySend
from harness.audit.result import PartitionMeasures

SHARE = 0.99
"""Of the sends, or of the acknowledged records, which has to keep to a time."""


@dataclass(frozen=True, slots=True)
class Objectives:
    """Bounds, each of which is judged by itself; None: there is no such bound.

    Attributes:
        ack_p99_s: within how many seconds :data:`SHARE` of a window's sends has to be acknowledged.
        read_p99_s: within how many seconds from its send :data:`SHARE` of the acknowledged records has to be given to a
            consumer.
        availability: what every partition has to reach, between 0 and 1; see
            :class:`harness.audit.result.PartitionMeasures`.
    """

    ack_p99_s: float | None = None
    read_p99_s: float | None = None
    availability: float | None = None

    def missed(self, sends: Sequence[CanarySend], partitions: Sequence[PartitionMeasures]) -> Iterator[str]:
        """A sentence for each that a window has missed.

        Args:
            sends: all that began in it, ended or not.
            partitions: how available each was.
        """
        acknowledged = [one for one in sends if one.kind == "ok"]
        acks_ns = [None if one.kind != "ok" else one.ended_ns for one in sends]
        yield from _late(("sends", "acknowledged", "--max-ack-p99"), self.ack_p99_s, sends, acks_ns)
        reads_ns = [one.read_ns for one in acknowledged]
        words = "acknowledged records", "given to a consumer", "--max-read-p99"
        yield from _late(words, self.read_p99_s, acknowledged, reads_ns)
        for one in partitions:
            if self.availability is not None and one.availability < self.availability:
                yield (
                    f"Partition {one.partition} was available for {one.availability:.4%} of the window; "
                    f"--min-availability demands {self.availability:.10g} of it."
                )

    def said(self) -> Iterator[str]:
        """What is demanded, a sentence."""
        demanded = [
            f"{SHARE:.0%} of the {what} within {most_s:g} s"
            for what, most_s in (("acknowledgements", self.ack_p99_s), ("first deliveries", self.read_p99_s))
            if most_s is not None
        ]
        demanded += [] if self.availability is None else [f"every partition available for {self.availability:.10g}"]
        if demanded:
            yield f"Objectives of every window: {', '.join(demanded)}."


NO_OBJECTIVES = Objectives()


def _late(
    words: tuple[str, str, str], most_s: float | None, sends: Sequence[CanarySend], at_ns: Sequence[int | None]
) -> Iterator[str]:
    """The sentence about sends that came too late.

    Args:
        words: what they are, what they had to become, and the option that demands it.
        most_s: within which time.
        sends: all of them.
        at_ns: by send when it became that; None: it has not.
    """
    if most_s is None or not sends:
        return
    what, became, option = words
    times = zip(sends, at_ns, strict=True)
    in_time = sum(at is not None and at - one.begun_ns <= most_s * 1e9 for one, at in times)
    if in_time < SHARE * len(sends):
        share = in_time / len(sends)
        yield f"{share:.2%} of {len(sends):,} {what} were {became} within {most_s:g} s; {option} demands {SHARE:.0%}."

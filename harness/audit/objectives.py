"""What an operator demands of every window of an audit: Kafka promises neither a latency nor an availability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.audit.result import Latency, PartitionMeasures


@dataclass(frozen=True, slots=True)
class Objectives:
    """Bounds, each of which is judged by itself; None: whatever it is.

    Attributes:
        ack_p99_s: of the 99th percentile of the times from sending to the acknowledgement, in seconds.
        read_p99_s: of those from sending to the first poll of a consumer that was given the record.
        availability: what every partition has to reach, between 0 and 1; see
            :class:`harness.audit.result.PartitionMeasures`.
    """

    ack_p99_s: float | None = None
    read_p99_s: float | None = None
    availability: float | None = None

    def missed(
        self, ack: Latency | None, read: Latency | None, partitions: Sequence[PartitionMeasures]
    ) -> Iterator[str]:
        """A sentence for each that a window has missed; nothing at all was acknowledged, or read: where it is None."""
        for what, found, most_s in (("acknowledged", ack, self.ack_p99_s), ("read", read, self.read_p99_s)):
            if most_s is not None and (found is None or found.p99_ms > most_s * 1000):
                took = (
                    "nothing was" if found is None else f"the 99th percentile took {found.p99_ms:,.1f} ms until it was"
                )
                yield f"The objective is {most_s * 1000:,g} ms, and {took} {what}."
        for one in partitions:
            if self.availability is not None and one.availability < self.availability:
                yield (
                    f"The objective is to be available for {self.availability:.3%}, and partition {one.partition} was "
                    f"for {one.availability:.3%}."
                )

    def said(self) -> Iterator[str]:
        """What is demanded, a sentence."""
        demanded = [
            f"{what} within {most_s * 1000:,g} ms (99th percentile)"
            for what, most_s in (("acknowledgements", self.ack_p99_s), ("first deliveries", self.read_p99_s))
            if most_s is not None
        ]
        demanded += [] if self.availability is None else [f"every partition available for {self.availability:.3%}"]
        if demanded:
            yield f"Objectives of every window: {', '.join(demanded)}."


NO_OBJECTIVES = Objectives()

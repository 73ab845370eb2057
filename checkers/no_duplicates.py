"""A value is at one offset of its partition.

``duplicate``: acknowledgements, polls and the final leader's log name one value at two or more offsets. The clients
send every value once, so the log has it twice. The anomaly's offset is the lowest, the other the highest.

Severity: ``VIOLATION``; ``DOCUMENTED`` where ``run.json``'s guarantees say that producers are not idempotent. A leader
that is deposed while a record waits for its followers answers NOT_LEADER_OR_FOLLOWER although it has appended it
(KAFKA-13574); librdkafka takes that as proof of the contrary and sends the record again, retries allowed or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.offsets_agree import places, sightings
from checkers.rows import RunRows
from checkers.witnesses import Witnesses
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.answer import Finding

KINDS = ("duplicate",)


def find(rows: RunRows) -> Iterator[Finding]:
    """The reference: every value of one run that is at two offsets."""
    index: dict[tuple[TopicPartition, int], int] = {}
    for seen in sightings(rows):
        index.setdefault((seen.where, seen.value), seen.row)
    for (place, value), found in places(rows).items():
        if len(found) > 1:
            row_index = index.get((place, value))
            yield Finding(
                rows.run, "duplicate", *place, min(found), value, row=row_index, other_offset=max(found)
            )  # fmt: skip


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return (
        f"Value {finding.value} was sent once and is at offset {finding.offset} and at offset {finding.other_offset}."
    )


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send, the first delivery from either offset, and what the replicas hold."""
    yield from witnesses.send(finding)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.reads(finding, finding.other_offset, finding.value)
    yield from witnesses.holders(finding)

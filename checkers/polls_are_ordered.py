"""A consumer is given a partition's records in the order of their offsets, and none is left out.

* ``nonmonotonic-poll``: a process is given an offset that is not above the one before it.
* ``poll-skip``: a process is given an offset beyond the next one, although the final leader's log holds a workload's
  record between the two. Offsets that hold none (control records, compacted ones) are no gap.

A process is one consumer with a fixed assignment; it is never reused, so a consumer that starts over is a new process.

Severity: ``VIOLATION``. A ``nonmonotonic-poll`` is ``DOCUMENTED`` when an unclean election is recorded before it and
the configuration permits such elections: the consumer was thrown back to the new end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from checkers.rows import Read, Row, RunRows
from checkers.witnesses import Witnesses
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.answer import Finding

KINDS = ("nonmonotonic-poll", "poll-skip")


def find(rows: RunRows) -> Iterator[Finding]:
    """The reference: every step of one run's consumers that goes back or leaves something out."""
    readers: dict[tuple[int, TopicPartition], list[Read]] = {}
    for read in rows.reads:
        readers.setdefault((read.process, read.where), []).append(read)
    for (_, place), reads in readers.items():
        log = rows.final_log(place)
        for before, after in pairwise(reads):
            if after.offset <= before.offset:
                yield _back(rows, before, after)
            elif skipped := [offset for offset in log if before.offset < offset < after.offset]:
                yield _skip(rows, before, after, log, min(skipped))


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.kind == "nonmonotonic-poll":
        return f"Process {finding.process} was delivered offset {finding.offset} after offset {finding.other_offset}."
    return (
        f"Process {finding.process} was delivered offset {finding.until} right after offset {finding.other_offset}, "
        f"although the final leader's log holds value {finding.value} at offset {finding.offset}."
    )


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The two deliveries, and what was left out."""
    skip = finding.kind == "poll-skip"
    yield from witnesses.read_by(finding, finding.other_offset, (finding.row or 0) - 1)
    yield from witnesses.read_by(finding, finding.until if skip else finding.offset, finding.row)
    if skip:
        yield from witnesses.holders(finding)


def _back(rows: RunRows, before: Read, after: Read) -> Finding:
    unclean = any(when <= after.time_ns for when, _ in rows.unclean.get(after.where, []))
    return Finding(
        rows.run, "nonmonotonic-poll", *after.where,
        offset=after.offset,
        value=after.value,
        leader_epoch=after.leader_epoch,
        excuse="unclean" if unclean else None,
        row=after.row,
        time_ns=after.time_ns,
        process=after.process,
        other_offset=before.offset,
    )  # fmt: skip


def _skip(rows: RunRows, before: Read, after: Read, log: Mapping[int, Row], skipped: int) -> Finding:
    return Finding(
        rows.run, "poll-skip", *after.where,
        offset=skipped,
        value=log[skipped]["value"],
        leader_epoch=log[skipped]["leader_epoch"],
        row=after.row,
        time_ns=after.time_ns,
        process=after.process,
        other_offset=before.offset,
        until=after.offset,
    )  # fmt: skip

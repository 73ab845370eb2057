"""A leader answers no fetch that names an older leader epoch (KIP-320).

``unfenced-read``: a poll was given a record of a later leader epoch than its fetch named. A leader answers such a fetch
with FENCED_LEADER_EPOCH, and one that is in the named epoch has no record of a later one in its log. So the rows of the
poll prove it, however long the record had been waiting in the client. A consumer that is given it has not asked whether
the new leader has what it had read before, and may go on in a log that was cut.

One anomaly for each epoch that was named: the first record. Clients that do not record the epoch of their fetches
(librdkafka's) are not judged.

Severity: ``VIOLATION``; ``DOCUMENTED`` before 2.1, where leaders ignore the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.views.conclusion import Conclusion
from checkers.views.configured import Configured
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Sampled,
    Since,
    Unseen,
)
from harness.checker import Evidence
from harness.facts import ClientFacts
from harness.model import TopicPartition

UNFENCED_READ = AnomalyKind(
    name="unfenced-read",
    invariants=("T11",),
    meaning="A consumer was given records of a later leader epoch than its fetch had named.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=Since(generation="2.1", why_not_before="fetches are not fenced by epoch (KIP-320)"),
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (UNFENCED_READ,)


def conclude(configured: Configured, client_facts: ClientFacts) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for read in client_facts.unfenced_reads:
        yield Conclusion(
            configured.finding(
                "unfenced-read", TopicPartition(read.topic, read.partition), offset=read.offset,
                leader_epoch=read.leader_epoch, row=read.row, time_ns=read.time_ns,
            ),
            f"A consumer named leader epoch {read.named}, and was given the record at offset {read.offset}, which is "
            f"of epoch {read.leader_epoch}.",
            (Evidence("history", {"index": read.row}, f"the fetch named epoch {read.named}, which was over"),),
        )  # fmt: skip

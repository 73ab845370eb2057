"""A topic stays until a client deletes it.

``lost-topic``: when all faults were healed, the cluster answered Metadata without a topic that the run had created and
that no client had deleted, again and again for ten seconds (:mod:`harness.runner.unknown_topics`). All of its
acknowledged records are gone with it. Asked for where nodes cannot be probed; elsewhere ``stuck`` shows the same.

Severity: ``VIOLATION``, whatever the configuration: acknowledged metadata is never Kafka's to lose. Brokers that create
topics when a client asks for one (``auto.create.topics.enable``) hide this; there the records are missing, one by one
(``lost-write``). Metadata also hides topics that the user may not describe: a right that is taken away during a run
looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.views.conclusion import Conclusion
from checkers.views.configured import Configured
from checkers.views.runner_report import RunnerReport
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Sampled,
    Unseen,
)
from harness.model import TopicPartition

LOST_TOPIC = AnomalyKind(
    name="lost-topic",
    invariants=("C1",),
    meaning="A topic that no client deleted is gone, and its records with it.",
    shows_loss=True,
    shown_by_clients=True,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (LOST_TOPIC,)


def conclude(configured: Configured, runner: RunnerReport) -> Iterator[Conclusion]:
    """Every topic of one run that its cluster does not know any more."""
    for number, one in enumerate(runner.unknown_topics):
        finding = configured.finding("lost-topic", TopicPartition(one["topic"], -1), row=number)
        yield Conclusion(
            finding,
            f"Topic {one['topic']} is gone, although no client deleted it: for {one['asked_s']:g} s the brokers that "
            f"Metadata named did not have it ({one['looks']} answers).",
            (),
        )

"""The target that is a running cluster of which addresses are known: its clients see what it answers, and no more."""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.client_properties import PLAINTEXT, Access
from harness.errors import EnvironmentFault, UsageError
from harness.model import node_name
from harness.property_file import read_properties
from harness.target import ClusterView, Target, TopicSpec
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.broker_numbers import BrokerNumbers
from harness.targets.bootstrap.given_topics import unfit
from harness.targets.bootstrap.metadata_sampler import MetadataClient, MetadataSampler
from harness.targets.bootstrap.promises import unkept
from harness.targets.bootstrap.spelling import Named
from harness.targets.leftovers import Leftovers, StartJournal

NAME = "bootstrap"
_TOPIC_TIMEOUT_S = 60.0
_LOOK_S = 1.0


class BootstrapTarget:
    """Implements :class:`harness.target.Target`; nothing beyond that can be observed of the cluster, or done to it.

    Args:
        cluster: what was named.
        configs: what its topics are created with.
        journal: records topics before they are created.
        sampler: of what the cluster tells of the topics of the run; None: it is not asked while it runs.
        numbers: of its brokers, where they are known before :meth:`start`.
    """

    name = NAME
    controls: frozenset[type[Target]] = frozenset()

    def __init__(
        self,
        cluster: Named,
        configs: Mapping[str, str],
        journal: StartJournal,
        sampler: MetadataSampler | None,
        numbers: BrokerNumbers | None = None,
    ) -> None:
        self._cluster = cluster
        self._configs = configs
        self._journal = journal
        self._administration = Administration(cluster.access)
        self._created: list[str] = []
        self._used: list[str] = []
        self._undeleted = ""
        self._sampler = sampler
        self._numbers = numbers or BrokerNumbers(())

    def start(self) -> None:
        """See :class:`harness.target.Target`: it runs, so it is asked for its brokers."""
        self._numbers = BrokerNumbers(self._administration.brokers())

    def stop(self) -> None:
        """See :class:`harness.target.Target`: deletes the topics of the run, unless they are to stay.

        What the cluster does not delete is among what remains.
        """
        if self._sampler is not None:
            self._sampler.stop()
        if self._created and not self._cluster.keeps_topics:
            try:
                self._administration.delete(self._created)
                self._created.clear()
            except EnvironmentFault as refused:
                self._undeleted = refused.sentence.rstrip(".")

    def remains(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        if self._cluster.keeps_topics or not self._created:
            return []
        *others, last = (f"topic {name}" for name in self._created)
        return [*others, f"{last} ({self._undeleted})" if self._undeleted else last]

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`; one that is given to the run is there, and is looked at instead.

        Raises:
            EnvironmentFault: besides, a topic of that name exists and is not given, or is given and holds records, or
                has other settings than those that the run counts on, so that its promises are others.
        """
        asked = replace(topic, configs={**self._configs, **(topic.configs or {})})
        if topic.name in self._cluster.topics:
            self._take(asked)
        else:
            self._create(asked)
        self._used.append(topic.name)
        if self._sampler is not None:
            self._sampler.follow(topic)

    def _take(self, topic: TopicSpec) -> None:
        self._administration.require_whole(topic, _TOPIC_TIMEOUT_S, ("Read", "Write"))
        if different := list(unfit(topic.configs or {}, self._administration.topic_configs(topic.name))):
            raise EnvironmentFault(
                f"topic {topic.name!r} cannot be judged as it is: {', '.join(different)}.",
                "Alter the topic, or what the run counts on: --set settings.NAME=VALUE.",
            )
        if not self._administration.is_empty(topic):
            raise EnvironmentFault(
                f"topic {topic.name!r} holds records that are not of this run.",
                "Delete them (kafka-delete-records), or give another topic.",
            )

    def _create(self, topic: TopicSpec) -> None:
        if topic.name in self._administration.topics():
            raise EnvironmentFault(f"topic {topic.name!r} exists, and is not of this run.", "Choose another prefix.")
        if not self._cluster.keeps_topics:
            coming = {"bootstrap": self._cluster.bootstrap, "topic": topic.name}
            if self._cluster.client.path is not None:
                coming["client"] = str(self._cluster.client.path)
            self._journal.leftover_coming(NAME, coming)
        self._created.append(topic.name)
        rights = ("Read", "Write") if self._cluster.keeps_topics else ("Read", "Write", "Delete")
        self._administration.create(topic, _TOPIC_TIMEOUT_S, rights)
        if different := list(unkept(topic.configs or {}, self._administration.topic_configs(topic.name))):
            raise EnvironmentFault(f"the cluster did not make topic {topic.name!r} as asked: {', '.join(different)}.")

    def bootstrap(self) -> str:
        """See :class:`harness.target.Target`."""
        return self._cluster.bootstrap

    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`: the brokers alone, by their numbers."""
        return [node_name(number) for number in self._numbers.all()]

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`: by the word of Metadata.

        It is as if no broker had answered when the client may not see a topic of the run any more: that topic is not
        known to be gone.
        """
        view = self._administration.view(self._numbers)
        missing = set(self._used).difference(name.topic for name in view.partitions)
        if view.live and missing and self._administration.hides(missing):
            return ClusterView(view.time_ns, (), {}, None, ())
        return view

    def metadata(self, run: str) -> Iterable[dict[str, Any]]:
        """See :class:`harness.observations.TellsClients`."""
        return () if self._sampler is None else self._sampler.rows(run, self._numbers.of)


def sampler(cluster: Named, directory: Path) -> MetadataSampler:
    """What samples the metadata of a cluster during a run, which keeps its files below ``directory``."""
    return MetadataSampler(lambda: MetadataClient(cluster.access), directory / "metadata.jsonl")


def _remove(what: Mapping[str, object]) -> Collection[str]:
    bootstrap, topic = str(what["bootstrap"]), str(what["topic"])
    try:
        access = Access(bootstrap, read_properties(Path(str(what["client"]))) if "client" in what else PLAINTEXT)
    except UsageError as problem:
        raise EnvironmentFault(f"topic {topic!r} may still be at {bootstrap}: {problem.sentence}") from None
    if not any(map(accepts, bootstrap.split(","))):
        raise EnvironmentFault(f"topic {topic!r} may still be at {bootstrap}, where no broker listens now.")
    return [f"topic {name} at {bootstrap}" for name in Administration(access).delete([topic])]


def accepts(address: str) -> bool:
    """Whether ``host:port`` accepts a connection at once: a cluster that is gone must not keep others waiting."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _LOOK_S).close()
    except OSError:
        return False
    return True


LEFTOVERS = Leftovers("topics", lambda what: list(_remove(what)))

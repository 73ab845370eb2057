"""Implements the target for brokers of another make in a compose file: harmed as containers, looked at by clients."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from harness.client_properties import Access
from harness.errors import EnvironmentFault
from harness.target import ClusterView, Receipt, TopicSpec
from harness.targets.addresses import Address
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.broker_numbers import BrokerNumbers
from harness.targets.bootstrap.promises import STATED, asked, topic_configs
from harness.targets.bootstrap.spelling import Named
from harness.targets.bootstrap.target import BootstrapTarget, sampler
from harness.targets.compose.beside import Surroundings
from harness.targets.compose.foreign_file import DISK_LABEL, LISTENER
from harness.targets.compose.foreign_listener import speaks_tls, wants
from harness.targets.compose.foreign_overlay import overlay, shown
from harness.targets.compose.foreign_stack import ForeignStack
from harness.targets.compose.harmed_nodes import HarmedNodes
from harness.targets.compose.leftovers import NAME
from harness.targets.compose.shimmed import Look, broker_at
from harness.targets.leftovers import StartJournal

_STARTS = 3
"""How often a broker is started that ends itself meanwhile."""

_LET_IN_WITHIN_S = 60.0
"""How long brokers may refuse clients, whose users something may have to create first."""

OF_ONE_RUN = Named("", keeps_topics=True, prefix="")
"""Such a cluster, as its clients use it, before it runs: nothing of it outlives the run, and nothing else uses it."""


class ForeignTarget(HarmedNodes):
    """Implements :class:`harness.target.Target`, and of :mod:`harness.controls` what needs nothing of the program.

    Args:
        directory: of this machine, for the nodes' output; created when missing.
        foreign: the stack to run.
        promised: the settings that a run takes for promised, by the names of broker settings.
        written: those that the scenario has.
        journal: records the project before it exists.
    """

    name = NAME
    _STATUSES: ClassVar[Mapping[int, str]] = {}

    def __init__(
        self,
        directory: Path,
        foreign: ForeignStack,
        promised: Mapping[str, str],
        written: Mapping[str, object],
        journal: StartJournal,
    ) -> None:
        super().__init__(
            directory, foreign.file, foreign.stack, foreign.services, partial(journal.leftover_coming, NAME)
        )
        self.controls = foreign.controls
        self._foreign = foreign
        self._promised = promised
        self._settings = written
        self._journal = journal
        self._kafka_ids: Sequence[int] = ()
        self._clients: BootstrapTarget | None = None
        self._have_answered: set[str] = set()
        self._asked_since: float | None = None

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """See :class:`harness.target.Target`. Clients then ask the brokers for their settings.

        Of what the run takes for promised, topics state for themselves what the brokers have a setting for.
        """
        super().start()
        self._has_come_up = True
        cluster = replace(OF_ONE_RUN, bootstrap=self.bootstrap(), client=self._foreign.client)
        told = Administration(cluster.access).broker_configs(self._kafka_ids[0])
        stated = {name: value for name, value in self._promised.items() if name in STATED and name in told}
        configs = topic_configs(asked({**stated, **self._settings}, told))
        numbers = BrokerNumbers(self._kafka_ids, in_their_order=True)
        samples = sampler(cluster, self._directory)
        self._clients = BootstrapTarget(cluster, configs, self._journal, samples, numbers)

    def stop(self) -> None:
        """See :class:`harness.target.Target`: first, what its clients are told is asked for a last time."""
        try:
            if self._clients is not None:
                self._clients.stop()
        finally:
            super().stop()

    def _overlay(self, run: Surroundings) -> dict[str, Any]:
        return overlay(self._foreign.file, self._written, run)

    def _shown(self, added: dict[str, Any]) -> dict[str, Any]:
        return shown(added, self._foreign.file, self.ports)

    def _upstream(self, node: str) -> str:
        broker = self._foreign.file.brokers[int(node)]
        return f"{broker.name}:{broker.port}"

    def _all_know_each_other(self) -> bool:
        """See :class:`.ComposedNodes`; a broker is known by where it has clients connect.

        Raises:
            EnvironmentFault: one has them connect elsewhere.
        """
        addresses = [("127.0.0.1", self.ports.advertised[name]) for name in self.brokers()]
        known = [self._known_to(name) for name in self.brokers()]
        for broker, where in ((broker, where) for one in known for broker, where in one.items()):
            if where not in addresses:
                ours = ", ".join(f"{one.advertised} of service {one.name!r}" for one in self._foreign.file.brokers)
                raise EnvironmentFault(
                    f"broker {broker} has clients connect to {where[0]}:{where[1]}, which is not what seawall has put "
                    f"in the place of {ours}.",
                    "Let each broker be a service of its own, which takes that address from its command or a variable.",
                )
        if not all(set(one.values()) == set(addresses) for one in known):
            self._refuse_secured()
            return False
        ids = {where: broker for broker, where in known[0].items()}
        self._kafka_ids = [ids[where] for where in addresses]
        return True

    def _all_answer(self) -> bool:
        """Whether every broker does; raises besides as :meth:`_refuse_secured`."""
        if super()._all_answer():
            return True
        self._refuse_secured()
        return False

    def _refuse_secured(self) -> None:
        """Check that no broker's listener wants more of a client than plain text, unless the client has it.

        Raises:
            EnvironmentFault: one does, so that no question of seawall's would ever be answered there.
        """
        for node, broker in zip(self.brokers(), self._foreign.file.brokers, strict=True):
            if not self._foreign.client.values and (wanted := wants(self.ports.address(node))):
                raise EnvironmentFault(
                    f"the listener of service {broker.name!r} at port {broker.port} wants {wanted}, and no client "
                    "properties are given.",
                    "Name a file of them behind the path of the compose file, #client=FILE; or give the service a "
                    f"plain-text listener besides, publish its port, and name that port by the label {LISTENER}.",
                )

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Restarts`. One that ends as it starts is started again, as by a supervisor."""
        for _ in range(_STARTS):
            super().restart(node)
            if self._node(node).exists:
                return

    def _started(self, node: str, begun_ns: int) -> None:
        super()._started(node, begun_ns)
        self._have_answered.discard(node)

    def _speaks(self, node: str, address: Address) -> bool:
        """Whether it answers.

        One that starts while most brokers are away may wait for them, and counts as ready when its container runs. One
        that has answered since it was started has to do so always.
        """
        if super()._speaks(node, address):
            self._have_answered.add(node)
            return True
        going_on = sum(map(self._goes_on, self.brokers()))
        return node not in self._have_answered and 2 * going_on <= len(self.brokers())

    def _is_answered(self, address: Address, timeout_s: float) -> bool:
        """See :class:`.ComposedNodes`: with TLS by whatever a handshake is answered."""
        if self._foreign.client.has_tls:
            return speaks_tls(address, timeout_s)
        return super()._is_answered(address, timeout_s)

    def _known_to(self, broker: str) -> Mapping[int, Address]:
        """See :class:`.ComposedNodes`.

        Raises:
            EnvironmentFault: no broker has let clients with the given properties in for some time.
        """
        if not self._foreign.client.values:
            return super()._known_to(broker)
        self._asked_since = self._asked_since or time.monotonic()
        host, port = self.ports.address(broker)
        try:
            told = Administration(Access(f"{host}:{port}", self._foreign.client)).listeners()
        except EnvironmentFault:
            if time.monotonic() - self._asked_since >= _LET_IN_WITHIN_S:
                raise
            return {}
        pairs = {int(name): where.rpartition(":") for name, where in told.items()}
        return {name: (host, int(port)) for name, (host, _, port) in pairs.items()}

    def _shim_directories(self) -> Mapping[str, Path]:
        if self._foreign.no_clock:
            return {}
        return {node: self._directory / service / "shim" for node, [service] in self._foreign.file.nodes.items()}

    def _look_at(self, node: str) -> Look:
        return broker_at(self._foreign.file.brokers[int(node)].port)

    def _why_no_clock(self, node: str) -> str:
        del node
        return self._foreign.no_clock

    # ------------------------------------------------------------------------------------------------ clients

    @property
    def _seen_by_clients(self) -> BootstrapTarget:
        assert self._clients is not None, "the target has not been started"
        return self._clients

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`."""
        self._seen_by_clients.create_topic(topic)

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`: by the word of Metadata."""
        return self._seen_by_clients.view()

    def metadata(self, run: str) -> Iterable[dict[str, Any]]:
        """See :class:`harness.observations.TellsClients`."""
        return self._seen_by_clients.metadata(run)

    # ------------------------------------------------------------------------------------------------ disks

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.controls.DiskSpace`; a disk that its program keeps nothing on does not count."""
        if self.volumes.is_unused(node).holds:
            broker = self._foreign.file.brokers[int(node)]
            seen = f"service {broker.name!r} keeps nothing in {broker.disk}: name its data directory by {DISK_LABEL}"
            return Receipt(False, f"node {node}: {seen}")
        return super().is_disk_full(node, log_dir)

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.observations.NodeStates`: that is not known of such a program."""
        del log_dir
        return Receipt(False, f"node {node}: what its program says of its disk is not known")

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """See :class:`harness.observations.NodeStates`: it has one directory, and is not asked."""
        del node
        return ()

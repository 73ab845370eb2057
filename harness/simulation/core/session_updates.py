"""Sends every broker the brokers that have a session, from the simulated controller, until it confirms.

It draws delays apart from all others, so that a seed is the same run where no replica uses these updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from harness.model import NodeId
from harness.replication.controller import Controller
from harness.replication.controller_messages import SendMetadata
from harness.replication.messages import SessionsHeard
from harness.simulation.core.broker import Broker
from harness.simulation.core.configuration import MS
from harness.simulation.core.network import Network
from harness.simulation.core.process import Receiver
from harness.simulation.core.scheduler import Scheduler

_AGAIN_NS = 5 * MS


class _Word(NamedTuple):
    """An update on its way to a broker, or back, for its life of ``broker_epoch``; ``number`` grows with each."""

    number: int
    broker: Broker
    broker_epoch: int
    heard: SessionsHeard


class Informant(Receiver, Protocol):
    """The controller's process; ``core`` is None while it is dead."""

    core: Controller | None


class Informing:
    """See the module. A newer update replaces an older one, and none overtakes it.

    Args:
        controller: the sender.
        brokers: by their ids.
        scheduler: when to send it again.
        network: what carries it.
        again_ns: how long to wait for an answer.
        luck: what delays are drawn from.
    """

    def __init__(
        self,
        controller: Informant,
        brokers: Sequence[Broker],
        scheduler: Scheduler,
        network: Network,
        *,
        again_ns: int,
        luck: Callable[[], float],
    ) -> None:
        self._controller = controller
        self._brokers = brokers
        self._scheduler = scheduler
        self._network = network
        self._again_ns = again_ns
        self._luck = luck
        self._number = 0
        self._told: dict[NodeId, tuple[int, SessionsHeard]] = {}
        self._owed: dict[NodeId, _Word] = {}
        self._latest: dict[NodeId, tuple[int, int]] = {}

    def forget(self) -> None:
        """The controller has died, and forgets what it has sent."""
        self._told.clear()
        self._owed.clear()

    def tell(self, metadata: SendMetadata) -> None:
        """Send it to every broker with a session that lacks it."""
        heard = SessionsHeard(metadata.sessions)
        for node, epoch in metadata.sessions:
            broker = self._brokers[node]
            if self._told.get(node) != (broker.life, heard):
                self._told[node] = (broker.life, heard)
                self._number += 1
                self._owed[node] = _Word(self._number, broker, epoch, heard)
                self._insist(self._owed[node])

    def _is_owed(self, word: _Word) -> bool:
        owed = self._owed.get(word.broker.node)
        return owed is not None and owed.number == word.number

    def _insist(self, word: _Word) -> None:
        core = self._controller.core
        if not self._is_owed(word) or core is None:
            return
        if word.broker.node not in core.live_brokers:
            # It has not confirmed, so that it is sent all there is when its session returns.
            del self._owed[word.broker.node], self._told[word.broker.node]
            return
        self._transmit(word)
        self._scheduler.after(self._controller, self._again_ns, self._insist, word)

    def _transmit(self, word: _Word) -> None:
        if self._is_owed(word):
            broker = word.broker
            self._network.send(self._controller.index, broker, broker.life, self._arrive, word, apart=self._luck)

    def _arrive(self, word: _Word) -> None:
        """At the broker, which like any push obeys it only in the life that it is meant for."""
        broker, controller = word.broker, self._controller
        if broker.replica is None:
            return
        refused = not broker.takes_for_its_own(word.broker_epoch)
        answered = self._refused if refused else self._confirmed
        self._network.send(broker.index, controller, controller.life, answered, word, apart=self._luck)
        latest = (broker.life, word.number)
        if not refused and latest > self._latest.get(broker.node, (0, 0)):
            self._latest[broker.node] = latest
            broker.handle(word.heard)

    def _refused(self, word: _Word) -> None:
        """Its registration may not have been answered yet."""
        self._scheduler.after(self._controller, _AGAIN_NS, self._transmit, word)

    def _confirmed(self, word: _Word) -> None:
        if self._is_owed(word):
            del self._owed[word.broker.node]

"""The simulated controller's word on who has a session: a message to each broker, until it says that it has heard it.

Its delays are drawn apart from all others, so that a seed is the same story where nobody makes anything of that word.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from harness.model import NodeId
from harness.replication.controller_messages import SendMetadata
from harness.replication.messages import SessionsHeard
from harness.simulation.core.broker import Broker
from harness.simulation.core.configuration import MS

if TYPE_CHECKING:
    from harness.simulation.core.controller_process import Controlling
    from harness.simulation.core.world import World

_AGAIN_NS = 5 * MS


class _Word(NamedTuple):
    """What is on its way to a broker, or back; ``number`` grows with each. ``broker_epoch``: for which of its lives."""

    number: int
    broker: Broker
    broker_epoch: int
    heard: SessionsHeard


class Informing:
    """See the module. A newer word replaces an older one, and none overtakes it."""

    def __init__(self, world: World, controller: Controlling) -> None:
        self._world = world
        self._controller = controller
        self._luck = random.Random(f"{world.seed}:metadata").random
        self._number = 0
        self._told: dict[NodeId, tuple[int, SessionsHeard]] = {}
        self._owed: dict[NodeId, _Word] = {}
        self._latest: dict[NodeId, tuple[int, int]] = {}

    def forget(self) -> None:
        """The controller has died, and with it what it knew of what it has said."""
        self._told.clear()
        self._owed.clear()

    def tell(self, metadata: SendMetadata) -> None:
        """Send it to all whom it is for, but for those who know."""
        heard = SessionsHeard(metadata.sessions)
        for node, epoch in metadata.sessions:
            broker = self._world.brokers[node]
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
        if self._is_owed(word) and core is not None and word.broker.node in core.live_brokers:
            self._transmit(word)
            again_ns = self._world.configuration.request_timeout_ms * MS
            self._world.after(self._controller, again_ns, self._insist, word)

    def _transmit(self, word: _Word) -> None:
        if self._is_owed(word):
            broker = word.broker
            self._world.send(self._controller.index, broker, broker.life, self._arrive, word, apart=self._luck)

    def _arrive(self, word: _Word) -> None:
        """At the broker: like the controller's other word, it is heard only in the life that it is meant for."""
        world, broker, controller = self._world, word.broker, self._controller
        if broker.replica is None:
            return
        refused = world.knobs.broker_bounce != "unnoticed" and word.broker_epoch != broker.broker_epoch
        answered = self._refused if refused else self._confirmed
        world.send(broker.index, controller, controller.life, answered, word, apart=self._luck)
        latest = (broker.life, word.number)
        if not refused and latest > self._latest.get(broker.node, (0, 0)):
            self._latest[broker.node] = latest
            broker.handle(word.heard)

    def _refused(self, word: _Word) -> None:
        """Its registration may not have been answered yet."""
        self._world.after(self._controller, _AGAIN_NS, self._transmit, word)

    def _confirmed(self, word: _Word) -> None:
        if self._is_owed(word):
            del self._owed[word.broker.node]

"""The brokers and the controller of one run on the bare core, and what connects them."""

from __future__ import annotations

from harness.replication.knobs import Knobs
from harness.simulation.core.broker import Broker
from harness.simulation.core.configuration import Configuration
from harness.simulation.core.controller_process import ControllerProcess
from harness.simulation.core.network import Network
from harness.simulation.core.scheduler import Scheduler


class CoreCluster:
    """See the module; implements :class:`harness.simulation.witnessed.Cluster`.

    Attributes:
        brokers: by their ids; ``controller`` comes after them. The simulation sets both.
    """

    controller: ControllerProcess

    def __init__(self, configuration: Configuration, knobs: Knobs, scheduler: Scheduler, network: Network) -> None:
        self.configuration = configuration
        self.knobs = knobs
        self.scheduler = scheduler
        self.network = network
        self.brokers: list[Broker] = []

    @property
    def now_ns(self) -> int:
        """See :class:`harness.simulation.witnessed.Cluster`."""
        return self.scheduler.now_ns

    @property
    def events(self) -> int:
        """See :class:`harness.simulation.witnessed.Cluster`."""
        return self.scheduler.events

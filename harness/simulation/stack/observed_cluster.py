"""The brokers and the controller of one run on the whole broker, as the witness sees them."""

from __future__ import annotations

from harness.model import CONTROLLER
from harness.replication.knobs import Knobs
from harness.simulation.core.configuration import MS, Configuration
from harness.simulation.stack.cluster import SimulatedCluster
from harness.simulation.stack.observed_nodes import ObservedControllerNode, ObservedNode
from harness.simulation.stack.scheduler import START_NS

BRING_UP_MS = 200
"""How long the cluster may take until load and faults begin."""


class ObservedCluster:
    """See the module; implements :class:`harness.simulation.witnessed.Cluster`.

    Attributes:
        simulated: the nodes.
        brokers: by their ids. The simulation sets them.
    """

    def __init__(self, configuration: Configuration, knobs: Knobs, simulated: SimulatedCluster) -> None:
        self.configuration = configuration
        self.knobs = knobs
        self.simulated = simulated
        self.brokers: list[ObservedNode] = []
        self.controller = ObservedControllerNode(simulated.nodes[CONTROLLER], self.brokers)

    @property
    def now_ns(self) -> int:
        """Since load and faults began; negative before."""
        return self.simulated.world.now_ns - START_NS - BRING_UP_MS * MS

    @property
    def events(self) -> int:
        """See :class:`harness.simulation.witnessed.Cluster`."""
        return self.simulated.world.events

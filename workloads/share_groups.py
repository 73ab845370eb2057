"""share_groups: producers at a steady rate, and share groups whose consumers accept, release and reject records.

The consumers of a share group (KIP-932) are given records of every partition, each of which one of them holds at a
time, and say of each of them what became of it, explicitly, and wait for the answer. By a draw they release or reject
some, hold some for longer than their lock lasts, leave without a word about what they hold, and are replaced by others.
In the end a last consumer of each group accepts all that comes, until nothing has come for longer than a lock lasts.
They are Kafka's own Java client: the run needs ``workload.client: java:RELEASE``, of 4.3 or newer, and brokers of real
Kafka that have share groups, and whose groups have a limit of deliveries of their own, which is since 4.3 (KIP-1240).

Promised: as under unique_sends; a record of which a group's accept or reject was confirmed is not delivered to that
group again, after no change of leaders and coordinators either; a record that was acknowledged to its producer is
delivered to each group until the group is done with it: again after it was released, when its consumer has left, and
when its lock has ended, unless that was as often as the group permits; and no record is delivered more often than that
by its own count.

Judged: as under unique_sends; each delivery to a consumer that polled for the first time after the accept, or the
reject, had been confirmed; what has come of each acknowledged record by the end of that drain; the count of each
delivery.

Missed: a record that is delivered again to a consumer that was there before its acceptance was confirmed, for what the
client has fetched it may give much later; two consumers that hold one record at once, for a broker gives it to another
when the connection of the first breaks, or the leader changes, and tells the first one nothing; counts that fall, for
the leader alone keeps them until something is said of the record; a record that comes late, but comes; one that may
have been delivered unseen as often as the group permits, if answers were lost again and again; the order of
deliveries; renewed locks; records of transactions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from pydantic import Field

from harness.client_ports import PLAIN, ClientContext, Clients
from harness.client_tasks.sending_process import SendingProcesses, process_of
from harness.client_tasks.share_life import Drain, ShareLife
from harness.client_tasks.steady_sends import SteadySends, SteadySendsParameters
from harness.errors import EnvironmentFault, UsageError
from harness.history.shares import SharedRecord, Shares
from harness.model import Acknowledgement, Offset, TopicPartition
from harness.orders import ALL_ACKS
from harness.share_ports import AcquireMode, ShareMembership, SharingClients
from harness.steps import Seconds
from harness.workload import Circumstances, ShareLimits, Workload, WorkloadKind, refuse_unused

_NS_PER_S = 1_000_000_000
_CONFIGURED_WITHIN_S = 30.0
_AGAIN_S = 0.2
_GRACE_S = 3.0
_LAST_S = 2.0
"""How often a drain sends each partition a record."""
"""For how long beyond a lock nothing may come in the end."""


class ShareGroupsParameters(SteadySendsParameters):
    """What a scenario may write about the workload.

    Attributes:
        groups: share groups, each of which is given every record.
        members: consumers in each group.
        lock_s: how long a consumer holds a record of which it says nothing (``share.record.lock.duration.ms``).
        deliveries: how often a group delivers a record at most (``share.delivery.count.limit``).
        acquire_mode: how consumers are given records (KIP-1206), dealt out to the members of a group in turn.
        max_records: how many records a consumer is given at once; where whole batches are, about so many.
        released: the share of records that are released.
        rejected: the share of records that are rejected.
        held: the share of polls after which a consumer stands still for up to twice ``lock_s`` before it says anything.
        left: the share of polls after which a consumer leaves and says nothing.
        stays_s: how long a consumer stays on the average.
        away_s: how long a consumer that has left stays away on the average.
        drain_s: for how long the last consumers go on in the end, if records keep coming.
    """

    groups: int = Field(default=2, ge=1, le=8)
    members: int = Field(default=3, ge=1, le=16)
    lock_s: Seconds = Field(default=5.0, ge=1, le=60)
    deliveries: int = Field(default=20, ge=2, le=25)
    acquire_mode: tuple[AcquireMode, ...] = Field(default=("batch_optimized", "record_limit"), min_length=1)
    max_records: int = Field(default=50, ge=1, le=10_000)
    released: float = Field(default=0.1, ge=0, le=1)
    rejected: float = Field(default=0.05, ge=0, le=1)
    held: float = Field(default=0.02, ge=0, le=1)
    left: float = Field(default=0.05, ge=0, le=1)
    stays_s: Seconds = Field(default=5.0, gt=0)
    away_s: Seconds = Field(default=0.5, gt=0)
    drain_s: Seconds = Field(default=120.0, gt=0)

    def _refuse_unused(self) -> None:
        modes = {self.membership(0, member, []).acquire_mode for member in range(self.members)}
        refuse_unused(self, {"acquire_mode": modes}, f"{self.members} member(s)")

    @property
    def share_limits(self) -> ShareLimits:
        """See :class:`harness.workload.WorkloadParameters`."""
        return ShareLimits(self.lock_s, self.deliveries)

    @property
    def stands_alone(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    def membership(self, group: int, member: int, partitions: list[TopicPartition]) -> ShareMembership:
        """How a consumer takes part in a group, both by their numbers."""
        topics = sorted({name.topic for name in partitions})
        mode = self.acquire_mode[member % len(self.acquire_mode)]
        return ShareMembership(f"share-{group}", topics, mode, self.max_records)

    @property
    def configs(self) -> Mapping[str, str]:
        """The configurations of a group."""
        return {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(round(self.lock_s * 1000)),
            "share.delivery.count.limit": str(self.deliveries),
        }

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        self._refuse_unused()
        bounds = found.features.share_bounds
        if bounds is None:
            raise UsageError(
                "workload share_groups needs share groups whose limit of deliveries can be set (KIP-932, KIP-1240), "
                f"and target {found.target!r} has none.",
                "Run it on --target process:4.3.0, or on a running Kafka, 4.3 or newer, that tells its settings.",
            )
        if self.lock_s < bounds.least_lock_s:
            raise UsageError(
                f"workload.lock_s is {self.lock_s:g}, and brokers of {found.target!r} lock records for "
                f"{bounds.least_lock_s:g} s at least.",
                f"Take --set workload.lock_s={bounds.least_lock_s:g}.",
            )
        if self.deliveries > bounds.most_deliveries:
            raise UsageError(
                f"workload.deliveries is {self.deliveries}, and brokers of {found.target!r} deliver a record "
                f"{bounds.most_deliveries} times at most.",
                f"Take --set workload.deliveries={bounds.most_deliveries}.",
            )


class ShareGroups(Workload):
    """Sends at a steady rate, and has share groups process what comes of it."""

    def __init__(self, parameters: ShareGroupsParameters, context: ClientContext) -> None:
        super().__init__(context)
        self._parameters = parameters
        self._partitions = sorted(context.partitions)
        self._sends = SteadySends(parameters, context, self.clients)
        self._shares = Shares(context.recorder, parameters.deliveries)
        self._configured: set[int] = set()
        self._polled: dict[TopicPartition, Offset] = dict.fromkeys(self._partitions, 0)

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        groups = range(self._parameters.groups)
        for group in groups:  # before there are faults: a broker that has not heard of it gives records otherwise
            self.begin(self._configure(group))
        self.clients.wait_until(lambda: self._configured.issuperset(groups), _CONFIGURED_WITHIN_S)
        for work in (*self._sends.works(), *self._works()):
            self.begin(work)

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._polled)

    def finish(self, report: Callable[[str], None]) -> None:
        """See :class:`harness.workload.Workload`: drain each group; one that was never configured has not been."""
        report("draining the share groups")
        clients = self.context.new_clients()
        first = self.context.new_process()
        drains = [self._drain(_sharing(clients), group) for group in sorted(self._configured)]
        for group in set(range(self._parameters.groups)) - self._configured:
            name = self._parameters.membership(group, 0, self._partitions).group
            op = self._shares.invoke_drain(self.context.new_process(), name, self._partitions)
            self._shares.complete_drain(op, frozenset())
        for drain in drains:
            clients.begin(drain.run(lambda value: process_of(value) > first))
        clients.begin(self._send_last(clients))
        clients.wait_until(lambda: all(drain.is_over for drain in drains), self._parameters.drain_s)
        clients.stop()
        clients.join()

    def _drain(self, clients: SharingClients, group: int) -> Drain:
        membership = self._parameters.membership(group, 0, self._partitions)
        return Drain(self.context, clients, self._shares, membership, self._parameters.lock_s + _GRACE_S)

    async def _send_last(self, clients: Clients) -> None:
        """Send each partition a record now and then."""
        while not clients.stopping:
            processes = SendingProcesses(self.context)
            producer = clients.producer(f"last-{processes.first}", ALL_ACKS, self._parameters.delivery_timeout_s, PLAIN)
            for name in self._partitions:
                if processes.are_usable and not clients.stopping:
                    await processes.send(producer, name, [self._parameters.size], ALL_ACKS, clients.wall_ms())
            producer.close()
            await clients.sleep(_LAST_S)

    def _works(self) -> Iterator[Coroutine[Any, Any, None]]:
        for group in range(self._parameters.groups):
            for number in range(self._parameters.members):
                yield self._take_part(group, number)

    async def _configure(self, group: int) -> None:
        """Configure a group before it has a member: it begins where its configuration says then."""
        clients = _sharing(self.clients)
        name = self._parameters.membership(group, 0, self._partitions).group
        until_ns = clients.monotonic_ns() + round(_CONFIGURED_WITHIN_S * _NS_PER_S)
        while not clients.stopping:
            error = await clients.configure_group(name, self._parameters.configs)
            if error is None:
                await clients.sleep(1.0)  # until the brokers have heard of it
                self._configured.add(group)
                return
            if clients.monotonic_ns() > until_ns:
                raise EnvironmentFault(f"share group {name} could not be configured: {error}.")
            await clients.sleep(_AGAIN_S)

    async def _take_part(self, group: int, number: int) -> None:
        """Be one consumer after the other, until the clients stop."""
        clients, ours = _sharing(self.clients), self._parameters
        drawn = random.Random(f"{self.context.seed}:share:{group}:{number}")
        membership = ours.membership(group, number, self._partitions)
        while group not in self._configured and not clients.stopping:
            await clients.sleep(_AGAIN_S)
        while not clients.stopping:
            life = ShareLife(self.context, clients, self._shares, membership)
            await self._live(life, drawn)
            await life.close()
            await clients.sleep(drawn.expovariate(1 / ours.away_s))

    async def _live(self, life: ShareLife, drawn: random.Random) -> None:
        """Poll and acknowledge until the consumer leaves, or something failed."""
        clients, ours = self.clients, self._parameters
        leaves_ns = clients.monotonic_ns() + round(drawn.expovariate(1 / ours.stays_s) * _NS_PER_S)
        while life.is_usable and not clients.stopping and clients.monotonic_ns() < leaves_ns:
            given = await life.acquire()
            self._polled |= {name: max(self._polled[name], end) for name, end in life.reached.items()}
            if not given:
                continue
            draw = drawn.random()
            if draw < ours.left:
                return
            if draw < ours.left + ours.held:
                await clients.sleep(drawn.uniform(0, 2 * ours.lock_s))
            await life.acknowledge(given, lambda one: self._says(one, drawn))

    def _says(self, one: SharedRecord, drawn: random.Random) -> Acknowledgement:
        del one
        draw = drawn.random()
        if draw < self._parameters.released:
            return "release"
        return "reject" if draw < self._parameters.released + self._parameters.rejected else "accept"


def _sharing(clients: Clients) -> SharingClients:
    assert isinstance(clients, SharingClients), "the plan refuses clients without share consumers"
    return clients


KIND = WorkloadKind(
    "share_groups",
    ShareGroupsParameters,
    ShareGroups,
    {"rate": 40, "producers": 2, "groups": 1, "members": 2, "lock_s": 2, "stays_s": 2, "client": "java:4.3.0"},
)

"""consumer_groups: producers at a steady rate, and groups of consumers that share the partitions, come and go.

The members of a group read what their group gives them, commit it, and are given partitions and lose them as members
join, leave, hang, are killed, or are removed by their coordinator. A member that is given a partition asks what its
group has committed; then its client begins by itself, or the harness has it seek there. It commits and waits; or
commits asynchronously, and before it gives partitions up and waits; or leaves it to its client
(``enable.auto.commit``), which commits what earlier polls have returned.

Promised: as under unique_sends; the coordinator answers a member that asks for its group's commit with the last one
that was acknowledged, or one that was under way since, also after another broker has taken the group over; a member
begins at the commit that it asked for, and brokers refuse its position only where it is out of range; no commit lies
beyond the end of the log; while a member has a partition, it is given the records in order and none is left out; nor is
one by the group as a whole, below what it has committed; a commit is acknowledged to members of the present generation
alone, and in the consumer protocol (KIP-848) to the owner of its partition alone, in the owner's member epoch; a member
is given a partition when its former owner has given it up or was removed; a healed cluster gives a new member all
partitions of a group that the others have left. All this holds however the members commit: a group whose clients commit
by themselves is answered with no earlier commit than the coordinator has answered before, and is given every record
below it.

Judged: as under unique_sends, each such answer against all commits of the group, where each member begins against the
answers, a position out of range against what had been delivered before it, each commit against the log and the
generations that were known when it began, each owner of a partition against the generations of the owner before it and
the time that this one had to join again, the polls of each member between two rebalances, and those of all members
against the log up to the last commit, and what a new member of each group is given in the end; on the built-in and the
simulated cluster also the replicas of ``__consumer_offsets``. An asynchronous commit is acknowledged when its answer
has come, and of unknown outcome if none comes before the member is closed. Of a group whose clients commit by
themselves there are no commits to judge: each answer to the question for its commit is a proof that there was one, and
is judged against the answers before it, and all members' polls against the log up to the highest answer.

Missed: members of librdkafka and kafka-python that are killed, for their clients live in the harness's own process; two
members that have one partition in different generations, where the former owner may have been removed: it had joined
more than a session timeout before, and is not seen in the other's generation again; in the consumer protocol in real
time, whose fault two owners of a partition are; an earlier commit with which a coordinator answers after a fault has
cut brokers off or had them stand still, for it may not have known of its successor; a commit of unknown outcome, which
may be the answer at any later time, unless it was refused to a member of an earlier generation than the last one's;
where a client of ``begin: harness`` would begin by itself; a client that begins by itself and is answered that nothing
is committed, after its member was answered a commit; which records librdkafka would by itself take for processed, for
the harness tells it (``store_offsets``); where members begin in a group of which one was out of range; a record of a
transaction that a group passes and whose producer was not told that it is committed, or, where there was an unclean
election, any; subscriptions to topics and partitions that come and go; a commit of a static member that another one of
its name has replaced; a stale asynchronous commit whose answer the client gives when it has joined again, as clients do
within a later poll; a rebalance that takes long, or ends only with the run; of a group whose clients commit by
themselves a commit that was lost before a member had asked for it, or was acknowledged to a former owner, and how much
is delivered again. In virtual time the members are the simulation's own, not librdkafka, whose heartbeats go on while a
member hangs, and they make automatic commits as Kafka's own client does, in their polls alone.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from harness.client_ports import ClientContext
from harness.client_tasks.group_life import GroupLife
from harness.client_tasks.steady_sends import SteadySends, SteadySendsParameters
from harness.errors import UsageError
from harness.membership import Assignor, Begin, CommitMode, Commits, Membership, RemoteAssignor, Subscription
from harness.model import GroupProtocol, Offset, TopicPartition
from harness.steps import Seconds
from harness.workload import JAVA, Circumstances, Waits, Workload, WorkloadKind, refuse_kills, refuse_unused

_AFTER_ERROR_S = 0.05
_NS_PER_S = 1_000_000_000
_FOR_EVER_NS = 1 << 62


class ConsumerGroupsParameters(SteadySendsParameters):
    """What a scenario may write about the workload.

    Attributes:
        groups: groups, each of which reads every partition.
        members: consumers in each group.
        protocol: how the members of a group agree on who reads what, dealt out to the groups in turn: ``classic``, or
            ``consumer`` (KIP-848), which there is since 4.0.
        assignor: how the members of a group of the classic protocol share the partitions, dealt out to those groups in
            turn; in virtual time each of them uses ``range``.
        remote_assignor: how the coordinator of a group of the consumer protocol shares them, dealt out likewise.
        static: whether members are static (KIP-345): one that comes back in time keeps its partitions. In the consumer
            protocol it is refused while its former self has neither left nor been silent for a session.
        subscribe: how the members say which topics they read, dealt out to the members of each group in turn: by
            ``names``, or by a ``pattern`` that matches just these, which in the classic protocol the client resolves,
            and in the consumer protocol the coordinator.
        commits: how the members commit, dealt out to the groups in turn: ``sync``, they wait for the answer; ``async``,
            they take it with a later poll; ``auto``, their clients commit by themselves.
        begin: who finds where a member begins to read a partition that it is given, dealt out to the members of each
            group in turn, with ``subscribe`` in all combinations: its ``client`` by itself, or the ``harness``, which
            has it seek to the group's commit. The harness always does in virtual time, where nothing is committed, and
            where the commit is not in the log any more.
        commit_every_s: how long after a commit a member commits again; it also does before it gives partitions up.
        session_timeout_s: after how long without a heartbeat a coordinator removes a member of a group of the classic
            protocol; in the consumer protocol the setting ``group.consumer.session.timeout.ms`` says that.
        poll_timeout_s: after how long without a poll a member leaves by itself; not below ``session_timeout_s``.
        stays_s: how long a member stays on the average, before it leaves, or hangs for up to twice ``poll_timeout_s``
            and commits then; in virtual time it sends no heartbeats meanwhile. 0: it stays.
        killed: the share of members that end by being killed instead: they leave nothing, and the coordinator has to
            remove them. Only Kafka's own client has a process for each of them, and in virtual time half of them keep
            their connections, as a machine does that loses power.
        away_s: how long a member that has left stays away on the average.
    """

    groups: int = Field(default=1, ge=1, le=16)
    members: int = Field(default=3, ge=1, le=16)
    protocol: tuple[GroupProtocol, ...] = Field(default=("classic",), min_length=1)
    assignor: tuple[Assignor, ...] = Field(default=("range", "cooperative-sticky"), min_length=1)
    remote_assignor: tuple[RemoteAssignor, ...] = Field(default=("uniform", "range"), min_length=1)
    static: bool = False
    subscribe: tuple[Subscription, ...] = Field(default=("names",), min_length=1)
    commits: tuple[CommitMode, ...] = Field(default=("sync",), min_length=1)
    begin: tuple[Begin, ...] = Field(default=("client", "harness"), min_length=1)
    commit_every_s: Seconds = Field(default=0.5, gt=0)
    session_timeout_s: Seconds = Field(default=3.0, ge=0.5)
    poll_timeout_s: Seconds = Field(default=4.0, ge=0.5)
    stays_s: Seconds = Field(default=6.0, ge=0)
    killed: float = Field(default=0.0, ge=0, le=1)
    away_s: Seconds = Field(default=1.0, gt=0)

    def _refuse_unused(self) -> None:
        slots = [Slot(group, number) for group in range(self.groups) for number in range(self.members)]
        every = [self.membership(slot, []) for slot in slots]
        used: dict[str, Collection[str]] = {
            "protocol": {one.protocol for one in every},
            "assignor": {one.assignor for one in every if one.protocol == "classic"},
            "remote_assignor": {one.remote_assignor for one in every if one.protocol == "consumer"},
            "subscribe": {one.subscription for one in every},
            "commits": {one.commits.mode for one in every},
            "begin": {one.begin for one in every},
        }
        refuse_unused(self, used, f"{self.groups} group(s) of {self.members} member(s)")

    @property
    def assigned_by_coordinators(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return "consumer" in self.protocol[: self.groups]

    @property
    def session_s(self) -> float | None:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.session_timeout_s if "classic" in self.protocol[: self.groups] else None

    @property
    def held_for_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return max(self.poll_timeout_s, self.session_timeout_s)

    @property
    def guarantees(self) -> Mapping[str, bool | int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return {"members_kept_ms": round(self.session_timeout_s * 1000)}

    def membership(self, slot: Slot, partitions: list[TopicPartition]) -> Membership:
        """How the member in a slot takes part in its group."""
        turn, place = divmod(slot.group, len(self.protocol))
        return Membership(
            f"group-{slot.group}",
            partitions,
            self.assignor[turn % len(self.assignor)],
            f"member-{slot.number}" if self.static else None,
            self.session_timeout_s,
            self.held_for_s,
            self.protocol[place],
            self.remote_assignor[turn % len(self.remote_assignor)],
            self.subscribe[slot.number % len(self.subscribe)],
            Commits(self.commits[slot.group % len(self.commits)], self.commit_every_s),
            self.begin[slot.number // len(self.subscribe) % len(self.begin)],
        )

    @property
    def must_kill_clients(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return bool(self.killed)

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        self._refuse_unused()
        if found.in_virtual_time and "begin" in self.model_fields_set and "client" in self.begin:
            raise UsageError(
                "workload.begin lists 'client', and in virtual time the harness has every member begin.",
                "Take another target, or leave it out.",
            )
        refuse_kills("members", self.killed, self.stays_s, self.client, found)
        release = self.client.removeprefix(JAVA) if self.client.startswith(JAVA) else ""
        if release and "pattern" in self.subscribe and self.assigned_by_coordinators and int(release.split(".")[0]) < 4:
            raise UsageError(
                f"workload.subscribe=[pattern] in groups of the consumer protocol (KIP-848) takes SubscriptionPattern, "
                f"which workload.client={self.client} does not have.",
                "Take a client from 4.0 on, workload.protocol=[classic], or workload.subscribe=[names].",
            )


class Slot(NamedTuple):
    """The place of one member after the other in a group."""

    group: int
    number: int


class ConsumerGroups(Workload):
    """Sends at a steady rate, and reads and commits what comes of it in groups."""

    def __init__(self, parameters: ConsumerGroupsParameters, context: ClientContext) -> None:
        super().__init__(context)
        self._parameters = parameters
        self._partitions = sorted(context.partitions)
        self._sends = SteadySends(parameters, context, self.clients)
        self._polled: dict[TopicPartition, Offset] = dict.fromkeys(self._partitions, 0)

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for work in (*self._sends.works(), *self._works()):
            self.begin(work)

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._polled)

    def take_over(self) -> Waits:
        """See :class:`harness.workload.Workload`."""
        ours = self._parameters
        self.clients = self.context.new_clients()
        memberships = [ours.membership(Slot(group, ours.members), self._partitions) for group in range(ours.groups)]
        waits = {one.group: set(self._partitions) for one in memberships}
        for one in memberships:
            self.begin(self._take_all(one, waits[one.group]))
        return lambda: {f"{group} has given it to no new member": set(names) for group, names in waits.items() if names}

    async def _take_all(self, membership: Membership, waits: set[TopicPartition]) -> None:
        """Be one member of a group after the other, until it has been given every partition for which it ``waits``."""
        clients = self.clients
        while waits and not clients.stopping:
            life, error = GroupLife(self.context, clients, membership, self._parameters.isolation), None
            while waits and error is None and not clients.stopping:
                error = await life.poll()
                waits.difference_update(life.has)
            await life.close()
            await clients.sleep(_AFTER_ERROR_S)

    def _works(self) -> Iterator[Coroutine[Any, Any, None]]:
        ours = self._parameters
        for group in range(ours.groups):
            for number in range(ours.members):
                yield self._take_part(Slot(group, number))

    async def _take_part(self, slot: Slot) -> None:
        """Be one member after the other, until the clients stop."""
        clients, ours = self.clients, self._parameters
        drawn = random.Random(f"{self.context.seed}:group:{slot.group}:{slot.number}")
        membership, has_moved = ours.membership(slot, self._partitions), False
        while not clients.stopping:
            process = clients.process() if ours.killed and drawn.random() < ours.killed else None
            life = GroupLife(self.context, process or clients, membership, ours.isolation, from_beginning=has_moved)
            error = await self._live(life, drawn)
            has_moved = life.moved
            if process is None:
                await life.close()
            else:
                process.kill(silently=drawn.random() < 1 / 2)
                life.crash()
            await clients.sleep(drawn.expovariate(1 / ours.away_s) if error is None else _AFTER_ERROR_S)

    async def _live(self, life: GroupLife, drawn: random.Random) -> str | None:
        """Poll and commit until the member leaves, or an error ends it, whose name is returned."""
        clients, ours = self.clients, self._parameters
        leaves_ns = clients.monotonic_ns() + self._stay_ns(drawn)
        commits_ns = clients.monotonic_ns() + round(ours.commit_every_s * _NS_PER_S)
        while not clients.stopping:
            error = await life.poll()
            self._polled |= life.reached
            if error is not None:
                return error
            if clients.monotonic_ns() >= commits_ns:
                await life.commit()
                commits_ns = clients.monotonic_ns() + round(ours.commit_every_s * _NS_PER_S)
            if clients.monotonic_ns() >= leaves_ns:
                if drawn.random() < 1 / 2:
                    return None
                await life.hang(drawn.uniform(0, 2 * ours.poll_timeout_s))
                leaves_ns = clients.monotonic_ns() + self._stay_ns(drawn)
        return None

    def _stay_ns(self, drawn: random.Random) -> int:
        stays_s = self._parameters.stays_s
        return round(drawn.expovariate(1 / stays_s) * _NS_PER_S) if stays_s else _FOR_EVER_NS


KIND = WorkloadKind(
    "consumer_groups",
    ConsumerGroupsParameters,
    ConsumerGroups,
    {"rate": 40, "producers": 2, "members": 2, "session_timeout_s": 1, "poll_timeout_s": 1.5, "stays_s": 2},
)

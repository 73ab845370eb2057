"""What a workload is: background load that runs by itself and records everything that its clients did and saw.

A workload is written once, over :mod:`harness.client_ports`, and runs in real and in virtual time. What a schedule asks
of clients (:mod:`harness.orders`) and the final read (:mod:`harness.final_read`) are the same for every workload.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from harness.client_ports import ClientContext, Isolation
from harness.errors import UsageError
from harness.model import Offset, TopicPartition
from harness.orders import ALL_ACKS
from harness.payload import Carried
from harness.share_ports import ShareBounds
from harness.target import TopicSpec

LIBRDKAFKA = "librdkafka"
JAVA = "java:"
KAFKA_PYTHON = "kafka-python"
"""How ``client`` begins where it names a release of Kafka's own client."""


class Features(NamedTuple):
    """What a cluster has for clients, of what not every release or generation has.

    Attributes:
        carried: what of a record it stores as it was sent.
        fences_members: whether coordinators of groups refuse offsets in a transaction from a member that is none any
            more (KIP-447, Kafka 2.5).
        share_bounds: of share groups (KIP-932) whose limit of deliveries can be set (KIP-1240, Kafka 4.3); None: there
            are none, or brokers do not tell.
    """

    carried: Carried
    fences_members: bool
    share_bounds: ShareBounds | None


class Circumstances(NamedTuple):
    """Where a workload is to run.

    Attributes:
        target: as ``--target`` spells it.
        in_virtual_time: whether the simulator runs it.
        features: of the cluster.
        topics: the scenario's.
        is_sent_to: whether the scenario's schedule sends records, too.
    """

    target: str
    in_virtual_time: bool
    features: Features
    topics: Sequence[TopicSpec]
    is_sent_to: bool


def refuse_unused(parameters: BaseModel, used: Mapping[str, Collection[str]], among: str) -> None:
    """Refuse a list that a scenario has written and that is dealt out, if nothing takes one of its values.

    Args:
        parameters: of a workload.
        used: by the name of such a list, which of its values are taken.
        among: those to whom they are dealt out, as a sentence names them.

    Raises:
        UsageError: names the list, and the first value that would not be tried.
    """
    for name, values in used.items():
        left = [value for value in getattr(parameters, name) if value not in values]
        if left and name in parameters.model_fields_set:
            raise UsageError(
                f"workload.{name} lists {left[0]!r}, which none of {among} uses: there are too few of them.",
                "Take more of them, or leave out what is not to be tried.",
            )


def refuse_kills(whose: str, killed: float | None, stays_s: float, client: str, found: Circumstances) -> None:
    """Refuse a workload that kills clients where none has a process of its own, or none ends.

    Args:
        whose: the clients, in words.
        killed: the share of those that end which are killed; None: nothing is said of it.
        stays_s: how long one stays on the average, in seconds; 0: for the whole run.
        client: the workload's ``client``.
        found: where it is to run.

    Raises:
        UsageError: names the parameters.
    """
    if killed and not client.startswith(JAVA) and not found.in_virtual_time:
        raise UsageError(
            f"workload.killed={killed:g} kills a client's process, and {client} has none of its own.",
            "Name Kafka's own client, workload.client=java:RELEASE, or leave workload.killed out.",
        )
    if killed and not stays_s:
        raise UsageError(
            f"workload.killed={killed:g} is a share of the {whose} that end, and with workload.stays_s=0 none does.",
            "Leave one of them out.",
        )


class ShareLimits(NamedTuple):
    """What share groups permit: for how long a consumer holds a record, and how often one is delivered at most."""

    lock_s: float
    deliveries: int


class WorkloadParameters(BaseModel, ABC):
    """What a scenario may write about a workload: most fields are the workload's own, the runner asks the rest.

    Attributes:
        size: to how many bytes a record's text is padded; also that of the records that a schedule orders.
        isolation: whether consumers, those of the final read too, are given what transactions have not committed.
        client: whose clients the harness uses, those of a schedule and of the final read too: ``librdkafka``,
            ``java:RELEASE``, Apache Kafka's own of a release that was fetched, or ``kafka-python``. In virtual time
            clients are the simulation's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = Field(default=0, ge=0, le=1_000_000)
    isolation: Isolation = "read_uncommitted"
    client: str = Field(default=LIBRDKAFKA, pattern=rf"^({LIBRDKAFKA}|{KAFKA_PYTHON}|{JAVA}.+)$")

    @property
    @abstractmethod
    def has_background_load(self) -> bool:
        """Whether producers send by themselves, beside what a schedule orders."""

    @property
    @abstractmethod
    def answered_within_s(self) -> float:
        """After how many seconds a background producer takes what has not been answered for indeterminate."""

    @property
    @abstractmethod
    def numbers_records(self) -> bool:
        """Whether producers with acks=all number their records (KIP-98)."""

    @property
    @abstractmethod
    def asked_acks(self) -> frozenset[int]:
        """What the requests of the background load ask for: -1 (all), 1 or 0."""

    @property
    def held_for_s(self) -> float:
        """How long, in seconds, the cluster keeps for a client what it holds that gives no sign of life; 0: nothing.

        A member of a group holds partitions, and a producer an open transaction.
        """
        return 0.0

    @property
    def transacts(self) -> bool:
        """Whether the background load runs transactions, which there are since 0.11 (KIP-98)."""
        return False

    @property
    def assigned_by_coordinators(self) -> bool:
        """Whether there are groups of the consumer protocol, which there is since 4.0 (KIP-848)."""
        return False

    @property
    def session_s(self) -> float | None:
        """The shortest session that its clients ask for as members of classic groups; None: there are none."""
        return None

    @property
    def deletes_records(self) -> bool:
        """Whether the background load asks for records to be deleted (KIP-107)."""
        return False

    @property
    def must_kill_clients(self) -> bool:
        """Whether the scenario asks for clients of the load to be killed: a run that has killed none shows nothing."""
        return False

    @property
    def share_limits(self) -> ShareLimits | None:
        """The limits of its share groups, whose consumers only Kafka's own client is; None: it has none."""
        return None

    @property
    def appends_once(self) -> bool:
        """Whether no record of the background load is appended twice: each is numbered, or sent only once.

        With acks 0 or 1 librdkafka sends again only after an answer that comes before the append.
        """
        return self.numbers_records or ALL_ACKS not in self.asked_acks

    @property
    def acknowledges_in_turn(self) -> bool:
        """Whether a producer that numbers its records has one batch under way at a time.

        Where it has several, it may take one whose answer it has lost for stored when a later one is acknowledged, as
        librdkafka does, and a broker may say of one that it has it, and not where. Such an acknowledgement names no
        offset.
        """
        return True

    @property
    def stands_alone(self) -> bool:
        """Whether it cannot be a part of several workloads on the same partitions."""
        return False

    def own_topics(self, topics: Sequence[TopicSpec]) -> Sequence[TopicSpec]:
        """What is created for it besides the scenario's ``topics``; its clients alone use them."""
        del topics
        return ()

    def with_prefix(self, prefix: str) -> Self:
        """These parameters, with names of topics that begin with ``prefix``."""
        del prefix
        return self

    @property
    def sends_to_own_topics(self) -> bool:
        """Whether its own topics hold what its clients send, so that they count as the scenario's topics do."""
        return False

    def refuse(self, found: Circumstances) -> None:
        """Refuse to run where it cannot.

        Raises:
            UsageError: why, and what to do about it.
        """

    @property
    def guarantees(self) -> Mapping[str, bool | int]:
        """What ``run.json`` guarantees because of the workload alone, by name."""
        return {}

    @property
    def largest_size(self) -> int:
        """To how many bytes the text of a record is padded at most."""
        return self.size

    @abstractmethod
    def without_numbers(self) -> Self:
        """The same for generations and releases before 0.11, which do not know numbered records."""


Waits = Callable[[], Mapping[str, Collection[TopicPartition]]]
"""Says for which partitions clients that take over still wait, by what they wait for: the rest of a sentence that
begins with the name of the partition."""

ParametersT = TypeVar("ParametersT", bound=WorkloadParameters)


class Workload(ABC):
    """Background load on the cluster of one run.

    An implementation is one file in ``workloads/``, whose ``KIND`` is listed in ``workloads/__init__``. It never
    retries a measured operation, and never calls a failed one ``fail`` without proof that it did not happen.
    """

    def __init__(self, context: ClientContext) -> None:
        self.context = context
        self.clients = context.new_clients()

    @abstractmethod
    def start(self) -> None:
        """Begin the load, a task for each client that sends or reads by itself. Does not wait."""

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a task of the load; the run learns at once of one that a bug ends."""
        self.clients.begin(self._watched(work))

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as failure:
            if self.context.real_time is not None:
                self.context.real_time.failed(failure)
            raise

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """Up to where (exclusive) the load's consumers have read each partition; 0 where they have read nothing."""
        return dict.fromkeys(self.context.partitions, 0)

    def take_over(self) -> Waits:
        """After :meth:`stop`, begin to take over what clients of the load have held, until the next :meth:`stop`."""
        return dict

    def finish(self, report: Callable[[str], None]) -> None:  # noqa: B027 - most loads end when they are stopped
        """Let what outlives the load come to its end, once the load has stopped and the cluster is whole again."""

    def end(self) -> None:  # noqa: B027 - see above
        """End at once what outlives the load, and has not come to its end; idempotent."""

    def program(self) -> Mapping[str, Any]:
        """What ``run.json`` says of a user's program, see :class:`harness.history.run_json.ProgramDocument`."""
        return {}

    def stop(self) -> None:
        """Stop the load; waits for every outstanding completion. Idempotent.

        Raises:
            BaseException: what ended a task that is no answer: a bug.
        """
        self.clients.stop()
        self.clients.join()


@dataclass(frozen=True, slots=True)
class WorkloadKind(Generic[ParametersT]):
    """A workload that scenarios can name.

    Attributes:
        name: as scenarios write it.
        parameters: the model of what they may write about it.
        make: makes the load of one run, which does not run yet.
        example: parameters with which it loads a small cluster, some dozen records a second; the docs show them, and
            the tests of every workload run them.
    """

    name: str
    parameters: type[ParametersT]
    make: Callable[[ParametersT, ClientContext], Workload]
    example: Mapping[str, Any]

"""The coordinator of consumer groups: a broker is it for those whose partition of ``__consumer_offsets`` it leads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from harness.broker.coordinator_log import CoordinatorLog, Services, all_known, known_of
from harness.broker.partition import Partition
from harness.broker.settings import NodeConfig, Settings
from harness.broker.timeline import ReplicaState
from harness.coordination.consumer_group import ConsumerLimits
from harness.coordination.groups import Groups
from harness.coordination.internal_topics import GROUPS_TOPIC
from harness.coordination.kept_groups import GroupLimits
from harness.coordination.offsets import OffsetRetention
from harness.coordination.records import decoded
from harness.error_codes import ErrorCode
from harness.replication.knobs import Knobs

_MAX_PREFIX = 1_000
_MS_PER_MINUTE = 60_000


class GroupCoordinator:
    """The groups of one broker.

    Args:
        services: the broker.
        config: its identity and settings.
    """

    def __init__(self, services: Services, config: NodeConfig) -> None:
        self._services = services
        self._config = config
        self._led: dict[int, _Led] = {}
        self._members = 0

    def replica_changed(self, partition: Partition, state: ReplicaState) -> None:
        """A replica on this broker has another state: it may have been elected to lead, or have resigned."""
        if partition.name.topic != GROUPS_TOPIC:
            return
        number, leads = partition.name.partition, state.role == "leader"
        led = self._led.get(number)
        if led is not None and not leads:
            del self._led[number]
            led.resign()
        elif led is None and leads:
            self._led[number] = _Led(self._services, self._config, partition, self.new_member_id)

    def groups_of(self, group: str) -> Groups | ErrorCode:
        """The groups among which ``group`` is, or the error where this broker does not coordinate it, or not yet."""
        return known_of(group, GROUPS_TOPIC, self._services.metadata, self._led)

    def all_groups(self) -> list[Groups] | ErrorCode:
        """The groups of all partitions that this broker leads."""
        return all_known(self._led)

    def transaction_ended(self, partition: int, producer_id: int, *, commits: bool) -> None:
        """The marker of a producer's transaction is in a partition of the topic."""
        if partition in self._led:
            self._led[partition].marked(producer_id, commits=commits)

    def status(self) -> list[dict[str, Any]]:
        """For the control channel: what is committed in each partition that it leads, and in which leader epoch."""
        return [
            {"leader_epoch": led.leader_epoch, "partition": number, "commits": led.known.status()}
            for number, led in sorted(self._led.items())
            if led.known is not None
        ]

    def new_member_id(self, prefix: str) -> str:
        """An id that no member has had, which begins with ``prefix``."""
        self._members += 1
        return f"{prefix[:_MAX_PREFIX]}-{self._config.node_id}-{self._config.incarnation}-{self._members}"


def _limits(settings: Settings, knobs: Knobs) -> GroupLimits:
    return GroupLimits(
        settings.group_initial_rebalance_delay_ms,
        settings.group_min_session_timeout_ms,
        settings.group_max_session_timeout_ms,
        settings.group_max_size,
        ConsumerLimits(
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_max_size,
        ),
        OffsetRetention(
            settings.offsets_retention_minutes * _MS_PER_MINUTE,
            settings.offsets_retention_check_interval_ms,
            knobs.offset_expiry == "after_commit",
        ),
    )


class _Led(CoordinatorLog):
    """One partition that the broker leads: the port of its groups.

    Attributes:
        known: its groups; None until the log has been read.
    """

    def __init__(
        self, services: Services, config: NodeConfig, partition: Partition, new_member_id: Callable[[str], str]
    ) -> None:
        super().__init__(services, config, partition)
        self.known: Groups | None = None
        self.new_member_id = new_member_id
        self.topics = services.metadata
        self._read = Groups(self, _limits(config.settings, config.knobs), config.knobs.bugs)
        self._ended: list[Callable[[], None]] = []
        self.read(self)

    def record(self, key: bytes, value: bytes | None, producer_id: int | None) -> None:
        """See :class:`harness.broker.coordinator_log.Reader`."""
        said = decoded(key, value)
        if said is not None:
            self._read.replay(*said, producer_id)

    def marker(self, producer_id: int, *, commits: bool) -> None:
        """See :class:`harness.broker.coordinator_log.Reader`."""
        self._read.commits.transaction_ended(producer_id, commits=commits)

    def finished(self) -> None:
        """See :class:`harness.broker.coordinator_log.Reader`."""
        for ended in self._ended:
            ended()
        self._ended.clear()
        self._read.begin()
        self.known = self._read

    def marked(self, producer_id: int, *, commits: bool) -> None:
        """A marker has been appended; what is in the log before it may yet have to be read."""
        if self.known is None:
            self._ended.append(partial(self.marker, producer_id, commits=commits))
        else:
            self.known.commits.transaction_ended(producer_id, commits=commits)

    def resign(self) -> None:
        """Another broker leads."""
        self.stop()
        if self.known is not None:
            self.known.end()

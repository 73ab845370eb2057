"""Share consumers of Kafka's own Java client, and the configurations of their groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.clients.java.consumers import polled_record
from harness.clients.java.driver import Driver
from harness.history.sends import Answer
from harness.history.shares import Acknowledging, SharedRecord
from harness.model import TopicPartition
from harness.share_ports import Acquired, ShareMembership

_CLOSE_MS = 2000
_CONFIGURE_MS = 5000
_UNREPORTED = "_NOT_REPORTED"
"""The error of an acknowledgement of which the client says neither that it succeeded nor that it failed."""


def sharing(membership: ShareMembership) -> dict[str, object]:
    """The settings of a consumer of a share group."""
    return {
        "group.id": membership.group,
        "share.acknowledgement.mode": "explicit",
        "share.acquire.mode": membership.acquire_mode,
        "max.poll.records": membership.max_records,
        "fetch.max.wait.ms": 100,
        "request.timeout.ms": 3000,
        "default.api.timeout.ms": 3000,
    }


class ShareConsumer:
    """Implements :class:`harness.clients.library.ShareConsumer`."""

    def __init__(self, driver: Driver, settings: Mapping[str, object], membership: ShareMembership) -> None:
        self._driver = driver
        self._client = driver.client("share_consumer", settings)
        driver.ask(self._client, "subscribe", topics=list(membership.topics))

    def acquire(self, timeout_s: float) -> Acquired:
        """See :class:`harness.share_ports.ShareConsumer`."""
        said = self._driver.ask(self._client, "poll", timeout_ms=int(timeout_s * 1000))
        given = [SharedRecord(polled_record(written), count) for written, count in said.get("records", ())]
        return Acquired(given, said.get("error"))

    def acknowledge(self, said: Sequence[Acknowledging], timeout_s: float) -> list[Answer]:
        """See :class:`harness.share_ports.ShareConsumer`."""
        records = [[one.topic, one.partition, one.offset, one.acknowledgement.upper()] for one in said]
        told = self._driver.ask(self._client, "acknowledge", records=records, timeout_ms=int(timeout_s * 1000))
        if "error" in told:
            return [Answer("info", error=told["error"])] * len(said)
        results = {TopicPartition(topic, number): error for topic, number, error in told["results"]}
        return [
            Answer("fail", error=refused)
            if refused is not None
            else _answer(results.get(TopicPartition(one.topic, one.partition), _UNREPORTED))
            for one, refused in zip(said, told["refused"], strict=True)
        ]

    def close(self) -> None:
        """See :class:`harness.share_ports.ShareConsumer`."""
        self._driver.ask(self._client, "close", timeout_ms=_CLOSE_MS)


def _answer(error: str | None) -> Answer:
    return Answer("ok") if error is None else Answer("info", error=error)


def configure_group(
    driver: Driver, settings: Mapping[str, object], group: str, configs: Mapping[str, str]
) -> str | None:
    """See :meth:`harness.share_ports.SharingClients.configure_group`."""
    client = driver.client("group_configs", settings)
    try:
        said = driver.ask(client, "configure", group=group, configs=dict(configs), timeout_ms=_CONFIGURE_MS)
        return said.get("error")
    finally:
        driver.ask(client, "close")

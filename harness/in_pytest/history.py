"""The fixture ``history``: the record of what a test's own clients do, and clients that record by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException

from harness.client_ports import ClientContext
from harness.in_pytest.clients import RecordingConsumer, RecordingProducer
from harness.in_pytest.recording import Recording

_FLUSH_S = 30.0


class ClientHistory(Recording):
    """What :meth:`producer` and :meth:`consumer` make records by itself; the rest is for clients of other libraries."""

    def __init__(self, context: ClientContext, steps: list[dict[str, Any]], shared: Mapping[str, Any]) -> None:
        super().__init__(context, steps, shared)
        self._producers: list[RecordingProducer] = []
        self._consumers: list[RecordingConsumer] = []

    def producer(self, config: Mapping[str, Any] | None = None) -> RecordingProducer:
        """A ``confluent_kafka.Producer`` that records; ``bootstrap.servers`` is the cluster's."""
        self._producers.append(RecordingProducer(self, config or {}))
        return self._producers[-1]

    def consumer(self, config: Mapping[str, Any] | None = None) -> RecordingConsumer:
        """A ``confluent_kafka.Consumer`` that records; ``bootstrap.servers`` is the cluster's."""
        self._consumers.append(RecordingConsumer(self, config or {}))
        return self._consumers[-1]

    def close(self) -> None:
        """Wait until every record of the producers is answered, for half a minute at most, and end the clients."""
        for producer in self._producers:
            with suppress(RuntimeError, KafkaException):  # the test has closed it
                producer.flush(_FLUSH_S)
        self.open = False
        clients: list[Any] = [*self._producers, *self._consumers]
        for client in clients:
            with suppress(RuntimeError, KafkaException):
                client.close()

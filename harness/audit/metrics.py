"""Prometheus metrics of an audit, for a scraper over HTTP, or in a file for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server, write_to_textfile

from harness.audit.audit import Told
from harness.checker import Outcome
from harness.errors import EnvironmentFault, UsageError

LOOPBACK = "127.0.0.1"
_MOST_PORT = 65_535
_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The metrics of one process; counters begin at 0 with it.

    Attributes:
        registry: of all of them.
    """

    def __init__(self) -> None:
        self.registry = made = CollectorRegistry()
        self._sends = Counter("seawall_audit_sends", "Canary records sent, by outcome.", ["outcome"], registry=made)
        self._lost = Counter(
            "seawall_audit_lost_records", "Acknowledged canary records that are gone.", ["partition"], registry=made
        )
        self._anomalies = Counter("seawall_audit_anomalies", "Anomalies found, by kind.", ["kind"], registry=made)
        self._windows = Counter("seawall_audit_windows", "Windows judged, by outcome.", ["outcome"], registry=made)
        for outcome in Outcome:
            self._windows.labels(outcome.value)  # at 0, so that the first violation is an increase
        self._missed = Counter("seawall_audit_missed_objectives", "Objectives that windows missed.", registry=made)
        self._events = Counter(
            "seawall_audit_leader_changes", "Changes of leaders that were seen.", ["partition"], registry=made
        )
        self._blind = Counter("seawall_audit_blind_seconds", "Time in which the audit did not run.", registry=made)
        self._unverified = Counter(
            "seawall_audit_unverified_records", "Acknowledged canary records given up undecided.", registry=made
        )
        self._ended = Gauge(
            "seawall_audit_last_window_end_timestamp_seconds", "When the last judged window ended.", registry=made
        )
        self._carried = Gauge("seawall_audit_carried_records", "Canary records that are looked for.", registry=made)
        self._available = Gauge(
            "seawall_audit_availability_ratio", "Share of the last window's time.", ["partition"], registry=made
        )
        self._gap = Gauge(
            "seawall_audit_longest_gap_seconds",
            "Longest time without an acknowledgement in the last window.",
            ["partition"],
            registry=made,
        )
        self._ack = Histogram(
            "seawall_audit_ack_seconds", "From sending to the acknowledgement.", buckets=_BUCKETS_S, registry=made
        )
        self._read = Histogram(
            "seawall_audit_read_seconds", "From sending to the first delivery.", buckets=_BUCKETS_S, registry=made
        )

    def take(self, told: Told) -> None:
        """Count a window."""
        result = told.result
        counted = {"acknowledged": result.acknowledged, "failed": result.failed, "unknown": result.unknown}
        for outcome, number in counted.items():
            self._sends.labels(outcome).inc(number)
        for one in result.partitions:
            lost = sum(loss.records for loss in result.losses if loss.partition == one.partition)
            self._lost.labels(one.partition).inc(lost)
            self._available.labels(one.partition).set(one.availability)
            self._gap.labels(one.partition).set(one.longest_gap_s)
            of_partition = [event for event in result.answers if event.partition == one.partition]
            changes = sum(not (event.told or event.again) for event in of_partition)
            self._events.labels(one.partition).inc(changes)
        for kind, number in result.anomalies.items():
            self._anomalies.labels(kind).inc(number)
        self._windows.labels(result.outcome.value).inc()
        self._missed.inc(len(result.missed))
        self._blind.inc(result.blind_s)
        self._unverified.inc(result.unverified)
        self._ended.set(told.ended_ns / 1e9)
        self._carried.set(result.carried)
        for ns in told.acks_ns:
            self._ack.observe(ns / 1e9)
        for ns in told.reads_ns:
            self._read.observe(ns / 1e9)


def published(metrics: Metrics, where: str) -> Callable[[], None]:
    """Publish metrics at ``PORT`` of this machine alone, at ``HOST:PORT``, or in a file; returns what renews the file.

    Raises:
        UsageError: there is no such port.
        EnvironmentFault: nothing can be published there.
    """
    host, _, port = where.rpartition(":")
    if not port.isdecimal():
        return lambda: _write(metrics, Path(where))
    if not 0 < int(port) <= _MOST_PORT:
        raise UsageError(f"--metrics {where}: there is no port {port}.")
    try:
        start_http_server(int(port), host or LOOPBACK, metrics.registry)
    except OSError as error:
        raise EnvironmentFault(f"metrics cannot be served at {host or LOOPBACK}:{port}: {error.strerror}.") from None
    return lambda: None


def _write(metrics: Metrics, path: Path) -> None:
    try:
        write_to_textfile(str(path), metrics.registry)
    except OSError as error:
        raise EnvironmentFault(f"{path} cannot be written: {error.strerror}.", "Name another file.") from None

"""Availability, recovery and latency of partitions, as numbers and as strips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.checker import Outage, Outcome, Recovery, RunVerdict
from reports import latency, service
from reports.lanes.frame import Frame
from reports.run import Run, read
from reports.scale import Window
from tests.reports.conftest import at


def run_of(recording: Any, path: Path, **told: Any) -> Run:
    recording.write(path, RunVerdict("", Outcome.PASS, "python", **told))
    return read(path)


def frame(run: Run) -> Frame:
    return Frame(Window(run.start_ns, run.start_ns, run.end_ns), run.brokers, 100)


def test_a_partition_is_available_outside_of_its_outages(double_failover_recording: Any, tmp_path: Path) -> None:
    outages = (Outage(at(3.012), at(5.012)), Outage(at(6.0), at(8.21)))
    recovery = [Recovery("ledger", 0, at(8.0), at(8.65), at(8.21), outages)]
    run = run_of(double_failover_recording, tmp_path / "run", recovery=recovery)
    [one] = service.services(run)
    assert (round(one.out_s, 3), round(one.longest_s, 3)) == (4.21, 2.21)
    assert (round(one.isr_full_s or 0, 3), round(one.first_ack_s or 0, 3)) == (0.65, 0.21)
    assert one.share is not None
    assert round(one.share, 3) == round(1 - 4.21 / (9.11 - 0.998), 3)
    assert service.drawn(run, frame(run), [one]).count('class="out"') == 2


def test_latency_is_from_invocation_to_acknowledgement(double_failover_recording: Any, tmp_path: Path) -> None:
    double_failover_recording.send(9.5, 7, 30, took=0.5)
    run = run_of(double_failover_recording, tmp_path / "run")
    found = latency.latencies(run, frame(run))
    assert found
    [every] = found.rows
    assert (every.count, every.p50, every.most) == (32, 12.0, 500.0)
    assert "1 acknowledged after 500 ms to 1 s" in found.strip


def test_a_run_without_an_acknowledgement_has_no_latency(new_recording: Any, tmp_path: Path) -> None:
    from tests.reports.conftest import manifest

    run = run_of(new_recording(manifest("empty", "empty")), tmp_path / "run")
    assert latency.latencies(run, frame(run)) is None

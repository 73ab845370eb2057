"""Whose anomalies are, with librdkafka and the built-in brokers as processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import check
from harness.checker import Side
from harness.clients.threaded_clients import ThreadedClients
from harness.detection.mixes import stack_scenario
from harness.runner import plan, run, run_environment
from tests.attribution.liars import LIES, Liar
from tests.attribution.trial import sides

LATE = pytest.mark.nightly("one more cluster; by day one lie of a client, and in virtual time bugs of brokers")


@pytest.mark.parametrize(
    ("wrong", "kinds", "side"),
    [
        ("drops_a_record", {"lost-write", "int-poll-skip"}, Side.CLIENT),
        pytest.param(
            "reports_another_offset",
            {"lost-write", "inconsistent-offsets", "duplicate"},
            Side.CLIENT,
            marks=LATE,
        ),
        pytest.param("batch_appended_twice", {"duplicate"}, Side.BROKER, marks=LATE),
    ],
)
def test_a_librdkafka_or_a_broker_process_is_taken_for_the_other(
    wrong: str, kinds: set[str], side: Side, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = {} if wrong in LIES else {"replication.bugs": wrong}
    if wrong in LIES:
        monkeypatch.setattr(run_environment, "ThreadedClients", lambda *of: Liar(ThreadedClients(*of), wrong))
    made = plan(stack_scenario("single", "none"), "builtin", "4.1", 1, overrides=overrides, tap=True)
    (verdict,) = check([run(made, tmp_path).path], "reference")
    found = sides(verdict)
    assert kinds <= found.keys()
    assert all(found[kind] == {side} for kind in kinds), found

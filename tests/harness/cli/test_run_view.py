"""The two lines about a run, in a wide terminal and in a narrow one."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.cli.run_view import RunLines
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.runner.run_progress import RunStatus
from harness.target import Leadership

REPLICAS = {"ledger": 3}


def leaders(*led: tuple[int, int]) -> dict[TopicPartition, Leadership]:
    """By partition, its leader and the size of its ISR."""
    return {
        TopicPartition("ledger", number): Leadership(NodeId(leader), tuple(map(NodeId, range(size))))
        for number, (leader, size) in enumerate(led)
    }


def status(time_s: float = 0.0, **what: object) -> RunStatus:
    plain = {"phase": "random faults", "phase_s": 4.2, "lasts_s": 15.0, "step": None, "faults": (), "leaders": {}}
    known = {**plain, "is_up": True, "acknowledged": 0, "errors": 0, **what}
    return RunStatus(time_ns=round(time_s * 1e9), **known)  # type: ignore[arg-type]


def drawn(now: RunStatus, columns: int = 120, before: RunStatus | None = None) -> list[str]:
    console = Console(width=columns, file=io.StringIO())
    with console.capture() as captured:
        console.print(RunLines(now, before or status(), REPLICAS))
    return captured.get().splitlines()


def test_rates_are_those_since_the_earlier_status_and_short_isrs_are_named_by_size() -> None:
    now = status(
        2.0, acknowledged=1240, errors=3, leaders=leaders((0, 3), (1, 2), (1, 1), (0, 2)),
        faults=(("f004", "kill", ("1",)), ("f005", "partition", ("0", "1", "2", "controller"))),
    )  # fmt: skip
    assert drawn(now) == [
        "random faults, 11 s left · in force: f004 kill 1, f005 partition of 4 nodes",
        "620 acked/s (1,240) · 2 errors/s (3) · leaders 2 on 0, 2 on 1 · ISR 1/3: ledger-2; 2/3: ledger-1, ledger-3",
    ]


def test_a_narrow_terminal_has_one_name_and_no_totals() -> None:
    now = status(2.0, acknowledged=1240, leaders=leaders((0, 2), (0, 2), (0, 2)))
    assert drawn(now, 80)[1] == "620 acked/s · 0 errors/s · leaders 3 on 0 · ISR 2/3: ledger-0 and 2 more"


def test_no_line_is_wider_than_the_terminal() -> None:
    faults = tuple((f"f{number:03d}", "log_dir_failure", ("controller",)) for number in range(9))
    lines = drawn(status(faults=faults, leaders=leaders(*((node, 1) for node in range(20)))), 60)
    assert len(lines) == 2
    assert all(len(line) == 60 and line.endswith("…") for line in lines)


def test_a_partition_without_a_leader_is_named() -> None:
    assert "no leader of ledger-1" in drawn(status(leaders=leaders((0, 3), (NO_LEADER, 3))))[1]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"step": (7, 19, "until"), "phase": "schedule"}, "step 7 of 19: until"),
        ({"phase_s": 18.0}, "last random faults, 3 s over"),
        ({"phase": "final read", "lasts_s": None}, "final read, 4 s"),
    ],
)
def test_the_phase_says_how_long_it_takes_as_far_as_that_is_known(what: dict[str, object], said: str) -> None:
    assert drawn(status(**what))[0] == f"{said} · no fault in force"  # type: ignore[arg-type]


def test_a_cluster_that_does_not_run_has_no_rates() -> None:
    assert drawn(status(is_up=False, phase="collecting the evidence", lasts_s=None)) == [
        "collecting the evidence, 4 s · no fault in force"
    ]

"""What the runner reports to the status line of a run."""

from __future__ import annotations

from harness import scenario
from harness.runner import plan
from harness.runner.rehearsal import rehearse
from harness.runner.run_progress import RunProgress, RunStatus


def watched(name: str, **settings: str) -> list[tuple[str, RunStatus]]:
    """The status at each line that a simulated run reports."""
    seen: list[tuple[str, RunStatus]] = []
    progress: list[RunProgress] = []
    rehearse(
        plan(scenario.load(name), "simulated", seed=3, duration_s=5 if "chaos" in name else None, overrides=settings),
        lambda line: seen.extend((line, one.look()) for one in progress),
        progress.append,
    )
    return seen


def test_a_schedule_says_its_step_and_what_is_in_force() -> None:
    seen = watched("kip-101-double-failover")
    steps = [status.step for _, status in seen if status.step is not None]
    numbers = [number for number, _, _ in steps]
    assert numbers == sorted(numbers)
    assert numbers[-1] <= steps[0][1] == len(scenario.load("kip-101-double-failover").schedule or ())
    [injected] = [status for line, status in seen if "kill" in line and "proven" not in line][:1]
    assert injected.faults[-1][1] == "kill"
    assert seen[-1][1].faults == ()


def test_chaos_counts_what_was_acknowledged_and_what_went_wrong_and_knows_the_leaders() -> None:
    seen = watched("random-chaos")
    chaos = [status for _, status in seen if status.phase == "random faults"]
    assert {status.lasts_s for status in chaos} == {5}
    assert chaos[0].phase_s < chaos[-1].phase_s
    last = seen[-1][1]
    assert last.acknowledged > chaos[0].acknowledged
    assert last.errors > 0
    assert any(len(one.isr) < 3 for status in chaos for one in status.leaders.values())
    assert all(len(one.isr) == 3 for one in last.leaders.values())
    assert not seen[0][1].is_up

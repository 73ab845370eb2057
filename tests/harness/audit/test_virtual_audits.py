"""Audits in virtual time: silent where nothing is lost, and a violation in the window of a loss."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.audit import result
from harness.audit.audit import Told
from harness.audit.objectives import Objectives
from harness.audit.result import WindowResult
from harness.checker import Outcome
from harness.targets.simulated import SimulatedTarget
from tests.harness.audit.virtual import Meddler, audit, simulated

UNCLEAN = {"min.insync.replicas": 1, "unclean.leader.election.enable": True}
MANY = pytest.mark.nightly("more of the same draws")


def each(do: Callable[[str], None], *nodes: str) -> None:
    for node in nodes:
        do(node)


def results(told: Sequence[Told]) -> list[WindowResult]:
    return [one.result for one in told]


def lost_in(found: Sequence[WindowResult]) -> dict[int, int]:
    return {one.window: one.lost for one in found if one.lost}


def lost_by_partition(found: Sequence[WindowResult]) -> list[int]:
    losses = [loss for one in found for loss in one.losses]
    return [sum(loss.records for loss in losses if loss.partition == number) for number in range(3)]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=MANY) for seed in range(2, 12))])
def test_a_sound_cluster_whose_brokers_are_killed_at_random_is_never_accused(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    settings = {"min.insync.replicas": 2}
    with simulated(tmp_path, settings, seed=seed) as target:

        def due(clock: Meddler) -> None:
            for begin_s in range(20, 280, 40):
                node = str(drawn.randrange(3))
                at_s = begin_s + drawn.random() * 10
                clock.due[at_s] = lambda node=node: target.kill(node)  # type: ignore[misc]
                clock.due[at_s + 1 + drawn.random() * 20] = lambda node=node: target.restart(node)  # type: ignore[misc]

        found = results(audit(tmp_path, target, for_s=300, rate=6, due=due, settings=settings))
    assert [one.outcome for one in found] == [Outcome.PASS] * 5
    assert lost_in(found) == {}
    assert all(answer.gone == 0 < answer.examined for one in found for answer in one.answers)
    assert any(one.answers for one in found)
    assert list((tmp_path / "audit/windows").iterdir()) == []


def elected_unclean(kill: Callable[[str], None], restart: Callable[[str], None], clock: Meddler) -> None:
    """Broker 0 alone acknowledges for 40 s, and then broker 1 leads, which lacks that."""
    clock.due.update(
        {
            130: lambda: each(kill, "1", "2"),
            170: lambda: kill("0"),
            175: lambda: restart("1"),
            200: lambda: each(restart, "0", "2"),
        }
    )


def test_an_unclean_election_is_found_in_its_window_with_what_it_has_lost(tmp_path: Path) -> None:
    told = ("2026-01-01T00:02:55Z unclean election of orders-3", "2026-01-01T00:00:30Z rolling upgrade", "nonsense")
    with simulated(tmp_path, UNCLEAN) as target:
        found = results(
            audit(
                tmp_path,
                target,
                for_s=300,
                due=lambda clock: elected_unclean(target.kill, target.restart, clock),
                told=told,
                settings={"min.insync.replicas": 1},
            )
        )
    assert [one.outcome is Outcome.VIOLATION for one in found] == [False, False, True, False, False]
    assert lost_in(found) == {3: 120}
    assert found[2].anomalies["lost-write"] == 120
    assert found[2].run_directory == "windows/000003"
    assert (tmp_path / "audit/windows/000003/verdict.json").exists()
    elections = [one for one in found[2].answers if "broker 1 leads instead of 0" in one.event]
    assert [(one.partition, one.gone) for one in elections] == [(0, 40), (1, 40), (2, 40)]
    assert [[one.gone for one in each.answers if one.told] for each in found] == [[], [0] * 3, [], [40] * 3, []]


def test_an_event_is_answered_when_a_reading_has_begun_after_its_whole_minute(tmp_path: Path) -> None:
    told = ("2026-01-01T00:01:59Z unclean election of orders-3",)
    with simulated(tmp_path, UNCLEAN) as target:

        def due(clock: Meddler) -> None:
            clock.due.update(
                {
                    85: lambda: each(target.kill, "1", "2"),
                    130: lambda: target.kill("0"),
                    135: lambda: target.restart("1"),
                    150: lambda: each(target.restart, "0", "2"),
                }
            )

        found = results(audit(tmp_path, target, for_s=240, due=due, told=told, settings={"min.insync.replicas": 1}))
    lost = lost_by_partition(found)
    assert min(lost) > 0
    answers = [answer for one in found for answer in one.answers if answer.told]
    assert [(one.partition, one.gone, one.undecided) for one in answers] == [
        (number, of_partition, 0) for number, of_partition in enumerate(lost)
    ]


def test_what_is_undecided_is_not_said_to_be_there_and_an_event_is_answered_until_nothing_is(tmp_path: Path) -> None:
    told = ("2026-01-01T00:01:10Z unclean election while the audit was away",)
    settings = {"min.insync.replicas": 1}
    with simulated(tmp_path, UNCLEAN) as target:
        due = lambda clock: clock.due.update({20: lambda: each(target.kill, "1", "2")})  # noqa: E731
        before = results(audit(tmp_path, target, for_s=60, due=due, settings=settings))
        target.kill("0")
        target.clock.sleep(5)
        target.restart("1")
        target.clock.sleep(20)
        each(target.restart, "0", "2")
        target.clock.sleep(100)
        found = results(audit(tmp_path, target, for_s=80, window_s=20, told=told, settings=settings))
    lost = lost_by_partition(found)
    for number in range(3):
        first, *later = [one for each in found for one in each.answers if one.told and one.partition == number]
        assert first.undecided > 0
        assert first.gone < lost[number]
        sent = [part.acknowledged for one in before for part in one.partitions if part.partition == number]
        assert first.examined + first.undecided == sum(sent)
        assert [one.again for one in (first, *later)] == [False, *[True] * len(later)]
        assert all(one.undecided for one in later[:-1])
        assert (later[-1].gone, later[-1].undecided) == (lost[number], 0)


def test_a_loss_by_an_election_that_the_configuration_permits_decides_nothing_and_is_counted(tmp_path: Path) -> None:
    with simulated(tmp_path, UNCLEAN) as target:
        due = lambda clock: elected_unclean(target.kill, target.restart, clock)  # noqa: E731
        found = results(audit(tmp_path, target, for_s=240, due=due, settings=UNCLEAN))
    assert [one.outcome.value for one in found] == ["pass", "pass", "inconclusive", "pass"]
    assert lost_in(found) == {3: 120}


def forgotten(target: SimulatedTarget) -> None:
    """Broker 1 comes back with an empty disk."""
    target.kill("1")
    target.wipe_disk("1")
    target.restart("1")


def test_records_of_earlier_windows_that_are_lost_later_are_found_then(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 1}
    with simulated(tmp_path, settings) as target:
        due = lambda clock: clock.due.update({130: lambda: forgotten(target)})  # noqa: E731
        found = results(audit(tmp_path, target, for_s=300, replication_factor=1, due=due, settings=settings))
        again = results(audit(tmp_path, target, for_s=60, replication_factor=1, settings=settings))
    assert [one.outcome is Outcome.VIOLATION for one in found] == [False, False, True, False, False]
    assert lost_in(found) == {3: 130}
    [loss] = found[2].losses
    assert loss.sent_in == {"1": 60, "2": 60, "3": 10}
    assert [(one.window, one.outcome, one.lost, one.carried > 0) for one in again] == [(6, Outcome.PASS, 0, True)]


@pytest.mark.parametrize("has_line", [False, True], ids=["before", "after"])
def test_a_loss_is_counted_once_though_the_audit_is_killed_as_it_writes_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_line: bool
) -> None:
    settings, killed = {"min.insync.replicas": 1}, tmp_path / "killed"
    append = result.append

    def appended(directory: Path, window: WindowResult) -> None:
        if window.window == 3 and not has_line:
            shutil.copytree(directory, killed / "audit")
        append(directory, window)
        if window.window == 3 and has_line:
            shutil.copytree(directory, killed / "audit")

    monkeypatch.setattr(result, "append", appended)
    with simulated(tmp_path, settings) as target:
        due = lambda clock: clock.due.update({130: lambda: forgotten(target)})  # noqa: E731
        audit(tmp_path, target, for_s=180, replication_factor=1, due=due, settings=settings)
        monkeypatch.undo()
        audit(killed, target, for_s=60, replication_factor=1, settings=settings)
    found = result.read(killed / "audit")
    assert [one.window for one in found] == [1, 2, 3, 4]
    assert found[2].lost > 0
    assert sum(one.lost for one in found) + found[-1].undecided == 130


def test_a_window_has_one_line_though_a_signal_comes_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"min.insync.replicas": 2}
    append = result.append

    def appended(directory: Path, window: WindowResult) -> None:
        append(directory, window)
        if window.window == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(result, "append", appended)
    with simulated(tmp_path, settings) as target:
        audit(tmp_path, target, for_s=300, settings=settings)
    assert [one.window for one in result.read(tmp_path / "audit")] == [1, 2]


def test_a_leader_that_acknowledges_before_its_followers_have_it_is_found(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 2}
    with simulated(tmp_path, settings, bugs="ack_on_append") as target:

        def due(clock: Meddler) -> None:
            clock.due.update(
                {
                    70: lambda: each(target.pause, "1", "2"),
                    71: lambda: target.kill("0"),
                    71.1: lambda: each(target.resume, "1", "2"),
                    90: lambda: target.restart("0"),
                }
            )

        found = results(audit(tmp_path, target, for_s=150, window_s=50, rate=12, due=due, settings=settings))
    assert [one.outcome is Outcome.VIOLATION for one in found] == [False, True, False]
    assert sum(lost_in(found).values()) > 0


@pytest.mark.parametrize(
    ("bugs", "kind"),
    [
        ("batch_appended_twice,sequence_unchecked", "duplicate"),
        ("fetch_swaps_batches", "int-nonmonotonic-poll"),
        ("fetch_garbles_a_key", "corrupt-read"),
    ],
)
def test_an_audit_judges_duplicates_order_and_contents(tmp_path: Path, bugs: str, kind: str) -> None:
    settings = {"min.insync.replicas": 2}
    with simulated(tmp_path, settings, bugs=bugs) as target:
        found = results(audit(tmp_path, target, for_s=60, window_s=30, rate=12, settings=settings))
    assert [one.outcome for one in found] == [Outcome.VIOLATION] * 2
    assert all(kind in one.anomalies for one in found)


@pytest.mark.nightly("three days in virtual time take minutes")
def test_three_days_are_silent_but_for_the_hour_of_an_unclean_election_and_need_no_more_than_half_a_day(
    tmp_path: Path,
) -> None:
    hour_s = 3600.0
    idle = {"broker.session.timeout.ms": 60_000, "broker.heartbeat.interval.ms": 20_000}
    settings = {**UNCLEAN, **idle, "replica.lag.time.max.ms": 60_000, "replica.fetch.wait.max.ms": 10_000}
    election_s, on_disk = 36 * hour_s, []

    def look() -> None:
        on_disk.append(sum(file.stat().st_size for file in (tmp_path / "audit/sends").iterdir()))

    with simulated(tmp_path, settings) as target:

        def due(clock: Meddler) -> None:
            clock.due.update(
                {
                    12 * hour_s: look,
                    election_s + 60: lambda: each(target.kill, "1", "2"),
                    election_s + 360: lambda: target.kill("0"),
                    election_s + 420: lambda: target.restart("1"),
                    election_s + 660: lambda: each(target.restart, "0", "2"),
                }
            )

        found = results(
            audit(
                tmp_path,
                target,
                for_s=72 * hour_s,
                window_s=hour_s,
                rate=0.1,
                partitions=1,
                keep_s=6 * hour_s,
                due=due,
                settings={"min.insync.replicas": 1},
            )
        )
    look()
    assert len(found) == 72
    assert [one.window for one in found if one.outcome is not Outcome.PASS] == [37]
    assert found[36].outcome is Outcome.VIOLATION
    assert lost_in(found) == {37: sum(answer.gone for one in found for answer in one.answers)}
    at_noon, at_the_end = found[11], found[-1]
    assert at_the_end.carried <= at_noon.carried <= 6 * 3600 * 0.1 + 1
    assert on_disk[1] <= on_disk[0] * 1.05


@pytest.mark.nightly("windows beyond the time for which records are kept")
def test_records_that_retention_deletes_are_not_missed_and_memory_is_bounded(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 2, "log.retention.check.interval.ms": 10_000}
    with simulated(tmp_path, settings) as target:
        found = results(audit(tmp_path, target, for_s=1800, keep_s=120, settings=settings))
        starts = {one["log_start_offset"] for node in target.cluster.brokers() for one in node.status()["replicas"]}
    assert {one.outcome for one in found} == {Outcome.PASS}
    assert max(one.carried for one in found) <= 540
    assert min(starts) > 0
    assert len(list((tmp_path / "audit/sends").iterdir())) <= 5


def test_what_retention_has_deleted_while_the_audit_was_away_is_not_lost(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 2, "log.retention.check.interval.ms": 10_000}
    with simulated(tmp_path, settings) as target:
        before = results(audit(tmp_path, target, for_s=60, window_s=30, keep_s=60, settings=settings))
        target.clock.sleep(400)
        after = results(audit(tmp_path, target, for_s=60, window_s=30, keep_s=60, settings=settings))
        starts = {one["log_start_offset"] for node in target.cluster.brokers() for one in node.status()["replicas"]}
    assert min(starts) > 0
    assert {one.outcome for one in before} == {Outcome.PASS}
    assert [one.outcome for one in after] == [Outcome.INCONCLUSIVE, Outcome.PASS]
    assert after[0].unverified == sum(one.acknowledged for one in before)


def test_a_partition_that_is_away_for_good_never_passes(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 1}
    with simulated(tmp_path, settings) as target:

        def due(clock: Meddler) -> None:
            clock.due[70] = lambda: target.kill("0")

        found = results(
            audit(
                tmp_path, target, for_s=250, window_s=50, keep_s=60, replication_factor=1, due=due, settings=settings,
                objectives=Objectives(availability=0.99),
            )
        )  # fmt: skip
    assert [one.outcome for one in found] == [Outcome.PASS, *[Outcome.INCONCLUSIVE] * 4]
    assert [len(one.missed) for one in found] == [0, 1, 1, 1, 1]
    assert "acknowledged nothing" in found[-1].reasons[-1]


def test_a_life_sends_nothing_twice_though_the_journal_of_the_last_is_gone(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 2}
    with simulated(tmp_path, settings) as target:
        audit(tmp_path, target, for_s=60, window_s=30, settings=settings)
        for file in (tmp_path / "audit/sends").iterdir():
            file.write_text("")
        found = results(audit(tmp_path, target, for_s=60, window_s=30, settings=settings))
    assert {one.outcome for one in found} == {Outcome.PASS}


def test_a_window_that_a_signal_left_unjudged_is_judged_though_later_ones_were(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 2}
    with simulated(tmp_path, settings) as target:
        audit(tmp_path, target, for_s=90, window_s=30, settings=settings)
        lines = (tmp_path / "audit/audit.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "audit/audit.jsonl").write_text("".join([*lines[:1], *lines[2:]]))
        found = results(audit(tmp_path, target, for_s=30, window_s=30, settings=settings))
    assert [(one.window, one.interrupted, one.outcome) for one in found] == [
        (2, True, Outcome.PASS),
        (4, False, Outcome.PASS),
    ]

"""Stories about groups that are told something else than they have committed, for a good reason or none.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from harness.findings import KEPT_PER_GROUP
from tests.checkers.cases import case, write
from tests.checkers.clients import commit
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN
from tests.checkers.story import NODES, Story


def commit_twice(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 2])
    for offset in (1, 3):
        commit(story, offset)


def lose_power(story: Story, *nodes: int) -> None:
    """These nodes lose their power at one time, and nothing of the partition."""
    times = {"injected_ns": story.now + 1, "healed_ns": story.now + 3, "heal_proven_ns": story.now + 4}
    story.fault("dark", kind="power_loss", nodes=[str(node) for node in nodes], **times)
    story.now += 1_000_000
    for node in nodes:
        story.restart(node)


def be_told(story: Story, offset: int | None) -> None:
    commit(story, offset, "committed")
    story.elect(1)
    write(story, 1)
    story.finish()


@case(Outcome.PASS, ("lost-commit", "DOCUMENTED", 1), **LEAST_2)
def a_commit_that_every_power_loss_took_is_documented(story: Story) -> None:
    commit_twice(story)
    lose_power(story, *NODES)
    be_told(story, 1)


@case(Outcome.PASS, ("lost-commit", "DOCUMENTED", None), **LEAST_2)
def all_commits_that_every_power_loss_took_are_documented(story: Story) -> None:
    commit_twice(story)
    lose_power(story, *NODES)
    be_told(story, None)


MINUTE: dict[str, Any] = {
    "configuration": {
        "scenario": {
            "cluster": {"brokers": len(NODES)},
            "topics": [{"name": "ledger", "partitions": 1, "replication_factor": len(NODES)}],
        },
        "settings": {"offsets.retention.minutes": "1"},
    }
}


def wait(story: Story, seconds: int) -> None:
    story.now += seconds * 1_000_000_000


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", None), **MINUTE)
def a_commit_may_have_expired_when_its_time_is_over(story: Story) -> None:
    commit_twice(story)
    wait(story, 60)
    be_told(story, None)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", None), **MINUTE)
def a_commit_may_not_expire_before_its_time(story: Story) -> None:
    commit_twice(story)
    wait(story, 40)
    be_told(story, None)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **MINUTE)
def a_commit_that_expires_does_not_bring_an_earlier_one_back(story: Story) -> None:
    commit_twice(story)
    wait(story, 60)
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **LEAST_2)
def a_commit_is_kept_when_one_broker_keeps_its_power(story: Story) -> None:
    commit_twice(story)
    lose_power(story, 0, 1)
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **LEAST_2)
def no_power_loss_takes_a_commit_that_came_after_it(story: Story) -> None:
    write(story, 1)
    lose_power(story, *NODES)
    commit_twice(story)
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 2), **LEAST_2)
def no_power_loss_makes_a_commit_that_was_never_made(story: Story) -> None:
    commit_twice(story)
    lose_power(story, *NODES)
    be_told(story, 2)


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", 1), **UNCLEAN)
def an_unclean_election_of_the_groups_own_topic_nobody_would_have_seen(story: Story) -> None:
    commit_twice(story)
    story.elect(2, clean=False)
    be_told(story, 1)


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", 1), **UNCLEAN)
def a_fault_may_have_brought_about_an_unclean_election_that_nobody_saw(story: Story) -> None:
    commit_twice(story)
    story.fault()
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **UNCLEAN)
def a_clock_that_is_wrong_has_nobody_elected_uncleanly(story: Story) -> None:
    commit_twice(story)
    story.fault(kind="clock", parameters='{"offset_ms": 1000}')
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **UNCLEAN)
def a_broker_that_clients_cannot_reach_has_nobody_elected_uncleanly(story: Story) -> None:
    commit_twice(story)
    story.fault(parameters='{"links": [["clients", "1"]]}')
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **UNCLEAN)
def without_a_fault_nobody_is_elected_uncleanly(story: Story) -> None:
    commit_twice(story)
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 2), **UNCLEAN)
def no_election_makes_a_commit_that_was_never_made(story: Story) -> None:
    commit_twice(story)
    story.elect(2, clean=False)
    be_told(story, 2)


def fault_after_a_commit(story: Story, **columns: Any) -> None:
    """A group commits twice, a fault comes and goes, and a coordinator answers with the first commit."""
    commit_twice(story)
    story.fault(**columns)
    be_told(story, 1)


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", 1), **LEAST_2)
def a_coordinator_that_was_cut_off_may_not_know_of_its_successor(story: Story) -> None:
    fault_after_a_commit(story, parameters='{"links": [["0", "1"], ["1", "0"]]}')


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", 1), **LEAST_2)
def a_coordinator_that_has_stood_still_may_not_know_of_its_successor(story: Story) -> None:
    fault_after_a_commit(story, kind="pause")


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **LEAST_2)
def a_coordinator_that_clients_could_not_reach_knows_all(story: Story) -> None:
    fault_after_a_commit(story, parameters='{"links": [["clients", "1"]]}')


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **LEAST_2)
def a_coordinator_that_is_started_again_has_read_its_log(story: Story) -> None:
    fault_after_a_commit(story, kind="kill")


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **LEAST_2)
def a_cut_that_was_healed_before_the_commit_deposes_no_coordinator_after_it(story: Story) -> None:
    story.fault(parameters='{"links": [["0", "1"], ["1", "0"]]}')
    story.now += 10
    commit_twice(story)
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 2), **LEAST_2)
def no_coordinator_that_was_cut_off_knows_of_a_commit_that_was_never_made(story: Story) -> None:
    commit_twice(story)
    story.fault(parameters='{"links": [["0", "1"], ["1", "0"]]}')
    be_told(story, 2)


def ask_often(story: Story, offset: int) -> None:
    """More often in two rounds than findings of one kind are shown."""
    for _ in range(KEPT_PER_GROUP // 2 + 2):
        commit(story, offset, "committed")


def lose_two_commits(story: Story) -> None:
    """Each is lost to a power loss of its own, and the second one is asked for when most have been asked."""
    commit_twice(story)
    lose_power(story, *NODES)
    ask_often(story, 1)
    for offset in (2, 3):
        commit(story, offset)
    lose_power(story, *NODES)
    ask_often(story, 2)


COUNTED = tuple(("lost-commit", "DOCUMENTED", 1 if n < KEPT_PER_GROUP // 2 + 2 else 2) for n in range(KEPT_PER_GROUP))


@case(Outcome.PASS, *COUNTED, **LEAST_2)
def of_commits_that_two_power_losses_took_each_is_put_down_to_its_own_however_many(story: Story) -> None:
    lose_two_commits(story)
    be_told(story, 2)


@case(Outcome.VIOLATION, *COUNTED, ("lost-commit", "VIOLATION", None), **LEAST_2)
def a_commit_that_was_lost_after_all_power_losses_is_found_among_those_that_are_only_counted(story: Story) -> None:
    lose_two_commits(story)
    commit(story, 3)
    be_told(story, 2)

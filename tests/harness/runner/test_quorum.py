"""Schedules that would wait in vain where the brokers are the controllers are refused before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from faults import parse
from harness.model import NodeId
from harness.runner.quorum import Coming, undecided
from harness.scenario import load
from harness.schedule import Step
from harness.target import ClusterView

VIEW = ClusterView(0, (NodeId(0), NodeId(1), NodeId(2)), {})
LEADER: Mapping[str, Any] = {"until": {"leader": 1}}
NEXT = {"until": {"leader": 2}}


def kill(node: int | str, name: str) -> Mapping[str, Any]:
    return {"inject": {"fault": "kill", "node": node, "as": name}}


def found(*written: Mapping[str, Any], brokers: int = 3) -> list[tuple[int, int]]:
    steps = {index: Step.model_validate(one) for index, one in enumerate(written)}
    return list(undecided(brokers, steps, dict(_coming(steps))))


def _coming(steps: Mapping[int, Step]) -> Iterator[tuple[int, Coming]]:
    for index, step in steps.items():
        if (written := _written(step)) is not None:
            fault = parse(written, "")
            is_later = written.get("node") in ("leader", "any")
            yield index, Coming(fault, None if is_later else fault.aimed(VIEW, 0).claims())


def _written(step: Step) -> dict[str, Any] | None:
    if step.hold is not None:
        return {"fault": "partition", "links": [list(link) for link in step.hold.links]}
    return {name: value for name, value in step.inject.items() if name != "as"} if step.inject else None


def test_two_of_three_that_are_down_elect_no_leader() -> None:
    assert found(LEADER, kill(0, "a"), kill(1, "b"), NEXT) == [(3, 1)]
    assert found(LEADER, kill(0, "a"), {"inject": {"fault": "pause", "node": 1, "as": "b"}}, NEXT) == [(3, 1)]
    assert found(LEADER, kill("leader", "a"), kill("leader", "b"), NEXT) == [(3, 1)]


def test_a_majority_decides() -> None:
    assert found(LEADER, kill(0, "a"), NEXT) == []
    assert found(LEADER, kill(0, "a"), {"heal": "a"}, kill(1, "b"), NEXT) == []
    assert found(LEADER, kill(0, "a"), kill(1, "b"), NEXT, brokers=5) == []


def test_controllers_that_do_not_hear_each_other_decide_nothing() -> None:
    hold = {"hold": {"links": [[0, 1], [2, 1]], "as": "h"}}
    assert found(LEADER, hold, NEXT) == []
    assert found(LEADER, hold, kill(2, "a"), NEXT) == [(3, 1)]
    assert found(LEADER, hold, kill(2, "a"), {"release": "h"}, NEXT) == []


def test_what_has_been_seen_before_may_be_waited_for_again() -> None:
    assert found(LEADER, kill(0, "a"), kill(1, "b"), LEADER, {"until": {"sent": "m"}}) == []


def test_an_election_that_must_succeed_needs_a_controller() -> None:
    elect = {"elect": {"leader": 2, "unclean": True}}
    assert found(kill(0, "a"), kill(1, "b"), elect) == [(2, 1)]
    assert found(kill(0, "a"), kill(1, "b"), {"elect": {"expect": "refused"}}) == []


@pytest.mark.parametrize(
    ("name", "refused"),
    [("kip-101-double-failover", True), ("last-replica-loses-page-cache", True), ("acks-1-leader-dies", False)],
)
def test_shipped_schedules_are_known_to_need_controllers_of_their_own(name: str, *, refused: bool) -> None:
    scenario = load(name)
    steps = dict(enumerate(scenario.schedule or ()))
    assert bool(list(undecided(3, steps, dict(_coming(steps))))) is refused

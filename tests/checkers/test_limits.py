from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from checkers import check
from harness.facts import UNWATCHED_NS
from harness.targets.kafka.unobserved_time import UNSEEN_NS
from tests.checkers.cases import write
from tests.checkers.sampled_cases import LONG, see, who_was_not_looked_at_for_long_says_so
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import Story


def silence(story: Story, path: Path) -> list[str]:
    [verdict] = check([story.write(path / "r", guarantees=SAMPLED)], engine="reference")
    return [limit for limit in verdict.limits if "no sample was taken" in limit]


def test_a_timeline_tells_of_the_silences_that_are_asked_for() -> None:
    assert UNSEEN_NS == UNWATCHED_NS


def test_a_run_whose_brokers_were_always_looked_at_has_no_such_limit(tmp_path: Path) -> None:
    story = Story()
    write(story, 3)
    see(story)
    assert not silence(story, tmp_path)


def test_the_longest_time_without_a_look_is_told(tmp_path: Path) -> None:
    story = Story()
    write(story, 2)
    story.now += LONG
    write(story, 1)
    see(story)
    [said] = silence(story, tmp_path)
    assert re.match(r"For 10\.0 s at the longest .* \(node \d\); 3 times it was more than 5 s\.", said)


def test_what_the_timeline_itself_says_of_it_counts(tmp_path: Path) -> None:
    story = Story()
    who_was_not_looked_at_for_long_says_so(story)
    [said] = silence(story, tmp_path)
    assert re.match(r"For 7\.5 s at the longest .* \(node 1\); once it was more than 5 s\.", said)


@pytest.mark.parametrize(("told", "silences"), [(False, 0), (True, 1)])
def test_a_broker_that_a_fault_had_stopped_is_not_one_that_was_up_unless_the_timeline_says_so(
    tmp_path: Path, told: bool, silences: int
) -> None:
    story = Story()
    write(story, 2)
    story.now += LONG // 2
    story.fault(nodes=["0", "1", "2"])
    story.now += LONG // 2
    write(story, 1)
    see(story)
    if told:
        last = [row for row in story.timeline if row["kind"] == "state"][-1]
        last["detail"] = json.dumps({"unseen_ms": 6000})
    assert len(silence(story, tmp_path)) == silences

"""Whose the anomalies of share groups, and of users' programs, are."""

from __future__ import annotations

import pytest

from checkers.verdicts.memory import decided
from harness.checker import RunVerdict
from tests.attribution.all_stories import TOLD, told
from tests.attribution.trial import sides


def verdict(name: str) -> RunVerdict:
    story = told(name)
    tables = (story.history, story.collected(sampled=False), story.logs)
    return decided(story.manifest(), tables, story.faults, story.wire)


@pytest.mark.parametrize("name", TOLD)
def test_an_anomaly_is_put_down_to_another(name: str) -> None:
    _, kind, side = TOLD[name]
    assert sides(verdict(name)) == {kind: {side}}


def test_the_frames_of_an_anomaly_are_not_put_into_words() -> None:
    (anomaly,) = verdict("a_broker_gives_again_what_it_has_confirmed").anomalies
    assert anomaly.attribution is not None
    assert anomaly.attribution.why == (
        "A broker confirmed the accept of offset 0 by process 80; a broker gave process 81 offset 0 as delivery 1."
    )
    assert [frame.says for frame in anomaly.attribution.frames] == [
        "seawall-80 sent node 1 SHARE_ACKNOWLEDGE (accept of offset 0) and was answered after 0.2 ms: error 0",
        "seawall-81 sent node 1 SHARE_FETCH and was answered after 0.2 ms: error 0, offset 0 as delivery 1",
    ]

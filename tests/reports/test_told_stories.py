"""Stories of losses on a cluster that is known by what its clients were told."""

from __future__ import annotations

import re
from pathlib import Path

import reports
from checkers import check
from tests.checkers.answers import TOLD, answer, by_answers_alone
from tests.checkers.cases import lose_tail, write
from tests.checkers.story import Story


def page_of(story: Story, directory: Path) -> str:
    """The words of its report."""
    path = story.write(directory, guarantees=TOLD)
    check([path], engine="reference")
    return re.sub(r"<[^>]*>", "", reports.write(path).read_text())


def tell_of_a_loss(story: Story) -> None:
    write(story, 6)
    answer(story)
    lose_tail(story, 4)
    story.commit()
    answer(story)
    write(story, 3)
    story.finish()
    by_answers_alone(story)


def test_who_led_is_who_clients_were_told_to_lead(tmp_path: Path) -> None:
    story = Story("r")
    answer(story)
    tell_of_a_loss(story)
    page = page_of(story, tmp_path / "told")
    assert "(acks=all), with broker 0 leading, as clients were told." in page
    silent = Story("r")
    tell_of_a_loss(silent)
    assert "(acks=all), with no leader known." in page_of(silent, tmp_path / "silent")


def test_an_acknowledgement_that_names_no_offset_is_said_to_name_none(tmp_path: Path) -> None:
    story = Story("r")
    write(story, 4)
    story.send(acks=0)
    story.poll(900, range(5))
    for row in story.history:
        if row["f"] == "send" and row["type"] == "ok" and row["acks"] == 0:
            row["offset"] = None
    lose_tail(story, 4)
    story.commit()
    answer(story)
    write(story, 3)
    story.finish()
    by_answers_alone(story)
    page = page_of(story, tmp_path / "run")
    assert "at no offset (acks=0)" in page
    assert "offset None" not in page

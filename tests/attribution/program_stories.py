"""Stories of a user's program with the frames of a wire tap. Importing this module adds them to ``TOLD``.

Its program reads one partition as the client ``app`` and prints what it makes of each record, unless the story has a
topic for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.checker import Side
from tests.attribution.share_stories import Tapped, tapped
from tests.checkers.programs import put, reach
from tests.checkers.sharing import A

COUNT = 3
"""How many records the input has, and the program commits to have processed."""
LEFT_OUT = 1
"""The record that it does not put out."""


def fetched(story: Tapped, offset: int, asked: int | None = None, **said: Any) -> None:
    """A broker sent the program the record at an offset when it asked from ``asked``, None: from there."""
    batch = {"base_offset": offset, "end_offset": offset + 1, "batch_crc": offset, "records": 1, "batch": 0}
    known = {"client_id": "app", "error": 0, "offset": offset if asked is None else asked, **batch}
    story.row(process=A, f="crash", type="info", op=next(story.ops))
    story.frame("FETCH", A, story.now, **{**known, **said})


def in_group(story: Tapped, api: str, offset: int, **said: Any) -> None:
    """The program's group commits an offset, or the coordinator answers with one."""
    story.row(process=A, f="crash", type="info", op=next(story.ops))
    story.frame(api, A, story.now, **{"client_id": "app", "group": "program", "error": 0, "offset": offset, **said})


def begun(story: Tapped) -> None:
    """The input."""
    for _ in range(COUNT):
        story.send()


def ended(story: Tapped, values: Iterable[int] = (0, 2), *, told: int = COUNT, p: int | None = None) -> None:
    """The program has put out these values, and the coordinator is asked how far it has come; ``told``: its answer."""
    put(story, values, p=p)
    reach(story, COUNT)
    story.frame("OFFSET_FETCH", A, story.now, group="program", error=0, offset=told)
    story.finish()


@tapped("unprocessed", Side.BROKER)
def a_broker_passes_over_a_record_of_the_input(story: Tapped) -> None:
    begun(story)
    fetched(story, 0)
    fetched(story, 2, asked=1)
    in_group(story, "OFFSET_COMMIT", COUNT)
    ended(story)


@tapped("unprocessed", Side.CLIENT)
def a_program_does_not_print_what_it_was_sent(story: Tapped) -> None:
    begun(story)
    for offset in range(COUNT):
        fetched(story, offset)
    in_group(story, "OFFSET_COMMIT", COUNT)
    ended(story)


@tapped("unprocessed", Side.UNDECIDED)
def a_program_was_sent_what_its_output_topic_lacks(story: Tapped) -> None:
    begun(story)
    for offset in range(COUNT):
        fetched(story, offset)
    in_group(story, "OFFSET_COMMIT", COUNT)
    ended(story, p=0)


@tapped("unprocessed", Side.UNDECIDED)
def a_program_never_asks_for_a_record(story: Tapped) -> None:
    begun(story)
    fetched(story, 0)
    fetched(story, 2)
    in_group(story, "OFFSET_COMMIT", COUNT)
    ended(story)


@tapped("unprocessed", Side.UNDECIDED)
def a_broker_passes_over_a_record_that_it_had_sent(story: Tapped) -> None:
    begun(story)
    fetched(story, 0)
    fetched(story, LEFT_OUT)
    fetched(story, 2, asked=1)
    in_group(story, "OFFSET_COMMIT", COUNT)
    ended(story)


@tapped("unprocessed", Side.BROKER)
def a_coordinator_returns_a_commit_that_no_program_sent(story: Tapped) -> None:
    begun(story)
    for offset in range(COUNT):
        fetched(story, offset)
    in_group(story, "OFFSET_COMMIT", LEFT_OUT)
    ended(story)


@tapped("unprocessed", Side.BROKER)
def a_coordinator_sends_the_next_copy_of_a_program_too_far(story: Tapped) -> None:
    begun(story)
    fetched(story, 0)
    fetched(story, LEFT_OUT)
    in_group(story, "OFFSET_COMMIT", LEFT_OUT)
    in_group(story, "OFFSET_FETCH", LEFT_OUT + 1)
    fetched(story, 2)
    in_group(story, "OFFSET_COMMIT", COUNT)
    ended(story)


@tapped("unprocessed", Side.CLIENT)
def a_reader_of_commits_reports_one_that_it_was_not_told(story: Tapped) -> None:
    begun(story)
    fetched(story, 0)
    in_group(story, "OFFSET_COMMIT", LEFT_OUT)
    ended(story, told=LEFT_OUT)


@tapped("processed-twice", Side.CLIENT)
def a_program_prints_twice_what_it_was_sent_once(story: Tapped) -> None:
    begun(story)
    for offset in range(COUNT):
        fetched(story, offset)
    ended(story, (0, 1, 1, 2))


@tapped("processed-twice", Side.BROKER)
def a_broker_sends_a_program_a_record_again_without_being_asked(story: Tapped) -> None:
    begun(story)
    fetched(story, 0)
    fetched(story, 1)
    fetched(story, 1, asked=2)
    fetched(story, 2)
    ended(story, (0, 1, 1, 2))


@tapped("processed-twice", Side.UNDECIDED)
def a_program_asks_for_a_record_again(story: Tapped) -> None:
    begun(story)
    for offset in (0, 1, 1, 2):
        fetched(story, offset)
    ended(story, (0, 1, 1, 2))


@tapped("processed-twice", Side.UNDECIDED)
def an_output_topic_holds_a_record_twice(story: Tapped) -> None:
    begun(story)
    for offset in range(COUNT):
        fetched(story, offset)
    ended(story, (0, 1, 1, 2), p=0)


@tapped("made-up-output", Side.UNDECIDED)
def a_program_puts_out_what_was_never_sent(story: Tapped) -> None:
    begun(story)
    for offset in range(COUNT):
        fetched(story, offset)
    ended(story, (0, 1, 2, 999))

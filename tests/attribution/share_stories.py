"""Stories of share groups with the frames of a wire tap: no built-in broker has share groups, so these are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.checker import Side
from harness.history.run_directory import RunDirectory
from harness.history.schema import WIRE
from harness.model import CLIENTS
from tests.checkers.sharing import GROUP, LAST, LIMIT, WORKLOAD, A, B, acknowledge, acquire, drain
from tests.checkers.story import Row, Story

INVALID_RECORD_STATE = 121
_BLANK: Row = {column.name: None for column in WIRE.columns}
_STEP_NS = 1_000_000
"""The time between two rows of a story."""


class Tapped(Story):
    """A story of a run with a wire tap; each method adds the frames of the operation that the history has last."""

    def __init__(self, run: str = "r", partitions: int = 1) -> None:
        super().__init__(run, partitions)
        self.wire: list[Row] = []
        self.scenario = {"tap": True}
        self.workload = WORKLOAD

    def frame(self, api: str, process: int, end_ns: int, **said: Any) -> None:
        """A request of that time, which was answered before the row of that time was written."""
        known: Row = {
            "run": self.run, "node": 1, "connection": "1", "peer": CLIENTS, "client_id": f"seawall-{process}",
            "api": api, "version": 2, "correlation_id": len(self.wire), "request_ns": end_ns - _STEP_NS // 2,
            "response_ns": end_ns - _STEP_NS // 4, "topic": "ledger", "partition": 0,
        }  # fmt: skip
        self.wire.append({**_BLANK, **known, **said})

    def gave(self, process: int, offset: int, count: int = 1, **said: Any) -> None:
        """A broker gave a record to the consumer."""
        known = {"base_offset": offset, "end_offset": offset + 1, "delivery_count": count, "batch_crc": offset}
        at = self.history[-1]["time_ns"]
        self.frame("SHARE_FETCH", process, at, **{"group": GROUP, "error": 0, "acknowledge_error": 0, **known, **said})

    def took(
        self, process: int, offset: int, what: str, refusal: int = 0, *, api: str = "SHARE_ACKNOWLEDGE", **said: Any
    ) -> None:  # fmt: skip
        """A broker answered an acknowledgement; ``refusal``: with which error code."""
        known = {"base_offset": offset, "end_offset": offset + 1, "acknowledgement": what, "acknowledge_error": refusal}
        self.frame(api, process, self.history[-1]["time_ns"], **{"group": GROUP, **known, **said})

    def write(self, path: Path, **manifest: Any) -> Path:
        """The table of the tap, too."""
        super().write(path, **manifest)
        RunDirectory(path).write_table("wire", self.wire)
        return path

    def finish(self, *, read: bool = True) -> Story:
        """The frames of sends and of final reads, too."""
        super().finish(read=read)
        for row in self.logs:
            row["batch_crc"] = row["offset"]
        for row in self.history:
            place = {"base_offset": row["offset"], "batch_crc": row["offset"], "error": 0}
            if row["offset"] is not None and row["type"] == "ok" and row["f"] in ("send", "poll"):
                api = "PRODUCE" if row["f"] == "send" else "FETCH"
                self.frame(api, row["process"], row["time_ns"], end_offset=row["offset"] + 1, **place)
        return self


Tell = Callable[[Tapped], None]
TOLD: dict[str, tuple[Tell, str, Side]] = {}
"""By the name of the story: the story, the kind of anomaly that it has, and whose that is."""


def tapped(kind: str, side: Side) -> Callable[[Tell], Tell]:
    """Adds a story, which has one anomaly."""

    def register(tell: Tell) -> Tell:
        TOLD[tell.__name__] = (tell, kind, side)
        return tell

    return register


def told(name: str) -> Tapped:
    """The story of that name, to its end."""
    story = Tapped(name)
    TOLD[name][0](story)
    return story


def sent(story: Tapped) -> None:
    """One record, which the consumer A is given."""
    story.send()
    acquire(story, A, [(0, 0)])
    story.gave(A, 0)


def accepted(story: Tapped, sends: str | None = "accept", refusal: int = 0) -> None:
    """It reports that it has accepted the record, and that a broker has confirmed that; ``sends``: what it did send."""
    sent(story)
    acknowledge(story, A, [(0, 0, "accept")])
    if sends is not None:
        story.took(A, 0, sends, refusal)


def given_again(story: Tapped, **said: Any) -> None:
    """Another consumer is given it, and accepts it."""
    acquire(story, B, [(0, 0)], 1)
    story.gave(B, 0, **said)
    acknowledge(story, B, [(0, 0, "accept")])
    story.took(B, 0, "accept")


def ended(story: Tapped) -> None:
    """Another record, the drain, whose consumer is given it, and the end."""
    last = story.send()
    drain(story, [(last, last)])
    story.finish()


# ------------------------------------------------------------------------------------------------ what was confirmed


@tapped("lost-acknowledgement", Side.BROKER)
def a_broker_gives_again_what_it_has_confirmed(story: Tapped) -> None:
    accepted(story)
    given_again(story)
    ended(story)


@tapped("lost-acknowledgement", Side.BROKER)
def a_broker_gives_again_what_it_has_confirmed_in_a_fetch(story: Tapped) -> None:
    accepted(story, None)
    story.took(A, 0, "accept", api="SHARE_FETCH", error=6)
    given_again(story)
    ended(story)


@tapped("lost-acknowledgement", Side.CLIENT)
def a_consumer_releases_what_it_reports_as_accepted(story: Tapped) -> None:
    accepted(story, "release")
    given_again(story)
    ended(story)


@tapped("lost-acknowledgement", Side.CLIENT)
def a_consumer_reports_an_accept_that_it_did_not_send(story: Tapped) -> None:
    accepted(story, None)
    given_again(story)
    ended(story)


@tapped("lost-acknowledgement", Side.CLIENT)
def a_consumer_reports_an_accept_that_was_refused(story: Tapped) -> None:
    accepted(story, refusal=INVALID_RECORD_STATE)
    given_again(story)
    ended(story)


@tapped("lost-acknowledgement", Side.CLIENT)
def a_consumer_takes_the_answer_to_an_earlier_accept_for_its_own(story: Tapped) -> None:
    sent(story)
    story.took(A, 0, "accept")
    acknowledge(story, A, [(0, 0, "accept")])
    given_again(story)
    ended(story)


@tapped("lost-acknowledgement", Side.CLIENT)
def a_consumer_reports_a_record_that_it_was_not_given(story: Tapped) -> None:
    accepted(story)
    acquire(story, B, [(0, 0)])
    ended(story)


@tapped("lost-acknowledgement", Side.CLIENT)
def a_consumer_reports_a_record_that_was_given_without_its_bytes(story: Tapped) -> None:
    accepted(story)
    given_again(story, batch_crc=None)
    ended(story)


@tapped("lost-acknowledgement", Side.CLIENT)
def another_group_was_given_it(story: Tapped) -> None:
    accepted(story)
    given_again(story, group="share-1")
    ended(story)


@tapped("lost-acknowledgement", Side.UNDECIDED)
def an_acknowledgement_was_not_understood(story: Tapped) -> None:
    accepted(story, None)
    story.frame("SHARE_ACKNOWLEDGE", A, story.now, topic=None, partition=None, problem="a frame of 3 bytes")
    given_again(story)
    ended(story)


@tapped("lost-acknowledgement", Side.UNDECIDED)
def an_acknowledgement_names_a_topic_that_is_not_known(story: Tapped) -> None:
    accepted(story, None)
    story.took(A, 0, "accept", topic=None)
    given_again(story)
    ended(story)


# ------------------------------------------------------------------------------------------------- how often it came


def given_too_often(story: Tapped, count: int) -> None:
    story.send()
    acquire(story, A, [(0, 0)], LIMIT + 1)
    story.gave(A, 0, count)
    acknowledge(story, A, [(0, 0, "accept")])
    story.took(A, 0, "accept")
    ended(story)


@tapped("excess-delivery", Side.BROKER)
def a_broker_counts_beyond_the_limit(story: Tapped) -> None:
    given_too_often(story, LIMIT + 1)


@tapped("excess-delivery", Side.CLIENT)
def a_consumer_reports_another_count(story: Tapped) -> None:
    given_too_often(story, 1)


# ---------------------------------------------------------------------------------------------------- what never came


def gave_in_the_drain(story: Tapped, who: int) -> None:
    """A broker gives the record right after the drain has begun."""
    begun_ns = next(row["time_ns"] for row in story.history if row["f"] == "drain")
    story.gave(who, 0, request_ns=begun_ns + 1, response_ns=begun_ns + 2)


@tapped("withheld-record", Side.BROKER)
def a_broker_gives_a_record_to_no_consumer(story: Tapped) -> None:
    story.send()
    ended(story)


@tapped("withheld-record", Side.BROKER)
def a_broker_does_not_give_again_what_was_released(story: Tapped) -> None:
    sent(story)
    acknowledge(story, A, [(0, 0, "release")])
    story.took(A, 0, "release")
    ended(story)


@tapped("withheld-record", Side.BROKER)
def a_broker_refuses_an_accept_and_gives_no_more(story: Tapped) -> None:
    sent(story)
    story.took(A, 0, "accept", INVALID_RECORD_STATE)
    ended(story)


@tapped("withheld-record", Side.BROKER)
def a_consumer_that_has_gone_was_given_it_in_the_drain(story: Tapped) -> None:
    story.send()
    ended(story)
    gave_in_the_drain(story, B)


@tapped("withheld-record", Side.CLIENT)
def a_consumer_hides_what_it_accepts(story: Tapped) -> None:
    sent(story)
    story.history.pop()
    story.row(process=A, op=next(story.ops), type="ok", f="acquire", group=GROUP)
    story.took(A, 0, "accept")
    ended(story)


@tapped("withheld-record", Side.CLIENT)
def a_consumer_takes_a_record_for_a_gap(story: Tapped) -> None:
    sent(story)
    story.took(A, 0, "gap")
    ended(story)


@tapped("withheld-record", Side.CLIENT)
def the_last_consumer_hides_what_it_is_given(story: Tapped) -> None:
    story.send()
    story.now += 10**10
    ended(story)
    _, end = (row for row in story.history if row["f"] == "drain")
    end["time_ns"] += 10**10
    for row in story.history[end["index"] + 1 :]:
        row["time_ns"] += 10**10
    gave_in_the_drain(story, LAST)


@tapped("withheld-record", Side.UNDECIDED)
def the_last_consumer_may_not_have_come_to_what_it_was_given(story: Tapped) -> None:
    story.send()
    ended(story)
    gave_in_the_drain(story, LAST)

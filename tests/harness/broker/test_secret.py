from __future__ import annotations

import time
from io import BytesIO

import pytest

from harness.broker.secret import INTRODUCTION_BYTES, Secret

SECRET = Secret.draw()


def test_a_secret_is_not_received_as_it_was_told() -> None:
    with SECRET.told() as pipe:
        assert Secret.receive(pipe) == SECRET


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"00\n", b"no digits\n", b"\xff\n", SECRET.key.hex()[2:].encode() + b"\n"],
    ids=["nothing", "empty", "short", "no digits", "no text", "one byte short"],
)
def test_what_is_no_secret_is_taken_for_one(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (any: the caller says it in a sentence of its own)
        Secret.receive(BytesIO(line))


def test_a_secret_is_told_when_it_is_printed() -> None:
    assert SECRET.key.hex() not in f"{SECRET!r} {SECRET}"
    assert repr(SECRET.key) not in repr(SECRET)


def test_two_runs_share_a_secret_or_two_introductions_are_the_same() -> None:
    assert Secret.draw() != Secret.draw()
    assert SECRET.introduction("1", "0") != SECRET.introduction("1", "0")


def test_an_introduction_is_good_for_its_two_ends_and_for_listeners_that_are_older_than_it() -> None:
    before_ns = time.monotonic_ns()
    introduction = SECRET.introduction("1", "0")
    assert len(introduction) == INTRODUCTION_BYTES
    assert SECRET.knows(introduction, "1", "0", before_ns)
    assert not SECRET.knows(introduction, "1", "0", time.monotonic_ns() + 1)
    for ends in (("0", "1"), ("1", "2"), ("2", "0"), ("", "10"), ("10", "")):
        assert not SECRET.knows(introduction, *ends, before_ns)
    assert not Secret.draw().knows(introduction, "1", "0", before_ns)


@pytest.mark.parametrize("place", [0, 8, 24, INTRODUCTION_BYTES - 1])
def test_an_introduction_with_one_bit_changed_is_none(place: int) -> None:
    changed = bytearray(SECRET.introduction("1", "0"))
    changed[place] ^= 1
    assert not SECRET.knows(bytes(changed), "1", "0", 0)


def test_a_reply_is_to_one_introduction_and_of_the_one_that_was_called() -> None:
    introduction = SECRET.introduction("1", "0")
    reply = SECRET.reply(introduction, "1", "0")
    assert SECRET.is_reply(reply, introduction, "1", "0")
    assert not SECRET.is_reply(reply, SECRET.introduction("1", "0"), "1", "0")
    assert not SECRET.is_reply(reply, introduction, "1", "2")
    assert not SECRET.is_reply(introduction[-32:], introduction, "1", "0")
    assert not SECRET.is_reply(b"", introduction, "1", "0")

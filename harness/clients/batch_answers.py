"""Waits for the answers to the records of a batch, which a client library brings one by one."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from harness.client_ports import Answered
from harness.history.sends import Answer

_LOOK_S = 0.1
_UNKNOWN = Answer("info", error="_NO_DELIVERY_REPORT")

ItemT = TypeVar("ItemT")


def taken(arrived: queue.SimpleQueue[ItemT]) -> list[ItemT]:
    """What has come, after waiting for something a little."""
    items: list[ItemT] = []
    with suppress(queue.Empty):
        items.append(arrived.get(timeout=_LOOK_S))
        while True:
            items.append(arrived.get_nowait())
    return items


def awaited(
    count: int, news: Iterator[Mapping[int, Answer]], deadline: float, give_up: threading.Event, answered: Answered
) -> list[Answer]:
    """Pass the answers to ``count`` records on as they come; returns all, ``info`` where none came.

    Args:
        count: of the records.
        news: the answers that have come since, by the number of the record; it ends where no more can come.
        deadline: the time of :func:`time.monotonic` until which it waits.
        give_up: once it is set, it waits no longer.
        answered: see :class:`harness.client_ports.Producer`.
    """
    answers: dict[int, Answer] = {}
    while len(answers) < count and time.monotonic() < deadline and not give_up.is_set():
        new = next(news, None)
        if new is None:
            break
        answers.update(new)
        if new:
            answered(list(new), list(new.values()))
    missing = [index for index in range(count) if index not in answers]
    if missing:
        answered(missing, [_UNKNOWN] * len(missing))
    return [answers.get(index, _UNKNOWN) for index in range(count)]

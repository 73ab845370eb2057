"""Names records as people do: by the scenario's own name, or as a process's nth send.

A workload's value is the process's number in its upper bits and a counter in the lower 32. The value itself is in the
title of each name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup, escape

_SHIFT: Final = 32
_VALUES: Final = re.compile(r"(?:\bthe send of |\b)(?:[Vv]alues? )?(\d{10,19})\b")
"""A value in a sentence, with the words before it that its name replaces."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a run's records.

    Attributes:
        scheduled: by value, the names that the scenario gives.
        processes: those that have sent anything.
    """

    scheduled: Mapping[int, str]
    processes: Collection[int]

    def long(self, value: int | None) -> str:
        """``m4``, or ``process 7's 12th send``; the value itself where neither is known."""
        if value is None:
            return "unknown"
        if value in self.scheduled:
            return self.scheduled[value]
        send = self._send(value)
        return f"process {send[0]}'s {ordinal(send[1])} send" if send else str(value)

    def short(self, value: int | None) -> str:
        """``m4``, or ``p7·12``; the value itself where neither is known."""
        if value is None:
            return "-"
        if value in self.scheduled:
            return self.scheduled[value]
        send = self._send(value)
        return f"p{send[0]}·{send[1]}" if send else str(value)

    def title(self, value: int | None) -> str:
        """What stands behind a short name; empty where the name is the value."""
        name = self.long(value)
        if value is None or name == str(value):
            return ""
        send = self._send(value)
        sent = f"process {send[0]}'s {ordinal(send[1])} send, " if send and value in self.scheduled else ""
        return f"{sent}value {value}" if value in self.scheduled else f"{name}, value {value}"

    def chip(self, value: int | None) -> Markup:
        """The short name, with what stands behind it as its title."""
        title = self.title(value)
        if not title:
            return escape(self.short(value))
        return Markup('<span class="record" title="{}">{}</span>').format(title, self.short(value))

    def words(self, sentence: str) -> Markup:
        """A sentence, escaped, with the names of the records for their values."""
        pieces, end = [], 0
        for found in _VALUES.finditer(sentence):
            value = int(found[1])
            if title := self.title(value):
                name = self.long(value)
                starts = found.start() == 0 or sentence[: found.start()].endswith(". ")
                name = f"{name[0].upper()}{name[1:]}" if starts and value not in self.scheduled else name
                name = f"{'Record ' if starts else 'record '}{name}" if value in self.scheduled else name
                pieces += [escape(sentence[end : found.start()]), _chip(title, name)]
                end = found.end()
        return Markup("").join([*pieces, escape(sentence[end:])])

    def plain(self, sentence: str) -> str:
        """As :meth:`words`, without markup: for titles."""
        return self.words(sentence).striptags() if _VALUES.search(sentence) else sentence

    def _send(self, value: int) -> tuple[int, int] | None:
        process, number = value >> _SHIFT, value % (1 << _SHIFT)
        return (process, number + 1) if process > 0 and process in self.processes else None


NO_NAMES: Final = Names({}, ())
"""Where no record has a name."""


def _chip(title: str, name: str) -> Markup:
    return Markup('<span class="record" title="{}">{}</span>').format(title, name)


def scheduled(schedule_log: Mapping[str, Any]) -> Mapping[int, str]:
    """By value, the names in ``schedule_log.json``."""
    return {value: name for known in schedule_log.get("values", {}).values() for name, value in known.items()}


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{last}"

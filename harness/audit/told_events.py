"""The file in which operators tell an audit of events: which of them are to be answered, and which lines cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.audit.clock import as_text
from harness.audit.journal import Journal
from harness.audit.leaders import Event, told
from harness.audit.result import Answered
from harness.errors import EnvironmentFault, UsageError


class ToldEvents:
    """Follows the file. It is written by hand, so that nothing that is in it ends an audit.

    Attributes:
        passed_over: what is no event in it, and why, a sentence each.
        waiting: which events may not have happened yet, a sentence each.
    """

    def __init__(self, journal: Journal, given: Iterable[Answered]) -> None:
        self._journal = journal
        self._answered: set[tuple[str, str]] = set()
        self.passed_over: Sequence[str] = ()
        self.waiting: Sequence[str] = ()
        self.note(given)

    def due(self, now_ns: int) -> list[Event]:
        """Read the file: the events that have surely happened by now, and were not answered."""
        found: dict[Event, None] = {}
        passed_over, waiting = [], []
        try:
            lines = self._journal.told()
        except EnvironmentFault as refused:
            lines, passed_over = [], [str(refused)]
        for line in lines:
            try:
                event = told(line)
            except UsageError as refused:
                passed_over.append(f"Passed over in the events that operators tell: {refused}")
                continue
            if event.until_ns > now_ns:
                after = as_text(event.until_ns)
                waiting.append(f"{event.at} {event.what}: the first window that is read after {after} answers it.")
            elif (event.what, event.at) not in self._answered:
                found[event] = None
        self.passed_over, self.waiting = list(dict.fromkeys(passed_over)), list(dict.fromkeys(waiting))
        return list(found)

    def note(self, given: Iterable[Answered]) -> None:
        """These answers are written down."""
        self._answered.update((one.event, one.at) for one in given if one.told)

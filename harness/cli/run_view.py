"""Shows what a run does now in two lines: phase and faults; acknowledged, errors, leaders and ISRs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from harness.model import NO_LEADER
from harness.runner.run_progress import RunProgress, RunStatus

_RATE_OVER_NS = 3_000_000_000
_WIDE = 110
"""From how many columns on there is room for totals and more names."""


class RunView:
    """The status line of one run after the other."""

    def __init__(self) -> None:
        self._progress: RunProgress | None = None
        self._samples: deque[RunStatus] = deque()

    def watch(self, progress: RunProgress) -> None:
        """Show ``progress`` from now on; see :data:`harness.runner.run_progress.Watch`."""
        self._samples.clear()
        self._progress = progress

    def __call__(self) -> RenderableType:
        """The lines now; nothing before the first run."""
        if (progress := self._progress) is None:
            return Text()
        status = progress.look()
        self._samples.append(status)
        while len(self._samples) > 2 and status.time_ns - self._samples[1].time_ns >= _RATE_OVER_NS:
            self._samples.popleft()
        return RunLines(status, self._samples[0], progress.replicas)


@dataclass(frozen=True, slots=True)
class RunLines:
    """Two lines, as wide as the terminal.

    Attributes:
        before: an earlier status, since which rates are computed.
        replicas: by topic, the number of replicas of each partition.
    """

    status: RunStatus
    before: RunStatus
    replicas: Mapping[str, int]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        wide = options.max_width >= _WIDE
        yield _joined([Text(_phase(self.status), "bold"), _faults(self.status)])
        if not self.status.is_up:
            return
        rates = [self._acknowledged(wide), self._errors(wide)]
        known = [_leaders(self.status), self._isrs(3 if wide else 1)] if self.status.leaders else []
        yield _joined([*rates, *known])

    def _acknowledged(self, wide: bool) -> Text:
        rate = self._rate(self.status.acknowledged - self.before.acknowledged)
        total = f" ({self.status.acknowledged:,})" if wide else ""
        return Text(f"{rate:,.0f} acked/s{total}", "green" if rate >= 1 else "yellow")

    def _errors(self, wide: bool) -> Text:
        rate = self._rate(self.status.errors - self.before.errors)
        total = f" ({self.status.errors:,})" if wide else ""
        return Text(f"{rate:,.0f} errors/s{total}", "red" if rate >= 1 else "")

    def _rate(self, number: int) -> float:
        seconds = (self.status.time_ns - self.before.time_ns) / 1e9
        return number / seconds if seconds > 0 else 0.0

    def _isrs(self, named: int) -> Text:
        """The partitions whose ISR lacks replicas, by the size of the ISR, smallest first."""
        short: dict[tuple[int, int], list[str]] = {}
        for name, one in sorted(self.status.leaders.items()):
            size, of = len(one.isr), self.replicas.get(name.topic, 0)
            if size < of:
                short.setdefault((size, of), []).append(str(name))
        if not short:
            return Text("ISRs full", "green")
        sizes = [f"{size}/{of}: {_some(names, named)}" for (size, of), names in sorted(short.items())]
        return Text(f"ISR {'; '.join(sizes)}", "yellow")


def _phase(status: RunStatus) -> str:
    if status.step is not None:
        number, of, kind = status.step
        return f"step {number} of {of}: {kind}"
    if status.lasts_s is None:
        return f"{status.phase}, {status.phase_s:.0f} s"
    left_s = status.lasts_s - status.phase_s
    return f"{status.phase}, {left_s:.0f} s left" if left_s > 0 else f"last {status.phase}, {-left_s:.0f} s over"


def _faults(status: RunStatus) -> Text:
    if not status.faults:
        return Text("no fault in force", "dim")
    named = [f"{name} {kind} {_together(nodes)}".rstrip() for name, kind, nodes in status.faults]
    return Text(f"in force: {', '.join(named)}", "yellow")


def _together(nodes: Sequence[str]) -> str:
    return "+".join(nodes) if len(nodes) <= 3 else f"of {len(nodes)} nodes"


def _leaders(status: RunStatus) -> Text:
    led = Counter(one.leader for one in status.leaders.values() if one.leader != NO_LEADER)
    shares = [f"{number} on {node}" for node, number in sorted(led.items())]
    without = sorted(str(name) for name, one in status.leaders.items() if one.leader == NO_LEADER)
    text = Text(f"leaders {', '.join(shares)}" if shares else "")
    if without:
        text.append(f"{', ' if shares else ''}no leader of {_some(without, 1)}", "red")
    return text


def _some(names: Sequence[str], named: int) -> str:
    more = len(names) - named
    return ", ".join(names[:named]) + (f" and {more} more" if more > 0 else "")


def _joined(parts: Iterable[Text]) -> Text:
    """One line, cut off at the terminal's edge."""
    line = Text(" · ", "dim").join(parts)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line

"""What all lanes of a strip share: the window of time, the x axis, and which colour is whose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from reports.scale import Scale, Window
from reports.svg import tag

WIDTH: Final = 1200
"""Of a strip, in pixels, gutters included."""
LEFT: Final = 156
"""Where the time axis begins; left of it stand the lanes' names."""
RIGHT: Final = 1116
"""Where the time axis ends; right of it stand direct labels."""
GLYPH: Final = 6.3
"""The width of a character of the labels, in pixels, near enough to tell whether a label fits."""


PAUSED: Final = "paused"
STARTING: Final = "starting"


class Outage(NamedTuple):
    """A stretch in which a broker did not run; ``word`` says why: killed, lost power, paused, starting ..."""

    node: int
    start_ns: int
    end_ns: int
    word: str

    @property
    def is_alive(self) -> bool:
        """Whether its process was there all the same."""
        return self.word in (PAUSED, STARTING)


def ends(starts_ns: Sequence[int], until_ns: int) -> Sequence[int]:
    """When stretches end that follow on each other: where the next one starts, the last one at ``until_ns``."""
    return [max(start, end) for start, end in zip(starts_ns, [*starts_ns[1:], until_ns], strict=False)]


class Lane(NamedTuple):
    """A drawn lane: its name, its height in pixels, and its body with y from 0 downward.

    Attributes:
        body: what lies on the time axis, and moves with it.
        gutter: the names of rows and lines, left and right of the axis.
    """

    name: str
    height: float
    body: Markup
    gutter: Markup = Markup("")


@dataclass(frozen=True, slots=True)
class Frame:
    """The x axis of a strip and the order of the brokers, which decides their colours.

    Attributes:
        bins: how many points or ticks a line or a row may have across the whole width.
    """

    window: Window
    brokers: Sequence[int]
    bins: int

    def x(self, time_ns: int) -> float:
        """Where an instant lies, held within the axis."""
        return Scale(self.window.start_ns, self.window.end_ns, LEFT, RIGHT).at(time_ns)

    def colour(self, broker: int | None) -> str:
        """The CSS class of a broker's colour; ``none`` for -1, None and strangers."""
        return f"b{self.brokers.index(broker) % 8}" if broker in self.brokers else "none"

    def bar(self, start_ns: int, end_ns: int, y: float, height: float, *, class_: str, title: str = "") -> Markup:
        """A bar from one instant to another, at least a pixel wide so that nothing short disappears."""
        left, right = self.x(start_ns), self.x(end_ns)
        return tag("rect", title=title, x=left, y=y, width=max(1.0, right - left), height=height, class_=class_)

    def span(self, start_ns: int, end_ns: int) -> str:
        """Two instants in words: ``1.000 s to 2.000 s``."""
        return f"{self.window.seconds(start_ns)} to {self.window.seconds(end_ns)}"

    def fits(self, words: str, start_ns: int, end_ns: int) -> bool:
        """Whether a label fits between two instants."""
        return len(words) * GLYPH + 4 <= self.x(end_ns) - self.x(start_ns)

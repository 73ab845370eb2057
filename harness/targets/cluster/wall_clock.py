"""Reads the wall clock of a node of a running cluster, beside the time since the boot of its machine.

A way to a node may take longer than a small step of its clock. The time since the boot, which no step of a wall clock
moves, is therefore read on the node, before and after the wall clock: how far two readings differ does not depend on
the way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from harness.errors import EnvironmentFault
from harness.targets.cluster.shell import run

NOW = "now"
"""The command that prints the time."""

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""A file with the same words for all whose kernel, and so whose machine's clock, is the same."""

OFF_MS = 1_000
"""How far the clock of a node may be off this machine's for its clock to be right."""

MOST_UNSURE_MS = 125
"""The greatest error of a reading, in milliseconds: two of them make up the tolerance of the fault's proof."""

_TRIES = 5
_UPTIME_UNIT_MS = 10
_NS_PER_MS = 1_000_000

_BESIDE_UPTIME = f"""\
read -r boot <{BOOT_ID} && read -r before _ </proc/uptime || exit
now=$(
%s
) || exit
read -r after _ </proc/uptime
echo "$boot $before $after $now"
"""


class ClockReading(NamedTuple):
    """A wall clock, once read.

    Attributes:
        boot: the id of the boot of the machine on which the command ran.
        at_boot_ms: the wall clock minus the time since that boot.
        unsure_ms: how far ``at_boot_ms`` may be off.
        off_ms: the wall clock minus this machine's.
        off_unsure_ms: how far ``off_ms`` may be off: half of the round trip.
    """

    boot: str
    at_boot_ms: int
    unsure_ms: int
    off_ms: int
    off_unsure_ms: int

    @property
    def is_right(self) -> bool:
        """Whether it may agree with this machine's clock."""
        return abs(self.off_ms) <= OFF_MS + self.off_unsure_ms

    def moved_ms(self, before: ClockReading) -> int:
        """How far the clock was moved since another reading; after a reboot this machine's clock has to tell that."""
        if self.boot == before.boot:
            return self.at_boot_ms - before.at_boot_ms
        return self.off_ms - before.off_ms


def beside_uptime(command: str) -> str:
    """The script that runs the command :data:`NOW` and prints what :func:`clock_by` reads."""
    return _BESIDE_UPTIME % command


def clock_by(command_line: Sequence[str], node: str) -> ClockReading:
    """The wall clock of a node, by a command line with :func:`beside_uptime`.

    Raises:
        EnvironmentFault: the node cannot be asked, prints no time, or takes too long for it every time.
    """
    least = None
    for _ in range(_TRIES):
        reading = _read(command_line, node)
        if reading.unsure_ms <= MOST_UNSURE_MS:
            return reading
        least = min(least or reading.unsure_ms, reading.unsure_ms)
    raise EnvironmentFault(
        f"node {node}: command {NOW!r} ran for {2 * (least or 0)} ms or longer, {_TRIES} times, so that its clock is "
        f"not known to {MOST_UNSURE_MS} ms.",
        "Have a program print the time that starts faster.",
    )


def own_at_boot_ms() -> int:
    """The wall clock of this process minus the time since the boot of its machine, in milliseconds."""
    return (time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // _NS_PER_MS


def _read(command_line: Sequence[str], node: str) -> ClockReading:
    before_ns = time.time_ns()
    ran = run(command_line)
    after_ns = time.time_ns()
    if ran.status:
        raise EnvironmentFault(f"node {node}: command {NOW!r} failed, {ran.in_words}.")
    try:
        boot, before, after, said = ran.printed.split()
        wall_ms, uptimes_ms = int(said), [round(1000 * float(uptime)) for uptime in (before, after)]
    except ValueError:
        said = " ".join(ran.printed.split()[3:])[:40]
        raise EnvironmentFault(
            f"node {node}: command {NOW!r} printed {said!r}, no milliseconds since the epoch."
        ) from None
    return ClockReading(
        boot,
        at_boot_ms=wall_ms - sum(uptimes_ms) // 2,
        unsure_ms=(uptimes_ms[1] - uptimes_ms[0]) // 2 + _UPTIME_UNIT_MS,
        off_ms=wall_ms - (before_ns + after_ns) // 2 // _NS_PER_MS,
        off_unsure_ms=(after_ns - before_ns) // 2 // _NS_PER_MS,
    )

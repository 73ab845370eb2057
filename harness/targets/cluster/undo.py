"""Undoes what was done to nodes of a running cluster, in the run and after a seawall that was killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.client_properties import PLAINTEXT, Access
from harness.errors import EnvironmentFault, UsageError
from harness.property_file import read_properties
from harness.targets.awaiting import await_that
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.target import accepts
from harness.targets.cluster.commanded_node import CommandedNode, ProcessState, state_by
from harness.targets.cluster.shell import run
from harness.targets.cluster.wall_clock import NOW, clock_by

NAME = "cluster"

START_TIMEOUT_S = 120.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Harm:
    """Something that was done to a node, as plain data for the journal.

    Attributes:
        what: in words, such as ``pause of node 1``.
        node: the name of the node whose command undoes it.
        undo: the command line that undoes it.
        look: the command line that prints the node's process, for a harm of that; empty: of links.
        wants_awake: whether the process is to go on, instead of to exist.
        listener: where clients reach the broker that ended, as ``host:port``; empty: the node is none, or did not end.
        client: the path of the file of client properties; None: there is none.
        stop: the command line that then asks the node to shut down, so that it can be started again; empty: it goes on.
        process: the command line that prints which process that ends.
        clock: the command line that prints the node's clock, for a harm of that.
    """

    what: str
    node: str
    undo: Sequence[str]
    look: Sequence[str] = ()
    wants_awake: bool = False
    listener: str = ""
    client: str | None = None
    stop: Sequence[str] = ()
    process: Sequence[str] = ()
    clock: Sequence[str] = ()

    def is_undone(self) -> bool:
        """Whether the node's process shows nothing of it. Raises as :func:`state_by`."""
        return bool(self.look) and self._is_well(state_by(self.look, self.node))

    def await_broker(self) -> None:
        """Wait until the broker answers Metadata with its own id, so that the cluster has it again.

        Raises:
            EnvironmentFault: it did not within ``START_TIMEOUT_S``, or its client properties cannot be read.
        """
        if not self.listener:
            return
        late = f"node {self.node} has not come up"
        try:
            access = Access(self.listener, PLAINTEXT if self.client is None else read_properties(Path(self.client)))
        except UsageError as problem:
            raise EnvironmentFault(f"whether {late} is not known: {problem.sentence}") from None
        await_that(lambda: self._answers(access), late, (), START_TIMEOUT_S, _POLL_S)

    def require_right_clock(self) -> None:
        """Refuse a clock that is still wrong; one that cannot be read, as its node may be away, is not known to be.

        Raises:
            EnvironmentFault: it is.
        """
        if not self.clock:
            return
        try:
            now = clock_by(self.clock, self.node)
        except EnvironmentFault:
            return
        if not now.is_right:
            why = f"its command ended with 0, and the clock is {now.off_ms:+d} ms off this machine's"
            raise EnvironmentFault(f"the {self.what} is not undone: {why}.")

    def _answers(self, access: Access) -> bool:
        with suppress(EnvironmentFault):
            process = state_by(self.look, self.node)
            if process is None or process.is_paused or not accepts(self.listener):
                return False
            return int(self.node) in Administration(access).brokers()
        return False

    def _is_well(self, process: ProcessState | None) -> bool:
        if self.wants_awake:
            return process is None or not process.is_paused
        return process is not None


def of_pause(node: CommandedNode) -> Harm:
    """A pause."""
    return Harm(
        f"pause of node {node.name}", node.name, node.command_line("resume"), node.state_line(), wants_awake=True
    )


def of_end(node: CommandedNode, listener: str = "", client: str | None = None) -> Harm:
    """The end of its process, ordered or not; the last two as in :class:`Harm`."""
    what, start = f"end of node {node.name}", node.command_line("start")
    return Harm(what, node.name, start, node.state_line(), listener=listener, client=client)


def of_cut(source: CommandedNode, destination: CommandedNode) -> Harm:
    """The cut of a link, which its destination makes."""
    what = f"cut {source.name}->{destination.name}"
    return Harm(what, destination.name, destination.command_line("mend", source))


def of_full_disk(node: CommandedNode) -> Harm:
    """What fills the disk of its data, which a broker may do without until it is started again."""
    what, free = f"full disk of node {node.name}", node.command_line("free")
    return Harm(what, node.name, free, stop=node.command_line("stop"), process=node.state_line())


def of_skew(node: CommandedNode) -> Harm:
    """A clock that is wrong; a broker that was misled by it may have to be started again."""
    what, unskew = f"skewed clock of node {node.name}", node.command_line("unskew")
    stop = node.command_line("stop" if node.has("stop") else "kill")
    return Harm(what, node.name, unskew, stop=stop, process=node.state_line(), clock=node.command_line(NOW))


def undo(harm: Harm, started: Callable[[int], None] | None = None) -> bool:
    """Undo it, unless its node shows nothing of it; returns whether something was to be done.

    ``started`` is as of :func:`harness.targets.cluster.shell.run`.

    Raises:
        EnvironmentFault: the command failed, or had no effect.
    """
    if harm.is_undone():
        return False
    ran = run(harm.undo, started)
    if ran.status:
        raise EnvironmentFault(f"the {harm.what} is not undone: its command failed, {ran.in_words}.")
    harm.require_right_clock()
    deadline = time.monotonic() + START_TIMEOUT_S
    while harm.look and not harm.is_undone():
        if time.monotonic() >= deadline:
            raise EnvironmentFault(f"the {harm.what} is not undone: its command ended with 0, and did nothing.")
        time.sleep(_POLL_S)
    return True


def undo_wholly(harm: Harm, started: Callable[[int], None] | None = None) -> bool:
    """Undo it as :func:`undo` does, and end the node that would not be whole without a start, which is another harm's.

    Raises:
        EnvironmentFault: as :func:`undo`; or the node has not shut down.
    """
    was_undone = undo(harm, started)
    before = state_by(harm.process, harm.node) if harm.stop else None
    if before is not None:
        run(harm.stop, started)
        late = f"node {harm.node} has not shut down"
        await_that(lambda: _is_another(state_by(harm.process, harm.node), before), late, (), START_TIMEOUT_S, _POLL_S)
    return was_undone


def _is_another(now: ProcessState | None, before: ProcessState) -> bool:
    return now is None or not now.is_the_same(before)


def remove(what: Mapping[str, Any]) -> Sequence[str]:
    """Undo what a journal has; see :class:`harness.targets.leftovers.Leftovers`."""
    harm = Harm(**what)
    try:
        was_undone = undo_wholly(harm)
        harm.await_broker()
    except EnvironmentFault as problem:
        raise EnvironmentFault(f"the {harm.what} may last: {problem.sentence}", problem.remedy) from None
    return [harm.what] if was_undone else []

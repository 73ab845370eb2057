"""The target that is a running cluster: clients reach it by its addresses, and faults its nodes by commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.controls import DiskSpace
from harness.errors import EnvironmentFault, NoSuchProbe
from harness.history.blocks import Block
from harness.model import CONTROLLER, Link, is_broker, node_name
from harness.target import ClusterView, Ending, Receipt
from harness.targets.awaiting import await_that
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.broker_numbers import BrokerNumbers
from harness.targets.bootstrap.metadata_sampler import Latest, MetadataClient, MetadataSampler
from harness.targets.bootstrap.spelling import Named
from harness.targets.bootstrap.target import BootstrapTarget, accepts
from harness.targets.cluster.commanded_node import FULL, NEEDED, WRITTEN, CommandedNode, ProcessState
from harness.targets.cluster.copied_logs import CopiedLogs
from harness.targets.cluster.node_clocks import NodeClocks
from harness.targets.cluster.undo import (
    NAME,
    Harm,
    of_cut,
    of_end,
    of_full_disk,
    of_pause,
    of_skew,
    undo,
    undo_wholly,
)
from harness.targets.leftovers import StartJournal

_SHUT_DOWN_TIMEOUT_S = 60.0
_POLL_S = 0.1


class ClusterTarget(BootstrapTarget):
    """Implements :class:`harness.target.Target`, and of :mod:`harness.controls` what there are commands for.

    Args:
        cluster: its addresses, and how clients use it.
        nodes: every node.
        configs: what the topics of the run are created with.
        journal: records what has to be undone, before it is done.
        sampler: as of :class:`harness.targets.bootstrap.target.BootstrapTarget`.
        directory: for copies of the brokers' logs; None: they are not read.
    """

    name = NAME

    def __init__(
        self,
        cluster: Named,
        nodes: Iterable[CommandedNode],
        configs: Mapping[str, str],
        journal: StartJournal,
        sampler: MetadataSampler | None = None,
        *,
        directory: Path | None = None,
    ) -> None:
        super().__init__(cluster, configs, journal, sampler)
        described = {node.name: node for node in nodes}
        numbers = BrokerNumbers(int(name) for name in described if is_broker(name))
        self._names = {name: node_name(numbers.of(int(name))) if is_broker(name) else name for name in described}
        self._nodes = {self._names[name]: node for name, node in described.items()}
        self.controls = controls_of(self._nodes.values())
        self._listeners: Mapping[str, str] = {}
        self._harms: dict[str, Harm] = {}
        self._recorded: dict[str, Harm] = {}
        self._killed: dict[str, ProcessState] = {}
        self._shut_down: dict[str, ProcessState] = {}
        self._filled: set[str] = set()
        self._clocks = NodeClocks(self._nodes)
        self._skewed: set[str] = set()
        self._logs = None if directory is None else CopiedLogs(self._nodes, directory)

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """See :class:`harness.target.Target`: every node that can be looked at has to run."""
        super().start()
        listeners = self._administration.listeners()
        self._listeners = {self._names[broker]: at for broker, at in listeners.items() if broker in self._names}
        for name, node in self._nodes.items():
            if node.has("pid") and not (running := self.is_running(name)).holds:
                raise EnvironmentFault(f"{running.seen}, before anything was done to it.")
        if self._logs is not None:
            self._logs.try_it()

    def stop(self) -> None:
        """See :class:`harness.target.Target`: undoes what no fault has undone, too."""
        for harm in sorted(self._harms.values(), key=lambda one: not one.stop):
            with suppress(EnvironmentFault):
                undo_wholly(harm, partial(self._note, harm))
                del self._harms[harm.what]
                self._forget(harm)
        super().stop()

    def remains(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return [*self._harms, *super().remains()]

    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return sorted(self._nodes, key=lambda name: (not is_broker(name), int(name) if is_broker(name) else 0))

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`: Metadata does not name a controller that is no broker."""
        view = super().view()
        return replace(view, controller=CONTROLLER, controllers=(CONTROLLER,)) if CONTROLLER in self._nodes else view

    # ------------------------------------------------------------------------------------------------ evidence

    def metadata(self, run: str) -> Iterable[dict[str, Any]]:
        """See :class:`harness.observations.TellsClients`: and how each replica ended, by the files of its disk."""
        yield from super().metadata(run)
        if self._logs is not None:
            yield from self._logs.ends(run)

    def read_logs(self) -> None:
        """See :class:`harness.observations.ShowsLogs`."""
        if self._logs is not None:
            partitions = {name: at for name, at in self.view().partitions.items() if name.topic in self._used}
            told = MetadataClient(self._cluster.access).latest(list(partitions))
            known = {name: answer.high_watermark for name, answer in told.items() if isinstance(answer, Latest)}
            of_broker = {
                node: {name: known[name] for name in known if node in map(node_name, partitions[name].replicas)}
                for node in self._nodes
            }
            self._logs.copy(self._used, of_broker)

    def replica_logs(self) -> Iterable[Block]:
        """See :class:`harness.observations.ShowsLogs`."""
        return () if self._logs is None else self._logs.blocks()

    # ------------------------------------------------------------------------------------------------ processes

    def is_running(self, node: str) -> Receipt:
        """See :class:`harness.observations.NodeStates`.

        A node that was killed or shut down runs again when it was seen to answer: a supervisor may have started it.
        """
        if node in self._killed or node in self._shut_down:
            return Receipt(False, f"node {node} was ended, and not yet started again")
        process = self._nodes[node].state()
        if process is None:
            return Receipt(False, f"node {node} has no process")
        if process.is_paused:
            return Receipt(False, f"node {node}: process {process.pid} is stopped")
        if not self._accepts(node):
            return Receipt(False, f"node {node}: process {process.pid} exists, and its address accepts no connection")
        return Receipt(True, f"node {node} runs, as process {process.pid}")

    def kill(self, node: str) -> None:
        """See :class:`harness.controls.Kills`."""
        self._end(node, "kill", self._killed)

    def is_dead(self, node: str) -> Receipt:
        """See :class:`harness.controls.Kills`: the process is gone, and no broker answers at its address.

        One that a supervisor has started in its place is another process.
        """
        return self._has_ended(node, self._killed, "killed")

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Kills`."""
        harm = self._end_of(node)
        undo(harm, partial(self._note, harm))
        harm.await_broker()
        self._killed.pop(node, None)
        self._shut_down.pop(node, None)
        if node in self._filled and (full := of_full_disk(self._nodes[node])).what not in self._harms:
            self._filled.discard(node)
            self._forget(full)
        self._owe_no_start(node)

    def pause(self, node: str) -> None:
        """See :class:`harness.controls.Pauses`."""
        self._harm(of_pause(self._nodes[node]), self._nodes[node], "pause")

    def is_paused(self, node: str) -> Receipt:
        """See :class:`harness.controls.Pauses`: its process is stopped, and no broker answers at its address."""
        process = self._nodes[node].state()
        if process is None:
            return Receipt(False, f"node {node} has no process")
        seen = f"node {node}: process {process.pid} is in state {process.state}"
        if process.is_paused and self._answers(node):
            return Receipt(False, f"{seen}, and a broker answers at its address")
        return Receipt(process.is_paused, seen)

    def resume(self, node: str) -> None:
        """See :class:`harness.controls.Pauses`."""
        self._undo(of_pause(self._nodes[node]))

    def shut_down(self, node: str) -> None:
        """See :class:`harness.controls.Shutdowns`."""
        self._end(node, "stop", self._shut_down)
        await_that(
            lambda: self._is_seen_shut_down(node), f"node {node} has not shut down", (), _SHUT_DOWN_TIMEOUT_S, _POLL_S
        )

    def is_shut_down(self, node: str) -> Receipt:
        """See :class:`harness.controls.Shutdowns`; with which status it has ended is not known."""
        return self._has_ended(node, self._shut_down, "asked to shut down")

    def _is_seen_shut_down(self, node: str) -> bool:
        """Whether it is; a container that has ended cannot be looked into until another is in its place."""
        with suppress(EnvironmentFault):
            return self.is_shut_down(node).holds
        return False

    def has_exited(self, node: str) -> Receipt:
        """See :class:`harness.observations.NodeStates`: why a node has ended is not known."""
        return Receipt(False, f"node {node}: why it has ended, if it has, is not seen")

    def endings(self) -> Sequence[Ending]:
        """See :class:`harness.observations.NodeStates`: none is seen."""
        return ()

    def takes_writes(self, node: str) -> Receipt:
        """See :class:`harness.observations.NodeStates`."""
        if self._nodes[node].missing(DiskSpace) is not None:
            raise NoSuchProbe(f"the disk of node {node} is not looked at.")
        said = self._nodes[node].disk()
        return Receipt(said == WRITTEN, f"node {node}: 64 KiB beside its data: {said}")

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.observations.NodeStates`: that is not known.

        So the end of a node whose disk was not filled proves nothing.

        Raises:
            EnvironmentFault: it is such a node, and has ended.
        """
        del log_dir
        if node not in self._filled and not self.is_running(node).holds:
            raise EnvironmentFault(f"node {node}: why it does not answer is not seen.")
        return Receipt(False, f"node {node}: what its program says of its disk is not seen")

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """See :class:`harness.observations.NodeStates`.

        That is not known: since a disk was full, a broker may do without what is on it until it is started again.
        """
        return [0] if node in self._filled else ()

    def _end(self, node: str, command: str, ended: dict[str, ProcessState]) -> None:
        process = self._nodes[node].state()
        if process is None:
            raise EnvironmentFault(f"node {node} has no process.")
        ended[node] = process
        self._harm(self._end_of(node), self._nodes[node], command)

    def _end_of(self, node: str) -> Harm:
        path = self._cluster.client.path
        client = None if path is None else str(path)
        return of_end(self._nodes[node], self._listeners.get(node, ""), client)

    def _owe_no_start(self, node: str) -> None:
        """Forget that the node may have to be started, unless what was done to it still takes that."""
        if not any(node in ended for ended in (self._killed, self._shut_down, self._filled, self._skewed)):
            end = self._end_of(node)
            self._harms.pop(end.what, None)
            self._forget(end)

    def _has_ended(self, node: str, ended: Mapping[str, ProcessState], how: str) -> Receipt:
        if (was := ended.get(node)) is None:
            return Receipt(False, f"node {node} was not {how}")
        now = self._nodes[node].state()
        if now is not None and now.is_the_same(was):
            return Receipt(False, f"node {node}: process {was.pid} exists, in state {now.state}")
        if now is not None:
            return Receipt(True, f"node {node}: process {was.pid} is gone, and {now.pid} runs in its place")
        if self._answers(node):
            return Receipt(False, f"node {node}: process {was.pid} is gone, and a broker answers at its address")
        return Receipt(True, f"node {node}: process {was.pid} is gone, and none is in its place")

    def _answers(self, node: str) -> bool:
        """Whether a broker answers Metadata at the node's listener, at which a proxy may accept connections without."""
        listener = self._listeners.get(node)
        if listener is None or not accepts(listener):
            return False
        access = replace(self._cluster.access, bootstrap=listener)
        return bool(Administration(access).view(BrokerNumbers(())).live)

    def _accepts(self, node: str) -> bool:
        """Whether the broker's listener accepts a connection; that of another node is not known, and taken to."""
        listener = self._listeners.get(node)
        return listener is None or accepts(listener)

    # ------------------------------------------------------------------------------------------------ links

    def cut(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`: the destination drops the packets of the source."""
        for link in links:
            source, destination = self._ends(link)
            self._harm(of_cut(source, destination), destination, "cut", source)

    def mend(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`: each is mended, whatever becomes of the others."""
        problems: list[EnvironmentFault] = []
        for link in links:
            try:
                self._undo(of_cut(*self._ends(link)))
            except EnvironmentFault as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    def is_cut(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`: no connection opens, and the destination has dropped what asked for it.

        That no connection opens does not prove it alone: the other direction may be cut.
        """
        source, destination = self._ends(link)
        before = _count(destination, source)
        if source.succeeds("reach", destination):
            return Receipt(False, f"{link}: a connection was opened")
        dropped = _count(destination, source) - before
        if not dropped:
            return Receipt(False, f"{link}: no connection was opened, and node {destination.name} dropped no packet")
        packets = "1 packet" if dropped == 1 else f"{dropped} packets"
        return Receipt(True, f"{link}: no connection was opened, and node {destination.name} dropped {packets}")

    def carries(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        source, destination = self._ends(link)
        opens = source.succeeds("reach", destination)
        return Receipt(opens, f"{link}: {'a' if opens else 'no'} connection was opened")

    # ------------------------------------------------------------------------------------------------ disks

    def limit_disk(self, node: str, free_bytes: int | None, log_dir: int | None = None) -> None:
        """See :class:`harness.controls.DiskSpace`: a file takes the rest. The node may end of that, at any time."""
        assert log_dir is None, "the plan lets none be named"
        disk = self._nodes[node]
        if free_bytes is None:  # the journal keeps it until the node is started again
            undo(full := of_full_disk(disk), partial(self._note, full))
            self._harms.pop(full.what, None)
            return
        self._filled.add(node)
        self._record(self._end_of(node))
        self._harm(of_full_disk(disk), disk, "fill", given={"FREE_BYTES": free_bytes})

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.controls.DiskSpace`: and the disk of no other node whose was not filled, too."""
        del log_dir
        said = self._nodes[node].disk()
        if said == FULL:
            for other in self._nodes.keys() - self._filled:
                if self._nodes[other].disk() == FULL:
                    return Receipt(False, f"node {node}: its disk is full, and so is that of node {other}")
        return Receipt(said == FULL, f"node {node}: 64 KiB beside its data: {said}")

    # ------------------------------------------------------------------------------------------------ clocks

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """See :class:`harness.controls.WallClocks`.

        Raises:
            EnvironmentFault: besides, the clock of this machine or of another node has moved, too; both are as before.
        """
        clock = self._nodes[node]
        skew = of_skew(clock)
        if not offset_ms:
            self._undo(skew)
            self._skewed.discard(node)
            self._owe_no_start(node)
            return
        self._clocks.moved_ms(node)
        before = self._clocks.others(self._nodes.keys() - self._skewed - {node})
        self._record(self._end_of(node))
        self._skewed.add(node)
        self._harm(skew, clock, "skew", given={"OFFSET_MS": offset_ms})
        if (moved := self._clocks.moved_besides(before)) is not None:
            self._undo(skew)
            raise EnvironmentFault(
                f"command 'skew' of node {node} has moved another clock besides, {moved}; it was undone.",
                "Have it move the clock of that node's broker alone, or leave the clock fault out.",
            )

    def clock_offset_ms(self, node: str) -> int:
        """See :class:`harness.controls.WallClocks`: without the little that it was off before it was moved first."""
        return self._clocks.moved_ms(node)

    # ------------------------------------------------------------------------------------------------ what is done

    def _ends(self, link: Link) -> tuple[CommandedNode, CommandedNode]:
        for end in link:
            if end not in self._nodes:
                raise EnvironmentFault(f"there is no node {end!r}; the nodes are {', '.join(self.nodes())}.")
        return self._nodes[link.source], self._nodes[link.destination]

    def _harm(
        self,
        harm: Harm,
        node: CommandedNode,
        command: str,
        peer: CommandedNode | None = None,
        given: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Do it by a command."""
        self._record(harm)
        node.perform(command, peer, given, partial(self._journal.command_started, harm.what))

    def _record(self, harm: Harm) -> None:
        """Have the journal know it before it is done, and until it is undone, and :meth:`stop` as well."""
        self._harms[harm.what] = harm
        if harm.what not in self._recorded:
            self._journal.leftover_coming(NAME, asdict(harm))
            self._recorded[harm.what] = harm

    def _undo(self, harm: Harm) -> None:
        undo(harm, partial(self._note, harm))
        self._harms.pop(harm.what, None)
        self._forget(harm)

    def _forget(self, harm: Harm) -> None:
        """Have the journal know that it is undone, unless that cannot be written down: another undo is harmless."""
        if (recorded := self._recorded.pop(harm.what, None)) is not None:
            with suppress(OSError):
                self._journal.leftover_gone(NAME, asdict(recorded))

    def _note(self, harm: Harm, pid: int) -> None:
        """Have the journal know what undoes it, unless that cannot be written down: no undo waits for that."""
        with suppress(OSError):
            self._journal.command_started(harm.what, pid)


def controls_of(nodes: Iterable[CommandedNode]) -> frozenset[type[Any]]:
    """What can be done to each of some nodes."""
    there = list(nodes)
    return frozenset(control for control in NEEDED if not any(node.missing(control) for node in there))


def _count(destination: CommandedNode, source: CommandedNode) -> int:
    printed = destination.perform("dropped", source).strip()
    if not printed.isdecimal():
        raise EnvironmentFault(f"node {destination.name}: command 'dropped' printed {printed[:40]!r}, no number.")
    return int(printed)

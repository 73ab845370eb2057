"""Stories: text files of commands and what the core did, after etcd raft's ``testdata``.

A story is a sequence of blocks: command lines, ``----``, the expected output, an empty line. ``#`` comments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId
from harness.replication.knobs import GENERATIONS
from harness.replication.knobs import generation as knobs_of
from harness.replication.messages import DeleteRecordsExpired, ProduceExpired
from tests.harness.replication.nodes import Message
from tests.harness.replication.printing import (
    parse_nodes,
    parse_options,
    parse_values,
    print_decision,
    print_nodes,
    print_replica_effect,
    print_request,
)
from tests.harness.replication.world import Told, World


def tell_story(path: Path, teller: Callable[[], Any]) -> str:
    """The text of the story ``path`` with its output as it is now."""
    narrator = teller()
    told: list[str] = []
    for block in path.read_text().rstrip("\n").split("\n\n"):
        commands = block.split("\n----")[0].split("\n")
        if all(line.startswith("#") for line in commands):
            told.append("\n".join(commands))
            continue
        output = [line for command in commands if not command.startswith("#") for line in narrator.command(command)]
        told.append("\n".join([*commands, "----", *output]))
    return "\n\n".join(told) + "\n"


Variants = Mapping[str, tuple[str, Mapping[str, str]]]
"""Generations by a name, each with the knobs that are turned otherwise."""

EVERY_GENERATION: Variants = {name: (name, {}) for name in GENERATIONS}

IDEAS: Variants = {
    "0.10": ("0.10", {}),
    "0.10 with truncation=leader_hw": ("0.10", {"truncation": "leader_hw"}),
    "0.10 with truncation=hw_after_first_fetch": ("0.10", {"truncation": "hw_after_first_fetch"}),
    "0.10 with hw_advance=after_followers": ("0.10", {"hw_advance": "after_followers"}),
    "0.11": ("0.11", {}),
}
"""How the loss of KIP-101's scenarios might have been mended, and how it was."""


def tell_outcomes(path: Path, variants: Variants) -> str:
    """The text of the story ``path``, which is played in every variant, with how it ends in each.

    Only what its explicit looks (``state``, ``logs``, ``outcome``) print is told, variants with the same ending
    together.
    """
    script = path.read_text().split("\n----")[0].rstrip("\n")
    endings: dict[str, list[str]] = {}
    for name, variant in variants.items():
        teller = WorldTeller(variant)
        ending = [line for command in script.split("\n") for line in teller.look(command)]
        endings.setdefault("\n".join(f"  {line}" for line in ending), []).append(name)
    told = [f"{', '.join(names)}:\n{ending}" for ending, names in endings.items()]
    return "\n".join([script, "----", *told]) + "\n"


class WorldTeller:
    """Plays commands on a :class:`World` and prints what its nodes do."""

    def __init__(self, variant: tuple[str, Mapping[str, str]] = ("", MappingProxyType({}))) -> None:
        self._generation, self._overrides = variant
        self._world: World | None = None
        self._lines: list[str] = []
        self._held: set[str] = set()

    @property
    def world(self) -> World:
        assert self._world is not None, "a story begins with 'cluster'"
        return self._world

    def command(self, line: str) -> list[str]:
        name, *words = line.split()
        arguments, options = parse_options(words)
        getattr(self, f"_do_{name.replace('-', '_')}")(*arguments, **options)
        if self._world is not None:
            self.world.settle(self._is_held)
        lines, self._lines = self._lines, []
        return lines

    def look(self, line: str) -> list[str]:
        """Play the command ``line``; what it prints, if it is one to look at something."""
        if not line or line.startswith("#"):
            return []
        printed = self.command(line)
        return printed if line.split(maxsplit=1)[0] in ("state", "logs", "outcome") else []

    def _is_held(self, message: Message) -> bool:
        return bool({message.kind, f"{message.kind}:{message.destination}"} & self._held)

    # ------------------------------------------------------------------------------------------------- commands

    def _do_cluster(self, **options: str) -> None:
        name = self._generation or options.pop("generation")
        nodes, min_isr = int(options.pop("nodes")), int(options.pop("min_isr"))
        lag_ms = int(options.pop("lag_ms", "2000"))
        unclean = options.pop("unclean", "false") == "true"
        self._world = World(
            knobs_of(name, {**self._overrides, **options}), nodes, min_isr, lag_ms=lag_ms, unclean=unclean
        )
        self.world.settle()
        self.world._tell = self._tell
        self._do_state()

    def _do_produce(self, node: str, *names: str, acks: str = "all") -> None:
        """One batch; ``m*3`` is short for ``m0 m1 m2``."""
        values = [value for name in names for value in parse_values(name)]
        self.world.produce(NodeId(int(node)), *values, acks={"all": -1}.get(acks) or int(acks))

    def _do_produce_timeout(self, *values: str) -> None:
        produced = next(produced for produced in self.world.produced if produced.values == values)
        for node in self.world.alive:
            self.world.handle(node, ProduceExpired(produced))

    def _do_delete_timeout(self, node: str) -> None:
        self.world.handle(NodeId(int(node)), DeleteRecordsExpired("client"))

    def _do_fetch(self, *nodes: str) -> None:
        for node in nodes:
            self._lines.append(f"{node}: {print_request(self.world.replica(NodeId(int(node))).next_request())}")
            self.world.fetch(NodeId(int(node)))
            self.world.settle(self._is_held)

    def _do_replicate(self, rounds: str = "4") -> None:
        """Let everybody fetch, silently, until all is quiet."""
        for _ in range(int(rounds)):
            for node in self.world.alive:
                self.world.fetch(node)
            self.world.settle(self._is_held)
        self._lines = []
        self._do_state()

    def _do_hold(self, *kinds: str) -> None:
        self._held |= set(kinds)

    def _do_deliver(self, *kinds: str) -> None:
        """In order of sending; from now on nothing of these kinds is held."""
        self._held -= set(kinds)

    def _do_drop(self, *kinds: str) -> None:
        """Lose what is held; from now on nothing of these kinds is held."""
        for message in [message for message in self.world.in_flight if self._is_held(message)]:
            if {message.kind, f"{message.kind}:{message.destination}"} & set(kinds):
                self.world.drop(message)
        self._held -= set(kinds)

    def _do_kill(self, *nodes: str) -> None:
        for node in nodes:
            self.world.kill(NodeId(int(node)))

    def _do_stop(self, node: str, *, seen: str = "true") -> None:
        self.world.stop(NodeId(int(node)), seen=seen == "true")

    def _do_lose_power(self, node: str, *, batches: str) -> None:
        """A kill, after which the last batches are missing."""
        self.world.kill(NodeId(int(node)))
        self._do_lose(node, batches=batches)

    def _do_lose(self, node: str, *, batches: str) -> None:
        """The disk of a dead broker loses its last batches."""
        self.world.brokers[NodeId(int(node))].lose(int(batches))

    def _do_wipe(self, node: str) -> None:
        self.world.brokers[NodeId(int(node))].wipe()

    def _do_elect(self, *, leader: str = "", unclean: str = "false") -> None:
        self.world.elect(NodeId(int(leader)) if leader else None, unclean=unclean == "true")

    def _do_delete_records(self, node: str, before: str) -> None:
        self.world.delete_records(NodeId(int(node)), int(before))

    def _do_retention(self, node: str, before: str) -> None:
        self.world.retain(NodeId(int(node)), int(before))

    def _do_spoof(self, leader: str, *, follower: str, offset: str) -> None:
        self.world.spoof(NodeId(int(leader)), NodeId(int(follower)), int(offset))

    def _do_start(self, node: str) -> None:
        self.world.start(NodeId(int(node)))

    def _do_boot(self, node: str) -> None:
        """Start without registering: the controller hears nothing of it."""
        self.world.boot(NodeId(int(node)))

    def _do_bounce(self, node: str) -> None:
        self.world.bounce(NodeId(int(node)))

    def _do_expire(self, *nodes: str) -> None:
        self.world.expire(*[NodeId(int(node)) for node in nodes])

    def _do_heartbeat(self, node: str) -> None:
        self.world.heartbeat(NodeId(int(node)))

    def _do_impose(self, *, leader: str, epoch: str, isr: str, to: str = "", controller: str = "-1") -> None:
        some = tuple(NodeId(int(node)) for node in to.split(",") if node)
        self.world.impose(NodeId(int(leader)), int(epoch), parse_nodes(isr), to=some, controller_epoch=int(controller))

    def _do_fetch_at_most(self, batches: str) -> None:
        self.world.fetch_batches = int(batches)

    def _do_checkpoint(self, node: str) -> None:
        self.world.checkpoint(NodeId(int(node)))

    def _do_fill_disk(self, node: str) -> None:
        self.world.brokers[NodeId(int(node))].disk_full = True

    def _do_tick(self, ms: str) -> None:
        self.world.tick(int(ms))

    def _do_clock(self, node: str, ms: str) -> None:
        """The clock of ``node`` steps to true time plus ``ms``."""
        self.world.step_clock(NodeId(int(node)), int(ms))

    def _do_state(self) -> None:
        for node, broker in self.world.brokers.items():
            replica = broker.replica
            if replica is None:
                self._lines.append(f"{node} dead leo={broker.log_end}")
                continue
            remote = "".join(f" remote{n}={end}" for n, end in replica.remote_log_end_offsets.items())
            start = f" start={replica.log_start_offset}" if replica.log_start_offset else ""
            self._lines.append(
                f"{node} {replica.role} epoch={replica.leader_epoch}{start} leo={replica.log_end_offset} "
                f"hw={replica.high_watermark} isr={print_nodes(replica.isr)}{remote}"
            )

    def _do_logs(self) -> None:
        for node, broker in self.world.brokers.items():
            records = " ".join(f"{record.value}@{record.leader_epoch}" for record in broker.records)
            self._lines.append(f"{node} [{records}]")

    def _do_verdict(self) -> None:
        lost, diverged = self.world.lost(), self.world.diverged()
        self._lines.append(f"lost: {' '.join(lost) or 'nothing'}")
        self._lines.append(f"diverged: {' '.join(map(str, diverged)) or 'nowhere'}")

    def _do_outcome(self) -> None:
        """The end of a story of many generations: logs, and what is wrong with them."""
        self._do_logs()
        refused = [one for one in self.world.produced if one.answer and one.answer.error is not ErrorCode.NONE]
        found = {
            "lost": self._unless_offline(self.world.lost),
            "diverged": self.world.diverged(),
            "stuck": self._unless_offline(self.world.stuck),
            "exited": self.world.exited,
            "refused": [value for one in refused for value in one.values],
            "unanswered": [value for one in self.world.produced if one.answer is None for value in one.values],
        }
        if self.world.leader == NO_LEADER:
            self._lines.append("offline")
        self._lines += [f"{what}: {' '.join(map(str, which))}" for what, which in found.items() if which]

    def _unless_offline(self, look: Callable[[], Sequence[object]]) -> Sequence[object]:
        return look() if self.world.leader != NO_LEADER else []

    # -------------------------------------------------------------------------------------------------- printing

    def _tell(self, who: str, effect: Told) -> None:
        if isinstance(effect, tuple):
            (_, _, requested), error, end = effect
            line = f"answer lookup of epoch {requested}: {error.name} ({end.leader_epoch},{end.end_offset})"
        else:
            line = print_replica_effect(effect) if who != "controller" else print_decision(effect)
        if line:
            self._lines.append(f"{who}: {line}")

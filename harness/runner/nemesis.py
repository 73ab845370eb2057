"""The nemesis: injects faults, proves that they took effect, heals them, proves that, too, and records everything."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from faults import KINDS, traits_of
from harness.clock import PacedClock
from harness.errors import EnvironmentFault, InvalidRun
from harness.fault import Fault, ProcessEffect
from harness.runner.journal import Undo
from harness.runner.reporting import Reporter
from harness.selection import NothingToAimAt
from harness.target import ClusterView, Receipt, Target

AIM_TIMEOUT_S = 5.0
PROOF_TIMEOUT_S = 15.0
"""How long a fault may take to show: a write that a full disk has to refuse may wait for a coordinator to recover."""
LAST_LOOK_TIMEOUT_S = 2.0
"""How long the last probe before healing may take to see the fault in effect: a busy node may miss a probe."""
HEAL_TIMEOUT_S = 20.0

_POLL_S = 0.05
_HEALING = (ProcessEffect.PAUSES, ProcessEffect.ENDS, ProcessEffect.MAY_END, ProcessEffect.NONE)
"""The faults that are healed first: while a node's process does not run, no other fault can be proven healed."""


@dataclass(slots=True)
class FaultRecord:
    """An unfinished row of ``schema.FAULTS``, and the aimed fault; None when there was nothing to aim at."""

    name: str
    kind: str
    fault: Fault | None
    aim: ClusterView
    aimed_ns: int
    injected_ns: int | None = None
    proven_ns: int | None = None
    proof: str | None = None
    healed_ns: int | None = None
    heal_proven_ns: int | None = None
    heal_proof: str | None = None

    def row(self, run: str) -> dict[str, Any]:
        """The row."""
        return {
            "run": run,
            "fault": self.name,
            "kind": self.kind,
            "nodes": list(self.fault.nodes()) if self.fault else [],
            "parameters": json.dumps(self.fault.parameters() if self.fault else {}),
            "aimed_ns": self.aimed_ns,
            "aim": json.dumps(_as_json(self.aim)),
            "injected_ns": self.injected_ns,
            "proven_ns": self.proven_ns,
            "proof": self.proof,
            "healed_ns": self.healed_ns,
            "heal_proven_ns": self.heal_proven_ns,
            "heal_proof": self.heal_proof,
        }


class Nemesis:
    """Injects and heals the faults of one run.

    Args:
        noted: called with all records before and after each injection, and after each healing, so that they survive a
            killed harness; a fault that is recorded only before its injection is unproven.

    Attributes:
        records: every planned fault, in order.
        active: the names of the faults in force, in order of injection.
    """

    def __init__(
        self,
        target: Target,
        journal: Undo,
        clock: PacedClock,
        seed: int,
        report: Reporter,
        *,
        noted: Callable[[Sequence[FaultRecord]], None] = lambda records: None,
    ) -> None:
        self.records: list[FaultRecord] = []
        self.active: list[str] = []
        self._target = target
        self._journal = journal
        self._clock = clock
        self._seed = seed
        self._report = report
        self._noted = noted

    def inject(self, name: str, fault: Fault) -> FaultRecord:
        """Aim ``fault``, inject it and wait for proof, which the record has.

        Raises:
            InvalidRun: it overlaps with a fault in force; nothing was injected.
            EnvironmentFault: the journal cannot be written.
        """
        record = self._aimed(name, fault)
        self.records.append(record)
        self._refuse_overlap(record)
        if record.fault is None:
            self._noted(self.records)
            self._report(f"{name}: {fault.kind}: {record.proof}")
        else:
            self._inject_and_note(name, record, record.fault)
        return record

    def forgo(self, name: str, fault: Fault, why: str) -> None:
        """Record that ``fault`` was planned and ``why`` it could never be injected: it is not proven."""
        self.records.append(
            FaultRecord(name, fault.kind, None, self._target.view(), self._clock.monotonic_ns(), proof=why)
        )
        self._noted(self.records)
        self._report(f"{name}: {fault.kind}: {why}")

    def _inject_and_note(self, name: str, record: FaultRecord, fault: Fault) -> None:
        before = self._look(fault)
        self._noted([*self.records[:-1], replace(record, injected_ns=self._clock.monotonic_ns())])
        self._journal.fault_coming(name, fault.kind, fault.parameters())
        self.active.append(name)
        self._report(f"{name}: {fault.kind} {_in_words(fault)}")
        self._inject(record, fault, before)
        self._noted(self.records)
        self._report(f"{name}: {'proven' if record.proven_ns else 'NOT PROVEN'}: {record.proof}")

    def heal(self, name: str) -> FaultRecord:
        """Heal the fault ``name`` and wait for proof; harmless when it was healed before.

        It is probed once more first: a fault that has already ceased is not proven any more.
        """
        record = next(record for record in self.records if record.name == name)
        if record.fault is None or name not in self.active:
            return record
        try:
            self._look_once_more(record, record.fault)
        finally:  # a bug in its probe does not keep it from being healed
            self._heal(name, record, record.fault)
        return record

    def _heal(self, name: str, record: FaultRecord, fault: Fault) -> None:
        receipt = self._await(lambda: self._heal_and_look(record, fault), HEAL_TIMEOUT_S)
        record.heal_proof = receipt.seen
        if receipt.holds:
            record.heal_proven_ns = self._clock.monotonic_ns()
        self.active.remove(name)
        self._journal.fault_gone(name)
        with suppress(EnvironmentFault):  # heal the others even if the journal cannot be written
            self._noted(self.records)
        self._report(f"{name}: {'healed' if receipt.holds else 'NOT HEALED'}: {receipt.seen}")

    def heal_all(self) -> None:
        """Heal all faults in force: paused processes first, then dead ones, then the last injected first.

        A bug in one fault keeps none of the others from being healed; it is raised in the end.
        """
        kinds = {record.name: record.kind for record in self.records}
        newest_first = list(reversed(self.active))
        in_order = sorted(newest_first, key=lambda name: _healing_order(kinds[name]))
        with ExitStack() as last_things_first:
            for name in reversed(in_order):
                last_things_first.callback(self.heal, name)

    def unproven(self) -> list[str]:
        """One sentence for each fault that was not proven, or not proven healed."""
        sentences = []
        for record in self.records:
            if record.proven_ns is None:
                sentences.append(f"fault {record.name} ({record.kind}) was not proven: {record.proof}.")
            elif record.heal_proven_ns is None and record.name not in self.active:
                sentences.append(f"fault {record.name} ({record.kind}) was not proven healed: {record.heal_proof}.")
        return sentences

    # ------------------------------------------------------------------------------------------------ internals

    def _aimed(self, name: str, fault: Fault) -> FaultRecord:
        """``fault`` aimed at the present cluster; waits a little during an election."""
        seed = random.Random(f"{self._seed}:aim:{name}").getrandbits(63)
        deadline = self._now_s() + AIM_TIMEOUT_S
        while True:
            view = self._target.view()
            record = FaultRecord(name, fault.kind, None, view, self._clock.monotonic_ns())
            try:
                record.fault = fault.aimed(view, seed)
            except NothingToAimAt as nothing:
                record.proof = nothing.sentence
                if self._now_s() < deadline:
                    self._clock.sleep(_POLL_S)
                    continue
            return record

    def _refuse_overlap(self, record: FaultRecord) -> None:
        claims = record.fault.claims() if record.fault else ()
        for other in self.records:
            if other.name in self.active and other.fault is not None:
                for claim in sorted(set(claims).intersection(other.fault.claims())):
                    record.proof = f"fault {other.name} ({other.kind}), which is in force, has {claim} to itself"
                    raise InvalidRun(f"fault {record.name} ({record.kind}) was not injected: {record.proof}.")

    def _look_once_more(self, record: FaultRecord, fault: Fault) -> None:
        """Take the proof back unless the fault is still in effect."""
        if record.proven_ns is None:
            return
        receipt = self._await(lambda: self._look(fault), LAST_LOOK_TIMEOUT_S)
        if not receipt.holds:
            record.proven_ns = None
            record.proof = f"it was in effect ({record.proof}), but not until it was healed: {receipt.seen}"
            self._report(f"{record.name}: NOT PROVEN: {record.proof}")
        elif receipt.seen != record.proof:
            record.proof = f"{record.proof}; before healing: {receipt.seen}"

    def _inject(self, record: FaultRecord, fault: Fault, before: Receipt) -> None:
        record.injected_ns = self._clock.monotonic_ns()
        try:
            fault.inject(self._target)
        except EnvironmentFault as refused:
            record.proof = refused.sentence
            return
        if before.holds:
            record.proof = f"it was so before: {before.seen}"
            return
        receipt = self._await(lambda: self._look(fault), PROOF_TIMEOUT_S)
        record.proof = receipt.seen
        if receipt.holds:
            record.proven_ns = self._clock.monotonic_ns()

    def _heal_and_look(self, record: FaultRecord, fault: Fault) -> Receipt:
        try:
            fault.heal(self._target)
        except EnvironmentFault as refused:
            return Receipt(False, refused.sentence)
        record.healed_ns = record.healed_ns or self._clock.monotonic_ns()
        return self._look(fault, healed=True)

    def _look(self, fault: Fault, *, healed: bool = False) -> Receipt:
        try:
            receipt = fault.probe_healed(self._target) if healed else fault.probe(self._target)
        except EnvironmentFault as unknown:
            return Receipt(False, unknown.sentence)
        asked = "probe_healed" if healed else "probe"
        KINDS.require(fault.kind, holds=isinstance(receipt, Receipt), else_why=f"its {asked} returned {receipt!r}")
        return receipt

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def _await(self, look: Callable[[], Receipt], timeout_s: float) -> Receipt:
        deadline = self._now_s() + timeout_s
        while True:
            receipt = look()
            if receipt.holds or self._now_s() >= deadline:
                return receipt
            self._clock.sleep(_POLL_S)


def _healing_order(kind: str) -> tuple[int, int]:
    """The place of a kind in the order of healing; kinds that leave the process alone are last."""
    process = traits_of(kind).process
    return _HEALING.index(process), 0 if process is ProcessEffect.NONE else list(KINDS).index(kind)


def _in_words(fault: Fault) -> str:
    return " ".join(f"{name}={value}" for name, value in fault.parameters().items())


def _as_json(view: ClusterView) -> dict[str, Any]:
    partitions = {
        str(name): {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": list(state.isr)}
        for name, state in sorted(view.partitions.items())
    }
    seen = {"time_ns": view.time_ns, "live": list(view.live), "partitions": partitions}
    return seen if view.quorum is None else {**seen, "controller": view.controller, "quorum": asdict(view.quorum)}

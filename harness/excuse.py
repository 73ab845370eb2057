"""The excuses for findings: what each says, under which guarantee it holds, and how grave a finding is that it excuses.

A rule gives a finding the name of an excuse where it sees one; the verdict reads the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Excuse = Literal[
    "acks", "retention", "unclean", "down", "group", "interleaving", "entangled", "unread", "restart", "damage",
    "unnumbered", "renumbered", "harmed", "exits", "bare", "unfinished",
]  # fmt: skip
"""The names of the excuses; each has its record in :data:`EXCUSES`."""


class Effect(Enum):
    """What an excuse makes of a finding; where its guarantee does not let it hold, it makes nothing of it."""

    DOCUMENTED = "DOCUMENTED"
    WEAK = "WEAK, where an event may have removed what the sender did not wait for"
    LEFT_OPEN = "INDETERMINATE"
    NOTHING = "VIOLATION, all the same"


class Guarantee(NamedTuple):
    """A guarantee in ``run.json``, and the value of it with which an excuse holds."""

    name: str
    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcuseKind:
    """Everything about an excuse but the rules that give it.

    Attributes:
        name: as rules give it.
        meaning: what a rule says by it of a finding.
        effect: what it makes of the finding.
        guarantee: the guarantee on which it rests; None: it holds whatever the configuration guarantees.
        of_the_client: whether a client brought the finding about; where a wire tap shows that it has not, the excuse
            does not hold.
        if_resent: whether it holds only where the client had a reason to send a record again, which is named, too.
        in_every_generation: whether the finding is promised not to happen in older generations either.
        reason: why the verdict is DOCUMENTED or INDETERMINATE, a part of a sentence; of other effects, empty.
    """

    name: Excuse
    meaning: str
    effect: Effect
    guarantee: Guarantee | None
    of_the_client: bool
    if_resent: bool
    in_every_generation: bool
    reason: str

    def is_permitted(self, guarantees: Mapping[str, Any]) -> bool:
        """Whether the configuration lets it hold, by the ``guarantees`` in ``run.json``."""
        return self.guarantee is None or guarantees.get(self.guarantee.name) is self.guarantee.value


def _documents(name: Excuse, meaning: str, reason: str, guarantee: Guarantee | None = None) -> ExcuseKind:
    """An excuse that makes a finding DOCUMENTED, and that no client brought about."""
    return ExcuseKind(
        name=name, meaning=meaning, effect=Effect.DOCUMENTED, guarantee=guarantee, of_the_client=False,
        if_resent=False, in_every_generation=False, reason=reason,
    )  # fmt: skip


def _leaves_open(name: Excuse, meaning: str, reason: str) -> ExcuseKind:
    """An excuse of which it is not known whether it holds."""
    return ExcuseKind(
        name=name, meaning=meaning, effect=Effect.LEFT_OPEN, guarantee=None, of_the_client=False,
        if_resent=False, in_every_generation=False, reason=reason,
    )  # fmt: skip


_ALL = (
    ExcuseKind(
        name="acks",
        meaning="the sender waited for too little (acks 0 or 1), and the record was never known to be committed",
        effect=Effect.WEAK,
        guarantee=None,
        of_the_client=False,
        if_resent=False,
        in_every_generation=False,
        reason="",
    ),
    ExcuseKind(
        name="restart",
        meaning="a restart took it, and not the rules by which followers of some generation cut their logs",
        effect=Effect.NOTHING,
        guarantee=None,
        of_the_client=False,
        if_resent=False,
        in_every_generation=True,
        reason="",
    ),
    _documents(
        "retention",
        "it had been deleted on purpose",
        "it was deleted on purpose, which the configuration permits (guarantees.retention)",
        Guarantee("retention", value=True),
    ),
    _documents(
        "unclean",
        "an unclean election came after it",
        "an unclean election gave it up, which the configuration permits (guarantees.unclean_election)",
        Guarantee("unclean_election", value=True),
    ),
    _documents(
        "damage",
        "a fault has damaged that log",
        "a fault of the run (corrupt_log) has damaged a log of that node",
    ),
    _documents(
        "down",
        "the replica that is missing was not running",
        "the replica that is missing was not running",
    ),
    _documents(
        "harmed",
        "a fault of the run has harmed what the node runs on",
        "a fault of the run had harmed what the node runs on, or kept it from its controller as it started",
    ),
    _documents(
        "exits",
        "its generation ends a broker in that place",
        "that generation ends a broker that would have to cut its log, where unclean elections are forbidden",
    ),
    _documents(
        "bare",
        "records are stored without epochs",
        "its records bear no epochs (log.message.format.version), so followers cut by their own watermark",
    ),
    _documents(
        "group",
        "the consumer's group may have moved the partition, for the history has no rebalance rows",
        "the consumer's group may have moved the partition, and the history names no rebalances",
    ),
    _documents(
        "interleaving",
        "transactions that write at the same time may interleave",
        "Kafka lets transactions that write at the same time interleave",
    ),
    ExcuseKind(
        name="unnumbered",
        meaning="it was sent outside of transactions, so that its producer need not have numbered it",
        effect=Effect.DOCUMENTED,
        guarantee=Guarantee("idempotent_producers", value=False),
        of_the_client=True,
        if_resent=True,
        in_every_generation=False,
        reason="producers are not idempotent (guarantees.idempotent_producers), and the client may have sent it twice",
    ),
    ExcuseKind(
        name="renumbered",
        meaning="its producer has numbered it anew, so that no leader could know it again",
        effect=Effect.DOCUMENTED,
        guarantee=None,
        of_the_client=True,
        if_resent=False,
        in_every_generation=False,
        reason="its producer sent it again in another epoch, or under another id, so that its leader could not tell it "
        "from a new one",
    ),
    _leaves_open(
        "entangled",
        "it is of a transaction that is entangled with too many others",
        "too many transactions are entangled to be followed",
    ),
    _leaves_open(
        "unread",
        "the broker's record of it could not be read",
        "what the broker has written down could not be read",
    ),
    _leaves_open(
        "unfinished",
        "a user's program, or a share group, had not said that it was done with the record",
        "the run ended before the program, or the share group, was known to be done with the record",
    ),
)

EXCUSES: Mapping[Excuse, ExcuseKind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""The excuses by their names."""

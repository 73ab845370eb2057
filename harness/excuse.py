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
    "unnumbered", "renumbered", "harmed", "exits", "bare", "unfinished", "overtaken", "elected",
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


def _plain(
    name: Excuse, effect: Effect, *, meaning: str, reason: str = "", guarantee: Guarantee | None = None,
    in_every_generation: bool = False,
) -> ExcuseKind:  # fmt: skip
    """An excuse that no client brought about."""
    return ExcuseKind(
        name=name, meaning=meaning, effect=effect, guarantee=guarantee, of_the_client=False, if_resent=False,
        in_every_generation=in_every_generation, reason=reason,
    )  # fmt: skip


_ALL = (
    _plain(
        "acks",
        Effect.WEAK,
        meaning="the sender waited for too little (acks 0 or 1), and the record was never known to be committed",
    ),
    _plain(
        "restart",
        Effect.NOTHING,
        meaning="a restart took it, and not the rules by which followers of some generation cut their logs",
        in_every_generation=True,
    ),
    _plain(
        "retention",
        Effect.DOCUMENTED,
        meaning="it had been deleted on purpose",
        reason="it was deleted on purpose, which the configuration permits (guarantees.retention)",
        guarantee=Guarantee("retention", value=True),
    ),
    _plain(
        "unclean",
        Effect.DOCUMENTED,
        meaning="an unclean election came after it",
        reason="an unclean election gave it up, which the configuration permits (guarantees.unclean_election)",
        guarantee=Guarantee("unclean_election", value=True),
    ),
    _plain(
        "elected",
        Effect.LEFT_OPEN,
        meaning="another leader had been elected, of whose election only its epoch was told",
        reason="of the election in between only the new epoch was told: it may have been unclean, and a leader of "
        "before Kafka 2.2 (KIP-207) tells an earlier watermark until its followers have fetched",
    ),
    _plain(
        "damage",
        Effect.DOCUMENTED,
        meaning="a fault has damaged that log",
        reason="a fault of the run (corrupt_log) has damaged a log of that node",
    ),
    _plain(
        "down",
        Effect.DOCUMENTED,
        meaning="the replica that is missing was not running",
        reason="the replica that is missing was not running",
    ),
    _plain(
        "harmed",
        Effect.DOCUMENTED,
        meaning="a fault of the run has harmed what the node runs on",
        reason="a fault of the run had harmed what the node runs on, or kept it from its controller as it started",
    ),
    _plain(
        "exits",
        Effect.DOCUMENTED,
        meaning="its generation ends a broker in that place",
        reason="that generation ends a broker that would have to cut its log, where unclean elections are forbidden",
    ),
    _plain(
        "bare",
        Effect.DOCUMENTED,
        meaning="records are stored without epochs",
        reason="its records bear no epochs (log.message.format.version), so followers cut by their own watermark",
    ),
    _plain(
        "group",
        Effect.DOCUMENTED,
        meaning="the consumer's group may have moved the partition, for the history has no rebalance rows",
        reason="the consumer's group may have moved the partition, and the history names no rebalances",
    ),
    _plain(
        "interleaving",
        Effect.DOCUMENTED,
        meaning="transactions that write at the same time may interleave",
        reason="Kafka lets transactions that write at the same time interleave",
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
    ExcuseKind(
        name="overtaken",
        meaning="it was given by the consumer protocol in real time, in which a heartbeat of its client may have "
        "overtaken what the client tells its caller",
        effect=Effect.DOCUMENTED,
        guarantee=None,
        of_the_client=True,
        if_resent=False,
        in_every_generation=False,
        reason="a heartbeat of a client (KIP-848) may have said that it has not got a partition of which its caller "
        "was still to hear",
    ),
    _plain(
        "entangled",
        Effect.LEFT_OPEN,
        meaning="it is of a transaction that is entangled with too many others",
        reason="too many transactions are entangled to be followed",
    ),
    _plain(
        "unread",
        Effect.LEFT_OPEN,
        meaning="the broker's record of it could not be read",
        reason="what the broker has written down could not be read",
    ),
    _plain(
        "unfinished",
        Effect.LEFT_OPEN,
        meaning="a user's program, or a share group, had not said that it was done with the record",
        reason="the run ended before the program, or the share group, was known to be done with the record",
    ),
)

EXCUSES: Mapping[Excuse, ExcuseKind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""The excuses by their names."""

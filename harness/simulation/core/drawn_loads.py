"""The loads that a seed may draw on the whole broker, by name; :mod:`harness.exploration.loads` says what they do."""

from __future__ import annotations

import random

from harness.replication.knobs import Knobs

PLAIN = "plain"
"""Producers that send and a consumer that tails, before the witness: they are in every run. The others run beside."""

PIPELINED, GROUPS, ASSIGNED, TRANSACTIONS, PROCESSORS = "pipelined", "groups", "assigned", "transactions", "processors"

LOADS = (PLAIN, PIPELINED, GROUPS, ASSIGNED, TRANSACTIONS, PROCESSORS)

_SHARE = 0.25
_HORIZONS_MS = (1_500, 2_500, 4_000)


def loads_of(knobs: Knobs) -> tuple[str, ...]:
    """The loads that brokers with these knobs can serve, in the order of :data:`LOADS`."""
    numbered, assigned = knobs.transactions != "none", knobs.consumer_protocol
    served = {PIPELINED: numbered, TRANSACTIONS: numbered, PROCESSORS: numbered, ASSIGNED: assigned}
    return tuple(name for name in LOADS if served.get(name, True))


def drawn_load(seed: int, knobs: Knobs) -> str:
    """The load of ``seed``: in three seeds of four it is plain."""
    chance = random.Random(f"{seed}:load")
    return chance.choice(loads_of(knobs)[1:]) if chance.random() < _SHARE else PLAIN


def drawn_horizon_ms(seed: int) -> int:
    """How long load and faults of ``seed`` last where its load is not plain: its clients' sessions must fit in."""
    return random.Random(f"{seed}:horizon").choice(_HORIZONS_MS)

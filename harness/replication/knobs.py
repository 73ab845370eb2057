"""What distinguishes one generation of Kafka's replication protocol from another, as a table.

A generation is a named row of :data:`GENERATIONS`; a mutant is a row with one knob changed. The core never
asks "which version is this?", only "what does this knob say?".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args, get_type_hints

from harness.errors import UsageError


@dataclass(frozen=True, slots=True)
class Knobs:
    """The levers of one replication protocol.

    Attributes:
        truncation: how a follower decides what to cut. ``hw``: on becoming a follower of another leader, and
            after every restart, to its own high watermark (Kafka <= 0.10.2). ``diverging_fetch``: where the
            leader's answer to a fetch says that the epochs diverge (KIP-595, effective from Kafka 2.8).
        fetch_fencing: whether a leader refuses fetches of another leader epoch (KIP-320, Kafka 2.1).
        epoch_entry: when a leader records its epoch's start offset: at its ``first_append`` (KIP-101) or
            ``on_election`` (KAFKA-7415, Kafka 2.0.1).
        isr_join: what a follower must have fetched to enter the ISR: the leader's high watermark (``hw``), or
            also the start offset of the leader's epoch (``hw_and_epoch_start``, KAFKA-7128, Kafka 2.0.1).
        hw_below_min_isr: whether the high watermark may ``advance`` while the ISR is smaller than
            ``min.insync.replicas``, or must ``freeze`` (KAFKA-15583, Kafka 3.7).
        out_of_range: what a follower does whose log is longer than its leader's and that has no epochs to tell
            where they part: ``truncate`` to the leader's log end offset, or ``exit``, as Kafka 0.8.1 to 2.0.0 do
            without unclean elections (KAFKA-7414).
    """

    truncation: Literal["hw", "diverging_fetch"]
    fetch_fencing: bool
    epoch_entry: Literal["first_append", "on_election"]
    isr_join: Literal["hw", "hw_and_epoch_start"]
    hw_below_min_isr: Literal["advance", "freeze"]
    out_of_range: Literal["truncate", "exit"] = "truncate"


_CURRENT = Knobs(
    truncation="diverging_fetch",
    fetch_fencing=True,
    epoch_entry="on_election",
    isr_join="hw_and_epoch_start",
    hw_below_min_isr="freeze",
)

GENERATIONS: Mapping[str, Knobs] = MappingProxyType(
    {
        "0.10": Knobs(
            truncation="hw",
            fetch_fencing=False,
            epoch_entry="first_append",
            isr_join="hw",
            hw_below_min_isr="advance",
            out_of_range="exit",
        ),
        "2.8": replace(_CURRENT, hw_below_min_isr="advance"),
        "3.7": _CURRENT,
    }
)

CURRENT_GENERATION = "3.7"


def generation(name: str, overrides: Mapping[str, str] = MappingProxyType({})) -> Knobs:
    """The knobs of generation ``name``, with single knobs overridden (``{"truncation": "hw"}``).

    Raises:
        UsageError: no such generation, knob or value.
    """
    try:
        knobs = GENERATIONS[name]
    except KeyError:
        raise UsageError(f"generation {name!r} is not known.", f"Choose one of {', '.join(GENERATIONS)}.") from None
    changed: dict[str, Any] = {knob: _value(knob, text) for knob, text in overrides.items()}
    return replace(knobs, **changed)


def _value(knob: str, text: str) -> str | bool:
    hints = get_type_hints(Knobs)
    if knob not in hints:
        raise UsageError(
            f"replication knob {knob!r} is not known.", f"Knobs: {', '.join(f.name for f in fields(Knobs))}."
        )
    allowed: tuple[str, ...] = ("true", "false") if hints[knob] is bool else get_args(hints[knob])
    if text not in allowed:
        raise UsageError(f"replication knob {knob}: {text!r} is not a value.", f"Values: {', '.join(allowed)}.")
    return text == "true" if hints[knob] is bool else text

"""What was wrong with the generations, what mended it, and ``docs/generations.md``'s tables and picture from that."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import get_args, get_type_hints

from harness.replication.knobs import GENERATIONS, Knobs
from tests.harness.replication.world import World
from tests.seeds import clusters

DOCUMENT = Path(__file__).parents[2] / "docs" / "generations.md"
PICTURE = DOCUMENT.parent / "img" / "generations.svg"
NAMES = tuple(GENERATIONS)


@dataclass(frozen=True)
class Flaw:
    """One way in which a generation loses or diverges data that a later one does not.

    ``schedule`` plays it on a generation (None: only a scenario does). ``last`` is the newest generation that has it;
    so do all before.
    """

    name: str
    scenarios: tuple[str, ...]
    last: str
    mended_by: str
    knobs: tuple[str, ...]
    schedule: Callable[[str], World] | None

    @property
    def generations(self) -> tuple[str, ...]:
        """All that have it."""
        return NAMES[: NAMES.index(self.last) + 1]


FLAWS = (
    Flaw(
        "a follower cuts what it does not know to be committed",
        ("A01", "A02", "A03"),
        "0.10",
        "KIP-101 (0.11): followers ask where their epoch ends",
        ("truncation",),
        clusters.two_leaders_die,
    ),
    Flaw(
        "unequal tails after a power loss stay unequal",
        ("A04", "A05"),
        "0.10",
        "KIP-101 (0.11)",
        ("truncation",),
        partial(clusters.power_loss_of_both, acks=1),
    ),
    Flaw(
        "the answer where an epoch ends does not say which epoch that is",
        ("A07", "A08"),
        "0.11",
        "KIP-279 (2.0.0): the answer names the epoch, and the follower asks again",
        ("truncation",),
        clusters.fast_failover,
    ),
    Flaw(
        "logs without an epoch in common are not compared",
        ("A06", "A09"),
        "2.0.0",
        "KAFKA-7415 (2.0.1): older epochs end where the first known one starts",
        ("lookup_below_first", "epoch_entry"),
        clusters.take_turns,
    ),
    Flaw(
        "a follower that missed an epoch of its own leader cuts nothing",
        ("A10",),
        "2.0.0",
        "KAFKA-7164 (2.0.1) and every new epoch (2.1)",
        ("truncate_when",),
        clusters.missed_epoch,
    ),
    Flaw(
        "a replica joins the in-sync set at a watermark that lags",
        ("B08",),
        "2.0.0",
        "KAFKA-7128 (2.0.1): it must have reached the start of the leader's epoch",
        ("isr_join",),
        clusters.join_at_a_stale_watermark,
    ),
    Flaw(
        "a follower that missed an election goes on fetching",
        ("A11",),
        "2.0.1",
        "KIP-320 (2.1): a fetch carries its epoch, and a leader of another refuses it",
        ("fetch_fencing", "lookup_fencing"),
        clusters.zombie_follower,
    ),
    Flaw(
        "an old request lets a replica in that has restarted empty since",
        ("B11",),
        "2.8",
        "KIP-903 (3.5): the controller compares broker epochs",
        ("broker_epoch_check",),
        clusters.join_after_an_empty_restart,
    ),
    Flaw(
        "what one replica alone holds is shown below the minimum",
        ("B24",),
        "2.8",
        "KAFKA-15583 (3.7): the watermark stands still below the minimum",
        ("hw_below_min_isr",),
        None,
    ),
    Flaw(
        "the last replica in sync leads again after it has lost its page cache",
        ("B05",),
        "3.7",
        "KIP-966 (4.1): others that hold everything stay eligible, and an unclean shutdown is noticed",
        ("elections",),
        clusters.last_replica_standing,
    ),
)

# ----------------------------------------------------------------------------------------------------------- tables


def flaw_table() -> str:
    """One line per flaw."""
    lines = ["| flaw | scenarios | last generation that has it | mended by | knobs |", "|---|---|---|---|---|"]
    lines += [
        f"| {flaw.name} | {', '.join(flaw.scenarios)} | {flaw.last} | {flaw.mended_by} | {_code(*flaw.knobs)} |"
        for flaw in FLAWS
    ]
    return "\n".join(lines)


def knob_table() -> str:
    """What distinguishes the generations: one line per knob, with its value where it changes."""
    lines = [f"| knob | {' | '.join(NAMES)} |", f"|---|{'---|' * len(NAMES)}"]
    for knob in _knobs():
        values = [_value(getattr(knobs, knob)) for knobs in GENERATIONS.values()]
        if len(set(values)) > 1:
            shown = [
                "·" if number and value == values[number - 1] else _code(value) for number, value in enumerate(values)
            ]
            lines.append(f"| {_code(knob)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def mutant_table() -> str:
    """The knobs that are the same in every generation: every other value is an idea, a mutant or a mended bug."""
    lines = ["| knob | every generation | other values |", "|---|---|---|"]
    hints = get_type_hints(Knobs)
    for knob in _knobs():
        values = {_value(getattr(knobs, knob)) for knobs in GENERATIONS.values()}
        if len(values) == 1:
            [value] = values
            allowed = ("true", "false") if hints[knob] is bool else get_args(hints[knob])
            lines.append(f"| {_code(knob)} | {_code(value)} | {_code(*(one for one in allowed if one != value))} |")
    return "\n".join(lines)


def _knobs() -> list[str]:
    return [field.name for field in fields(Knobs) if field.name != "bugs"]


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


TABLES = {"flaws": flaw_table, "knobs": knob_table, "mutants": mutant_table}


def document() -> str:
    """The document with its tables as they are now: between ``<!-- flaws -->`` and ``<!-- /flaws -->``, and so on."""
    text = DOCUMENT.read_text()
    for name, table in TABLES.items():
        place = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, count = place.subn(lambda found, table=table: f"{found[1]}\n{table()}\n\n{found[2]}", text)  # type: ignore[misc]
        assert count == 1, f"docs/generations.md has {count} places for the table {name}"
    return text


# ---------------------------------------------------------------------------------------------------------- picture

_LEFT, _TOP, _COLUMN, _ROW = 470, 44, 88, 30


def picture() -> str:
    """A bar for each flaw, over the generations that have it."""
    width, height = _LEFT + _COLUMN * len(NAMES) + 20, _TOP + _ROW * len(FLAWS) + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        '<g font-family="system-ui, sans-serif" font-size="13">',
        "<title>Which generation has which flaw</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
    ]
    for column, name in enumerate(NAMES):
        x = _LEFT + _COLUMN * column
        lines.append(
            f'<text x="{x + _COLUMN // 2}" y="26" text-anchor="middle" font-weight="600" fill="#1f2937">{name}</text>'
        )
        lines.append(f'<line x1="{x}" y1="36" x2="{x}" y2="{height - 12}" stroke="#e5e7eb"/>')
    for number, flaw in enumerate(FLAWS):
        lines += _bar(flaw, _TOP + _ROW * number)
    return "\n".join([*lines, "</g>", "</svg>\n"])


def _bar(flaw: Flaw, y: int) -> list[str]:
    x, width = _LEFT, _COLUMN * len(flaw.generations)
    return [
        f'<text x="{_LEFT - 12}" y="{y + 16}" text-anchor="end" fill="#374151">{flaw.name}</text>',
        f'<rect x="{x + 3}" y="{y + 2}" width="{width - 6}" height="20" rx="4" fill="#b91c1c"/>',
        f'<text x="{x + 8}" y="{y + 16}" font-size="11" fill="#ffffff">{" ".join(flaw.scenarios)}</text>',
    ]

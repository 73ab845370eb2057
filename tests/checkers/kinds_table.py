"""The parts of ``docs/anomalies.md`` that are made of the records in ``checkers/*.py`` and ``harness/excuse.py``.

The table has all kinds of anomaly, and the line of an invariant ends with the kinds that are a breach of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from itertools import chain
from pathlib import Path

from checkers import CONCLUSIONS, PROMISES
from harness.anomaly import AnomalyKind, CauseAt, Found, LossyFailure, Needs, Retention, Unseen
from harness.excuse import EXCUSES, ExcuseKind

PAGE = Path(__file__).parents[2] / "docs" / "anomalies.md"
BEGIN, END = "<!-- kinds -->\n", "<!-- /kinds -->"
EXCUSES_BEGIN, EXCUSES_END = "<!-- excuses -->\n", "<!-- /excuses -->"

INVARIANT = re.compile(r"^(\* ([CRT]\d+b?) .*): ((?:`[\w-]+`(?:, )?)*)$", re.MULTILINE)

_FOUND = {Found.ALL: "all", Found.SOME: "some", Found.SOME_WITH_EVERY_LEADER: "leaders", Found.NONE: "none"}


def homes() -> dict[str, tuple[str, AnomalyKind]]:
    """By the name of a kind: the module of its promise, and its record; in the order in which kinds are judged."""
    return {
        kind.name: (str(getattr(promise, "__name__", "")).removeprefix("checkers."), kind)
        for promise in chain[object](PROMISES, CONCLUSIONS)
        for kind in getattr(promise, "KINDS", ())
    }


def table() -> str:
    """The legend and the table, with its markers."""
    return "".join((BEGIN, "\n", *(f"{line}\n" for line in chain(_legend(), _rows())), "\n", END))


def with_table(page: str) -> str:
    """``page`` with the present table between its markers."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{table()}{rest.partition(END)[2]}"


def with_excuses(page: str) -> str:
    """``page`` with the present table of excuses between its markers."""
    before, _, rest = page.partition(EXCUSES_BEGIN)
    rows = [f"| {one.meaning} | {_verdict(one)} | {_holds(one)} |" for one in EXCUSES.values()]
    lines = ["", "| what the rule says of it | verdict | holds where |", "|---|---|---|", *rows, ""]
    return "".join(
        (before, EXCUSES_BEGIN, *(f"{line}\n" for line in lines), EXCUSES_END, rest.partition(EXCUSES_END)[2])
    )


def _verdict(excuse: ExcuseKind) -> str:
    word, comma, rest = excuse.effect.value.partition(",")
    return f"`{word}`{comma}{rest}"


def _holds(excuse: ExcuseKind) -> str:
    guarantee = excuse.guarantee
    conditions = (
        guarantee is not None and f"`guarantees.{guarantee.name}` is {str(guarantee.value).lower()}",
        excuse.if_resent and "the client had a reason to send it again",
        excuse.of_the_client and "no wire tap shows that the client did not",
    )
    return ", ".join(condition for condition in conditions if condition) or "always"


def with_invariants(page: str) -> str:
    """``page`` with the present kinds at the end of the line of each invariant."""
    return INVARIANT.sub(lambda line: f"{line[1]}: {_breaches(line[2])}", page)


def _breaches(invariant: str) -> str:
    return ", ".join(f"`{name}`" for name, (_, kind) in homes().items() if invariant in kind.invariants)


def _legend() -> Iterator[str]:
    yield "* **Bold** shows the loss of a record. The promise is the module in `checkers/`, or has the kind's name."
    yield (
        "* *Needs*: what must be whole; in `values`, `ends` and `times` the history must not contradict itself, in "
        "`isr` leaders and controller must name the ISR."
    )
    yield f"* *Follows from*: findings of the same partition {_all(CauseAt)}."
    yield (
        "* *Excused by*: U an unclean election; F a fault, whatever the configuration says; C its cause, if that is "
        "excused; K failures that may have taken every copy of `__consumer_offsets` or `__transaction_state` "
        f"(`INDETERMINATE`); a deletion, which must show {_all(Retention, 'D')}; lossy failures of all copies, "
        f"{_all(LossyFailure, 'L')}; <2.1 generations before that one, which do not promise it."
    )
    yield (
        "* *Clients*: whether [what clients record](#evidence-tiers) shows some of them where no broker is "
        "observed, or what the cluster tells them of itself does (`metadata`), or replica logs with that (`logs`)."
    )
    yield (
        "* *Sampled*: which of them a [sampled timeline](#sampled-timelines) shows (`leaders`: some, where every "
        "leader of the partition was seen to lead); what it may not show that would excuse one: "
        f"{_all(Unseen, 'S')}."
    )
    yield ""


def _rows() -> Iterator[str]:
    yield "| kind, module | meaning | needs | follows from | excused by | clients | sampled |"
    yield "|---|---|---|---|---|---|---|"
    for name, (module, kind) in homes().items():
        shown = f"**{name}**" if kind.shows_loss else name
        needs = ", ".join(one.value for one in Needs if one in kind.relies_on)
        causes = ", ".join(kind.follows_from)
        if causes:
            causes += f" {_code('', kind.cause_at)}"
        sampled = f"{_FOUND[kind.sampled.found]} {_code('S', kind.sampled.unseen)}".strip()
        clients = _least(kind)
        home = "" if module == name.replace("-", "_") else f" `{module}`"
        cells = (f"{shown}{home}", kind.meaning, needs, causes, " ".join(_excuses(kind)), clients, sampled)
        yield f"| {' | '.join(cells)} |"


def _least(kind: AnomalyKind) -> str:
    """With which evidence, short of brokers' states, it can be shown."""
    if kind.shown_by_clients:
        return "yes"
    return "metadata" if kind.shown_by_metadata else "logs" if kind.shown_by_logs else ""


def _excuses(kind: AnomalyKind) -> Iterator[str]:
    excuses = kind.excuses
    letters = {"U": excuses.unclean_election, "F": excuses.fault, "C": excuses.with_cause, "K": excuses.own_topic}
    codes = (_code("D", excuses.retention), _code("L", excuses.lossy_failure))
    yield from (letter for letter, whether in letters.items() if whether)
    yield from filter(None, codes)
    if kind.since is not None:
        yield f"<{kind.since.generation}"


def _code(letter: str, member: Enum) -> str:
    """A member of an enumeration in short; with a letter, nothing for the first one, which is that there is none."""
    at = list(type(member)).index(member)
    return ("" if at == 0 else f"{letter}{at}") if letter else f"({'abcdef'[at]})"


def _all(members: type[Enum], letter: str = "") -> str:
    return ", ".join(f"{_code(letter, member)} {member.value}" for member in members if _code(letter, member))

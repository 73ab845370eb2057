"""``docs/mutation.md``: the mutation score as a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from harness.detection.trial import SCENARIO

CLASSIFIED = Path(__file__).with_name("classified.yaml")
"""A list of mappings: ``name`` of the mutant, ``is`` (a key of :data:`REASONS`), and ``because``, a sentence."""

REASONS: Mapping[str, str] = {
    "equivalent": "no run can differ from one of the original: the edit changes nothing that a client, a replica or "
    "the evidence could show",
    "permitted": "runs differ, and every promise is kept in them: the edit changes when or how something is done, or "
    "takes away a flaw of an old generation",
    "unreached": "the load never brings about the state in which the edit matters, or never executes the statement",
    "noticed": "no run that shows the edit passes, and none names a broken promise: it is inconclusive, or a schedule "
    "waits in vain, which makes it invalid",
    "blind": "a promise is broken, or evidence is missing, in a run that passes: the checkers do not see it",
    "undecided": "not judged yet",
}
"""Why a mutant survived."""

Row = Mapping[str, Any]
Opinions = Mapping[str, Row]


def document(rows: Sequence[Row], control: Sequence[Row], seed: int) -> str:
    """The page.

    Args:
        rows: the mutants with what came of them, as ``score.py`` keeps them.
        control: the trials with the code as it is.
        seed: of the sample.
    """
    opinions = {one["name"]: one for one in yaml.safe_load(CLASSIFIED.read_text()) or ()}
    parts = [
        _INTRODUCTION,
        "\n".join(_score(rows, opinions, control, seed)),
        "\n".join(_table("operator", [(row["operator"], row) for row in rows])),
        "\n".join(_table("module", [(row["module"], row) for row in rows])),
        "\n".join(_survivors(rows, opinions)),
        "\n".join(_crashes(rows)),
    ]
    return "\n\n".join(parts) + "\n"


def _reason(row: Row, opinions: Opinions) -> str:
    """Why a mutant was not detected; empty for one that was, or that crashed or went on for ever."""
    if row["class"] in ("detected", "crashed", "endless"):
        return ""
    if row["class"] == "unreached":
        return "unreached"
    return str(opinions.get(row["name"], {"is": "undecided"})["is"])


def _score(rows: Sequence[Row], opinions: Opinions, control: Sequence[Row], seed: int) -> Iterator[str]:
    classes = Counter(row["class"] for row in rows)
    reasons = Counter(_reason(row, opinions) for row in rows)
    differing = len(rows) - reasons["equivalent"]
    judged = differing - classes["crashed"] - classes["endless"]
    seen = judged - reasons["unreached"]
    harmful = seen - reasons["permitted"]
    played = sum(row["class"] == "detected" and row["by"][0] == SCENARIO for row in rows)
    yield "## The score\n"
    unsound = sum(one["result"][0] != "pass" for one in control)
    yield f"{len(rows)} mutants, drawn with seed {seed}; {len(control)} trials, of which {unsound} do not pass without"
    yield "an edit and are left out.\n"
    yield "| | mutants |\n|---|---|"
    yield f"| detected: a `VIOLATION`, {played} of them by a shipped scenario | {classes['detected']} |"
    yield f"| crashed: the mutated code raised, and no trial detected it | {classes['crashed']} |"
    yield f"| endless: a trial did not come to its end | {classes['endless']} |"
    yield f"| not detected, equivalent | {reasons['equivalent']} |"
    yield f"| not detected, permitted | {reasons['permitted']} |"
    yield f"| not detected, the load does not reach what it changes | {reasons['unreached']} |"
    yield f"| not detected, noticed: inconclusive or invalid | {reasons['noticed']} |"
    yield f"| not detected, the checkers are blind to it | {reasons['blind']} |"
    yield f"| not detected, not looked at yet | {reasons['undecided']} |"
    yield ""
    yield f"* **{_share(classes['detected'], judged)}** of the mutants that are not equivalent and neither crash nor"
    yield "  hang are detected; what the load does not reach, and what is permitted, counts against the score. The aim"
    yield "  is 95 %."
    yield f"* {_share(classes['detected'], differing)} with crashes and hangs in the denominator, too."
    yield f"* {_share(classes['detected'], seen)} of those whose change the load reaches, and"
    yield f"  {_share(classes['detected'], harmful)} without those that keep every promise: what the checkers make of"
    yield "  what they are shown. The rest of these is noticed without being detected, or missed."
    yield "* So the load limits the score more than the checkers do: most survivors are conditions that guard against"
    yield "  requests which no client here makes, and branches of older generations."


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ({part} of {whole})" if whole else "0 of 0"


def _table(by: str, rows: Sequence[tuple[str, Row]]) -> Iterator[str]:
    yield f"## By {by}\n"
    yield f"| {by} | mutants | detected | crashed or endless | not detected |\n|---|{'---|' * 4}"
    for name in sorted({name for name, _ in rows}):
        own = [row for own_name, row in rows if own_name == name]
        detected = sum(row["class"] == "detected" for row in own)
        ended = sum(row["class"] in ("crashed", "endless") for row in own)
        yield f"| `{name}` | {len(own)} | {detected} | {ended} | {len(own) - detected - ended} |"


def _survivors(rows: Sequence[Row], opinions: Opinions) -> Iterator[str]:
    yield "## Every mutant that was not detected\n"
    yield 'By the reason, in a person\'s judgement. "Delete" is a statement and what depends on it, "swap" the first'
    yield "two arguments of a call. Each mutant ran under 60 trials, none of which left other evidence than without the"
    yield "edit; where that is not so, the row says in how many of how many trials the evidence differed."
    for reason, says in REASONS.items():
        mine = [row for row in rows if _reason(row, opinions) == reason]
        if not mine:
            continue
        yield f"\n### {reason.capitalize()}\n"
        yield f"{says[0].upper()}{says[1:]}.\n"
        never = [row for row in mine if row["class"] == "unreached" and row["name"] not in opinions]
        if never:
            yield f"No trial executes the statement of {len(never)}: {_places(never)}.\n"
        yield f"| mutant | {'what it would take, or change' if reason == 'unreached' else 'because'} |\n|---|---|"
        yield from _judged([row for row in mine if row not in never], opinions)


def _judged(rows: Sequence[Row], opinions: Opinions) -> Iterator[str]:
    """A row for all mutants of which the same is said."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        differ = f"{row.get('differing', 0)}/{row['runs']}"
        shown = f"{_where(row)} {_edit(row)}{'' if differ == '0/60' else f' ({differ})'}"
        because = opinions.get(row["name"], {}).get("because", "")
        alike.setdefault(because.removeprefix("It takes "), []).append(shown)
    yield from (f"| {'; '.join(shown)} | {because} |" for because, shown in alike.items())


def _crashes(rows: Sequence[Row]) -> Iterator[str]:
    yield "## What crashed or did not come to an end\n"
    yield "What the mutated code raised, or the runner said of the run; none of it is a verdict on records.\n"
    yield "| raised | mutants | where |\n|---|---|---|"
    raised: dict[str, list[Row]] = {}
    for row in rows:
        if row["class"] in ("crashed", "endless"):
            raised.setdefault(_raised(row["why"]), []).append(row)
    for what, several in sorted(raised.items(), key=lambda item: -len(item[1])):
        yield f"| {what} | {len(several)} | {_places(several)} |"


def _raised(why: str) -> str:
    """The name of an exception; or the beginning of a sentence."""
    name, colon, _ = why.partition(":")
    if colon and name.isidentifier():
        return f"`{name}`"
    return why.partition(". ")[0][:80] or "nothing: it goes on"


def _places(rows: Sequence[Row]) -> str:
    """Functions by module, each with the number of its mutants, if that is more than one."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["module"].removeprefix("harness/"), Counter())[row["function"] or "(module)"] += 1
    return "; ".join(f"`{module}` {', '.join(map(_counted, *zip(*named.items(), strict=True)))}"
                     for module, named in found.items())  # fmt: skip


def _counted(name: str, number: int) -> str:
    return f"`{name}`" if number == 1 else f"`{name}` ({number})"


def _where(row: Row) -> str:
    return f"`{row['module'].removeprefix('harness/')}:{row['function']}`"


def _edit(row: Row) -> str:
    match row["operator"]:
        case "arguments swapped":
            return f"swap {_code(row['before'])}"
        case "statement deleted" | "filter dropped":
            return f"delete {_code(row['before'])}"
    before, after = row["before"].split(), row["after"].split()
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    old, new = _code(" ".join(before)), _code(" ".join(after))
    change = f"{old} → {new}" if old and new else f"without {old}" if old else f"with {new}"
    return change if len(before) == len(row["before"].split()) else f"{_code(row['before'])}: {change}"


def _code(text: str) -> str:
    """``text`` as code in a cell of a table."""
    text = _INNER.sub("…", text)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"`{shown.replace('|', chr(92) + '|').replace('`', chr(39))}`" if shown else ""


_LONGEST = 70
_INNER = re.compile(r"\[\d+ more\]$")
"""How the name of a mutant counts the statements within the one that is deleted."""

_INTRODUCTION = """# The mutation score of the verdict

The [detection matrix](detection.md) has designed bugs. The mutants here are defects by chance: `tests/mutation` edits
one comparison, constant, operator, pair of arguments or statement of the replication core or of the broker's storage,
fetch, produce and controller code, runs the edited code in virtual time, and lets the checkers judge what it leaves
behind. The code's own assertions are off, and the simulator's witness has no say.

*Detected* means that the verdict on at least one run is a `VIOLATION`. Three trials of four are random load with
overlapping faults, most of them in the newest generation and some in each older one; the fourth plays a shipped
scenario. A trial that does not pass with the code as it is counts for nothing. A mutant runs under the first 60 trials
that execute the edited statement, until it is detected. `make mutation` measures everything again and writes this
page; `tests/mutation` has the edits (`drawn.txt`), the load and the judgements (`classified.yaml`)."""

"""``docs/mutation.md``: the mutation score as a page."""

from __future__ import annotations

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

_CLASSES = ("convicted", "crashed", "endless", "doubted", "survived", "unreached")

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
        "\n".join(_table("operator", [(row["operator"], row) for row in rows], opinions)),
        "\n".join(_table("module", [(row["module"], row) for row in rows], opinions)),
        "\n".join(_survivors(rows, opinions)),
        "\n".join(_crashes(rows)),
    ]
    return "\n\n".join(parts) + "\n"


def _reason(row: Row, opinions: Opinions) -> str:
    """Why a mutant was not convicted; empty for one that was, or that crashed or went on for ever."""
    if row["class"] in ("convicted", "crashed", "endless"):
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
    played = sum(row["class"] == "convicted" and row["by"][0] == SCENARIO for row in rows)
    yield "## The score\n"
    unsound = sum(one["result"][0] != "pass" for one in control)
    yield f"{len(rows)} mutants, drawn with seed {seed}; {len(control)} trials, of which {unsound} do not pass without"
    yield "an edit and are left out.\n"
    yield "| | mutants |\n|---|---|"
    yield f"| convicted: a `VIOLATION`, {played} of them by a shipped scenario | {classes['convicted']} |"
    yield f"| crashed: the mutated code raised, and no trial convicted it | {classes['crashed']} |"
    yield f"| endless: a trial did not come to its end | {classes['endless']} |"
    yield f"| not convicted, equivalent | {reasons['equivalent']} |"
    yield f"| not convicted, permitted | {reasons['permitted']} |"
    yield f"| not convicted, the load does not reach what it changes | {reasons['unreached']} |"
    yield f"| not convicted, noticed: inconclusive or invalid | {reasons['noticed']} |"
    yield f"| not convicted, the checkers are blind to it | {reasons['blind']} |"
    yield f"| not convicted, not looked at yet | {reasons['undecided']} |"
    yield ""
    yield f"* **{_share(classes['convicted'], judged)}** of the mutants that are not equivalent and neither crash nor"
    yield "  hang are convicted; what the load does not reach, and what is permitted, counts against the score. The aim"
    yield "  is 95 %."
    yield f"* {_share(classes['convicted'], differing)} with crashes and hangs in the denominator, too."
    yield f"* {_share(classes['convicted'], seen)} of those whose change the load reaches, and"
    yield f"  {_share(classes['convicted'], harmful)} without those that keep every promise: what the checkers make of"
    yield "  what they are shown. The rest of these is noticed without a conviction, or missed."
    yield "* So the load limits the score more than the checkers do: most survivors are conditions that guard against"
    yield "  requests which no client here makes, and branches of older generations."


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ({part} of {whole})" if whole else "0 of 0"


def _table(by: str, rows: Sequence[tuple[str, Row]], opinions: Opinions) -> Iterator[str]:
    yield f"## By {by}\n"
    yield f"| {by} | mutants | {' | '.join(_CLASSES)} | of these equivalent |\n|---|{'---|' * (len(_CLASSES) + 2)}"
    for name in sorted({name for name, _ in rows}):
        own = [row for own_name, row in rows if own_name == name]
        classes = Counter(row["class"] for row in own)
        equivalent = sum(_reason(row, opinions) == "equivalent" for row in own)
        counts = " | ".join(str(classes[one]) for one in _CLASSES)
        yield f"| `{name}` | {len(own)} | {counts} | {equivalent} |"


def _survivors(rows: Sequence[Row], opinions: Opinions) -> Iterator[str]:
    yield "## Every mutant that was not convicted\n"
    yield "Why, in a person's judgement:\n"
    yield from (f"* *{name}*: {says}." for name, says in REASONS.items())
    yield "\n*Trials*: how many were run, and in how many of them the evidence differs from that of the same trial"
    yield "without the edit."
    yield "\n| where | edit | trials | why | |\n|---|---|---|---|---|"
    for row in rows:
        reason = _reason(row, opinions)
        if not reason:
            continue
        because = opinions.get(row["name"], {}).get("because", "")
        if row["class"] == "unreached" and not because:
            because = "the statement is never executed"
        trials = f"{row['runs']}, {row.get('differing', 0)} differ" if row["runs"] else "0"
        yield f"| {_where(row)} | {_edit(row)} | {trials} | {reason} | {because} |"


def _crashes(rows: Sequence[Row]) -> Iterator[str]:
    yield "## Every mutant that crashed or did not come to an end\n"
    yield "| where | edit | what was raised |\n|---|---|---|"
    for row in rows:
        if row["class"] in ("crashed", "endless"):
            yield f"| {_where(row)} | {_edit(row)} | {_code(row['why'][:100]) or 'nothing: it goes on'} |"


def _where(row: Row) -> str:
    return f"`{row['module'].removeprefix('harness/')}` `{row['function']}`"


def _edit(row: Row) -> str:
    after = f" → {_code(row['after'])}" if row["after"] else ""
    return f"{row['operator']}: {_code(row['before'])}{after}"


def _code(text: str) -> str:
    """``text`` as code in a cell of a table."""
    shown = text if len(text) <= 160 else f"{text[:160]}…"
    return f"`{shown.replace('|', chr(92) + '|').replace('`', chr(39))}`" if shown else ""


_INTRODUCTION = """# The mutation score of the verdict

The [detection matrix](detection.md) has bugs that people thought of. The mutants here are defects by chance:
one comparison, constant, operator, pair of arguments or statement of the replication core or of the broker's storage,
fetch, produce and controller code is edited automatically, the edited code runs in virtual time, and the checkers judge
what it leaves behind. The code's own assertions are off, and the simulator's witness has no say.

*Convicted* means that the verdict on at least one run is a `VIOLATION`. Three trials of four are random load with
overlapping faults, most of them in the newest generation and some in each older one; the fourth plays a shipped
scenario. A trial that does not pass with the code as it is counts for nothing. A mutant runs under the first 60 trials
that execute the edited statement, until it is convicted. `make mutation` measures everything again and writes this
page; `tests/mutation` has the edits, the load and the judgements."""

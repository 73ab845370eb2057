"""``docs/detection.md``: the matrix as a page, generated from what was measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from checkers.promises import KINDS
from harness.detection.matrix import Control, Matrix, Score
from harness.detection.mixes import CHAOS, FAULTS, SYNTHETIC, WORKLOADS, Mix, faults_at, workloads_at
from harness.detection.table import TABLE, Bug
from harness.detection.trial import SCENARIO, Cell
from harness.simulation.core.configuration import CORE, STACK

"""Every kind of anomaly that there is."""

NO_VIOLATION: Mapping[str, tuple[str, str]] = {
    "G0": ("Kafka promises nothing against it: it is `DOCUMENTED` wherever it comes up", "transactions_interleave"),
    "unseen": ("it is `INDETERMINATE` by nature, and leaves a run inconclusive", "consumer_starves"),
}
"""Why no bug can be convicted of a kind, and which bug shows it all the same."""

NO_BROKER = (
    "precommitted-read", "torn-transaction", "wrong-marker", "open-transaction", "int-nonmonotonic-send", "G1c",
)  # fmt: skip
"""The kinds of which no broker here can be guilty: the built-in ones have no transactions."""

_RANDOM, _SCHEDULE, _MADE_UP, _NOT = "random", "schedule", "made up", "not"
"""The kinds of proof that the checkers find a bug, the strongest first."""

_ORDER = {mix.name: at for at, mix in enumerate(FAULTS)}
_DEPTHS: Mapping[str, str] = {CORE: "the bare core", STACK: "the whole broker", SYNTHETIC: "made-up histories"}


def document(matrix: Matrix) -> str:
    """The text of ``docs/detection.md``."""
    shown = [bug for bug in TABLE if bug.name in matrix.scores]
    parts = [
        _INTRODUCTION,
        "\n".join(_mixes()),
        "\n".join(_summary(matrix, shown)),
        "\n".join(_missed(matrix, shown)),
        "\n".join(_kinds(matrix, shown)),
        "\n".join(_controls(matrix)),
        *("\n".join(lines) for depth in (CORE, STACK) for lines in _cells(matrix, shown, depth)),
        "\n".join(_schedules(matrix, shown)),
        "\n".join(_switches(shown)),
    ]
    return "\n\n".join(parts) + "\n"


def _mixes() -> Iterator[str]:
    yield "## Workloads and faults\n"
    yield "| workload | what it is | what it cannot show |\n|---|---|---|"
    yield from map(_mix, WORKLOADS)
    yield "\n| faults | what they are | what they cannot show |\n|---|---|---|"
    yield from map(_mix, FAULTS)
    yield "\nOn the whole broker the faults of a mix come one at a time. None of them has groups, transactions, unclean"
    yield "elections or several log directories.\n"
    yield "`random-chaos` and other scenarios [with a mix of their own](faults.md#chaos) may play it in three ways:\n"
    yield "| chaos | what it is | what it cannot show |\n|---|---|---|"
    yield from map(_mix, CHAOS)
    yield _UNREACHED


def _mix(mix: Mix) -> str:
    return f"| `{mix.name}` | {mix.says} | {mix.hides} |"


# ------------------------------------------------------------------------------------------------------------- the bugs


def _summary(matrix: Matrix, bugs: Sequence[Bug]) -> Iterator[str]:
    yield "## Every bug\n"
    yield _proofs([_proof(bug, matrix.scores[bug.name]) for bug in bugs]) + "\n"
    yield (
        "*Best in*: the cell of random load and faults in which the checkers found it most often, and how often, with "
        "the 95 % interval of that share; or the schedule that shows it, where no such cell does, without an interval, "
        "for a schedule is no sample. *Seeds*: how many such runs it takes to find it with a probability of one half. "
        "*Until found*: virtual seconds, and seconds of one processor core with all checks, until the first of them "
        "found it. *No faults*: in how many per cent of the runs without any fault it was found, whatever their load.\n"
    )
    yield _best_of_many(matrix) + "\n"
    yield "| bug | what it does | idea | where | best in | found | seeds | until found | no faults | found as |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for bug in bugs:
        yield _line(bug, matrix.scores[bug.name])


def _proofs(proofs: Sequence[str]) -> str:
    number = Counter(proofs)
    found = len(proofs) - number[_NOT]
    return (
        f"Of {len(proofs)} bugs, {number[_RANDOM]} are found by random load and faults, {number[_SCHEDULE]} only by a "
        f"schedule made for them, and {number[_MADE_UP]} only in made-up histories, which no broker has left behind; "
        f"{number[_NOT]} are not found. These are three kinds of proof: that {found} of {len(proofs)} are found in one "
        "way or another says less than the first number."
    )


def _best_of_many(matrix: Matrix) -> str:
    cells = max((sum(_is_random(cell) for cell in scores) for scores in matrix.scores.values()), default=0)
    best = (
        f"The best cell is the best of up to {cells}, chosen by what was measured there, so its interval is "
        "optimistic; the first figure to trust is that of the same cell measured anew."
    )
    if not matrix.shares_seeds:
        return best + " Every cell has seeds of its own."
    return best + (
        " The present figures were taken with the same seeds in every cell: a seed draws the configuration, and the "
        "same one comes back in several cells, so cells are not independent samples, and no interval is pooled over "
        "them. The next measurement gives every cell seeds of its own."
    )


def _proof(bug: Bug, scores: Mapping[Cell, Score]) -> str:
    """The strongest proof that the checkers find a bug."""
    found = [cell for cell, score in scores.items() if score.found]
    if not found:
        return _NOT
    if bug.depth == SYNTHETIC:
        return _MADE_UP
    return _RANDOM if any(_is_random(cell) for cell in found) else _SCHEDULE


def _is_random(cell: Cell) -> bool:
    return cell.workload != SCENARIO


def _line(bug: Bug, scores: Mapping[Cell, Score]) -> str:
    begun = f"| `{bug.name}` | {bug.does} | {bug.idea} | {_DEPTHS[bug.depth]} "
    proof = _proof(bug, scores)
    if proof == _NOT:
        return f"{begun}| | **missed** | | | | |"
    if proof == _SCHEDULE:
        shown = {cell: score for cell, score in scores.items() if score.found}
        places = "; ".join(f"schedule `{cell.faults}`: found" for cell in shown)
        return f"{begun}| {places} | | | {_until(next(iter(shown.values())))} | 0 | {_as(shown.values())} |"
    drawn = {cell: score for cell, score in scores.items() if _is_random(cell)}
    cell, best = max(drawn.items(), key=lambda item: (item[1].interval.low, -_ORDER.get(item[0].faults, 0)))
    quiet = [score for cell, score in drawn.items() if cell.faults == "none"]
    share = f"{100 * sum(s.found for s in quiet) / max(1, sum(s.tried for s in quiet)):.0f}" if quiet else ""
    until = _until(best) if bug.depth != SYNTHETIC else ""
    return (
        f"{begun}| {_place(cell)} | {best.found}/{best.tried}: {_percents(best)} % | {_seeds(best)} | {until} "
        f"| {share} | {_as(drawn.values())} |"
    )


def _until(score: Score) -> str:
    return f"{score.virtual_s:.1f} s, {score.cpu_s:.2f} s"


def _as(scores: Iterable[Score]) -> str:
    kinds: Counter[str] = Counter()
    for score in scores:
        kinds.update(score.kinds)
    return ", ".join(kind for kind, _ in kinds.most_common())


def _place(cell: Cell) -> str:
    return f"`{cell.workload}`, `{cell.faults}`" if _is_random(cell) else f"`{cell.faults}`"


def _percents(score: Score) -> str:
    interval = score.interval
    return f"{100 * interval.low:.0f} to {100 * interval.high:.0f}"


def _seeds(score: Score) -> str:
    """The median of how many runs it takes."""
    share = score.found / score.tried
    return "1" if share >= 0.5 else f"{math.ceil(math.log(0.5) / math.log(1 - share))}"


def _missed(matrix: Matrix, bugs: Sequence[Bug]) -> Iterator[str]:
    missed = [bug for bug in bugs if _proof(bug, matrix.scores[bug.name]) == _NOT]
    yield "## What is missed\n"
    if not missed:
        yield "Nothing."
        return
    yield "*At most*: the upper end of the 95 % interval in the largest single cell.\n"
    yield "| bug | runs | of these without a verdict | why | at most |\n|---|---|---|---|---|"
    for bug in missed:
        scores = matrix.scores[bug.name]
        tried = sum(s.tried for s in scores.values())
        doubted = sum(s.doubted + s.broken for s in scores.values())
        yield f"| `{bug.name}` | {tried} | {doubted} | {bug.unnoticed} | {_bound(scores)} |"


def _bound(scores: Mapping[Cell, Score]) -> str:
    """What not to have found it in the largest single cell rules out."""
    largest = max((score for cell, score in scores.items() if _is_random(cell)), key=lambda score: score.tried)
    return f"{100 * largest.interval.high:.0f} % of the runs of a cell (0/{largest.tried})"


def _kinds(matrix: Matrix, bugs: Sequence[Bug]) -> Iterator[str]:
    yield "## Which bug causes which anomaly\n"
    yield "The kinds are those of [anomalies](anomalies.md). In italics: bugs that only made-up histories show."
    yield (f"No broker here can be guilty of {', '.join(NO_BROKER)}: the built-in ones have no transactions.\n")
    yield "| kind | bugs |\n|---|---|"
    for kind in KINDS:
        names = [
            f"*{bug.name}*" if bug.depth == SYNTHETIC else bug.name
            for bug in bugs
            if any(score.kinds[kind] for score in matrix.scores[bug.name].values())
        ]
        yield f"| {kind} | {', '.join(names) or _never_convicted(kind)} |"


def _never_convicted(kind: str) -> str:
    if kind not in NO_VIOLATION:
        return "**none**"
    why, bug = NO_VIOLATION[kind]
    return f"{why} (`{bug}`)"


# ----------------------------------------------------------------------------------------------------------- the cells


def _controls(matrix: Matrix) -> Iterator[str]:
    controls = matrix.controls
    tried = sum(control.tried for control in controls.values())
    alarmed = [f"{number} {kind} in {_place(cell)} ({_DEPTHS[cell.depth]})" for cell, control in controls.items()
               for kind, number in sorted(control.alarms.items())]  # fmt: skip
    unsound = sum(control.unsound for control in controls.values())
    yield "## Controls\n"
    yield (
        f"{tried} runs without a bug: {len(alarmed)} cells with a false alarm"
        f"{': ' + '; '.join(alarmed) if alarmed else ''}. {unsound} runs proved nothing. Neither count above.\n"
    )
    yield "What one run of a cell is, on average:\n"
    yield "| depth | workload | faults | runs | records sent | faults that happened | virtual seconds |"
    yield "|---|---|---|---|---|---|---|"
    for depth in (CORE, STACK):
        for workload in workloads_at(depth):
            for faults in faults_at(depth):
                control = controls.get(Cell(depth, workload, faults))
                if control is not None:
                    yield f"| {_DEPTHS[depth]} | `{workload}` | `{faults}` | {_average(control)} |"


def _average(control: Control) -> str:
    runs = control.tried
    return f"{runs} | {control.sends / runs:.0f} | {control.faults / runs:.1f} | {control.virtual_s / runs:.1f}"


def _cells(matrix: Matrix, bugs: Sequence[Bug], depth: str) -> Iterator[list[str]]:
    columns = faults_at(depth)
    for workload in workloads_at(depth):
        lines = [f"## Cell by cell: {_DEPTHS[depth]}, `{workload}`\n"]
        lines.append("Per cent of the runs in which the checkers found it, and the 95 % interval; · is none.\n")
        lines.append(f"| bug | {' | '.join(columns)} |")
        lines.append(f"|---|{'---|' * len(columns)}")
        for bug in bugs:
            if bug.depth == depth:
                shown = [_cell(matrix.scores[bug.name].get(Cell(depth, workload, faults))) for faults in columns]
                lines.append(f"| `{bug.name}` | {' | '.join(shown)} |")
        yield lines


def _cell(score: Score | None) -> str:
    if score is None or not score.tried:
        return ""
    return f"{100 * score.found / score.tried:.0f} ({_percents(score)})" if score.found else "·"


def _schedules(matrix: Matrix, bugs: Sequence[Bug]) -> Iterator[str]:
    yield "## Schedules\n"
    yield "Scenarios that are made for a bug, or for what it breaks; the same run without the bug passes.\n"
    yield "| bug | scenario | found | as |\n|---|---|---|---|"
    for bug in bugs:
        for cell, score in matrix.scores[bug.name].items():
            if cell.workload == SCENARIO:
                kinds = ", ".join(kind for kind, _ in score.kinds.most_common())
                yield f"| `{bug.name}` | `{cell.faults}` | {score.found}/{score.tried} | {kinds} |"


def _switches(bugs: Iterable[Bug]) -> Iterator[str]:
    yield "## How to switch them on\n"
    yield "With `seawall simulate`, `seawall run` and `seawall scenario run`. No generation has any of them.\n"
    yield "| bug | switch |\n|---|---|"
    for bug in bugs:
        if bug.knobs:
            switches = " ".join(f"--set replication.{name}={value}" for name, value in bug.knobs.items())
            yield f"| `{bug.name}` | `{switches}` |"


_UNREACHED = """
In whatever way it is played, the load that `random-chaos` has by itself leaves things out. Every record is alone in its
batch, and uncompressed. Logs stay in their first segment, which holds 64 MB (`log.segment.bytes`), and nothing is
deleted from them. And no run, with this load or another, records what brokers answer clients to ListOffsets, the high
watermark in their answers to a consumer's Fetch, or the ISR in those to Metadata: a broker that is wrong in these alone
is not convicted of it."""

_INTRODUCTION = """\
# What the checkers find

A checker that nobody has seen fail proves nothing. Each row below is a broker or a controller that does one thing
wrong, run under load and faults in virtual time, and judged by the same [checkers](anomalies.md) that judge real runs,
from the tables that a run leaves behind. The witness of the [simulator](simulation.md), who sees everything, has no
say.

Each seed runs twice, with the bug and without it. What counts is a `VIOLATION` that is not there without the bug;
seeds whose run without a bug does not pass do not count. All clusters have three replicas, `min.insync.replicas=2` and
clean elections only, on the rules of 4.1 with the two remedies for what no release has mended (`reelected_leader`,
`straddled_batch`); schedules alone have clusters, and now and then rules, of their own. The reference engine decides;
that Spark says the same is what the differential tests are for.

`make detection` measures everything again, and writes this page and the figures that reports take for what a run that
passed would have noticed."""

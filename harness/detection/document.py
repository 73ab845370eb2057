"""``docs/detection.md``: the matrix as a page, generated from what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from checkers import lost_acknowledgement, lost_topic, unprocessed, withheld_record
from checkers.registry import KINDS
from harness.detection.by_tier import TIERS, ByTier
from harness.detection.figures import Figures
from harness.detection.matrix import Matrix, Score, best_cell
from harness.detection.mixes import CHAOS, FAULTS, OF_SOME, SYNTHETIC, WORKLOADS, Mix, faults_at, workloads_at
from harness.detection.table import TABLE
from harness.detection.trial import SCENARIO, Cell
from harness.model import CORE, STACK
from harness.replication.bugs import Bug
from reports.power import Interval, wilson

NO_VIOLATION: Mapping[str, tuple[str, str]] = {
    "G0": ("Kafka promises nothing against it: it is `DOCUMENTED` wherever it comes up", "transactions_interleave"),
    "unseen": ("it is `INDETERMINATE` by nature, and leaves a run inconclusive", "consumer_starves"),
}
"""Why a kind is never a violation, and which bug shows it all the same."""

NO_BROKER: Mapping[str, str] = {
    "group-repeat": "in virtual time the harness has every member begin",
}
"""The kinds that no broker here can show, and why."""

OF_PROGRAMS = tuple(kind.name for kind in unprocessed.KINDS if kind is not unprocessed.PROCESSED_TWICE)
"""The kinds that a user's program shows, and no bug here: the tests of the workload run broken programs."""

OF_SHARE_GROUPS = tuple(kind.name for kind in (*lost_acknowledgement.KINDS, *withheld_record.KINDS))
"""The kinds about share groups, which only real Kafka has; the tests of the workload show them by lying consumers."""

OF_RUNNING_CLUSTERS = tuple(kind.name for kind in lost_topic.KINDS)
"""The kinds that only clusters show whose nodes cannot be probed; no broker here is without a probe."""

_RANDOM, _SCHEDULE, _MADE_UP, _NOT = "random", "schedule", "made up", "not"
"""The kinds of proof that the checkers find a bug, the strongest first."""

_DEPTHS: Mapping[str, str] = {CORE: "the bare core", STACK: "the whole broker", SYNTHETIC: "made-up histories"}


def document(figures: Figures) -> str:
    """The text of ``docs/detection.md``."""
    matrix = figures.matrix
    shown = [bug for bug in TABLE if bug.name in matrix.scores]
    parts = [
        _INTRODUCTION,
        "\n".join(_mixes()),
        "\n".join(_summary(matrix, shown)),
        "\n".join(_missed(matrix, shown)),
        "\n".join(_by_tier(figures.tiers)),
        "\n".join(_kinds(matrix, shown)),
        "\n".join(_controls(matrix)),
        "\n".join(_cells(matrix, shown)),
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
    yield "\nOn the whole broker the faults of a mix come one at a time. None of them has unclean elections or several"
    yield "log directories.\n"
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
    yield _HOW_A_BUG_IS_SHOWN
    yield "\n" + _best_of_many(matrix)
    for depth, heading in _DEPTHS.items():
        yield f"\n### {heading.capitalize()}\n"
        rest = "found | as" if depth == SYNTHETIC else "best in | found | until | quiet | as"
        yield f"| bug | what it does | idea | {rest} |\n|---|---|---|{'---|' * (rest.count('|') + 1)}"
        for bug in bugs:
            if bug.depth == depth:
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
        "optimistic; measure that cell anew for a figure to trust."
    )
    if not matrix.shares_seeds:
        return best + " Every cell has seeds of its own."
    return best + (
        " The present figures were taken with the same seeds in every cell, and a seed draws the configuration: cells "
        "are not independent samples, and no interval is pooled over them. The next measurement gives every cell seeds "
        "of its own."
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
    begun = f"| `{bug.name}` | {bug.does} | {bug.idea} "
    proof = _proof(bug, scores)
    if proof == _NOT:
        return f"{begun}| **missed** |{' |' * (1 if bug.depth == SYNTHETIC else 4)}"
    if proof == _SCHEDULE:
        shown = next(score for score in scores.values() if score.found)
        return f"{begun}| a schedule | | {_until(shown)} | 0 | {_as(scores.values())} |"
    drawn = {cell: score for cell, score in scores.items() if _is_random(cell)}
    cell = best_cell(drawn)
    assert cell is not None, "it is found in a random cell"
    best = drawn[cell]
    if bug.depth == SYNTHETIC:
        return f"{begun}| {_share(best)} | {_as(drawn.values())} |"
    quiet = [score for cell, score in drawn.items() if cell.faults == "none"]
    share = f"{100 * sum(s.found for s in quiet) / max(1, sum(s.tried for s in quiet)):.0f}" if quiet else ""
    return f"{begun}| {_place(cell)} | {_share(best)} | {_until(best)} | {share} | {_as(drawn.values())} |"


def _until(score: Score) -> str:
    return f"{score.virtual_s:.1f}/{score.cpu_s:.2f}"


def _as(scores: Iterable[Score]) -> str:
    """The kind that came up in most runs, and how many others did."""
    kinds: Counter[str] = Counter()
    for score in scores:
        kinds.update(score.kinds)
    most = "".join(kind for kind, _ in kinds.most_common(1))
    return f"{most} +{len(kinds) - 1}" if len(kinds) > 1 else most


def _place(cell: Cell) -> str:
    return f"`{cell.workload}`/`{cell.faults}`" if _is_random(cell) else f"`{cell.faults}`"


def _share(score: Score) -> str:
    """How often it was found, and the interval of that in per cent."""
    return f"{score.found}/{score.tried}: {_percents(score.interval)}"


def _percents(interval: Interval) -> str:
    return f"{100 * interval.low:.0f}-{100 * interval.high:.0f}"


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


def _by_tier(tiers: Mapping[str, ByTier]) -> Iterator[str]:
    yield _BY_TIER
    tried = sum(one.tried for one in tiers.values())
    yield f"\n{len(tiers)} bugs, {tried} runs.\n"
    yield "| evidence | bugs found | runs found | of the others not passed | controls accused |"
    yield "|---|---|---|---|---|"
    for tier, name in TIERS.items():
        found, doubted, alarms = (
            sum(getattr(one, counted)[name] for one in tiers.values()) for counted in ("found", "doubted", "alarms")
        )
        yield f"| {tier} | {sum(one.found[name] > 0 for one in tiers.values())} | {found} | {doubted} | {alarms} |"
    alike = [bug for bug, one in tiers.items() if len({one.found[name] for name in TIERS.values()}) == 1]
    yield f"\nFound in as many runs whatever the tier: {', '.join(f'`{bug}`' for bug in alike)}.\n"
    yield "The others:\n"
    yield f"| bug | in | runs | {' | '.join(TIERS.values())} |\n|---|---|---|{'---|' * len(TIERS)}"
    for bug, one in tiers.items():
        if bug not in alike:
            found = " | ".join(str(one.found[name]) for name in TIERS.values())
            yield f"| `{bug}` | {_place(one.cell)} | {one.tried} | {found} |"


def _kinds(matrix: Matrix, bugs: Sequence[Bug]) -> Iterator[str]:
    yield "## Which bug causes which anomaly\n"
    yield "The kinds are those of [anomalies](anomalies.md). In italics: bugs that only made-up histories show."
    reasons = "; or ".join(f"{kind}: {why}" for kind, why in NO_BROKER.items())
    yield f"No broker here can show {reasons}.\n"
    yield "| kind | bugs |\n|---|---|"
    for kind in KINDS:
        names = [
            f"*{bug.name}*" if bug.depth == SYNTHETIC else bug.name
            for bug in bugs
            if any(score.kinds[kind] for score in matrix.scores[bug.name].values())
        ]
        yield f"| {kind} | {', '.join(names) or _never_detected(kind)} |"


def _never_detected(kind: str) -> str:
    if kind in OF_PROGRAMS:
        return "a [user's program](your-own-program.md) breaks it, and no bug here"
    if kind in OF_SHARE_GROUPS:
        return "no broker here has [share groups](share-groups.md); lying consumers of real Kafka's show it"
    if kind in OF_RUNNING_CLUSTERS:
        return "asked of a [running cluster](targets.md#a-running-cluster) alone; one whose topics are deleted shows it"
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
    yield "An average run of each cell; numbers apart by a space are those of the loads, in the order of the heading.\n"
    yield "| faults | records sent | faults that happened | virtual seconds |\n|---|---|---|---|"
    for depth in (CORE, STACK):
        runs = sorted({control.tried for cell, control in controls.items() if cell.depth == depth and _is_random(cell)})
        several = " or ".join(map(str, runs))
        yield f"| **{_DEPTHS[depth]}**: `{'` `'.join(workloads_at(depth))}`, {several} runs a cell | | | |"
        for faults in faults_at(depth):
            yield f"| `{faults}` | {' | '.join(_averages(matrix, depth, faults))} |"


def _averages(matrix: Matrix, depth: str, faults: str) -> Iterator[str]:
    """Of a mix: records, faults and seconds of an average run under each load."""
    controls = [matrix.controls.get(Cell(depth, workload, faults)) for workload in workloads_at(depth)]
    known = [control for control in controls if control is not None and control.tried]
    for counted, decimals in (("sends", 0), ("faults", 1), ("virtual_s", 1)):
        yield " ".join(f"{getattr(control, counted) / control.tried:.{decimals}f}" for control in known)


def _cells(matrix: Matrix, bugs: Sequence[Bug]) -> Iterator[str]:
    yield "## Cell by cell\n"
    shares = (f"{found}/{of} {_percents(wilson(found, of))}" for of in (40, 10, 8, 2) for found in (0, of // 2, of))
    yield "In how many runs of each load the checkers found a bug, of the number in the second column; · is none under"
    yield f"any. The 95 % interval of a share, in per cent: {', '.join(shares)}."
    for depth, load in ((CORE, ""), (STACK, ""), *((STACK, load) for load in sorted(OF_SOME))):
        columns = faults_at(depth)
        loads = [load] if load else [one for one in workloads_at(depth) if one not in OF_SOME]
        yield f"\n### {_DEPTHS[depth].capitalize()}: `{'`/`'.join(loads)}`\n"
        yield f"| bugs | runs | {' | '.join(columns)} |\n|---|---|{'---|' * len(columns)}"
        alike: dict[str, list[str]] = {}
        for bug in bugs:
            if (bug.depth, bug.load) == (depth, load):
                alike.setdefault(_found(matrix.scores[bug.name], depth), []).append(f"`{bug.name}`")
        yield from (f"| {', '.join(names)} {found}" for found, names in alike.items())


def _found(scores: Mapping[Cell, Score], depth: str) -> str:
    """A row of the cells of a bug: in how many runs of how many it was found, under each load."""
    most = max((score.tried for cell, score in scores.items() if _is_random(cell)), default=0)
    cells = (
        "/".join(
            _cell(score, most)
            for workload in workloads_at(depth)
            if (score := scores.get(Cell(depth, workload, faults))) is not None
        )
        for faults in faults_at(depth)
    )
    return f"| {most} | {' | '.join('·' if set(cell) <= {'/', '0'} else cell for cell in cells)} |"


def _cell(score: Score, most: int) -> str:
    if not score.tried:
        return ""
    return f"{score.found}" if score.tried == most or not score.found else f"{score.found} of {score.tried}"


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
    yield "`seawall simulate`, `seawall run` and `seawall scenario run` take `--set replication.bugs=BUG`; these bugs"
    yield "have knobs of their own. No generation has any of them.\n"
    yield "| bug | switch |\n|---|---|"
    for bug in bugs:
        if bug.knobs and "bugs" not in bug.knobs:
            switches = " ".join(f"--set replication.{name}={value}" for name, value in bug.knobs.items())
            yield f"| `{bug.name}` | `{switches}` |"


_HOW_A_BUG_IS_SHOWN = """\
* *Best in*: the load and faults in which the checkers found it most often; or a [schedule](#schedules), where no random
  cell shows it. No interval belongs to a schedule, which is no sample.
* *Found*: in how many runs of that cell, and the 95 % interval of the share, in per cent. With a share of p it takes
  ln 0.5 / ln(1 - p) runs to find it with a probability of one half.
* *Until*: virtual seconds / seconds of one processor core, with all checks, until the first run found it.
* *Quiet*: per cent of the runs without faults that found it, whatever their load.
* *As*: the anomaly that came up in most runs, and how many other kinds did; [below](#which-bug-causes-which-anomaly)
  are all."""

_BY_TIER = """\
## By tier of evidence

What a run can show depends on what was [observed](anomalies.md#evidence-tiers). Each bug is tried again in the cell
where the whole evidence finds it most, with seeds of its own, and every run is judged five times: by all that the
brokers recorded (*brokers*), and with evidence withheld: as if their states had been sampled as those of real Kafka are
(*samples*), as if a client had asked the cluster about its partitions four times a second, and the brokers' disks had
been copied in the end (*logs*), the same without the disks (*metadata*), and as if its clients alone had been there
(*clients*). Faults are known in each of them. A run in which a bug is
not found has not always passed: some are called inconclusive."""

_UNREACHED = """
However it is played, the load that `random-chaos` has by itself leaves things out. Every record is alone in its
batch, and uncompressed. Logs stay in their first segment, which holds 64 MB (`log.segment.bytes`), and nothing is
deleted from them. Only runs on [running clusters](targets.md#a-running-cluster) record what brokers answer clients to
ListOffsets and Metadata, and none the high watermark in their answers to a consumer's Fetch: the checkers do not see a
broker that is wrong in these alone."""

_INTRODUCTION = """\
# What the checkers find

A checker that has never failed proves nothing. Each bug below makes a broker or a controller do one thing wrong, under
load and faults in virtual time; the [checkers](anomalies.md) that judge real runs judge it, from the tables that a run
leaves behind. The witness of the [simulator](simulation.md), which sees everything, has no say.

Each seed runs twice, with the bug and without it. What counts is a `VIOLATION` that is not there without the bug;
seeds whose run without a bug does not pass do not count. All clusters have three replicas, `min.insync.replicas=2` and
clean elections only, on the rules of 4.1 with the two remedies for flaws that no release has fixed (`reelected_leader`,
`straddled_batch`); only schedules have clusters, and sometimes rules, of their own. The reference engine decides; the
differential tests hold Spark to it.

`make detection` measures everything again, and writes this page and the figures from which reports estimate what a run
that passed would have noticed."""

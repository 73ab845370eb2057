"""``docs/museum.md``: the exhibits, and how every scenario went on every release, from what was recorded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from statistics import median

from harness.museum.counting import Runs, counted, counting, proves, releases
from harness.museum.entry import Entry
from harness.museum.exhibits import EXHIBITS, MISTAKEN, Exhibit, Outcomes
from harness.museum.parity import left_out, parity
from harness.outcome import Word
from harness.scenario import Scenario

Cells = AbstractSet[tuple[str, str]]
"""Scenarios with releases."""

_SETTLED = "†"
_EPOCH = re.compile(r"@\d+")


def page(entries: Sequence[Entry], scenarios: Sequence[Scenario]) -> str:
    """The text of ``docs/museum.md`` from ``entries``; ``scenarios`` are those that are shipped."""
    known = {one.id: one for one in scenarios}
    runs = counted(entries, known)
    counts = counting(known)
    older = [one for one in entries if not counts(one)]
    settled = {(one.scenario, one.release) for one in older}
    parts = [
        _INTRODUCTION,
        _overview(runs, len(older)),
        _how_much_it_rests_on(runs, settled),
        *("\n".join(_exhibit(one, runs, settled)) for one in EXHIBITS),
        "\n".join(parity(runs, known)),
        "\n".join(left_out(runs, known)),
        "\n".join(_machines(runs)),
    ]
    return "\n\n".join(parts) + "\n"


def _overview(runs: Runs, older: int) -> str:
    every = [one for entries in runs.values() for one in entries]
    agree, broken = sum(one.agrees for one in every), sum(not proves(one) for one in every)
    return (
        f"{len(every)} runs of {len({scenario for scenario, _ in runs})} scenarios on {len(releases(runs))} releases: "
        f"{agree} went as predicted, {len(every) - agree - broken} otherwise. {broken} prove nothing: a step of the "
        "schedule did not come true in time, the evidence had gaps, or the harness made a mistake."
        + (f" {older} more do not count: their schedule or prediction has changed since." if older else "")
    )


def _how_much_it_rests_on(runs: Runs, settled: Cells) -> str:
    tries = {cell: sum(map(proves, entries)) for cell, entries in runs.items()}
    proven = {cell for cell, several in tries.items() if several}
    single = sum(tries[cell] == 1 for cell in proven)
    again = len(proven & settled)
    return (
        f"Of {len(proven)} pairs of a scenario and a release of which something is proven, {single} rest on one try"
        + (
            f"; in at least {again} ({_SETTLED} below), the schedule or the prediction was settled after a first run."
            if again
            else "."
        )
    )


# ---------------------------------------------------------------------------------------------------------- exhibits


def _exhibit(exhibit: Exhibit, runs: Runs, settled: Cells) -> Iterator[str]:
    yield f"## {exhibit.title}\n"
    yield f"*{exhibit.issues}.* {exhibit.happened}\n"
    yield "| scenario | Kafka | observed | what it shows | logs | as predicted | time to detect |"
    yield "|---|---|---|---|---|---|---|"
    for name, outcomes in exhibit.shows.items():
        yield from _rows(name, outcomes, runs, settled)
    best = next(_best(exhibit, runs), None)
    if best is not None:
        yield f"\n```\nseawall scenario run {best.scenario} --target {best.target} --seed {best.seed}\n```"


def _best(exhibit: Exhibit, runs: Runs) -> Iterator[Entry]:
    """The runs that went as predicted: first those in which the flaw shows, then by release, of each the last one."""
    for name, outcomes in exhibit.shows.items():
        for outcome, version in product(outcomes, _releases_of(name, runs)):
            good = filter(proves, reversed(runs[name, version]))
            yield from (one for one in good if one.agrees and one.observed == outcome)


def _releases_of(name: str, runs: Runs) -> list[str]:
    """Those on which the scenario was played, oldest first."""
    return releases({key: one for key, one in runs.items() if key[0] == name})


def _rows(name: str, outcomes: Outcomes, runs: Runs, settled: Cells) -> Iterator[str]:
    """A scenario's rows: releases on which it ended in the same way, with the same logs, are in one."""
    ends: dict[str, tuple[str, str, str]] = {}
    for version in _releases_of(name, runs):
        entries = runs[name, version]
        ends[version] = _observed(entries), _shown(entries, outcomes), _logs(entries)
    if not ends:
        yield f"| `{name}` | no run counts yet | - | - | - | - | - |"
    together: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for version, end in ends.items():
        same = (one for one in reversed(ends.values()) if end in (one, (*one[:2], _EPOCH.sub("", one[2]))))
        together[next(same)].append(version)
    above = ["", "", ""]
    for (seen, shown, logs), versions in together.items():
        entries = [one for version in versions for one in runs[name, version]]
        now = [f"`{entries[0].catalogue}`", seen, shown]
        first, *others_shown = ("" if mine == others else mine for mine, others in zip(now, above, strict=True))
        played = ", ".join(
            f"{version}{_SETTLED if (name, version) in settled else ''}{_how_many(runs[name, version])}"
            for version in versions
        )
        detected = _seconds([one.detected_s for one in entries if proves(one)])
        yield f"| {first} | {played} | {' | '.join(others_shown)} | {logs} | {_how_often(entries)} | {detected} |"
        above = now


def _how_many(entries: Sequence[Entry]) -> str:
    good = sum(map(proves, entries))
    return "" if good == 1 else f" ({good})"


def _observed(entries: Sequence[Entry]) -> str:
    """What was observed, and where that is not what was predicted, what was."""
    good = [one for one in entries if proves(one)]
    seen = " or ".join(dict.fromkeys(_words(one.observed) for one in good))
    if good and all(one.agrees for one in good):
        return seen
    return f"**{seen or 'nothing that counts'}** (predicted: {_words(entries[0].predicted)})"


def _shown(entries: Sequence[Entry], outcomes: Outcomes) -> str:
    """What the outcomes mean that were predicted and observed."""
    good = [one for one in entries if proves(one) and one.agrees]
    return " ".join(dict.fromkeys(outcomes[tuple(map(Word, one.observed))] for one in good)) or "-"


def _words(words: Iterable[str]) -> str:
    return ", ".join(words)


def _how_often(entries: Sequence[Entry]) -> str:
    """In how many of the tries that prove something it went as predicted, and how many prove nothing."""
    good = [one for one in entries if proves(one)]
    mistaken = sum(one.run in MISTAKEN for one in entries)
    broken = len(entries) - len(good) - mistaken
    besides = [f"{broken} broke off"] * (broken > 0) + [f"{mistaken} went wrong"] * (mistaken > 0)
    return f"{sum(one.agrees for one in good)}/{len(good)}" + (f" ({', '.join(besides)})" if besides else "")


def _seconds(measured: Sequence[float]) -> str:
    if not measured:
        return "-"
    low, high = min(measured), max(measured)
    return f"{median(measured):.0f} s" if high - low < 1 else f"{median(measured):.0f} s ({low:.0f}-{high:.0f})"


def _logs(entries: Sequence[Entry]) -> str:
    """What was on the disks in the end of the first run that counts, in the first partition."""
    good = [one for one in entries if proves(one)]
    _, logs = min(good[0].logs.items(), default=("", {})) if good else ("", {})
    same: dict[str, list[str]] = defaultdict(list)
    for broker, log in logs.items():
        same[log.replace("@-1", "")].append(broker)
    if len(same) == 1:
        return f"`{next(iter(same))}`"
    return "; ".join(f"broker {' and '.join(brokers)} `{log}`" for log, brokers in same.items()) or "-"


def _machines(runs: Runs) -> Iterator[str]:
    every = [one for entries in runs.values() for one in entries]
    yield "## How it was recorded\n"
    if every:
        first, last = min(one.started for one in every), max(one.started for one in every)
        seconds = sum(one.run_s for one in every)
        yield (
            f"From {first} to {last} (UTC), up to four clusters at a time on two busy processors; "
            f"{seconds / 60:.0f} minutes of running clusters. Waits are bounded, so a busy machine makes runs break "
            "off, and does not make them pass."
        )


_INTRODUCTION = """\
# The museum of regressions

Known losses of Apache Kafka, replayed on the releases that had them and on those that fixed them. The built-in
brokers of the same [generation](generations.md) predict each outcome; real brokers, each a Java process
([targets](targets.md)), produced the observed one, and the same [checkers](anomalies.md) judged both. Each row was
recorded on the releases that it names.

`seawall museum` generates this page from `reports/museum.json`, which keeps every recorded run whose cluster started.
`make museum` plays every scenario once more on one release of each generation and on the newest, and rewrites both
files; rows of other releases rest on single runs that `seawall museum RUN_DIR` added.

In the exhibits an empty cell repeats the one above.

* *Kafka*: releases that ended alike; (n) where not one try but n prove something.
* *Observed*: also what was predicted, unless **bold**.
* *Logs*: of partition `ledger-0` at the end of the first try that counts, on every broker or by broker; `m1@2` is a
  record of leader epoch 2; 0.10 stores no epochs.
* *As predicted*: of the tries that prove something; beside it, how many broke off, or went wrong by a mistake of the
  harness.
* *Time to detect*: from the first fault until the evidence was complete and checked, median and range; it is
  mostly spent waiting for sessions.

The command below an exhibit repeats a run that shows the flaw. Tries differ in timing alone."""

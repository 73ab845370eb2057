"""``docs/museum.md``: the exhibits, and how every scenario went on every release, from what was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from statistics import median

from harness.museum.counting import Runs, counted, counts, proves, releases
from harness.museum.entry import Entry
from harness.museum.exhibits import EXHIBITS, MISTAKEN, Exhibit, Outcomes
from harness.museum.parity import left_out, parity
from harness.outcome import Word
from harness.scenario import Scenario

Cells = AbstractSet[tuple[str, str]]
"""Scenarios with releases."""

_SETTLED = "†"


def page(entries: Sequence[Entry], scenarios: Sequence[Scenario]) -> str:
    """The text of ``docs/museum.md`` from ``entries``; ``scenarios`` are those that are shipped."""
    known = {one.id: one for one in scenarios}
    runs = counted(entries, known)
    older = [one for one in entries if not counts(one, known)]
    settled = {(one.scenario, one.release) for one in older}
    parts = [
        _INTRODUCTION,
        _overview(runs, len(older)),
        _how_much_it_rests_on(runs, settled),
        *("\n".join(_exhibit(one, runs, known, settled)) for one in EXHIBITS),
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
        + (f" {older} more do not count: their schedule, or what it predicts, has been changed since." if older else "")
    )


def _how_much_it_rests_on(runs: Runs, settled: Cells) -> str:
    tries = {cell: sum(map(proves, entries)) for cell, entries in runs.items()}
    proven = {cell for cell, several in tries.items() if several}
    single = sum(tries[cell] == 1 for cell in proven)
    again = len(proven & settled)
    return (
        f"Of {len(proven)} pairs of a scenario and a release of which something is proven, {single} rest on one try"
        + (
            f"; in at least {again} ({_SETTLED} below), what is played or predicted was settled after a first run "
            "had been seen."
            if again
            else "."
        )
    )


# ---------------------------------------------------------------------------------------------------------- exhibits


def _exhibit(exhibit: Exhibit, runs: Runs, known: Mapping[str, Scenario], settled: Cells) -> Iterator[str]:
    yield f"## {exhibit.title}\n"
    yield f"*{exhibit.issues}.* {exhibit.happened}\n"
    yield from _findings(exhibit, runs)
    yield "\n| scenario | Kafka | predicted | observed | tries | time to detect | seeds |"
    yield "|---|---|---|---|---|---|---|"
    for name in exhibit.scenarios:
        for version in _releases_of(name, runs):
            yield _try(known[name], version, runs[name, version], _SETTLED if (name, version) in settled else "")
    for name in exhibit.scenarios:
        yield from _logs(name, runs)
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


def _findings(exhibit: Exhibit, runs: Runs) -> Iterator[str]:
    """What the runs that count have shown, by scenario, on releases of which the same is to be said together."""
    for name, outcomes in exhibit.shows.items():
        said: dict[str, list[str]] = defaultdict(list)
        for version in _releases_of(name, runs):
            good = [one for one in runs[name, version] if proves(one)]
            for sentence in dict.fromkeys(_meaning(one, outcomes) for one in good):
                said[sentence].append(version)
        yield from (f"* On {_listed(versions)} {sentence}" for sentence, versions in said.items())
        if not said:
            yield f"* No run of `{name}` counts yet."


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _meaning(one: Entry, outcomes: Outcomes) -> str:
    foreseen = outcomes.get(tuple(map(Word, one.observed))) if one.agrees else None
    return foreseen or f"`{one.catalogue}` came to this: {_words(one.observed)}."


def _try(scenario: Scenario, version: str, entries: Sequence[Entry], mark: str) -> str:
    good = [one for one in entries if proves(one)]
    seen = " or ".join(dict.fromkeys(_words(one.observed) for one in good)) or "nothing that counts"
    detected = [one.detected_s for one in good]
    seeds = ", ".join(map(str, sorted(one.seed for one in entries)))
    return (
        f"| `{scenario.catalogue}` | {version} | {_words(entries[0].predicted)}{mark} | {seen} | {_how_often(entries)} "
        f"| {_seconds(detected)} | {seeds} |"
    )


def _words(words: Iterable[str]) -> str:
    return ", ".join(words)


def _how_often(entries: Sequence[Entry]) -> str:
    """In how many of the tries that prove something it went as predicted, and how many prove nothing."""
    good = [one for one in entries if proves(one)]
    mistaken = sum(one.run in MISTAKEN for one in entries)
    broken = len(entries) - len(good) - mistaken
    besides = [f"{broken} broke off"] * (broken > 0) + [f"{mistaken} went wrong"] * (mistaken > 0)
    return f"{sum(one.agrees for one in good)} of {len(good)}" + (f" ({', '.join(besides)})" if besides else "")


def _seconds(measured: Sequence[float]) -> str:
    if not measured:
        return ""
    low, high = min(measured), max(measured)
    return f"{median(measured):.0f} s" if high - low < 1 else f"{median(measured):.0f} s ({low:.0f} to {high:.0f})"


def _logs(name: str, runs: Runs) -> Iterator[str]:
    """What was on the disks in the end, on releases that ended with the same told together."""
    told: dict[str, list[str]] = defaultdict(list)
    for version in _releases_of(name, runs):
        good = [one for one in runs[name, version] if proves(one)]
        if good:
            told[_disks(good[0])].append(version)
    if told:
        yield f"\nOn the disks in the end, `{name}`:\n"
        yield from (f"* {', '.join(versions)}: {disks}" for disks, versions in told.items())


def _disks(one: Entry) -> str:
    partition, logs = min(one.logs.items(), default=("", {}))
    same: dict[str, list[str]] = defaultdict(list)
    for broker, log in logs.items():
        same[log.replace("@-1", "")].append(broker)
    told = "; ".join(f"broker {' and '.join(brokers)} `{log}`" for log, brokers in same.items())
    return f"{partition}: {told}" if told else "nothing"


def _machines(runs: Runs) -> Iterator[str]:
    every = [one for entries in runs.values() for one in entries]
    yield "## How it was recorded\n"
    if every:
        first, last = min(one.started for one in every), max(one.started for one in every)
        seconds = sum(one.run_s for one in every)
        yield (
            f"From {first} to {last} (UTC), up to four clusters at a time on two processors that had other work, too; "
            f"{seconds / 60:.0f} minutes of running clusters. Waits are bounded, so that a busy machine makes runs "
            "break off, and does not make them pass."
        )


_INTRODUCTION = """\
# The museum of regressions

Losses that Apache Kafka is known for, replayed on the very releases that had them and on those that mended them. What
is predicted is what the built-in brokers of that [generation](generations.md) do, if they know what is played; what was
observed, real brokers did, each a Java process ([targets](targets.md)), judged by the same [checkers](anomalies.md)
from the same evidence. What is said of a release was recorded on that release.

This page is generated from `reports/museum.json`, which holds every run that was recorded, those that broke off, too,
unless its cluster did not even start. `make museum` plays every scenario once more on one release of each generation
and on the newest, adds that and writes both; what is said of other releases rests on single runs (`seawall scenario
run`), which `seawall museum RUN_DIR` added.

*Tries*: in how many of the runs that prove something it went as predicted; beside that, how many broke off, or went
wrong by a mistake of the harness. *Time to detect*: from the first fault until the evidence was complete and checked,
median and range; most of it is waiting for sessions to end. *Seeds*: a schedule draws nothing, so that tries differ in
timing alone."""

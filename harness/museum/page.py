"""``docs/museum.md``: the exhibits, and how every scenario went on every release, from what was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from harness.museum.counting import Runs, counted, proves, releases
from harness.museum.entry import Entry
from harness.museum.exhibits import EXHIBITS, Exhibit, Outcomes
from harness.museum.parity import left_out, parity
from harness.outcome import Word
from harness.scenario import Scenario


def page(entries: Sequence[Entry], scenarios: Sequence[Scenario]) -> str:
    """The text of ``docs/museum.md`` from ``entries``; ``scenarios`` are those that are shipped."""
    known = {one.id: one for one in scenarios}
    runs = counted(entries, known)
    older = len(entries) - sum(map(len, runs.values()))
    parts = [
        _INTRODUCTION,
        "\n".join(_overview(runs, older)),
        *("\n".join(_exhibit(one, runs, known)) for one in EXHIBITS),
        "\n".join(parity(runs, known)),
        "\n".join(left_out(runs, known)),
        "\n".join(_machines(runs)),
    ]
    return "\n\n".join(parts) + "\n"


def _overview(runs: Runs, older: int) -> Iterator[str]:
    every = [one for entries in runs.values() for one in entries]
    agree, broken = sum(one.agrees for one in every), sum(not proves(one) for one in every)
    yield (
        f"{len(every)} runs of {len({scenario for scenario, _ in runs})} scenarios on {len(releases(runs))} releases: "
        f"{agree} went as predicted, {len(every) - agree - broken} otherwise. {broken} prove nothing: a step of the "
        "schedule did not come true in time, the evidence had gaps, or the harness made a mistake."
        + (f" {older} more do not count: their schedule, or what it predicts, has been changed since." if older else "")
    )


# ---------------------------------------------------------------------------------------------------------- exhibits


def _exhibit(exhibit: Exhibit, runs: Runs, known: Mapping[str, Scenario]) -> Iterator[str]:
    yield f"## {exhibit.title}\n"
    yield f"*{exhibit.issues}.* {exhibit.happened}\n"
    yield from _findings(exhibit, runs)
    yield "\n| scenario | Kafka | predicted | observed | tries | time to detect | seeds |"
    yield "|---|---|---|---|---|---|---|"
    for name in exhibit.scenarios:
        for version in releases({key: one for key, one in runs.items() if key[0] == name}):
            yield _try(known[name], version, runs[name, version])
    for name in exhibit.scenarios:
        yield from _logs(name, runs)
    first = exhibit.scenarios[0]
    for version in releases({key: one for key, one in runs.items() if key[0] == first})[:1]:
        seed = runs[first, version][-1].seed
        yield f"\n```\nseawall scenario run {first} --target process:{version} --seed {seed}\n```"


def _findings(exhibit: Exhibit, runs: Runs) -> Iterator[str]:
    """What the runs that count have shown, by scenario, on releases of which the same is to be said together."""
    for name, outcomes in exhibit.shows.items():
        said: dict[str, list[str]] = defaultdict(list)
        for version in releases({key: one for key, one in runs.items() if key[0] == name}):
            good = [one for one in runs[name, version] if not one.broke_off]
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


def _try(scenario: Scenario, version: str, entries: Sequence[Entry]) -> str:
    good = [one for one in entries if not one.broke_off]
    seen = " or ".join(dict.fromkeys(_words(one.observed) for one in good)) or "nothing that counts"
    detected = [one.detected_s for one in good]
    seeds = ", ".join(map(str, dict.fromkeys(one.seed for one in entries)))
    return (
        f"| `{scenario.catalogue}` | {version} | {_words(entries[0].predicted)} | {seen} | {_how_often(entries)} "
        f"| {_seconds(detected)} | {seeds} |"
    )


def _words(words: Iterable[str]) -> str:
    return ", ".join(words)


def _how_often(entries: Sequence[Entry]) -> str:
    """In how many tries it went as predicted."""
    agree, broken = sum(one.agrees for one in entries), sum(one.broke_off for one in entries)
    return f"{agree} of {len(entries)}" + (f" ({broken} broke off)" if broken else "")


def _seconds(measured: Sequence[float]) -> str:
    if not measured:
        return ""
    low, high = min(measured), max(measured)
    return f"{median(measured):.0f} s" if high - low < 1 else f"{median(measured):.0f} s ({low:.0f} to {high:.0f})"


def _logs(name: str, runs: Runs) -> Iterator[str]:
    """What was on the disks in the end, on releases that ended with the same told together."""
    told: dict[str, list[str]] = defaultdict(list)
    for version in releases({key: one for key, one in runs.items() if key[0] == name}):
        good = [one for one in runs[name, version] if not one.broke_off]
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
unless its cluster did not even start. `make museum` records again and writes both; `seawall museum RUN_DIR` adds runs
of one's own.

*Tries*: in how many runs it went as predicted. *Time to detect*: from the first fault until the evidence was complete
and checked, median and range; most of it is waiting for sessions to end. *Seeds*: a schedule draws nothing, so that
tries differ in timing alone."""

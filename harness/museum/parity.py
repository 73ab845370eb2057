"""Parity: how every scenario went on every release, and why wherever real Kafka went another way than was predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from harness.museum.counting import Runs, explanation, proves, releases
from harness.museum.entry import Entry
from harness.museum.exhibits import BUSY, MISTAKEN
from harness.outcome import LETTERS, Word
from harness.runner.expectation import expectations
from harness.runner.matrix import impossible
from harness.scenario import Scenario
from harness.targets.kafka.releases import numbers, release
from harness.targets.kafka.system import beyond

Known = Mapping[str, Scenario]
"""The shipped scenarios, by id."""

Notes = Mapping[str, Sequence[Entry]]
"""By the reason why they did not go as predicted, the runs of scenarios that the release can play."""


class State(StrEnum):
    """How a scenario has gone on a release, and the heading of the column that counts it."""

    AS_PREDICTED = "as predicted"
    OTHERWISE = "otherwise"
    BROKE_OFF = "broke off"
    NOT_PLAYED = "not played"


def parity(runs: Runs, known: Known) -> Iterator[str]:
    """The lines of the tables: by release, by scenario and release, and what differed."""
    notes = _notes(runs, known)
    yield "## Every scenario on every release\n"
    yield f"{_WHAT_IS_COUNTED}\n"
    yield from _by_release(runs, known)
    yield f"\n{_WHAT_A_CELL_IS}\n"
    yield from _by_scenario(runs, known, list(notes))
    yield "\n## What differed\n"
    yield f"{_WHAT_A_NOTE_IS}\n"
    yield "| note | where | what differed, for one | why |\n|---|---|---|---|"
    for number, (why, entries) in enumerate(notes.items(), 1):
        yield f"| {number} | {_where(entries)} | {plain(_differed(entries[0]))} | {plain(why)} |"


def left_out(runs: Runs, known: Known) -> Iterator[str]:
    """The lines about what does not happen on real Kafka, and why."""
    yield "## What does not happen on real Kafka\n"
    yield f"{_WHAT_IS_LEFT_OUT}\n"
    yield "| entries | why | seen |\n|---|---|---|"
    places: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for scenario in sorted(known.values(), key=lambda one: one.catalogue or ""):
        for ranges, why in scenario.not_on_real_kafka.items():
            places[why][ranges].append(scenario.catalogue or scenario.id)
    for why, entries in places.items():
        meant = "; ".join(f"{', '.join(names)} on {ranges}" for ranges, names in entries.items())
        yield f"| {meant} | {plain(why)} | {_where(_tried_in_vain(why, runs, known))} |"


def _tried_in_vain(why: str, runs: Runs, known: Known) -> Iterator[Entry]:
    for name, version in _ordered(runs, known):
        yield from (one for one in runs[name, version] if explanation(one, known) == why)


def plain(text: str) -> str:
    """On one line of a table, where nothing of it is taken for a link."""
    return text.replace("|", "\\|").replace("\n", " ").replace("](", "] (")


def is_played(scenario: Scenario, version: str) -> bool:
    """Whether a release can play a scenario, and it foretells what comes of it."""
    meant = release(version)
    foretold = meant.generation in expectations(scenario)
    return foretold and impossible(scenario, meant.generation) is None and beyond(meant, scenario) is None


def state(entries: Iterable[Entry]) -> State:
    """What the runs of one scenario on one release come to: one that went otherwise is not outweighed by another."""
    good = [one for one in entries if proves(one)]
    if good:
        return State.AS_PREDICTED if all(one.agrees for one in good) else State.OTHERWISE
    return State.BROKE_OFF if entries else State.NOT_PLAYED


# ------------------------------------------------------------------------------------------------------------- tables


def _by_release(runs: Runs, known: Known) -> Iterator[str]:
    yield f"| Kafka | generation | {' | '.join(State)} |"
    yield f"|---|---|{'---|' * len(State)}"
    for version in releases(runs):
        states = [state(runs.get((name, version), ())) for name, one in known.items() if is_played(one, version)]
        counts = " | ".join(str(states.count(one)) for one in State)
        yield f"| {version} | {release(version).generation} | {counts} |"


def _by_scenario(runs: Runs, known: Known, notes: Sequence[str]) -> Iterator[str]:
    """A row for scenarios that went alike, and what releases without a column did."""
    shown = [version for version in releases(runs) if _has_a_column(version, runs, known)]
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in sorted({scenario for scenario, _ in runs}, key=lambda name: known[name].catalogue or name):
        cells = (_cell(name, version, runs, known, notes) for version in shown)
        alike[tuple(cells)].append(f"{known[name].catalogue} `{name}`")
    yield f"| entries | {' | '.join(shown)} |"
    yield f"|---|{'---|' * len(shown)}"
    yield from (f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in alike.items())
    others = [(name, version) for name, version in _ordered(runs, known) if version not in shown]
    if others:
        cells = (f"{known[name].catalogue} {_cell(name, version, runs, known, notes)} on {version}"
                 for name, version in others)  # fmt: skip
        yield f"\nReleases on which few scenarios were played: {', '.join(cells)}."


def _has_a_column(version: str, runs: Runs, known: Known) -> bool:
    """Whether a tenth at least of what a release can play was played on it."""
    possible = [name for name, one in known.items() if is_played(one, version)]
    return sum((name, version) in runs for name in possible) * 10 >= len(possible)


def _cell(name: str, version: str, runs: Runs, known: Known, notes: Sequence[str]) -> str:
    if not is_played(known[name], version):
        return "-"
    entries = runs.get((name, version), ())
    seen = _seen(entries)
    if state(entries) is State.AS_PREDICTED:
        return seen
    numbers = sorted({notes.index(_why(one, known)) + 1 for one in entries if not one.agrees})
    return seen + ",".join(map(str, numbers)).translate(_RAISED)


def _seen(entries: Sequence[Entry]) -> str:
    good = [one for one in entries if proves(one)]
    if not good:
        return "?" if entries else "·"
    seen = " or ".join(dict.fromkeys("+".join(LETTERS[Word(word)] for word in one.observed) for one in good))
    return seen if all(one.agrees for one in good) else f"**{seen}**"


# -------------------------------------------------------------------------------------------------------------- notes


def _notes(runs: Runs, known: Known) -> Notes:
    found: dict[str, list[Entry]] = defaultdict(list)
    for name, version in _ordered(runs, known):
        for one in runs[name, version]:
            if not one.agrees and is_played(known[name], version):
                found[_why(one, known)].append(one)
    return dict(found)


def _ordered(runs: Runs, known: Known) -> list[tuple[str, str]]:
    """The scenarios and releases, in the order of the catalogue, the oldest release first."""
    return sorted(runs, key=lambda key: (known[key[0]].catalogue or key[0], numbers(key[1])))


def _why(one: Entry, known: Known) -> str:
    return explanation(one, known) or "**Not explained.**"


def _where(entries: Iterable[Entry]) -> str:
    """``A03, A11 on 0.10.2.2; A03 on 4.1.0, 4.2.0``."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for one in entries:
        found[one.release][one.catalogue] = None
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for version, names in sorted(found.items(), key=lambda item: numbers(item[0])):
        together[tuple(names)].append(version)
    return "; ".join(f"{', '.join(names)} on {', '.join(versions)}" for names, versions in together.items())


def _differed(one: Entry) -> str:
    """What differed, cut short; nothing where the reason is not Kafka's."""
    text = "-" if one.run in BUSY or one.run in MISTAKEN else one.differences[0]
    return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + " ..."


_LONGEST = 100

_RAISED = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")

_WHAT_IS_COUNTED = (
    "The built-in brokers make the predictions: `make nightly` holds every cell to that in virtual time, and `make "
    "matrix` on real processes. The first table counts, by release, the scenarios that it can play."
)

_WHAT_A_CELL_IS = (
    "A cell is what real Kafka did, in the letters of the [matrix](scenarios.md#outcomes): as predicted, or else in "
    "**bold**; ? where every try broke off, · where it was not played, - where it cannot be, or has no prediction. "
    "The raised numbers are those of the notes below, which also name the tries that broke off before another one "
    "went as predicted."
)

_WHAT_A_NOTE_IS = (
    "Why a run of a scenario that the release can play did not go as predicted; - where the harness or its machine is "
    "the reason. At least one run was examined for each reason; the page and the matrix give it for every run of the "
    "release that differs in the same words. The matrix fails for any other difference."
)

_WHAT_IS_LEFT_OUT = (
    "These schedules come true on the built-in brokers, and not on the releases of these generations; *seen* names "
    "runs that broke off for that reason. The matrix leaves them out, and also what a release refuses: a switched-on "
    "bug that it does not have, or a setting that it does not know."
)

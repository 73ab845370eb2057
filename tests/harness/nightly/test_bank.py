"""The seed bank: what is added, what is not, and how the file reads in a diff."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.nightly import bank
from harness.nightly.result import CellOutcome
from tests.harness.nightly.cells import cell, lossy


def test_every_violation_is_added_with_what_runs_it_again(tmp_path: Path) -> None:
    settings = {"topic.partitions": "3", "min.insync.replicas": "1"}
    night = [lossy(settings=settings, duration_s=30.0), cell(seed=8), cell(seed=9, outcome=CellOutcome.INVALID)]
    bank.write(tmp_path / "seeds.yaml", bank.updated((), night))
    [entry] = bank.read(tmp_path / "seeds.yaml")
    assert (entry.scenario, entry.target, entry.generation, entry.seed) == ("random-chaos", "builtin", "4.1", 7)
    assert (entry.settings, entry.duration_s) == (settings, 30.0)
    assert (entry.findings, entry.incidents) == ("a1" * 8, "3 lost-write in ledger/0")
    assert (entry.first_night, entry.last_seen) == ("2026-03-04", "2026-03-04")
    assert entry.entry.startswith("random-chaos-7-")


def test_a_finding_has_a_few_seeds_and_a_known_one_is_seen_again() -> None:
    first = bank.updated((), [lossy(seed=seed) for seed in range(10)])
    assert [one.seed for one in first] == [0, 1, 2]
    second = bank.updated(first, [lossy("2026-03-05", seed=1, bank=True), lossy("2026-03-05", seed=99)])
    assert [(one.seed, one.last_seen) for one in second] == [
        (0, "2026-03-04"), (1, "2026-03-05"), (2, "2026-03-04")
    ]  # fmt: skip
    assert {one.first_night for one in second} == {"2026-03-04"}
    third = bank.updated(second, [lossy(seed=4, signature="b2"), lossy(seed=4, scenario="another")])
    assert len(third) == 5
    assert bank.seeds(third)[first[0].key] == {0, 1, 2}


def test_what_has_no_seed_or_is_a_command_is_not_added() -> None:
    assert bank.updated((), [lossy(seed=None), lossy(kind="command")]) == ()


def test_a_night_that_sees_nothing_new_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "seeds.yaml"
    bank.write(path, bank.updated((), [lossy()]))
    before = path.stat().st_mtime_ns
    bank.write(path, bank.updated(bank.read(path), [cell("2026-03-05", bank=True)]))
    assert path.stat().st_mtime_ns == before


def test_a_diff_shows_what_happened() -> None:
    first = bank.updated((), [lossy(seed=1), lossy(seed=2)])
    second = bank.updated(first, [lossy("2026-03-05", seed=1), lossy("2026-03-05", seed=3, scenario="zombie")])
    lines = list(difflib.unified_diff(bank.rendered(first).splitlines(), bank.rendered(second).splitlines(), n=0))
    changed = [line for line in lines[2:] if not line.startswith("@@")]
    assert changed[:2] == ["-  last_seen: '2026-03-04'", "+  last_seen: '2026-03-05'"]
    assert all(line.startswith("+") for line in changed[2:])
    assert [line for line in changed if "entry" in line] == [f"+- entry: {second[-1].entry}"]


def test_names_and_values_survive_the_file_whatever_they_are(tmp_path: Path) -> None:
    hostile = "a: b\n- c # d\x85 é 'x' \"y\""
    entries = bank.updated((), [lossy(scenario=hostile, target=hostile, settings={hostile: "no", "n": "1e3"})])
    bank.write(tmp_path / "seeds.yaml", entries)
    assert bank.read(tmp_path / "seeds.yaml") == entries
    assert "\n" not in entries[0].entry


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("entries: [\n", "line 2"),
        ("entries: [{entry: a}]\n", "entries[0]"),
        ("entrys: []\n", "did you mean 'entries'?"),
        (bank.rendered(bank.updated((), [lossy()]) * 2), "is there twice"),
    ],
)
def test_a_wrong_bank_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "seeds.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        bank.read(path)
    assert named in refused.value.sentence
    assert "seeds.yaml" in refused.value.sentence


def test_a_bank_that_is_kept_gets_what_the_repository_has_and_loses_what_was_retired_there() -> None:
    a, b, c = bank.updated((), [lossy(seed=seed) for seed in (1, 2, 3)])
    assert bank.kept((a, b), (a,), ()) == (a, b)  # the repository has the bank of the first night
    assert bank.kept((a, b), (c,), ()) == (a, b, c)
    assert bank.kept((a, b), (), (a,)) == (b,)
    assert bank.kept((), (a,), (a, b)) == (a,)
    seen, edited = (b.model_copy(update={one: "later"}) for one in ("last_seen", "reproduce"))
    assert bank.kept((seen,), (edited,), (b,)) == (edited.model_copy(update={"last_seen": "later"}),)
    assert bank.kept((b,), (seen,), (b,)) == (seen,)


def test_a_bank_that_is_kept_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = bank.updated((), [lossy(seed=seed) for seed in (1, 2, 3)])
    monkeypatch.setattr(bank, "MOST_ENTRIES", 2)
    assert bank.kept((a, b), (c,), ()) == (a, c)
    assert bank.kept((), (a, b, c), ()) == (a, b, c)


def test_only_a_command_retires_an_entry() -> None:
    entries = bank.updated((), [lossy(seed=1), lossy(seed=2)])
    assert bank.retired(entries, entries[0].entry, Path("seeds.yaml")) == entries[1:]
    with pytest.raises(UsageError, match=f"did you mean '{entries[0].entry}'"):
        bank.retired(entries, entries[0].entry[:-1], Path("seeds.yaml"))
    with pytest.raises(UsageError, match="the bank is empty"):
        bank.retired((), "x", Path("seeds.yaml"))

"""The seed bank, ``seeds.yaml``: the cells that violated a promise, in a file that the user commits.

The merge of a night adds an entry for every violation, and the next night begins with the entries. Only
``seawall nightly retire`` removes one, and ``seawall nightly keep`` in CI follows the repository in that. The file is
written for ``git diff``: a key a line in a fixed order, entries by name with an empty line between them, and a known
entry changes in the line of ``last_seen`` alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from harness import documents
from harness.documents import Unfit
from harness.errors import UsageError
from harness.nightly import prose
from harness.nightly.result import CellOutcome, CellResult
from harness.nightly.standing import Key
from harness.scratch import unfinished
from harness.spelling import closest
from harness.unwritable import writing_below
from harness.validation import validated

NAME = "seeds.yaml"

NOW, COMMITTED = "now.yaml", "committed.yaml"
"""Beside it in the directory that a CI system keeps: the repository's bank of this night, and of the last one."""

MOST_SEEDS = 3
"""How many seeds the bank holds of one finding: more of them cost time and show the same."""

MOST_ENTRIES = 1_000
"""How many entries a bank holds; a file of YAML that seawall reads has at most 50,000 keys and values."""

_HEAD = """\
# Seeds that violated a promise, for seawall nightly to run first. seawall nightly merge adds to them and
# `seawall nightly retire ENTRY` removes one. Commit this file.
"""

_UNNAMEABLE = re.compile(r"[^A-Za-z0-9.]+")


class Entry(BaseModel):
    """A cell that violated a promise.

    Attributes:
        entry: its name in the bank.
        kind: of the cell.
        duration_s: how long random faults went on; None: the scenario decides.
        series: of the cell; see :class:`harness.nightly.result.CellResult`.
        findings: the digest of the kinds and places of its incidents.
        incidents: the same in words.
        reproduce: the command that runs it again.
        first_night: the night that added it.
        last_seen: the last night on which it showed these findings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry: str
    kind: Literal["run", "simulate"]
    scenario: str | None = None
    target: str
    generation: str | None = None
    seed: int
    settings: Mapping[str, str] = {}
    duration_s: float | None = None
    series: str
    findings: str
    incidents: str = ""
    reproduce: str
    first_night: str
    last_seen: str

    @property
    def key(self) -> Key:
        """The finding that it showed."""
        return self.series, self.findings


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    entries: tuple[Entry, ...] = ()


Bank = tuple[Entry, ...]


def read(path: Path) -> Bank:
    """The entries in ``seeds.yaml``, by name; none if there is no such file.

    Raises:
        UsageError: the file cannot be read, or an entry is wrong or there twice; names it.
    """
    try:
        text = documents.text(path)
    except FileNotFoundError:
        return ()
    except (OSError, Unfit) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}.") from error
    found = validated(_Document, documents.yaml_document(text, str(path)) or {}, str(path)).entries
    names = [one.entry for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"{path}: the entry {twice[0]!r} is there twice.", "Remove one of them.")
    return tuple(sorted(found, key=lambda one: one.entry))


def write(path: Path, bank: Bank) -> None:
    """Replace ``seeds.yaml`` at once, unless it has these entries already.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    text = rendered(bank)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    with writing_below(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def rendered(bank: Bank) -> str:
    """The text of ``seeds.yaml``."""
    entries = [_yaml([_fields(one)]) for one in sorted(bank, key=lambda one: one.entry)]
    body = "entries:\n" + "\n".join(entries) if entries else "entries: []\n"
    return f"{_HEAD}\n{body}"


def updated(bank: Bank, results: Iterable[CellResult]) -> Bank:
    """The bank after a night: every violation that it lacked, and when the known ones were seen last."""
    entries = {(one.series, one.seed, one.findings): one for one in bank}
    for result in sorted(results, key=lambda one: (one.series, one.seed or 0)):
        if result.outcome is not CellOutcome.VIOLATION or result.kind == "command" or result.seed is None:
            continue
        entry = _entry(result)
        identity = (entry.series, entry.seed, entry.findings)
        if identity in entries:
            entries[identity] = entries[identity].model_copy(update={"last_seen": result.night})
        elif len(entries) < MOST_ENTRIES and sum(one.key == entry.key for one in entries.values()) < MOST_SEEDS:
            entries[identity] = entry
    return tuple(sorted(entries.values(), key=lambda one: one.entry))


def retired(bank: Bank, name: str, origin: Path) -> Bank:
    """The bank without an entry.

    Raises:
        UsageError: it has no such entry.
    """
    names = [one.entry for one in bank]
    if name not in names:
        known = f"{closest(name, names)}" if names else "the bank is empty."
        raise UsageError(f"{origin} has no entry {name!r}; {known}")
    return tuple(one for one in bank if one.entry != name)


def kept(bank: Bank, now: Bank, committed: Bank) -> Bank:
    """The bank that the nights have kept, after the repository's went from ``committed`` to ``now``.

    An entry that the repository no longer has was retired; one that it never had stays. Where both have one, the
    repository decides all but when it was seen last.
    """
    ours, theirs = ({one.entry: one for one in entries} for entries in (bank, now))
    retired = {one.entry for one in committed} - theirs.keys()
    for name, entry in theirs.items():
        last_seen = max(entry.last_seen, ours.get(name, entry).last_seen)
        theirs[name] = entry.model_copy(update={"last_seen": last_seen})
    more = [one for name, one in ours.items() if name not in retired | theirs.keys()]
    found = [*theirs.values(), *more[: max(0, MOST_ENTRIES - len(theirs))]]
    return tuple(sorted(found, key=lambda one: one.entry))


def seeds(bank: Bank) -> Mapping[Key, frozenset[int]]:
    """The seeds by the finding that they showed."""
    keys = {one.key for one in bank}
    return {key: frozenset(one.seed for one in bank if one.key == key) for key in keys}


def _entry(result: CellResult) -> Entry:
    findings = result.signature or result.outcome.value
    assert result.seed is not None
    assert result.kind != "command"
    return Entry(
        entry=_name(result, findings),
        kind=result.kind,
        scenario=result.scenario,
        target=result.target,
        generation=result.generation,
        seed=result.seed,
        settings=dict(sorted(result.settings.items())),
        duration_s=result.duration_s,
        series=result.series,
        findings=findings,
        incidents=prose.incidents(result.incidents),
        reproduce=result.reproduce,
        first_night=result.night,
        last_seen=result.night,
    )


def _name(result: CellResult, findings: str) -> str:
    """``kip-101-double-failover-7-1f3a9c``: a name to type, and a digest that makes it unique."""
    digest = hashlib.sha256("\0".join((result.series, str(result.seed), findings)).encode(errors="replace"))
    readable = _UNNAMEABLE.sub("-", result.scenario or result.kind).strip("-.")[:60] or result.kind
    return f"{readable}-{result.seed}-{digest.hexdigest()[:6]}"


def _fields(entry: Entry) -> dict[str, Any]:
    """Those that say something, in the order of the model."""
    return {name: value for name, value in entry.model_dump(mode="json").items() if value not in (None, {}, "")}


def _yaml(value: Sequence[object]) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text

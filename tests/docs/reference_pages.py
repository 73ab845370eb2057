"""The pages of docs/ that are made of code alone: the options, the settings and knobs, the catalogue, the schemas."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from harness.broker.settings import NEVER, Settings
from harness.cli.application import app
from harness.replication.knobs import GENERATIONS, Knobs
from harness.scenario import Scenario, shipped

ROOT = Path(__file__).resolve().parents[2]
REWRITE = "pytest tests/docs --rewrite"


def pages() -> Mapping[str, Callable[[], str]]:
    """By name, what each page is to be."""
    return {"options.md": options, "settings.md": settings, "catalogue.md": catalogue, "schemas.md": schemas}


def options() -> str:
    """Every command with its arguments and options."""
    head = (
        "# Commands and options\n\n"
        "Every command with its options, as `--help` prints them. What the commands do, and the "
        "[exit codes](cli.md#exit-codes), are in [the command line](cli.md).\n\n"
        f"Written from `harness/cli` by `{REWRITE}`.\n"
    )
    commands = _commands("seawall", typer.main.get_command(app))
    return head + "".join(_command(path, command) for path, command in commands)


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _commands(f"{path} {name}", inner)
    if not getattr(command, "commands", {}):
        yield path, command


def _command(path: str, command: Any) -> str:
    rows = [f"| {_spelling(one)} | {_default(one)} | {_cell(one.help or '')} |\n" for one in command.params]
    table = "".join(["\n| | default | |\n|---|---|---|\n", *rows]) if rows else ""
    return f"\n## {path}\n\n{_cell(inspect.cleandoc(command.help).split(chr(10) * 2)[0])}\n{table}"


def _spelling(parameter: Any) -> str:
    metavar = parameter.metavar or ""
    if parameter.param_type_name == "argument":
        return f"`{metavar or parameter.name.upper()}`"
    return f"`{' '.join([', '.join([*parameter.opts, *parameter.secondary_opts]), metavar]).strip()}`"


def _default(parameter: Any) -> str:
    unsaid = parameter.default in (None, False, "", (), [])
    return "" if unsaid or parameter.required else f"`{parameter.default}`"


def settings() -> str:
    """The settings of the built-in brokers, and what each knob means."""
    made = Settings()
    rows = (
        f"| `{name.replace('_', '.')}` | {_shown(getattr(made, name))} |\n" for name in Settings.__dataclass_fields__
    )
    knobs = "".join(
        f"| `{name}` | {_shown(getattr(GENERATIONS['4.1'], name))} | {text} |\n" for name, text in _knobs().items()
    )
    return (
        "# Settings and knobs\n\n"
        f"Written from `harness/broker/settings.py` and `harness/replication/knobs.py` by `{REWRITE}`.\n\n"
        "## Settings of the built-in brokers\n\n"
        "Kafka's names, with the defaults of the built-in cluster, which reacts in seconds; a scenario sets its own in "
        "`cluster.settings`, the command line by `--set settings.KEY=VALUE`. `log.dirs.count` is seawall's. "
        "What releases of real Kafka take: [targets](targets.md#settings).\n\n"
        f"| setting | default |\n|---|---|\n{''.join(rows)}\n"
        "## Knobs of the replication protocol\n\n"
        "A [generation](generations.md) is a row of knobs, and its page shows which generation has which value. "
        "`--set replication.KNOB=VALUE` turns one.\n\n"
        f"| knob | in 4.1 | meaning |\n|---|---|---|\n{knobs}"
    )


def _shown(value: object) -> str:
    if value == NEVER:
        return "never"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _knobs() -> dict[str, str]:
    """By knob, what the docstring of the table says of it, in one line."""
    _, _, listed = inspect.cleandoc(Knobs.__doc__ or "").partition("Attributes:\n")
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n(?: {8}.*)?)*)", listed, re.MULTILINE)
    return {name: _cell(text) for name, text in entries if name in Knobs.__dataclass_fields__ and name != "bugs"}


def _cell(text: str) -> str:
    """Text as a table takes it: one line; a list's items become sentences of it."""
    return " ".join(text.replace(" * ", " ").replace("``", "`").replace("|", "\\|").split())


_NOT_PLAYED = {
    "D05, releases that fail": "The built-in brokers read what they know of producers from the log, and keep no "
    "snapshot that could be wrong, and the newest releases of Kafka have none of these bugs. What a wrong snapshot "
    "leads to is found with the bugs `producers_forgotten` and `sequence_expected_again`.",
    "D11": "The newest releases of Kafka have none of these bugs of coordinators, nor has any generation; the bugs "
    "`transaction_end_unstored`, `marker_lost` and `zombies_obeyed` stand for what they do. What is left of KAFKA-8803 "
    "is that a transaction stays open for as long as its coordinator's clock was stepped back: on Kafka 4.3.0 one that "
    "might take ten seconds was committed after thirty. The built-in coordinator does not do that, for it times a "
    "transaction by a timer. That a clock which jumps ahead ends one early is above, as F11.",
    "D13": "It is in the buffers of Kafka's own client, which runs in real time alone (`workload.client: "
    "java:RELEASE`). A batch has to expire while the socket has taken a part of its request, which needs some "
    "megabytes under way in batches of `batch.size`, and no step of a schedule sees how much of a request is written. "
    "The rules for `corrupt-read` and `unwritten-read` find a batch in another partition than it was sent to, as with "
    "the bug `fetch_mixes_partitions`.",
    "D14": "The findings are those of other systems, of which no generation is one; the rules that they need are "
    "proved by a bug (`sequence_unchecked`) and a forged history (`offset_written_twice`), `seawall import jepsen` "
    "judges Jepsen's own histories, and brokers of another make can be run as containers, whose logs no schedule can "
    "await.",
    "D15, consumers": "No step joins a group. Two members that have the same partition are played by the workload "
    "`consumer_groups`, whose members stand still and commit then, and found with the bug `commits_unfenced`.",
    "F10, a slow reader": "A consumer that needs longer than `delete.retention.ms` to read a compacted log may miss a "
    "tombstone, as Kafka documents, and the rules permit it. No schedule can slow a reader down between two records: "
    "the whole of so short a log is in one answer.",
}
"""What of the list of known losses the catalogue does not replay, and why."""


def catalogue() -> str:
    """Every scenario that comes with seawall."""
    rows = [_scenario(one) for one in sorted(shipped(), key=lambda one: (one.catalogue or "~", one.id))]
    return (
        "# The catalogue of scenarios\n\n"
        "Every scenario that comes with seawall: `seawall scenario run A02` runs all of an entry, "
        "`seawall scenario show NAME` prints one. How to write one: [scenarios](scenarios.md). "
        "How each went on real Kafka: [the museum](museum.md).\n\n"
        f"Written from `harness/scenarios` by `{REWRITE}`.\n\n"
        f"| entry | scenario | what happens | source |\n|---|---|---|---|\n{''.join(rows)}"
        "\n## What is not replayed\n\nOf producers, transactions and time, whose other entries are above.\n\n"
        "| entry | why |\n|---|---|\n" + "".join(f"| {entry} | {why} |\n" for entry, why in _NOT_PLAYED.items())
    )


def _scenario(one: Scenario) -> str:
    link = f"[`{one.id}`](../harness/scenarios/{one.id}.yaml)"
    return f"| {one.catalogue or ''} | {link} | {_cell(one.title)} | {_cell(one.source)} |\n"


def schemas() -> str:
    """Every published JSON Schema, with the keys of its top level."""
    sections = (_schema(path) for path in sorted((ROOT / "docs/schemas").glob("*.json")))
    return (
        "# JSON Schemas\n\n"
        "The files that other programs read or write have published schemas. The number in the name changes when a "
        f"file that was valid is not any more.\n\nWritten from `docs/schemas` by `{REWRITE}`.\n" + "".join(sections)
    )


def _schema(path: Path) -> str:
    schema = json.loads(path.read_text())
    required = schema.get("required", [])
    rows = (
        f"| `{key}` | {'yes' if key in required else ''} | {_cell(_meaning(value))} |\n"
        for key, value in schema.get("properties", {}).items()
    )
    table = f"| key | required | |\n|---|---|---|\n{''.join(rows)}"
    return f"\n## {path.stem}\n\n{schema.get('title', '')}: [{path.name}](schemas/{path.name})\n\n{table}"


def _meaning(value: Mapping[str, Any]) -> str:
    kind = value.get("type") or next((one.get("type", "") for one in value.get("anyOf", [])), "")
    return str(value.get("description") or kind)

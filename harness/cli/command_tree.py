"""Describes what the commands take as plain data, for :mod:`harness.completion`, which must not import them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from enum import Enum
from typing import Any, get_args, get_type_hints

import typer
from pydantic import BaseModel

from harness.errors import EnvironmentFault

_SHOWN_OF_HELP = 120


def command_tree() -> dict[str, Any]:
    """All commands with their options and arguments; the keys of ``--set`` with examples of values; other names."""
    from harness.cli.application import app
    from harness.replication.bugs import BUGS
    from harness.replication.knobs import GENERATIONS
    from harness.targets.kafka.releases import TRIED

    root = _command(typer.main.get_command(app))
    names = {"generations": list(GENERATIONS), "bugs": list(BUGS), "releases": list(TRIED)}
    own = {"targets": dict(_targets()), "workloads": dict(_workloads())}
    return {**root, **names, **own, "keys": {key: list(values) for key, values in _keys()}}


def _targets() -> Iterator[tuple[str, str]]:
    """The kinds that can be used, those that take an argument with a colon, and with what it is."""
    from harness.targets.kinds import KINDS

    for name in KINDS:
        with suppress(EnvironmentFault):
            kind = KINDS[name]
            yield (f"{name}:" if kind.argument else name), kind.argument


def _workloads() -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The workloads that can be used, with what ``--set`` takes of each."""
    from workloads import KINDS

    for name in KINDS:
        with suppress(EnvironmentFault):
            yield name, {key: list(values) for key, values in _fields("workload", KINDS[name].parameters)}


def _command(command: Any) -> dict[str, Any]:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    options = [one for one in shown if one.param_type_name == "option"]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    return {
        "help": _in_short(command.help),
        "options": [*map(_parameter, options), {**_HELP, "names": ["-h", "--help"]}],
        "arguments": list(map(_parameter, arguments)),
        "commands": {name: _command(one) for name, one in getattr(command, "commands", {}).items()},
    }


_HELP = {"help": "Show this message and exit.", "flag": True, "multiple": False, "metavar": None, "choices": []}


def _parameter(one: Any) -> dict[str, Any]:
    return {
        "names": [*one.opts, *one.secondary_opts],
        "help": _in_short(getattr(one, "help", "")),
        "flag": bool(getattr(one, "is_flag", False)),
        "multiple": bool(getattr(one, "multiple", False)) or one.nargs == -1,
        "metavar": one.metavar,
        "choices": _choices(one.type_descriptor.annotation),
    }


def _choices(annotation: Any) -> list[str]:
    """The values of an enumeration or a literal, also one of several types."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(one.value) for one in annotation]
    parts = get_args(annotation)
    return [one for part in parts for one in ([part] if isinstance(part, str) else _choices(part))]


def _in_short(text: str | None) -> str:
    """The first sentence."""
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".")[:_SHOWN_OF_HELP]


def _keys() -> Iterator[tuple[str, Sequence[str]]]:
    """What ``--set`` takes of every scenario, with examples of values."""
    from harness.broker.settings import Settings
    from harness.replication.bugs import BUGS
    from harness.replication.knobs import Knobs
    from harness.scenario import Topic
    from harness.schedule import Chaos

    for setting in fields(Settings):
        yield f"settings.{setting.name.replace('_', '.')}", [_written(setting.default)]
    yield from _fields("topic", Topic)
    yield from _fields("chaos", Chaos)
    known = get_type_hints(Knobs)
    for knob in fields(Knobs):
        values = list(BUGS) if knob.name == "bugs" else _examples(known[knob.name], knob.default)
        yield f"replication.{knob.name}", values


def _fields(group: str, model: type[BaseModel]) -> Iterator[tuple[str, Sequence[str]]]:
    for name, field in model.model_fields.items():
        yield f"{group}.{name}", _examples(field.annotation, field.default)


def _examples(annotation: Any, default: object) -> list[str]:
    """The choices, else the default if it can be written in a word."""
    if choices := _choices(annotation):
        return choices
    if isinstance(default, bool | int | float | str):
        return [_written(default)]
    return []


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""``docs/workloads.md``, written from the workloads' parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

import workloads
from harness.workload import WorkloadKind, WorkloadParameters

DOCUMENT = Path(__file__).parents[2] / "docs/workloads.md"

CLAIMS = ("Promised", "Judged", "Missed")
"""What the docstring of a workload's module says, a paragraph each."""

_HEAD = """\
# Workloads

A scenario names its workload, the load that runs by itself beside the schedule. Each runs on every target, in real and
in virtual time ([ADR 0025](adr/0025-a-workload-is-written-once-over-a-port-of-clients.md)), but for three: `command`
runs [your own program](your-own-program.md), in real time alone; [`share_groups`](share-groups.md) takes Kafka 4.3 or
newer and Kafka's own client, for no other has both; and a [running cluster](targets.md#a-running-cluster), by address
or by a cluster file, refuses `deleted_records`, since it does not say which records were deleted. What a
[schedule](scenarios.md) sends and reads, and the final read of every partition, are the same for all of them. Further
workloads can be [plugins](plugins.md).

This page is written from the parameters in `workloads/`; `pytest tests/workloads --rewrite` writes it.
"""


def document() -> str:
    """The page."""
    return _HEAD + "".join(_section(workloads.KINDS[name]) for name in sorted(workloads.KINDS.own))


def _section(kind: WorkloadKind[Any]) -> str:
    example = yaml.safe_dump(
        {"workload": {"name": kind.name, **kind.example}}, sort_keys=False, default_flow_style=None
    )
    first, *claims = claimed(kind)
    rows = "".join(f"| `{name}` | {default} | {meaning} |\n" for name, default, meaning in _parameters(kind.parameters))
    return (
        f"\n## `{kind.name}`\n\n{first[0].upper()}{first[1:]}\n\n"
        + "".join(f"* **{name}**: {text}\n" for name, text in zip(CLAIMS, claims, strict=True))
        + f"\n```yaml\n{example}```\n\n"
        f"| parameter | default | meaning |\n|---|---|---|\n{rows}"
    )


def claimed(kind: WorkloadKind[Any]) -> list[str]:
    """By the docstring of its module: what a workload does, and each of ``CLAIMS``."""
    head, *paragraphs = (inspect.getdoc(inspect.getmodule(kind.make)) or "").split("\n\n")
    said = dict(re.findall(r"^(\w+): (.*)$", "\n".join(" ".join(one.split()) for one in paragraphs), re.MULTILINE))
    return [head.partition(": ")[2], *(said[name].replace("``", "`") for name in CLAIMS)]


def _parameters(model: type[WorkloadParameters]) -> Iterator[tuple[str, str, str]]:
    meanings: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, WorkloadParameters):
            meanings |= _attributes(one)
    for name, field in sorted(model.model_fields.items(), key=lambda item: (item[0] in _common(), item[0])):
        default = "" if field.is_required() else f"`{_text(field.get_default())}`"
        yield name, default, meanings[name]


def _common() -> Mapping[str, Any]:
    """The parameters of every workload, which come last."""
    return WorkloadParameters.model_fields


def _text(default: object) -> str:
    return str(yaml.safe_dump(list(default) if isinstance(default, tuple) else default, default_flow_style=True)).split(
        "\n"
    )[0]


def _attributes(model: type[WorkloadParameters]) -> dict[str, str]:
    """By attribute, what the class's docstring says of it."""
    _, _, listed = (inspect.cleandoc(model.__doc__ or "")).partition("Attributes:\n")
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", listed, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}

"""``seawall schema``: prints the JSON Schema of a file that seawall reads or writes, as ``docs/schemas`` has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated

import typer

from harness.cli.terminal import tell


class Document(StrEnum):
    """A document that has a schema."""

    SCENARIO = "scenario"
    PLAN = "plan"
    VERDICT = "verdict"
    RUN = "run"
    RESULT = "result"
    OUTCOME = "outcome"
    CLUSTER = "cluster"
    AUDIT = "audit"


def _scenario() -> str:
    from harness.runner.scenario_schema import schema

    return schema(plugins=True, left_out=lambda broken: tell(f"seawall: left out: {broken}"))


def _plan() -> str:
    from harness.nightly.plan import schema

    return schema()


def _verdict() -> str:
    from harness.checker import schema

    return schema()


def _run() -> str:
    from harness.history.run_directory import manifest_schema

    return manifest_schema()


def _result() -> str:
    from harness.nightly.results_file import schema

    return schema()


def _outcome() -> str:
    from harness.cli.outcome import schema

    return schema()


def _cluster() -> str:
    from harness.targets.cluster.cluster_file import schema

    return schema()


def _audit() -> str:
    from harness.audit.result import schema

    return schema()


SCHEMAS: Mapping[Document, Callable[[], str]] = {
    Document.SCENARIO: _scenario,
    Document.PLAN: _plan,
    Document.VERDICT: _verdict,
    Document.RUN: _run,
    Document.RESULT: _result,
    Document.OUTCOME: _outcome,
    Document.CLUSTER: _cluster,
    Document.AUDIT: _audit,
}


def schema(
    document: Annotated[
        Document,
        typer.Argument(
            help="A scenario, plan or cluster file; verdict.json or run.json; a line of results.jsonl or audit.jsonl; "
            "what run --json prints."
        ),
    ],
) -> None:
    """Print the JSON Schema of a document, for editors and programs; that of scenarios knows the installed plugins."""
    typer.echo(SCHEMAS[document](), nl=False)

"""``seawall cluster up``: runs the built-in cluster alone, for any Kafka client."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.terminal import tell
from harness.errors import EnvironmentFault, NoAnswer, UsageError
from harness.model import TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS, generation
from harness.target import ClusterView, TopicSpec

if TYPE_CHECKING:
    from harness.targets.builtin import BuiltinTarget

app = typer.Typer(help="The built-in cluster by itself.")

_WATCH_INTERVAL_S = 0.5
_VIEW_TIMEOUT_S = 60.0
_POLL_S = 0.02


@app.callback()
def _cluster() -> None:
    """The built-in cluster by itself."""


@app.command()
def up(
    brokers: Annotated[int, typer.Option(min=1, max=9, help="How many brokers.")] = 3,
    generation_name: Annotated[
        str, typer.Option("--generation", metavar="G", help=f"Replication protocol: {', '.join(GENERATIONS)}.")
    ] = CURRENT_GENERATION,
    topic: Annotated[
        list[str], typer.Option(metavar="NAME:PARTITIONS:RF", help="Create a topic; may be given several times.")
    ] = [],  # noqa: B006 (typer copies it)
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the data here, and go on with what is there.")
    ] = None,
) -> None:
    """Serve a cluster until Ctrl-C, which is its normal end (exit code 0), or until a node ends (exit code 4).

    The first line on standard output is bootstrap=127.x.y.z:port,... for any Kafka client.
    """
    from harness.broker.settings import Settings
    from harness.runner.interruption import Interruption
    from harness.runner.journal import Journal, heal_leftovers
    from harness.targets.builtin import BuiltinTarget

    topics = [topic_spec(text, brokers) for text in topic]
    knobs = generation(generation_name)
    for line in heal_leftovers():
        tell(line)
    settings = Settings(min_insync_replicas=min(2, brokers), default_replication_factor=min(3, brokers))
    with (
        Interruption(tell) as interruption,
        _directory(data) as directory,
        Journal(directory, is_temporary=data is None) as journal,
    ):
        _require_room(directory, brokers)
        target = BuiltinTarget(directory, brokers, knobs, settings, journal.node_started)
        try:
            target.start()
            _create(target, topics)
            _serve(target)
        finally:
            interruption.shield()
            target.stop()
            if remains := target.remains():
                raise EnvironmentFault(
                    f"of the cluster there is still {', '.join(remains)}.", "`seawall heal` ends it."
                )
            journal.all_is_undone()


def topic_spec(text: str, brokers: int) -> TopicSpec:
    """The topic that ``NAME:PARTITIONS:RF`` describes.

    Raises:
        UsageError: the text is malformed, or the cluster has too few brokers.
    """
    name, _, numbers = text.partition(":")
    partitions, _, factor = numbers.partition(":")
    if not name or not (partitions.isdecimal() and factor.isdecimal()) or 0 in (int(partitions), int(factor)):
        raise UsageError(f"--topic {text!r} is not NAME:PARTITIONS:RF.", "Write, for example, --topic ledger:6:3.")
    if int(factor) > brokers:
        raise UsageError(f"--topic {text!r}: replication factor {factor} needs more than {brokers} brokers.")
    return TopicSpec(name, int(partitions), int(factor))


@contextmanager
def _directory(data: Path | None) -> Iterator[Path]:
    """``data``, locked against another cluster, or a temporary directory."""
    from harness.runner.journal import TEMPORARY

    if data is None:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY) as temporary:
            yield Path(temporary)
        return
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = os.open(data / "lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise EnvironmentFault(f"--data {data} cannot be written: {error.strerror}.", "Choose another.") from None
    with os.fdopen(lock, "w"):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise EnvironmentFault(f"--data {data} is in use by another cluster.", "Stop that one first.") from None
        yield data


def _require_room(directory: Path, brokers: int) -> None:
    """Check that every broker that has data in ``directory`` would be started.

    Raises:
        UsageError: one would not, and its replicas would be missing.
    """
    written = len(list(directory.glob("broker-*")))
    if written > brokers:
        raise UsageError(
            f"--data {directory} was written by {written} brokers, which is more than --brokers {brokers}.",
            f"Use --brokers {written}, or choose another --data.",
        )


def _ensure(target: BuiltinTarget, topic: TopicSpec) -> None:
    """Create ``topic`` unless kept data has it already."""
    existing = {name: view for name, view in _view(target).partitions.items() if name.topic == topic.name}
    if not existing:
        target.create_topic(topic)
        return
    factor = len(existing[TopicPartition(topic.name, 0)].replicas)
    if (len(existing), factor) != (topic.partitions, topic.replication_factor):
        raise UsageError(
            f"topic {topic.name!r} exists already, as {topic.name}:{len(existing)}:{factor}.",
            "Leave --topic out, or choose another --data.",
        )


def _view(target: BuiltinTarget) -> ClusterView:
    """The controller's view.

    Raises:
        NoAnswer: it does not answer in time.
    """
    from harness.targets.awaiting import answered_view

    view = answered_view(target.view, _VIEW_TIMEOUT_S, _POLL_S)
    if not view.live:
        raise NoAnswer(f"the controller has not answered within {_VIEW_TIMEOUT_S:g} s.")
    return view


def _create(target: BuiltinTarget, topics: Iterable[TopicSpec]) -> None:
    """Create the topics that do not exist yet; if a node has ended, report that instead of the failure."""
    try:
        for topic in topics:
            _ensure(target, topic)
    except EnvironmentFault:
        _require_nodes(target)
        raise


def _serve(target: BuiltinTarget) -> None:
    """Print the bootstrap addresses and wait for Ctrl-C.

    Raises:
        EnvironmentFault: a node has ended before that.
    """
    try:
        typer.echo(f"bootstrap={target.bootstrap()}")
        sys.stdout.flush()
        while True:
            _require_nodes(target)
            time.sleep(_WATCH_INTERVAL_S)
    except KeyboardInterrupt:
        return


def _require_nodes(target: BuiltinTarget) -> None:
    """Check that every node runs.

    Raises:
        EnvironmentFault: one does not; the message has the error in its log.
    """
    ended = target.ended()
    if ended:
        sentences = "; ".join(f"node {name} has ended: {how}" for name, how in ended.items())
        raise EnvironmentFault(f"{sentences}.", "Start the cluster again.")

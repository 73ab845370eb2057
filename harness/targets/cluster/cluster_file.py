"""Reads the file of ``--target cluster:FILE.yml``: a running cluster's addresses, its nodes, and commands for them."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from harness import documents
from harness.documents import Unfit
from harness.errors import UsageError
from harness.json_schema import published, schema_of
from harness.model import CONTROLLER, is_kafkas_own
from harness.targets.bootstrap.spelling import MARK, is_address
from harness.validation import shortened, validated

OWN_VARIABLES = frozenset(
    {"ID", "ADDRESS", "PORT", "PEER_ADDRESS", "PEER_PORT", "PID", "FREE_BYTES", "OFFSET_MS", "TOPICS"}
)
"""The shell variables that seawall sets for a command."""

Words = tuple[str, ...]
Text = Annotated[str, Field(min_length=1)]
Variables = Mapping[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], str]


def _address(written: str) -> str:
    addresses, mark, _ = written.partition(MARK)
    if mark:
        raise ValueError(
            f"{shortened(written)} has options, which are keys of this file: client, keep_topics, prefix, promises and "
            f"topics. Write {shortened(addresses)} here."
        )
    for address in addresses.split(","):
        if not is_address(address):
            raise ValueError(f"{shortened(address)} is not HOST:PORT. Write one such as kafka-1:9092.")
    return written


def _not_kafkas_own(prefix: str) -> str:
    if is_kafkas_own(prefix):
        raise ValueError(f"{prefix!r} is how Kafka's own topics begin. Write one without '__' in front.")
    return prefix


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Transport(_Part):
    """How a shell is reached that runs on the node; with none of these keys it is one on this machine.

    Attributes:
        ssh: the host for ``ssh``, ``USER@HOST`` or a name of its configuration.
        docker: the container for ``docker exec``.
        kubectl: the pod for ``kubectl exec``.
        argv: the words in front of ``sh -c SCRIPT``, for any other program that runs one on the node.
        options: words for the program, such as ``[-p, "2222"]`` or ``[-n, kafka]``.
    """

    ssh: Text | None = None
    docker: Text | None = None
    kubectl: Text | None = None
    argv: Annotated[Words, Field(min_length=1)] | None = None
    options: Words = ()

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [name for name in ("ssh", "docker", "kubectl", "argv") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"write one of {' and '.join(given)}, not both.")
        if self.options and given in ([], ["argv"]):
            raise ValueError("options are those of ssh, docker exec or kubectl exec, and none of them is used.")
        return self


class Commands(_Part):
    """Shell commands by what they do to a node; each ends with the exit status 0 when it has done so.

    Attributes:
        pid: print the process id of the node, as the others see it; nothing, or 0, when it does not run; a word when
            that is not known.
        kill: end the process by SIGKILL.
        start: start the node again, and leave it running when the command ends.
        stop: ask the node to shut down in good order.
        pause: stop the process by SIGSTOP.
        resume: let it go on, by SIGCONT; harmless when it does.
        cut: drop, on this node, every packet from ``$PEER_ADDRESS`` to ``$ADDRESS``; harmless when they are dropped.
        mend: undo that; harmless when nothing is dropped.
        reach: open a connection from this node to ``$PEER_ADDRESS`` and ``$PEER_PORT``; fail soon if none is.
        dropped: print how many packets from ``$PEER_ADDRESS`` the cut has dropped here; 0 where there is none.
        fill: leave ``$FREE_BYTES`` on the file system of the node's data, by a file beside them.
        free: remove that file; harmless when there is none.
        write: write 64 KiB beside the node's data, and remove them; print ``written``, or ``full`` when there is no
            space for them.
        skew: move the wall clock that the broker reads to true time plus ``$OFFSET_MS`` milliseconds, which may be
            negative, also when it was moved before; it stays so across a start of the broker.
        unskew: move it back to true time; harmless when it was not moved.
        now: print that wall clock in milliseconds since the epoch, as the broker reads it.
        logs: write a tar archive of a broker's log directory to the standard output: the directories of the partitions
            of ``$TOPICS``, names without spaces between spaces, and the files of the directory itself.
    """

    pid: Text | None = None
    kill: Text | None = None
    start: Text | None = None
    stop: Text | None = None
    pause: Text | None = None
    resume: Text | None = None
    cut: Text | None = None
    mend: Text | None = None
    reach: Text | None = None
    dropped: Text | None = None
    fill: Text | None = None
    free: Text | None = None
    write: Text | None = None
    skew: Text | None = None
    unskew: Text | None = None
    now: Text | None = None
    logs: Text | None = None

    def given(self) -> Mapping[str, str]:
        """Those that there are, by name."""
        return self.model_dump(exclude_none=True)


class Node(_Part):
    """A node of the cluster.

    Attributes:
        id: a broker's id, as Metadata tells it, or ``controller`` for the controller that is no broker.
        transport: how a shell is reached on it.
        address: its IPv4 address, from which and at which the other nodes talk to it; cuts need it.
        port: the port at which they do.
        variables: shell variables that its commands are given, over those of the file.
        commands: commands that run on the node, over those of the file and of its preset.
        local_commands: commands that run on this machine instead, such as those of ``kubectl``.
    """

    id: Annotated[int, Field(ge=0)] | Literal["controller"]
    transport: Transport = Transport()
    address: str | None = None
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    variables: Variables = Field(default_factory=dict)
    commands: Commands = Commands()
    local_commands: Commands = Commands()

    @property
    def name(self) -> str:
        """As faults name it."""
        return str(self.id)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.address is not None and not _is_ipv4(self.address):
            raise ValueError(
                f"address is {shortened(self.address)}, and no IPv4 address. Write the one that the node's packets to "
                "the other nodes have, such as 10.0.0.1."
            )
        _refuse_twice(self.commands, self.local_commands)
        _refuse_own(self.variables)
        return self


class ClusterFile(_Part):
    """A running cluster.

    Attributes:
        bootstrap: ``HOST:PORT`` of brokers, for clients.
        nodes: every broker, and the controller if it is a node of its own.
        preset: commands to begin with, by how nodes are run.
        variables: shell variables that all commands are given.
        commands: commands that run on each node, over those of the preset.
        local_commands: commands for each node that run on this machine.
        prefix: with what the names of the run's topics, groups and transactional ids begin.
        keep_topics: whether the run's topics stay.
        topics: names of topics of the cluster that take the place of the scenario's first topics, in this order.
        promises: what the cluster promises, by Kafka's names of settings, where it does not tell.
        client: a file of client properties, for TLS and SASL; relative to this one.
    """

    bootstrap: Annotated[tuple[Annotated[str, AfterValidator(_address)], ...], Field(min_length=1)]
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]
    preset: Literal["processes", "systemd", "redpanda", "strimzi"] | None = None
    variables: Variables = Field(default_factory=dict)
    commands: Commands = Commands()
    local_commands: Commands = Commands()
    prefix: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,40}$"), AfterValidator(_not_kafkas_own)] = "seawall-"
    keep_topics: bool = False
    topics: Words = ()
    promises: Mapping[str, str] = Field(default_factory=dict)
    client: Text | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        names = [node.name for node in self.nodes]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"node {twice[0]} is there twice.")
        if set(names) == {CONTROLLER}:
            raise ValueError("nodes has no broker.")
        _refuse_twice(self.commands, self.local_commands)
        _refuse_own(self.variables)
        return self


def read(path: Path) -> ClusterFile:
    """The cluster that a file describes.

    Raises:
        UsageError: there is no such file, or it is malformed; names the key.
    """
    try:
        text = documents.content(path, documents.MOST_YAML_BYTES).decode()
    except (OSError, Unfit, UnicodeDecodeError) as refused:
        why = refused.strerror if isinstance(refused, OSError) else refused
        raise UsageError(f"cluster file {str(path)!r} cannot be read: {why}.") from None
    try:
        document = documents.yaml_document(text, str(path))
        _refuse_mistaken(document)
        return validated(ClusterFile, document, "", whole="the file")
    except UsageError as refused:
        sentence = refused.sentence.removeprefix(f"{path}: ")
        raise UsageError(f"cluster file {str(path)!r}: {sentence}", refused.remedy) from None


def _refuse_mistaken(document: Any) -> None:
    """Refuse what is easily written for something else, and say how that is written."""
    written = document if isinstance(document, dict) else {}
    if isinstance(addresses := written.get("bootstrap"), str):
        raise UsageError(f"bootstrap: {shortened(addresses)} is no list.", "Write [HOST:PORT, HOST:PORT].")
    nodes = written.get("nodes")
    for number, node in enumerate(nodes if isinstance(nodes, list) else ()):
        if not isinstance(node, dict):
            continue
        if isinstance(transport := node.get("transport"), str):
            raise UsageError(
                f"nodes[{number}].transport: {shortened(transport)} has no key.",
                "Write {ssh: HOST}, docker, kubectl or argv; or leave transport out for a shell on this machine.",
            )
        if isinstance(name := node.get("id"), str) and name != CONTROLLER:
            raise UsageError(
                f"nodes[{number}].id: {shortened(name)} is no id of a node.",
                f"Write a broker's id as a number, without quotes; or {CONTROLLER}.",
            )


def schema() -> str:
    """The JSON Schema of such a file, as ``docs/schemas`` has it."""
    return published("cluster-1.json", "A running cluster, for --target cluster:FILE.yml", schema_of(ClusterFile))


def _is_ipv4(written: str) -> bool:
    try:
        IPv4Address(written)
    except ValueError:
        return False
    return True


def _refuse_twice(there: Commands, here: Commands) -> None:
    for name in there.given():
        if name in here.given():
            raise ValueError(f"{name!r} is in commands and in local_commands.")


def _refuse_own(variables: Variables) -> None:
    for name in variables:
        if name in OWN_VARIABLES:
            raise ValueError(f"variable {name} is one that seawall sets.")

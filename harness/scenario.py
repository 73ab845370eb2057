"""Reads a scenario file into a validated model.

The runner resolves the names in it (faults, settings, generations, workloads) before anything starts, because those
live in higher storeys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from harness import documents
from harness.documents import BeyondLimits, BoundedLoader, Unfit, yaml_document
from harness.errors import UsageError
from harness.json_schema import exactly_one, when
from harness.outcome import Word
from harness.schedule import Chaos, Step, wrong_names
from harness.spelling import closest
from harness.steps import PartitionName, Seconds
from harness.validation import validated

_STRICT = ConfigDict(frozen=True, extra="forbid")
_SHIPPED = Path(__file__).parent / "scenarios"
_SUFFIX = ".yaml"
_SUFFIXES = (_SUFFIX, ".yml")

MAX_SEED = 2**63
"""Exclusive."""

GenerationRanges = Annotated[str, Field(pattern=r"^[0-9.]+(-[0-9.]+)?(, *[0-9.]+(-[0-9.]+)?)*$")]
"""Generations and ranges of them, both ends included, with commas in between: ``"0.10, 2.0.0-2.1"``."""

ReplicaNames = Annotated[str, Field(pattern=r"^(all|[0-9]+(, *[0-9]+)*)$")]
"""The brokers of some replicas: ``"0"``, ``"0,2"`` or ``all``."""

NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]*)")
"""A name that ends with a number: what is before it, and the number."""

_LONGEST_ROW = 100_000


def row_of(records: str) -> list[str] | None:
    """The names that ``m1..m3`` stands for; None when ``records`` is a single name.

    Raises:
        ValueError: there are none, or their names are ambiguous.
    """
    first, dots, last = records.partition("..")
    if not dots:
        return None
    ends = NUMBERED.fullmatch(first), NUMBERED.fullmatch(last)
    if ends[0] is None or ends[1] is None or ends[0][1] != ends[1][1]:
        raise ValueError(f"{records!r} is no row of names: both ends are one name with a number each, as in m1..m4.")
    low, high = int(ends[0][2]), int(ends[1][2])
    if high < low:
        raise ValueError(f"{records!r} runs backwards.")
    if high - low >= _LONGEST_ROW:
        raise ValueError(f"{records!r} is {high - low + 1} records; a row has at most {_LONGEST_ROW}.")
    return [f"{ends[0][1]}{number}" for number in range(low, high + 1)]


def _with_a_row_that_makes_sense(entry: str) -> str:
    row_of(entry.partition("@")[0].rpartition(":")[2])
    return entry


LogEntry = Annotated[
    str,
    Field(pattern=r"^([0-9]+:)?[A-Za-z][A-Za-z0-9_-]*(\.\.[A-Za-z][A-Za-z0-9_-]*)?@[0-9]+$"),
    AfterValidator(_with_a_row_that_makes_sense),
]
"""A record of a final log, or a row of them: see :class:`Expectation`."""


def _unchanged(value: object) -> object:
    if isinstance(value, float):
        raise ValueError("YAML takes it for a number, 0.10 for 0.1; put it into quotes.")
    if not isinstance(value, int | str):
        raise ValueError(f"{value!r} is no number, flag or text; put it into quotes.")
    return value


Setting = Annotated[int | bool | str, BeforeValidator(_unchanged)]
"""The value of one of Kafka's settings."""


class Cluster(BaseModel):
    """The cluster.

    Attributes:
        brokers: their number; their ids begin with 0.
        settings: of every broker, by Kafka's names.
    """

    model_config = _STRICT

    brokers: int = Field(default=3, ge=1, le=9)
    settings: Mapping[str, Setting] = {}


class Topic(BaseModel):
    """A topic.

    Attributes:
        name: none of Kafka's own: those are compacted, and a checker cannot distinguish compacted from lost records.
        partitions: their number.
        replication_factor: the number of replicas of each.
        replicas: the brokers of every partition, preferred leader first; None: the cluster chooses.
    """

    model_config = _STRICT

    name: Annotated[
        str,
        Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$", json_schema_extra={"not": {"pattern": "^__"}}),
    ]
    partitions: int = Field(default=1, ge=1, le=1000)
    replication_factor: int = Field(default=3, ge=1)
    replicas: tuple[int, ...] | None = None

    @field_validator("name")
    @classmethod
    def _is_not_kafkas_own(cls, name: str) -> str:
        if name.startswith("__"):
            raise ValueError(f"{name!r} is Kafka's own and compacted: no checker tells such records from lost ones.")
        return name

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        if self.replicas is not None and len(self.replicas) != self.replication_factor:
            raise ValueError(
                f"replicas names {len(self.replicas)} brokers, but replication_factor is {self.replication_factor}."
            )
        return self


class Workload(BaseModel):
    """The workload's name, and its parameters, not yet validated.

    Attributes:
        name: of the workload.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    def parameters(self) -> dict[str, Any]:
        """Everything but the name; validated by the workload."""
        return dict(self.model_extra or {})


class Prediction(BaseModel):
    """An anomaly that a protocol generation is known to show here. What is not written matches anything.

    Attributes:
        kind: of the anomaly, as in docs/anomalies.md.
        topic: where; None: anywhere, as are the next two.
        partition: its number.
        offset: in the partition.
        verdict: the one without the prediction. A ``DOCUMENTED`` or ``WEAK`` anomaly does not reproduce a violation.
    """

    model_config = _STRICT

    kind: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    verdict: Literal["VIOLATION", "DOCUMENTED", "WEAK"] = "VIOLATION"


class Expectation(BaseModel):
    """The expected outcome on some generations.

    Attributes:
        outcome: in words; all of them are observed, and no others.
        final_logs: by partition and then by replica (``"0"``, ``"0,2"`` or ``all``), the records of its log in the end,
            from its start: the record's name, ``@`` and its leader epoch. ``m1..m4@2`` stands for a row of them; in a
            first entry ``5:m5@0`` the log starts at offset 5. Replicas not named may hold anything; ``all`` means every
            assigned one.
        anomalies: the exact anomalies that the checkers find besides those of the words; see :meth:`predictions`.
        note: the reason, in a sentence.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra=when(
            "outcome", {"contains": {"const": "safe"}}, {"properties": {"outcome": {"maxItems": 1}}}
        ),
    )

    outcome: tuple[Word, ...] = Field(min_length=1)
    final_logs: Mapping[PartitionName, Mapping[ReplicaNames, tuple[LogEntry, ...]]] = {}
    anomalies: tuple[Prediction, ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _safe_stands_alone(self) -> Self:
        if Word.SAFE in self.outcome and len(self.outcome) > 1:
            raise ValueError("safe stands alone: it means that no other word applies.")
        return self


class Scenario(BaseModel):
    """A scenario file.

    Attributes:
        version: of this format.
        id: the scenario's name; that of its file.
        catalogue: the entry of the catalogue of losses that it replays, ``A02``, or its variant, ``A01/unclean``;
            entries with N were found by seawall itself.
        title: what it does, in a line.
        source: of the loss: a KIP, an issue, a post-mortem.
        description: for people; Markdown.
        preconditions: of the loss, in words.
        generation: of the replication protocol, if the command line names none; None: the current one.
        replication: knobs of the protocol set for this scenario, on every generation: a known bug switched on.
        cluster: the brokers and their settings.
        topics: to be created before anything else.
        workload: the load in the background.
        schedule: awaited steps; or
        chaos: random faults under load for ``duration_s``.
        duration_s: how many seconds random faults go on.
        tap: whether a wire tap records every request and response; it slows the brokers down.
        settle_s: how many seconds the healed cluster may take to become whole again.
        predictions: per protocol generation, the anomalies to expect; or
        outcomes: per generation (``"0.10"``) or several of them (``"0.10, 2.0.0-2.1"``), the outcome to expect. A
            scenario with outcomes runs only on generations that one of them names.
        not_on_real_kafka: the generations on whose releases its schedule cannot be executed, although it can on the
            built-in brokers, and why, in a sentence.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            **exactly_one("schedule", "chaos"),
            "not": {
                "required": ["predictions", "outcomes"],
                "properties": {"predictions": {"minProperties": 1}, "outcomes": {"minProperties": 1}},
            },
        },
    )

    version: Literal[1] = 1
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$")]
    catalogue: Annotated[str, Field(pattern=r"^[A-HN][0-9]{2}(/[a-z0-9.-]{1,40})?$")] | None = None
    title: str
    source: str
    description: str = ""
    preconditions: str = ""
    generation: str | None = None
    replication: Mapping[str, str | bool] = {}
    cluster: Cluster = Cluster()
    topics: tuple[Topic, ...] = Field(min_length=1)
    workload: Workload
    schedule: tuple[Step, ...] | None = Field(default=None, min_length=1)
    chaos: Chaos | None = None
    duration_s: Seconds = Field(default=20.0, gt=0)
    tap: bool = False
    settle_s: Seconds = Field(default=30.0, gt=0)
    predictions: Mapping[str, tuple[Prediction, ...]] = {}
    outcomes: Mapping[GenerationRanges, Expectation] = {}
    not_on_real_kafka: Mapping[GenerationRanges, str] = {}

    _file: str = PrivateAttr("")

    @property
    def names(self) -> frozenset[str]:
        """Its names: its id, its entry of the catalogue, ``A01``, and that with its variant, ``A01/unclean``."""
        catalogue = self.catalogue or self.id
        return frozenset((self.id, catalogue, catalogue.partition("/")[0]))

    @property
    def transacts(self) -> bool:
        """Whether a schedule runs transactions, which there are since 0.11 (KIP-98)."""
        return any(step.send is not None and step.send.transaction is not None for step in self.schedule or ())

    @property
    def text(self) -> str:
        """The text of its file."""
        return _read(Path(self._file) if self._file else _SHIPPED / f"{self.id}{_SUFFIX}")

    @property
    def origin(self) -> str:
        """The argument of :func:`load`: the path of its file, or the name of a shipped scenario."""
        return self._file or self.id

    def from_file(self, path: str) -> Self:
        """This scenario, knowing the file it was read from; empty for a shipped one."""
        copy = self.model_copy()
        copy._file = path  # noqa: SLF001 (of the same class)
        return copy

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if (self.schedule is None) == (self.chaos is None):
            raise ValueError("write exactly one of schedule and chaos.")
        if self.predictions and self.outcomes:
            raise ValueError("write either predictions or outcomes: outcomes have anomalies of their own.")
        names = [topic.name for topic in self.topics]
        if len(set(names)) < len(names):
            raise ValueError(f"two topics have the same name: {', '.join(names)}.")
        self._refuse_too_few_brokers()
        for index, name, wrong in wrong_names(self.schedule or ()):
            raise ValueError(f"schedule[{index}]: {name!r} {wrong}.")
        return self

    def _refuse_too_few_brokers(self) -> None:
        for topic in self.topics:
            wanted = max((topic.replication_factor - 1, *(topic.replicas or ())))
            if wanted >= self.cluster.brokers:
                raise ValueError(
                    f"topic {topic.name!r} needs broker {wanted}, but the cluster has {self.cluster.brokers} brokers."
                )


def load(name_or_path: str) -> Scenario:
    """The shipped scenario of that name, or the scenario file at that path.

    Raises:
        UsageError: there is none, or it is invalid; names the file, the key and the value.
    """
    if looks_like_a_path(name_or_path):
        path = Path(name_or_path)
        return parse(_read(path), str(path))
    path = _SHIPPED / f"{name_or_path}{_SUFFIX}"
    if not path.is_file():
        raise UsageError(f"scenario {name_or_path!r} is not known; {closest(name_or_path, shipped_names())}")
    return _parsed(_read(path))


def find(name_or_path: str) -> list[Scenario]:
    """As :func:`load`, but a name may be that of an entry of the catalogue, which means every variant, in order.

    Raises:
        UsageError: see :func:`load`.
    """
    if name_or_path.endswith(_SUFFIXES) or name_or_path in shipped_names():
        return [load(name_or_path)]  # without reading the catalogue, which takes seconds
    known = shipped()
    found = [one for one in known if name_or_path in one.names]
    if not found and not looks_like_a_path(name_or_path):
        names = sorted({name for one in known for name in one.names})
        raise UsageError(f"no scenario goes by {name_or_path!r}; {closest(name_or_path, names)}")
    return sorted(found, key=lambda one: (one.catalogue or "~", one.id)) or [load(name_or_path)]


def shipped() -> list[Scenario]:
    """The scenarios that come with seawall, by name."""
    return [load(name) for name in shipped_names()]


@cache
def _parsed(text: str) -> Scenario:
    return parse(text)


def parse(text: str, origin: str = "") -> Scenario:
    """The scenario that ``text``, YAML, describes; ``origin`` names its file for errors.

    Raises:
        UsageError: it is wrong.
    """
    document = yaml_document(text, origin or "the scenario", _UniqueKeys)
    if document is None:
        raise UsageError(
            f"{origin or 'the scenario'} is empty.", "`seawall scenario show random-chaos` prints one to begin with."
        )
    try:
        return validated(Scenario, document, "").from_file(origin)
    except UsageError as error:
        raise UsageError(f"{origin}: {error.sentence}" if origin else error.sentence, error.remedy) from None


def with_overrides(scenario: Scenario, overrides: Mapping[str, str]) -> Scenario:
    """``scenario`` with ``--set`` overrides applied: ``settings.x``, ``workload.x``, ``topic.x``, ``chaos.x``.

    Values are text as given on the command line, read as YAML would (``3``, ``true``, ``[1, 2]``); of settings only
    whole numbers, flags and what is in quotes are, and the rest stays text (``0.10``). ``topic.x`` is meant for every
    topic. Keys of other groups (``replication.x``) are left to the runner.

    Raises:
        UsageError: an unknown key or a value that the scenario's model refuses.
    """
    if not overrides:
        return scenario
    document = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for key, text in overrides.items():
        _override(document, key, text)
    try:
        return validated(Scenario, document, "").from_file(scenario.origin)
    except UsageError as error:
        raise UsageError(f"--set {_as_set(overrides)}: {error.sentence}") from None


def _as_set(overrides: Mapping[str, str]) -> str:
    return " ".join(f"{key}={text}" for key, text in overrides.items())


def checked_seed(seed: int) -> int:
    """``seed`` itself.

    Raises:
        UsageError: it is not in 0 <= seed < 2**63.
    """
    if not 0 <= seed < MAX_SEED:
        raise UsageError(f"seed {seed} is out of range.", f"Seeds are 0 or more and less than 2^63 = {MAX_SEED}.")
    return seed


OVERRIDE_GROUPS = ("settings", "workload", "topic", "chaos", "replication")
"""The first parts of the keys that ``--set`` takes."""


def _override(document: dict[str, Any], key: str, text: str) -> None:
    group, _, name = key.partition(".")
    if group not in OVERRIDE_GROUPS or not name:
        hint = f"keys begin with {', '.join(f'{g}.' for g in OVERRIDE_GROUPS[:-1])} or {OVERRIDE_GROUPS[-1]}."
        raise UsageError(f"--set {key}={text}: {key!r} is not a key; {hint}")
    try:
        value = yaml_document(text, f"--set {key}={text}", _UniqueKeys)
    except BeyondLimits:
        raise
    except UsageError:
        value = text
    match group:
        case "settings":
            kept = value if isinstance(value, int | str) else text
            document.setdefault("cluster", {}).setdefault("settings", {})[name] = kept
        case "workload" | "chaos":
            if group not in document:
                raise UsageError(f"--set {key}={text}: scenario {document['id']!r} has no {group}.")
            document[group][name] = value
        case "topic":
            for topic in document["topics"]:
                topic[name] = value


def looks_like_a_path(text: str) -> bool:
    """Whether ``text`` names a scenario file rather than a shipped scenario."""
    return "/" in text or text.endswith(_SUFFIXES)


def shipped_names() -> Sequence[str]:
    """The names of the scenarios that come with seawall."""
    return sorted(path.stem for path in _SHIPPED.glob(f"*{_SUFFIX}"))


def _read(path: Path) -> str:
    try:
        return documents.text(path)
    except (OSError, Unfit) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"scenario file {path} cannot be read: {reason}.",
            "`seawall scenario list` names those that come with seawall.",
        ) from None


class _UniqueKeys(BoundedLoader):
    """YAML without what PyYAML accepts silently: a duplicate key, and a key that is no text (``0.10:``)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """See :class:`yaml.constructor.SafeConstructor`."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise _refused(_no_text(key), key)
            if key.value in seen:
                raise _refused(f"key {key.value!r} is written twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _no_text(key: yaml.Node) -> str:
    if not isinstance(key, yaml.ScalarNode):
        return f"a {'list' if isinstance(key, yaml.SequenceNode) else 'mapping'} cannot be a key"
    return f"key {key.value} is no text; put it in quotes" if key.value else "there is a key missing before the colon"


def _refused(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

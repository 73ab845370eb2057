"""The field specifiers and class decorators that declare a message.

A message is a dataclass whose fields, *in wire order*, are made by the specifiers below::

    @request(ApiKey.FETCH, versions=(4, 12), flexible=12)
    class FetchRequest(Message):
        replica_id: int = int32(default=-1)
        session_id: int = int32(since=7)
        cluster_id: str | None = nullable_string(since=12, tag=0)
        topics: list[FetchTopic] = array(FetchTopic)

One class serves every version. A field that a version lacks is not encoded, and decodes to its default. All
version bounds (``since``, ``until``, ``versions``) are **inclusive**, as in Kafka's definitions. A field with a
``tag`` is a tagged field (KIP-482) in every version that has it, and is left out while it has its default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast, dataclass_transform

from harness.wire.keys import ApiKey

Buffer = bytes | bytearray | memoryview
Direction = Literal["request", "response"]

NO_UUID = bytes(16)
"""Kafka's zero UUID: a topic id that is not known. UUIDs are 16 raw bytes here."""

MAX_ELEMENTS = 10_000
"""The most elements that the arrays of one request may have in all, unless its class declares another number.

Kafka has no such limit, but threads: here one request is served at a time, at some 30 µs for each partition that it
names. A client that names every partition that a cluster may have stays well below it.
"""

LATEST = 32767
"""An ``until`` that means "and every later version"."""

MAX_STRING_BYTES = 32767
"""The longest string that Kafka writes or reads, in flexible versions too, whose lengths could be greater."""


class Wire(NamedTuple):
    """One field's declaration.

    Attributes:
        kind: a key of ``source.FIXED``, or ``string``, ``bytes``, ``records``, ``array``, ``struct``.
        since: the first version that has the field.
        until: the last version that has the field.
        nullable: the first version in which it may be null; None when it never may.
        tag: the number of a tagged field, or None.
        element: the struct's class; of an array, a class or a kind.
        is_cut: whether a string that is longer than ``MAX_STRING_BYTES`` is cut to that length when it is encoded.
    """

    kind: str
    since: int
    until: int
    nullable: int | None
    tag: int | None
    element: type[Struct] | str | None
    is_cut: bool = False


class Struct:
    """The base of all messages and their parts: comparison by value, and a ``repr`` without the defaults."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # mutable

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name, _ in all_fields(type(self)))

    def __repr__(self) -> str:
        told = ((name, getattr(self, name)) for name, _ in all_fields(type(self)))
        shown = (f"{name}={value!r}" for name, value in told if value != default_of(type(self), name))
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A whole request or response body, or the key or value of a record that a coordinator writes."""

    __slots__ = ()

    api_key: ClassVar[ApiKey]
    direction: ClassVar[Direction]
    versions: ClassVar[tuple[int, int]]
    """The first and the last version there is a codec for, both inclusive."""
    flexible: ClassVar[int]
    """The first version with compact lengths and tagged fields (KIP-482)."""
    max_elements: ClassVar[int | None] = None
    """The most elements in all arrays of a request together; None: no request."""

    def error_response(self, error: int) -> Message | None:
        """The response with ``error`` in all the places where it has room for one.

        For a caller that may not ask, and a request that cannot be served: Kafka's
        ``AbstractRequest.getErrorResponse``. None: there is none, the connection is closed instead (Produce with
        acks 0).

        Raises:
            NotImplementedError: no node serves such requests.
        """
        raise NotImplementedError(f"{type(self).__name__} is served by no node")


MESSAGES: dict[tuple[Direction, ApiKey], type[Message]] = {}
"""Every declared message: complete once :mod:`harness.wire.messages` is imported."""

T = TypeVar("T")
StructType = TypeVar("StructType", bound=Struct)
MessageType = TypeVar("MessageType", bound=Message)


@dataclass_transform()
def struct(cls: type[StructType]) -> type[StructType]:
    """Make ``cls`` a slotted dataclass that messages can contain.

    Its constructor is compiled at the first call: every process declares some three hundred, and calls a few.
    """
    made: Any = dataclass(slots=True, repr=False, eq=False, init=False)(cls)

    def first(self: Struct, *arguments: Any, **named: Any) -> None:
        constructed: Any = dataclass(repr=False, eq=False)(type(made.__name__, (made,), {}))
        made.__init__ = constructed.__init__
        made.__init__(self, *arguments, **named)

    made.__init__ = first
    return cast("type[StructType]", made)


@dataclass_transform()
def request(
    api_key: ApiKey, *, versions: tuple[int, int], flexible: int, max_elements: int = MAX_ELEMENTS
) -> Callable[[type[MessageType]], type[MessageType]]:
    """Make a class the request of ``api_key``."""
    declare: Callable[[type[MessageType]], type[MessageType]] = _message("request", api_key, versions, flexible)

    def limited(cls: type[MessageType]) -> type[MessageType]:
        made = declare(cls)
        made.max_elements = max_elements
        return made

    return limited


@dataclass_transform()
def response(
    api_key: ApiKey, *, versions: tuple[int, int], flexible: int
) -> Callable[[type[MessageType]], type[MessageType]]:
    """Make a class the response of ``api_key``."""
    return _message("response", api_key, versions, flexible)


@dataclass_transform()
def stored(*, versions: tuple[int, int], flexible: int) -> Callable[[type[MessageType]], type[MessageType]]:
    """Make a class the key or the value of a record that a coordinator writes; its version is not part of it."""

    def declare(cls: type[MessageType]) -> type[MessageType]:
        made = struct(cls)
        made.versions, made.flexible = versions, flexible
        return made

    return declare


def _message(
    direction: Direction, api_key: ApiKey, versions: tuple[int, int], flexible: int
) -> Callable[[type[MessageType]], type[MessageType]]:
    def declare(cls: type[MessageType]) -> type[MessageType]:
        made = struct(cls)
        made.api_key, made.direction, made.versions, made.flexible = api_key, direction, versions, flexible
        MESSAGES[direction, api_key] = made
        return made

    return declare


def wire_fields(cls: type[Struct], version: int) -> list[tuple[str, Wire]]:
    """The fields that ``version`` has, in wire order; tagged fields among them."""
    return [(name, wire) for name, wire in all_fields(cls) if wire.since <= version <= wire.until]


def all_fields(cls: type[Struct]) -> list[tuple[str, Wire]]:
    """Every field of every version, in the order of the constructor's arguments."""
    return [(part.name, part.metadata["wire"]) for part in fields(cast("Any", cls))]


def default_of(cls: type[Struct], name: str) -> Any:
    """The default of one field (a fresh list where it is a list)."""
    part: Field[Any] = cls.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return part.default if part.default_factory is MISSING else part.default_factory()


# ------------------------------------------------------------------------------------------- field specifiers


def boolean(*, since: int = 0, until: int = LATEST, default: bool = False, tag: int | None = None) -> bool:
    """One byte, 0 or 1."""
    return _field("boolean", since, until, default, tag)


def int8(*, since: int = 0, until: int = LATEST, default: int = 0, tag: int | None = None) -> int:
    """A signed byte."""
    return _field("int8", since, until, default, tag)


def int16(*, since: int = 0, until: int = LATEST, default: int = 0, tag: int | None = None) -> int:
    """A signed 16 bit number, big-endian like all of them."""
    return _field("int16", since, until, default, tag)


def uint16(*, since: int = 0, until: int = LATEST, default: int = 0, tag: int | None = None) -> int:
    """An unsigned 16 bit number: a port."""
    return _field("uint16", since, until, default, tag)


def int32(*, since: int = 0, until: int = LATEST, default: int = 0, tag: int | None = None) -> int:
    """A signed 32 bit number."""
    return _field("int32", since, until, default, tag)


def int64(*, since: int = 0, until: int = LATEST, default: int = 0, tag: int | None = None) -> int:
    """A signed 64 bit number."""
    return _field("int64", since, until, default, tag)


def float64(*, since: int = 0, until: int = LATEST) -> float:
    """A 64-bit floating-point number."""
    return _field("float64", since, until, 0.0, None)


def uuid(*, since: int = 0, until: int = LATEST, tag: int | None = None) -> bytes:
    """16 raw bytes; ``NO_UUID`` when unknown."""
    return _field("uuid", since, until, NO_UUID, tag)


def uuids(*, since: int = 0, until: int = LATEST, tag: int | None = None) -> list[bytes]:
    """A list of UUIDs."""
    return _list(since, until, tag, list, "uuid")


def string(*, since: int = 0, until: int = LATEST, default: str = "") -> str:
    """UTF-8 text that is never null."""
    return _field("string", since, until, default, None)


def nullable_string(
    *, since: int = 0, until: int = LATEST, nullable: int | None = None, default: str | None = None,
    tag: int | None = None,
) -> str | None:  # fmt: skip
    """UTF-8 text that may be null from version ``nullable`` on, by default wherever it exists."""
    return _field("string", since, until, default, tag, nullable=since if nullable is None else nullable)


def sentence(*, since: int = 0, until: int = LATEST) -> str | None:
    """Text for people, such as an error message; may be null. It may quote a long name, so it is truncated."""
    return _field("string", since, until, None, None, nullable=since, is_cut=True)


def octets(*, since: int = 0, until: int = LATEST) -> bytes:
    """Bytes that are never null, and are copied: what the members of a group tell each other."""
    return _field("bytes", since, until, b"", None)


def records(*, since: int = 0, until: int = LATEST) -> Buffer | None:
    """Record batches, kept opaque and uncopied; may be null."""
    return _field("records", since, until, None, None, nullable=since)


def whole_records() -> Buffer:
    """Record batches, kept opaque and uncopied, that are never null."""
    return _field("records", 0, LATEST, b"", None)


def nullable_struct(cls: type[StructType], *, tag: int | None = None, since: int = 0) -> StructType | None:
    """A struct that may be null, and is by default; a tagged one is None while it has its default."""
    return _field("struct", since, LATEST, None, tag, nullable=since if tag is None else None, element=cls)


def part(cls: type[StructType], *, since: int = 0) -> StructType:
    """A struct that is never null."""
    wire = Wire("struct", since, LATEST, None, None, cls)
    return field(default_factory=cls, metadata={"wire": wire})


def array(cls: type[StructType], *, since: int = 0, until: int = LATEST, tag: int | None = None) -> list[StructType]:
    """A list of structs that is never null."""
    return _list(since, until, tag, list, cls)


def nullable_array(
    cls: type[StructType], *, since: int = 0, until: int = LATEST, nullable: int | None = None
) -> list[StructType] | None:
    """A list of structs that may be null from version ``nullable`` on, by default wherever it exists.

    It is null by default: the caller has to set a list to encode a version in which it must not be null.
    """
    return _field("array", since, until, None, None, nullable=since if nullable is None else nullable, element=cls)


def int8s(*, since: int = 0, until: int = LATEST) -> list[int]:
    """A list of signed bytes."""
    return _list(since, until, None, list, "int8")


def int32s(*, since: int = 0, until: int = LATEST) -> list[int]:
    """A list of int32."""
    return _list(since, until, None, list, "int32")


def int64s(*, since: int = 0, until: int = LATEST) -> list[int]:
    """A list of int64."""
    return _list(since, until, None, list, "int64")


def nullable_int32s(*, since: int = 0, tag: int | None = None) -> list[int] | None:
    """A list of int32 that may be null, and is by default."""
    return _field("array", since, LATEST, None, tag, nullable=since, element="int32")


def nullable_uuids(*, since: int = 0, tag: int | None = None) -> list[bytes] | None:
    """A list of UUIDs that may be null, and is by default."""
    return _field("array", since, LATEST, None, tag, nullable=since, element="uuid")


def nullable_strings(*, since: int = 0) -> list[str] | None:
    """A list of strings that may be null, and is by default."""
    return _field("array", since, LATEST, None, None, nullable=since, element="string")


def strings(*, since: int = 0, until: int = LATEST) -> list[str]:
    """A list of strings, none of them null."""
    return _list(since, until, None, list, "string")


def _field(
    kind: str, since: int, until: int, default: T, tag: int | None,
    *, nullable: int | None = None, element: type[Struct] | str | None = None, is_cut: bool = False,
) -> T:  # fmt: skip
    wire = Wire(kind, since, until, nullable, tag, element, is_cut)
    return field(default=default, metadata={"wire": wire})


def _list(since: int, until: int, tag: int | None, factory: Callable[[], T], element: type[Struct] | str) -> T:
    wire = Wire("array", since, until, None, tag, element)
    return field(default_factory=factory, metadata={"wire": wire})

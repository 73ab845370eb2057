"""The quotas of clients: DescribeClientQuotas (KIP-546, the ``*.json``)."""

from __future__ import annotations

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    nullable_array,
    nullable_string,
    request,
    response,
    sentence,
    string,
    struct,
)
from harness.wire.keys import ApiKey


@struct
class ComponentData(Struct):
    """What an entity has to match: its name exactly (0), the default (1), or any name (2)."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = nullable_string()


@request(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=(0, 1), flexible=1)
class DescribeClientQuotasRequest(Message):
    """Asks for the quotas of the entities that match; ``strict``: of no type besides."""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return DescribeClientQuotasResponse(error_code=error, entries=None)


@struct
class EntityData(Struct):
    """Part of an entity; ``entity_name`` None: the default one."""

    entity_type: str = string()
    entity_name: str | None = nullable_string()


@struct
class ValueData(Struct):
    """One quota."""

    key: str = string()
    value: float = float64()


@struct
class EntryData(Struct):
    """The quotas of one entity."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@response(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=(0, 1), flexible=1)
class DescribeClientQuotasResponse(Message):
    """The quotas of every entity that matches; ``entries`` None: an error."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    entries: list[EntryData] | None = nullable_array(EntryData)

"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs (the ``*.json`` of those names)."""

from __future__ import annotations

from enum import IntEnum

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    nullable_string,
    nullable_strings,
    request,
    response,
    sentence,
    string,
    struct,
)
from harness.wire.keys import ApiKey


class ResourceType(IntEnum):
    """What is configured (``ConfigResource.Type``)."""

    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """Where a value comes from (``DescribeConfigsResponse.ConfigSource``)."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigType(IntEnum):
    """The type of a value (``DescribeConfigsResponse.ConfigType``)."""

    BOOLEAN = 1
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with a configuration (``AlterConfigOp.OpType``)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@struct
class DescribeConfigsResource(Struct):
    """A topic or broker, and the names of the configurations to describe; None: all."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = nullable_strings()


@request(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4), flexible=4)
class DescribeConfigsRequest(Message):
    """Describes configurations (KIP-133)."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(since=1)
    include_documentation: bool = boolean(since=3)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(error, None, one.resource_type, one.resource_name) for one in self.resources]
        )


@struct
class DescribeConfigsSynonym(Struct):
    """A place from which a value may come, the first one wins."""

    name: str = string(since=1)
    value: str | None = nullable_string(since=1)
    source: int = int8(since=1)


@struct
class DescribeConfigsResourceResult(Struct):
    """One configuration."""

    name: str = string()
    value: str | None = nullable_string()
    read_only: bool = boolean()
    config_source: int = int8(since=1, default=-1)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, since=1)
    config_type: int = int8(since=3)
    documentation: str | None = nullable_string(since=3)


@struct
class DescribeConfigsResult(Struct):
    """The configurations of one resource."""

    error_code: int = int16()
    error_message: str | None = sentence()
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@response(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4), flexible=4)
class DescribeConfigsResponse(Message):
    """The configurations of the resources."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)


@struct
class AlterableConfig(Struct):
    """A configuration and its new value; None: the default."""

    name: str = string()
    value: str | None = nullable_string()


@struct
class AlterConfigsResource(Struct):
    """All configurations that a resource is to have."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@request(ApiKey.ALTER_CONFIGS, versions=(0, 2), flexible=2)
class AlterConfigsRequest(Message):
    """Replaces all configurations of resources (KIP-133)."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(error, None, one.resource_type, one.resource_name)
                for one in self.resources
            ]
        )


@struct
class AlterConfigsResourceResponse(Struct):
    """The result for one resource."""

    error_code: int = int16()
    error_message: str | None = sentence()
    resource_type: int = int8()
    resource_name: str = string()


@response(ApiKey.ALTER_CONFIGS, versions=(0, 2), flexible=2)
class AlterConfigsResponse(Message):
    """The results for the resources."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


@struct
class IncrementalAlterableConfig(Struct):
    """A configuration and what to do with it: one of :class:`Operation`."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = nullable_string()


@struct
class IncrementalAlterConfigsResource(Struct):
    """The configurations of a resource that are to change."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[IncrementalAlterableConfig] = array(IncrementalAlterableConfig)


@request(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsRequest(Message):
    """Changes single configurations of resources (KIP-339)."""

    resources: list[IncrementalAlterConfigsResource] = array(IncrementalAlterConfigsResource)
    validate_only: bool = boolean()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return IncrementalAlterConfigsResponse(
            responses=[
                IncrementalAlterConfigsResourceResponse(error, None, one.resource_type, one.resource_name)
                for one in self.resources
            ]
        )


@struct
class IncrementalAlterConfigsResourceResponse(Struct):
    """The result for one resource."""

    error_code: int = int16()
    error_message: str | None = sentence()
    resource_type: int = int8()
    resource_name: str = string()


@response(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsResponse(Message):
    """The results for the resources."""

    throttle_time_ms: int = int32()
    responses: list[IncrementalAlterConfigsResourceResponse] = array(IncrementalAlterConfigsResourceResponse)

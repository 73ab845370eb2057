"""DescribeConfigs: what topics and brokers obey, and where each value comes from (KIP-133, KIP-226)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import cast

from harness.broker.metadata import ClusterMetadata
from harness.broker.session import Request
from harness.broker.settings import NodeConfig, Settings
from harness.broker.topic_config import is_set_for_the_cluster, written_default
from harness.error_codes import ErrorCode
from harness.replication.topic_configs import TOPIC_CONFIGS
from harness.wire.messages.configs import (
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    ResourceType,
)

_TYPES: Mapping[str, ConfigType] = MappingProxyType({one.name.lower(): one for one in ConfigType})


def describe_configs(cluster: ClusterMetadata, config: NodeConfig, request: Request) -> None:
    """Serve DescribeConfigs from the controller's latest UpdateMetadata, and for this broker from its settings."""
    body = cast("DescribeConfigsRequest", request.body)
    results = [_describe(cluster, config, asked) for asked in body.resources]
    for one in [one for result in results for one in result.configs if not body.include_synonyms]:
        one.synonyms = []
    request.answer(DescribeConfigsResponse(results=results))


def _describe(cluster: ClusterMetadata, config: NodeConfig, asked: DescribeConfigsResource) -> DescribeConfigsResult:
    result = DescribeConfigsResult(ErrorCode.NONE, None, asked.resource_type, asked.resource_name)
    match asked.resource_type:
        case ResourceType.TOPIC if not cluster.knows(asked.resource_name):
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        case ResourceType.TOPIC:
            result.configs = _of_topic(dict(cluster.configs[asked.resource_name]), config.settings)
        case ResourceType.BROKER if asked.resource_name == str(config.node_id):
            result.configs = _of_broker(config.settings)
        case ResourceType.BROKER:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = f"Broker {config.node_id} cannot describe broker {asked.resource_name!r}."
        case _:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = f"Resources of type {asked.resource_type} have no configurations here."
    keys = asked.configuration_keys
    result.configs = [one for one in result.configs if keys is None or one.name in keys]
    return result


def _of_topic(own: Mapping[str, str], settings: Settings) -> list[DescribeConfigsResourceResult]:
    described = []
    for name, kind in TOPIC_CONFIGS.items():
        for_all = ConfigSource.STATIC_BROKER if is_set_for_the_cluster(settings, name) else ConfigSource.DEFAULT
        synonyms = [DescribeConfigsSynonym(name, written_default(settings, name), for_all)]
        if name in own:
            synonyms.insert(0, DescribeConfigsSynonym(name, own[name], ConfigSource.TOPIC))
        value, source = synonyms[0].value, synonyms[0].source
        described.append(
            DescribeConfigsResourceResult(
                name, value, config_source=source, synonyms=synonyms, config_type=_TYPES[kind.type]
            )
        )
    return described


def _of_broker(settings: Settings) -> list[DescribeConfigsResourceResult]:
    """Its settings, which it has from its start to its end."""
    described = []
    for field in fields(Settings):
        name, value = field.name.replace("_", "."), getattr(settings, field.name)
        source = ConfigSource.DEFAULT if value == field.default else ConfigSource.STATIC_BROKER
        kind = ConfigType.BOOLEAN if isinstance(value, bool) else ConfigType.LONG
        text = str(value).lower()
        described.append(
            DescribeConfigsResourceResult(
                name,
                text,
                read_only=True,
                config_source=source,
                synonyms=[DescribeConfigsSynonym(name, text, source)],
                config_type=kind,
            )
        )
    return described

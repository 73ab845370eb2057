"""ApiVersions: the requests that a broker supports (``ApiVersionsRequest.json``, ``ApiVersionsResponse.json``)."""

from __future__ import annotations

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    request,
    response,
    string,
    struct,
)
from harness.wire.keys import ApiKey


@request(ApiKey.API_VERSIONS, versions=(0, 4), flexible=3)
class ApiVersionsRequest(Message):
    """Asks a broker for its supported API versions."""

    client_software_name: str = string(since=3)
    client_software_version: str = string(since=3)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return ApiVersionsResponse(error)


@struct
class ApiVersion(Struct):
    """The versions of one API, both bounds inclusive."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey(Struct):
    """A feature and its possible levels, both bounds inclusive."""

    name: str = string(since=3)
    min_version: int = int16(since=3)
    max_version: int = int16(since=3)


@struct
class FinalizedFeatureKey(Struct):
    """A feature and its level in this cluster."""

    name: str = string(since=3)
    max_version_level: int = int16(since=3)
    min_version_level: int = int16(since=3)


@response(ApiKey.API_VERSIONS, versions=(0, 4), flexible=3)
class ApiVersionsResponse(Message):
    """The supported versions; the header is always version 0. The answer to an unsupported version is v0, error 35."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, since=3, tag=0)
    finalized_features_epoch: int = int64(since=3, default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, since=3, tag=2)
    zk_migration_ready: bool = boolean(since=3, tag=3)

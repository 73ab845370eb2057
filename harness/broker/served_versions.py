"""What brokers of a generation offer clients, where there are codecs for more: versions of requests, and features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.coordination.transaction import NUMBERED
from harness.replication.knobs import Knobs
from harness.wire.frames import ADVERTISED
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_TRANSACTION_VERSION = "transaction.version"
_FEATURES_EPOCH = 0
_FROM_ZERO_SINCE = 4
"""In older versions a supported feature that may have the level 0 is left out (KAFKA-17492)."""

_BEFORE_KIP_447: Mapping[ApiKey, int] = {
    ApiKey.OFFSET_FETCH: 6,  # 7 can ask for stable offsets only
    ApiKey.TXN_OFFSET_COMMIT: 2,  # 3 has the generation and the id of the member
}
_BEFORE_KIP_848: Mapping[ApiKey, int] = {
    ApiKey.OFFSET_COMMIT: 8,  # 9 has the epoch of a member
    ApiKey.OFFSET_FETCH: 8,
}
_OF_KIP_848 = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE})
_BEFORE_TRANSACTION_VERSION_2: Mapping[ApiKey, int] = {
    ApiKey.PRODUCE: 11,  # 12 adds the partition to the transaction
    ApiKey.END_TXN: 4,  # 5 raises the epoch
    ApiKey.TXN_OFFSET_COMMIT: 4,  # 5 adds the partition of the group
}


_ONLY_AS_OFFERED = frozenset({ApiKey.PRODUCE})
"""What nodes do not ask each other in newer versions either."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a node serves.

    Attributes:
        versions: of requests, by ascending key; both bounds inclusive. What is newer is refused.
        transaction_version: the level of the feature ``transaction.version``; None: there is none.
    """

    versions: Mapping[ApiKey, tuple[int, int]]
    transaction_version: int | None = None

    def knows(self, key: ApiKey, version: int) -> bool:
        """Whether a request that there is a codec for is served in this version, as far as the generation decides."""
        if key not in ADVERTISED:
            return True
        if key not in self.versions:
            return False
        if version <= self.versions[key][1]:
            return True
        return self.versions[key][1] == ADVERTISED[key][1] and key not in _ONLY_AS_OFFERED

    def answer(self, version: int, error: int = 0) -> ApiVersionsResponse:
        """The answer to ApiVersions in this version."""
        body = ApiVersionsResponse(error, [ApiVersion(key, *bounds) for key, bounds in self.versions.items()])
        if self.transaction_version is not None:
            level = self.transaction_version
            body.finalized_features_epoch = _FEATURES_EPOCH
            body.finalized_features = [FinalizedFeatureKey(_TRANSACTION_VERSION, level, level)]
            if version >= _FROM_ZERO_SINCE:
                body.supported_features = [SupportedFeatureKey(_TRANSACTION_VERSION, 0, level)]
        return body


EVERYTHING = Served(ADVERTISED)


def served_by(knobs: Knobs) -> Served:
    """What a broker of this generation serves."""
    newest: dict[ApiKey, int] = {}
    is_numbered = knobs.transactions == "numbered"
    if not is_numbered:
        newest |= _BEFORE_TRANSACTION_VERSION_2
    if not knobs.consumer_protocol:
        newest |= _BEFORE_KIP_848
    if knobs.transactional_offsets == "unfenced":
        newest |= _BEFORE_KIP_447
    offered = {key: bounds for key, bounds in ADVERTISED.items() if knobs.consumer_protocol or key not in _OF_KIP_848}
    versions = {key: (first, min(last, newest.get(key, last))) for key, (first, last) in offered.items()}
    return Served(versions, NUMBERED if is_numbered else None)

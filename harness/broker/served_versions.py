"""The newest versions of requests that brokers of a generation serve, where there are codecs for newer ones."""

from __future__ import annotations

from collections.abc import Mapping

from harness.replication.knobs import Knobs
from harness.wire.frames import ADVERTISED
from harness.wire.keys import ApiKey

_BEFORE_KIP_447: Mapping[ApiKey, int] = {
    ApiKey.OFFSET_FETCH: 6,  # 7 can ask for stable offsets only
    ApiKey.TXN_OFFSET_COMMIT: 2,  # 3 has the generation and the id of the member
}


def served_versions(knobs: Knobs) -> Mapping[ApiKey, tuple[int, int]]:
    """What a broker advertises to clients, by ascending key; both bounds inclusive.

    It refuses what is newer from everybody. Fewer than :data:`~harness.wire.frames.ADVERTISED` are those requests
    only by which clients find out about a protocol of transactions that this generation does not have.
    """
    newest = _BEFORE_KIP_447 if knobs.transactional_offsets == "unfenced" else {}
    return {key: (first, min(last, newest.get(key, last))) for key, (first, last) in ADVERTISED.items()}

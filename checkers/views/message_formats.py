"""In which message format real Kafka writes its logs, and what follows for its followers.

Before format v2 (0.11) batches carry no leader epoch, so a follower has none to ask its leader about, and truncates to
its own high watermark, as before KIP-101, in every release (KAFKA-6859, KAFKA-7601, KAFKA-7897). Truncating committed
records is then how Kafka works; a loss that results is still a loss.

``log.message.format.version`` asks for a format. From 3.0 on it is not heeded unless ``inter.broker.protocol.version``
is older than that (KIP-724).
"""

from __future__ import annotations

import re

from harness.history.run_directory import Manifest

_NUMBERS = re.compile(r"(\d{1,4})\.(\d{1,4})")
_FIRST_EPOCHS, _UNHEEDED = (0, 11), (3, 0)


def cuts_by_watermark(manifest: Manifest) -> bool:
    """Whether followers cut their logs by their watermarks because their records bear no leader epochs."""
    settings = manifest.configuration.get("settings") or {}
    asked = _numbers(settings.get("log.message.format.version"))
    release = _numbers(manifest.versions.get("kafka"))
    protocol = _numbers(settings.get("inter.broker.protocol.version")) or release
    if asked is None or release is None or protocol is None:
        return False
    return asked < _FIRST_EPOCHS and protocol < _UNHEEDED


def _numbers(written: object) -> tuple[int, int] | None:
    found = _NUMBERS.match(str(written or ""))
    return None if found is None else (int(found[1]), int(found[2]))

"""How much an audit may ask of a cluster in production: a ceiling that no option passes, and the budget below it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from harness.errors import UsageError

MOST_RECORDS_PER_S = 200.0
MOST_BYTES_PER_S = 200_000.0
"""Of the texts of records."""

MOST_READ_PER_S = 2_000.0
"""Records, on the average: each window reads again everything that is kept."""

RESENDS_PER_S = 10
"""How often at most a producer sends a record again that is not acknowledged; it has one under way in a partition."""

MOST_PARTITIONS = int(MOST_RECORDS_PER_S / RESENDS_PER_S)
"""As many as may all send again at once."""

LEAST_BYTES = 160
"""What a canary record takes at the least: its text, key and headers."""

_LEAST_WAIT_S = 0.001
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """What an audit sends.

    Attributes:
        rate: records per second, all partitions together.
        partitions: of the canary topic, each with one record under way.
        size: bytes to which the text of a record is filled up.

    Raises:
        UsageError: it could pass the ceiling, be it by records that are sent again.
    """

    rate: float
    partitions: int
    size: int = 0

    def __post_init__(self) -> None:
        if not self.rate > 0 or self.partitions < 1 or self.size < 0:
            raise UsageError(f"an audit of {self.rate:g} records/s to {self.partitions} partitions sends nothing.")
        for worst, most, unit in (
            (self.worst_records_per_s, MOST_RECORDS_PER_S, "records/s"),
            (self.worst_bytes_per_s, MOST_BYTES_PER_S, "bytes/s"),
        ):
            if worst > most:
                raise UsageError(
                    f"an audit of {self.rate:g} records/s of {self.record_bytes} bytes to {self.partitions} partitions "
                    f"may send {worst:,.0f} {unit}, with what it sends again, and never sends more than {most:,.0f}.",
                    "Lower --rate, --partitions or --size.",
                )

    def refuse_times(self, keep_s: float, window_s: float) -> None:
        """Refuse windows that cannot be judged by what is kept, or would read it too often.

        Raises:
            UsageError: why.
        """
        if keep_s < window_s:
            raise UsageError(f"--keep is {keep_s:g} s, which is shorter than a window of {window_s:g} s.")
        if (read := self.rate * keep_s / window_s) > MOST_READ_PER_S:
            raise UsageError(
                f"an audit that keeps {self.rate:g} records/s for {keep_s:g} s and reads them again every "
                f"{window_s:g} s reads {read:,.0f} records/s, and never reads more than {MOST_READ_PER_S:,.0f}.",
                "Lower --keep or --rate, or take a longer --window.",
            )

    @property
    def record_bytes(self) -> int:
        """What one record takes."""
        return max(self.size, LEAST_BYTES)

    @property
    def worst_records_per_s(self) -> float:
        """With every partition sending again as often as it may."""
        return max(self.rate, float(self.partitions * RESENDS_PER_S))

    @property
    def worst_bytes_per_s(self) -> float:
        """Likewise."""
        return self.worst_records_per_s * self.record_bytes


class Budget:
    """A token bucket of one second's records that begins empty, so that no restart begins with a burst. Thread-safe."""

    def __init__(self, load: Load, now_ns: int) -> None:
        self._ns_per_record = _NS_PER_S / load.rate
        self._lock = threading.Lock()
        self._most = max(1.0, load.rate)
        self._tokens = 0.0
        self._since_ns = now_ns

    def wait_s(self, now_ns: int) -> float:
        """Take one record out of it, and return 0; or take none, and return for how many seconds there is none."""
        with self._lock:
            gained = max(0, now_ns - self._since_ns) / self._ns_per_record
            self._tokens = min(self._most, self._tokens + gained)
            self._since_ns = max(now_ns, self._since_ns)
            if self._tokens >= 1:
                self._tokens -= 1
                return 0.0
            return max(_LEAST_WAIT_S, (1 - self._tokens) * self._ns_per_record / _NS_PER_S)

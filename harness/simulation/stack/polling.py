"""One poll, and its row in the history."""

from __future__ import annotations

from harness.clients.reader import Polled
from harness.history.recorder import Recorder
from harness.model import ProcessId
from harness.simulation.stack.reading import Reader

POLL_S = 0.2
"""How long a poll waits for a record."""

_POLL_RECORDS = 500


async def poll(
    recorder: Recorder, process: ProcessId, reader: Reader, *,
    final: bool, group: str | None = None, wait_s: float = POLL_S,
) -> Polled:  # fmt: skip
    """Poll as ``process``, for ``group``, and write down what came of it; ``final`` marks the final read."""
    op = recorder.invoke_poll(process, final, group, "read_uncommitted")
    polled = await reader.poll(_POLL_RECORDS, wait_s)
    if polled.error is not None and not polled.records:
        recorder.poll_failed(op, polled.error)
    else:
        recorder.complete_poll(op, polled.records)
    return polled

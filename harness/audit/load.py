"""The clients of an audit: a producer for each partition, within the budget, and consumers that follow all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness import payload
from harness.audit.ceiling import Budget, Load
from harness.audit.clock import AuditClock
from harness.audit.journal import Journal
from harness.audit.ledger import CanarySend, Ledger, Poll
from harness.client_ports import NUMBERED, ClientContext, Clients, Polled, Producer
from harness.client_tasks.polling import tail
from harness.history.recorder import PolledRecord, Recorder
from harness.history.rows import Row
from harness.model import ProcessId, TopicPartition
from harness.orders import ALL_ACKS, Pending

ANSWERED_WITHIN_S = 10.0
"""How long a producer goes on with a record that is not acknowledged."""

TAILS = 3
"""Among how many consumers the partitions are dealt out."""

_PROCESS_SHIFT = 32
_POLL_S = 1.0
"""How long a poll waits for a record; it ends with the first one, whose delivery is timed."""

_HELD_LOOK_S = 0.2
_AFTER_INFO_S = 0.05
_NS_PER_S = 1_000_000_000

Came = Callable[[Poll], None]


class PollCollector(Recorder):
    """Takes the polls of consumers, and hands over those that say something; nothing else is recorded with it."""

    def __init__(self, clock: AuditClock, came: Came) -> None:
        super().__init__("audit", Path(), clock)
        self._time = clock
        self._came = came
        self._under_way: dict[int, tuple[ProcessId, int, bool]] = {}
        self._taking = threading.Lock()

    def invoke_poll(self, process: ProcessId, final: bool, *_: object, **__: object) -> int:
        """See :class:`harness.history.recorder.Recorder`."""
        with self._taking:
            self._op += 1
            self._under_way[self._op] = (process, self._time.monotonic_ns(), final)
            return self._op

    def complete_poll(self, op: int, records: Sequence[PolledRecord]) -> None:
        """See :class:`harness.history.recorder.Recorder`."""
        self._end(op, Polled(list(records), None))

    def poll_failed(self, op: int, error: str) -> None:
        """See :class:`harness.history.recorder.Recorder`."""
        self._end(op, Polled([], error))

    def note(self, op: int, rows: Callable[[Row], list[Row]]) -> None:
        """Not recorded: a tail that is out of range begins anew, and what it lacks is missing in what is read."""

    def _end(self, op: int, polled: Polled) -> None:
        with self._taking:
            process, begun_ns, final = self._under_way.pop(op)
            if polled.records or polled.error is not None or final:
                self._came(Poll(process, begun_ns, self._time.monotonic_ns(), polled, final))


class CanaryLoad:
    """Sends and reads canary records until it ends.

    Args:
        context: new clients, the partitions of the canary topic, and numbers of processes that were never used.
        load: how much it sends.
        clock: of the audit.
        ledger: gets every send.
        journal: likewise, before the send begins and after it has ended.
        window: the first one.

    Attributes:
        polls: of the tailing consumers, which were given something.
        held: partitions to which nothing is sent now.
    """

    def __init__(
        self, context: ClientContext, load: Load, clock: AuditClock, *, ledger: Ledger, journal: Journal, window: int
    ) -> None:
        self._context = context
        self._load = load
        self._clock = clock
        self._ledger = ledger
        self._journal = journal
        self._window = window
        self._switching = threading.Lock()
        self._ending = False
        self._budget = Budget(load, clock.monotonic_ns())
        self._clients: Clients = context.new_clients()
        self._tasks: list[Pending[None]] = []
        self.polls: list[Poll] = []
        self.held: set[int] = set()

    def start(self) -> None:
        """Begin to read and to send."""
        collecting = ClientContext(
            self._context.new_clients,
            self._context.partitions,
            PollCollector(self._clock, self._came),
            0,
            _numbers=self._context._numbers,  # noqa: SLF001 (numbers of processes are drawn from one source)
        )
        partitions = sorted(self._context.partitions)
        self._journal.open_window(self._window)
        for share in filter(None, (partitions[number::TAILS] for number in range(TAILS))):
            self._tasks.append(
                self._clients.begin(tail(collecting, self._clients, share, lambda *_: None, wait_s=_POLL_S, at_most=1))
            )
        for number, name in enumerate(partitions):
            self._tasks.append(self._clients.begin(self._produce(name, number)))

    def require_alive(self) -> None:
        """Check that no client has ended: what ended it must not look like silence.

        Raises:
            BaseException: what ended it.
        """
        for task in self._tasks:
            task.result()

    def next_window(self) -> None:
        """From now on sends belong to the next window."""
        with self._switching:
            self._window += 1
            self._journal.open_window(self._window)

    def forget_polls(self, ended_before_ns: int) -> None:
        """They are of windows that were judged."""
        self.polls = [poll for poll in self.polls if poll.ended_ns >= ended_before_ns]

    def wait_for(self, sends: Sequence[CanarySend], timeout_s: float) -> None:
        """Let time pass until they have ended, and what was acknowledged was read; no longer than ``timeout_s``."""

        def drained() -> bool:
            return all(one.kind is not None and (one.kind != "ok" or one.read_ns is not None) for one in sends)

        self._clients.wait_until(drained, timeout_s)

    def end_sends(self) -> None:
        """Send nothing more, and wait for what is under way."""
        self._ending = True
        under_way = [one for one in list(self._ledger.sends.values()) if one.kind is None]
        self._clients.wait_until(lambda: all(one.kind is not None for one in under_way), 2 * ANSWERED_WITHIN_S)

    def stop(self) -> None:
        """Stop every client. Idempotent.

        Raises:
            BaseException: what ended one of them.
        """
        self._clients.stop()
        self._clients.join()

    # ------------------------------------------------------------------------------------------------ internals

    def _came(self, poll: Poll) -> None:
        self.polls.append(poll)
        for record in poll.polled.records:
            send = self._ledger.sends.get(-1 if record.value is None else record.value)
            if send is not None and record.intact and send.read_ns is None:
                send.read_ns = poll.ended_ns

    async def _produce(self, name: TopicPartition, number: int) -> None:
        """Send as one process after the other, each until the outcome of a send is unknown."""
        clients, interval_ns = self._clients, round(self._load.partitions / self._load.rate * _NS_PER_S)
        due_ns = self._clock.monotonic_ns() + interval_ns * number // self._load.partitions
        while not (clients.stopping or self._ending):
            process = self._context.new_process()
            producer = clients.producer(f"audit-{process}", ALL_ACKS, ANSWERED_WITHIN_S, NUMBERED)
            values = _values(process)
            usable = True
            try:
                while usable and not (clients.stopping or self._ending):
                    wait_s = self._wait_s(name.partition, due_ns)
                    if wait_s > 0:
                        await clients.sleep(wait_s)
                        continue
                    usable = await self._send(producer, name, process, next(values))
                    due_ns = max(due_ns + interval_ns, self._clock.monotonic_ns() - interval_ns)
            finally:
                producer.close()
            await clients.sleep(_AFTER_INFO_S)

    def _wait_s(self, partition: int, due_ns: int) -> float:
        """How long not to send; 0: a record was taken out of the budget."""
        now_ns = self._clock.monotonic_ns()
        if partition in self.held:
            return _HELD_LOOK_S
        return (due_ns - now_ns) / _NS_PER_S if due_ns > now_ns else self._budget.wait_s(now_ns)

    async def _send(self, producer: Producer, name: TopicPartition, process: ProcessId, value: int) -> bool:
        """Send one record; returns whether its outcome is known."""
        timestamp_ms = self._clients.wall_ms()
        with self._switching:
            now_ns = self._clock.monotonic_ns()
            send = CanarySend(self._window, value, name.partition, process, now_ns, timestamp_ms)
            self._journal.begun(send)
            self._ledger.add(send)
        record = payload.encode(value, *name, self._load.size, timestamp_ms=timestamp_ms)
        [answer] = await producer.send_batch(name, [record])
        send.end(answer, self._clock.monotonic_ns())
        self._journal.ended(send)
        return answer.kind != "info"


def _values(process: ProcessId) -> Iterator[int]:
    """The values of a process, none of which was ever sent."""
    return iter(range(process << _PROCESS_SHIFT, (process + 1) << _PROCESS_SHIFT))


def first_process_after(ledger: Ledger) -> int:
    """A number above those of all processes that have sent what is known."""
    return max((send.process for send in ledger.sends.values()), default=-1) + 1

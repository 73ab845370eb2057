"""The transactions whose coordinator is the leader of one partition of ``__transaction_state`` (KIP-98).

What a producer is answered is in the log of that partition before. A new leader reads it, from the first record to the
last, before it serves a request (:meth:`Transactions.replay`, :meth:`Transactions.begin`), and ends what was being
ended. Follows Kafka's ``TransactionCoordinator`` and ``TransactionMetadata``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from harness.coordination.append_errors import of_transaction
from harness.coordination.ports import ProducerIdentity, Timer, TransactionPorts
from harness.coordination.transaction import (
    LAST_EPOCH,
    NEVER_MS,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NUMBERED,
    Transaction,
)
from harness.coordination.transaction_records import State, TransactionKey, TransactionValue, transaction_record
from harness.error_codes import ErrorCode
from harness.model import TopicPartition

MAX_IDS = 10_000
"""How many transactional ids one partition of the topic may have; more are refused."""

Answered = Callable[[int], None]
"""Takes the error code of the answer."""

Identified = Callable[[int, ProducerIdentity], None]
"""Takes the error code of the answer, and who the producer is from now on."""

NOT_INITIALISED = ProducerIdentity(-1, NO_PRODUCER_EPOCH)

_AGAIN_MS = 50
_ONE_IN = 16
_PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)


class Initialising(NamedTuple):
    """A request for a producer id.

    Attributes:
        transactional_id: whose.
        timeout_ms: after how many milliseconds the coordinator aborts a transaction of this producer.
        before: who the producer has been, and wants to go on as (KIP-360); None: it is a new process.
        answered: takes the answer.
    """

    transactional_id: str
    timeout_ms: int
    before: ProducerIdentity | None
    answered: Identified

    @property
    def is_whole(self) -> bool:
        """Whether the request has both the id and the epoch of the producer, or neither."""
        return self.before is None or min(self.before) >= 0

    def refuse(self, error: int) -> None:
        """Answer with an error."""
        self.answered(error, NOT_INITIALISED)


class _Known:
    """A transactional id.

    Attributes:
        now: what is stored of it, but for the epoch of a producer that is being fenced off.
        is_storing: whether a change is on its way into the log, before which no other is begun.
        has_fenced: whether the epoch was raised to fence the producer off, and this could not be stored yet.
    """

    def __init__(self, now: Transaction) -> None:
        self.now = now
        self.is_storing = False
        self.has_fenced = False
        self.timer: Timer | None = None


class Transactions:
    """The transactions of one partition.

    Args:
        ports: the broker.
        max_timeout_ms: ``transaction.max.timeout.ms``.
        bugs: the injected ones of :data:`harness.replication.bugs.BUGS`.
    """

    def __init__(self, ports: TransactionPorts, max_timeout_ms: int, bugs: Collection[str] = ()) -> None:
        self._ports = ports
        self._obeys_zombies = "zombies_obeyed" in bugs
        self._forgets_ends = "transaction_end_unstored" in bugs
        self._keeps_epochs = "transactions_share_an_epoch" in bugs
        self._max_timeout_ms = max_timeout_ms
        self._known: dict[str, _Known] = {}
        self._is_over = False

    # ------------------------------------------------------------------------------------ the log

    def replay(self, key: TransactionKey, value: TransactionValue | None) -> None:
        """A record is in the log."""
        if value is None:
            self._known.pop(key.transactional_id, None)
        else:
            self._known[key.transactional_id] = _Known(Transaction.stored(value))

    def begin(self) -> None:
        """All of the log has been read: end what was being ended, and abort what takes too long."""
        for name, known in self._known.items():
            if known.now.state in _PREPARED:
                self._mark(name, known)
            elif known.now.state is State.ONGOING:
                self._watch(name, known)

    def end(self) -> None:
        """The broker has resigned."""
        self._is_over = True
        for known in self._known.values():
            self._unwatch(known)

    # ------------------------------------------------------------------------------------ producers

    def init_producer(self, asked: Initialising) -> None:
        """Serve InitProducerId: abort the transaction that is open, if one is, and raise the epoch."""
        known = self._known.get(asked.transactional_id)
        if not asked.transactional_id or not asked.is_whole:
            asked.refuse(ErrorCode.INVALID_REQUEST)
        elif not 0 < asked.timeout_ms <= self._max_timeout_ms:
            asked.refuse(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        elif known is not None:
            self._begin_anew(known, asked)
        elif len(self._known) >= MAX_IDS:
            asked.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._ports.new_producer_id(partial(self._know, asked))

    def _know(self, asked: Initialising, producer_id: int | None) -> None:
        if producer_id is None:
            asked.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif self._is_over:
            asked.refuse(ErrorCode.NOT_COORDINATOR)
        else:
            new = Transaction(ProducerIdentity(producer_id, NO_PRODUCER_EPOCH), asked.timeout_ms)
            self._begin_anew(self._known.setdefault(asked.transactional_id, _Known(new)), asked)

    def _begin_anew(self, known: _Known, asked: Initialising) -> None:
        now = known.now
        if known.is_storing or now.state in _PREPARED:
            asked.refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif not now.may_go_on(asked.before):
            asked.refuse(ErrorCode.PRODUCER_FENCED)
        elif now.state is State.ONGOING:
            self._fence(asked.transactional_id, known)
            asked.refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif now.producer.epoch >= LAST_EPOCH:
            known.is_storing = True
            self._ports.new_producer_id(partial(self._renew, known, asked))
        else:
            self._initialise(known, asked, now.initialised(asked.before, asked.timeout_ms, self._now_ms()))

    def _renew(self, known: _Known, asked: Initialising, producer_id: int | None) -> None:
        known.is_storing = False
        if producer_id is None:
            asked.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif self._is_over:
            asked.refuse(ErrorCode.NOT_COORDINATOR)
        else:
            self._initialise(known, asked, known.now.renewed(producer_id, asked.timeout_ms, self._now_ms()))

    def _initialise(self, known: _Known, asked: Initialising, then: Transaction) -> None:
        def stored(error: int) -> None:
            asked.answered(error, NOT_INITIALISED if error else then.producer)

        self._store(asked.transactional_id, known, then, stored)

    # ------------------------------------------------------------------------------------ one transaction

    def add(
        self, name: str, producer: ProducerIdentity, partitions: Collection[TopicPartition], answered: Answered,
        *, version: int = 0,
    ) -> None:  # fmt: skip
        """Serve AddPartitionsToTxn and AddOffsetsToTxn: the first of them begins the transaction.

        With version 2 of the protocol leaders ask it, on behalf of the producer.
        """
        known = self._known.get(name)
        error = self._error(known, producer)
        if known is None or error:
            answered(error)
        elif known.is_storing or known.now.state in _PREPARED:
            answered(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif known.now.state is State.ONGOING and known.now.partitions.issuperset(partitions):
            answered(ErrorCode.NONE)
        else:
            was_open = known.now.state is State.ONGOING

            def stored(error: int) -> None:
                if not (error or was_open):
                    self._watch(name, known)
                answered(error)

            self._store(name, known, known.now.with_partitions(partitions, self._now_ms(), version), stored)

    def verify(
        self, name: str, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Which of these partitions are not in the producer's open transaction, and why (KIP-890)."""
        known = self._known.get(name)
        error = self._error(known, producer)
        if known is None or error:
            return dict.fromkeys(partitions, error)
        if known.now.state in _PREPARED:
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        held = known.now.partitions if known.now.state is State.ONGOING else ()
        return {one: ErrorCode.NONE if one in held else ErrorCode.TRANSACTION_ABORTABLE for one in partitions}

    def end_transaction(
        self, name: str, producer: ProducerIdentity, ended: Identified, *, commits: bool, version: int = 0
    ) -> None:
        """Serve EndTxn: the decision is stored before it is answered, and the partitions get their markers after.

        With version 2 of the protocol ``ended`` takes who the producer is in its next transaction. What it has before
        is fenced by the markers, so that a request to end a transaction never ends the next one (KIP-890).
        """
        known = self._known.get(name)
        version = 0 if self._keeps_epochs else version
        if known is not None and known.now.has_ended_for(producer):
            self._answer_again(known, ended, commits=commits)
            return
        error = self._error(known, producer)
        if known is None or error:
            ended(error, NOT_INITIALISED)
        elif known.is_storing or (version == NUMBERED and known.now.state in _PREPARED):
            ended(ErrorCode.CONCURRENT_TRANSACTIONS, NOT_INITIALISED)
        elif known.now.state is State.ONGOING and commits and self._forgets_ends and self._now_ms() % _ONE_IN == 0:
            ended(ErrorCode.NONE, producer)
        elif version == NUMBERED and (known.now.state is State.ONGOING or _aborts_nothing(known.now, commits=commits)):
            self._number(name, known, ended, commits=commits)
        elif known.now.state is State.ONGOING:
            self._end(name, known, known.now, ended, commits=commits)
        else:
            ended(_ended_before(known.now.state, commits=commits), producer)

    def _answer_again(self, known: _Known, ended: Identified, *, commits: bool) -> None:
        """A producer asks again for the end of its transaction, whose epoch has been raised since."""
        if known.is_storing or known.now.state in _PREPARED:
            ended(ErrorCode.CONCURRENT_TRANSACTIONS, NOT_INITIALISED)
        else:
            ended(_ended_before(known.now.state, commits=commits), known.now.next_producer)

    def _number(self, name: str, known: _Known, ended: Identified, *, commits: bool) -> None:
        """End a transaction in the epoch after its own; a producer that has used up its epochs gets a new id."""
        if known.now.producer.epoch < LAST_EPOCH:
            self._end(name, known, known.now.numbered(NO_PRODUCER_ID), ended, commits=commits)
            return

        def allocated(producer_id: int | None) -> None:
            known.is_storing = False
            if producer_id is None or self._is_over:
                over = ErrorCode.NOT_COORDINATOR if self._is_over else ErrorCode.COORDINATOR_NOT_AVAILABLE
                ended(over, NOT_INITIALISED)
            else:
                self._end(name, known, known.now.numbered(producer_id), ended, commits=commits)

        known.is_storing = True
        self._ports.new_producer_id(allocated)

    def _end(self, name: str, known: _Known, then: Transaction, ended: Identified, *, commits: bool) -> None:
        def prepared(error: int) -> None:
            ended(error, NOT_INITIALISED if error else then.next_producer)

        self._prepare(name, known, then, prepared, commits=commits)

    def _prepare(self, name: str, known: _Known, then: Transaction, answered: Answered, *, commits: bool) -> None:
        def stored(error: int) -> None:
            if not error:
                known.has_fenced = False
                self._unwatch(known)
                if not self._is_over:
                    self._mark(name, known)
            answered(error)

        self._store(name, known, then.prepared(self._now_ms(), commits=commits), stored)

    def _mark(self, name: str, known: _Known) -> None:
        """Have all partitions of a transaction get their markers; then it is complete."""
        now = known.now
        self._ports.write_markers(
            now.producer,
            now.partitions,
            partial(self._complete, name, known),
            commits=now.state is State.PREPARE_COMMIT,
        )

    def _complete(self, name: str, known: _Known) -> None:
        def stored(error: int) -> None:
            if error and not self._is_over:
                known.is_storing = True
                self._ports.call_later(_AGAIN_MS, partial(self._complete, name, known))

        if not self._is_over:
            self._store(name, known, known.now.completed(self._now_ms()), stored)

    def _fence(self, name: str, known: _Known) -> None:
        """Abort an open transaction in an epoch that its producer does not have."""
        if not known.has_fenced:
            known.has_fenced = True
            known.now = known.now.fenced()
        self._prepare(name, known, known.now, lambda _: None, commits=False)

    # ------------------------------------------------------------------------------------ time

    def _watch(self, name: str, known: _Known) -> None:
        """Abort the transaction when its time is over; a clock that was ahead when it began makes it no longer."""
        if self._is_over:
            return
        now = known.now
        left_ms = min(now.start_ms + now.timeout_ms - self._now_ms(), now.timeout_ms)
        known.timer = self._ports.call_later(max(left_ms, 0), partial(self._time_out, name, known))

    @staticmethod
    def _unwatch(known: _Known) -> None:
        if known.timer is not None:
            known.timer.cancel()
            known.timer = None

    def _time_out(self, name: str, known: _Known) -> None:
        """The transaction takes too long; what is being stored of it is waited for."""
        known.timer = self._ports.call_later(_AGAIN_MS, partial(self._time_out, name, known))
        if not known.is_storing:
            self._fence(name, known)

    def _now_ms(self) -> int:
        return self._ports.wall_ms()

    # ------------------------------------------------------------------------------------ operators

    def described(self, name: str) -> Transaction | None:
        """The transaction of a transactional id; None: it is not known."""
        known = self._known.get(name)
        return None if known is None else known.now

    def listed(
        self, states: Sequence[str], producer_ids: Sequence[int], longer_than_ms: int
    ) -> Mapping[str, Transaction]:
        """The transactions in these states, of these producers, empty meaning all, that are open for longer."""
        now_ms = self._now_ms()

        def is_wanted(one: Transaction) -> bool:
            if (states and one.state.title not in states) or (producer_ids and one.producer[0] not in producer_ids):
                return False
            return longer_than_ms < 0 or (one.start_ms != NEVER_MS and now_ms - one.start_ms > longer_than_ms)

        return {name: known.now for name, known in sorted(self._known.items()) if is_wanted(known.now)}

    # ------------------------------------------------------------------------------------ storing

    def _error(self, known: _Known | None, producer: ProducerIdentity) -> int:
        """Why a request of this producer is refused."""
        if known is None or known.now.producer.producer_id != producer.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.now.producer.epoch != producer.epoch and not self._obeys_zombies:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE

    def _store(self, name: str, known: _Known, then: Transaction, stored: Answered) -> None:
        """Store what the transaction is from now on; ``stored`` takes the error code for its producer."""
        known.is_storing = True

        def done(code: int) -> None:
            known.is_storing = False
            if not code:
                known.now = then
            stored(of_transaction(code))

        self._ports.store([transaction_record(TransactionKey(name), then.value())], done)


def _aborts_nothing(now: Transaction, *, commits: bool) -> bool:
    """Whether a producer aborts a transaction of which the coordinator knows nothing: no batch of it has arrived."""
    return not commits and now.state in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


def _ended_before(state: State, *, commits: bool) -> int:
    """What a producer is answered that ends a transaction which is not open."""
    if state is (State.COMPLETE_COMMIT if commits else State.COMPLETE_ABORT):
        return ErrorCode.NONE
    if state is (State.PREPARE_COMMIT if commits else State.PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE

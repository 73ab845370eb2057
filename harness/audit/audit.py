"""The life of an audit: it fills, closes, reads, judges and reports one window after the other."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from harness.audit import leaders as leadership
from harness.audit import result as results
from harness.audit.ceiling import Load
from harness.audit.clock import AuditClock, as_text
from harness.audit.cluster import Audited, topic_of
from harness.audit.evidence import Accused, Foreign, accused, manifest_of, partitions_beyond, write_window
from harness.audit.journal import Journal, State
from harness.audit.judging import Judge, Judgement
from harness.audit.ledger import CanarySend, Poll, Reading
from harness.audit.load import ANSWERED_WITHIN_S, CanaryLoad, PollCollector, first_process_after
from harness.audit.measures import Availability, latency
from harness.audit.objectives import NO_OBJECTIVES, Objectives
from harness.audit.result import Loss, WindowResult
from harness.audit.told_events import ToldEvents
from harness.checker import Outcome
from harness.client_ports import ClientContext
from harness.client_tasks.final_reader import FinalReader
from harness.findings import QUIET_NS
from harness.model import TopicPartition
from harness.runner.unknown_topics import unknown_topics
from harness.signals import postponed

LOOK_S = 5.0
"""How often the audit asks for the leaders."""

MOST_KEPT = 100
"""Of how many windows the evidence is kept; that of later ones is counted alone."""

_DRAIN_S = 2 * ANSWERED_WITHIN_S
_READ_S = 60.0

_SURE_FOR = 1.5
"""For how many times the time for which a record is looked for it is surely there: retention is twice that time."""

_PROCESSES_PER_S = 100
"""More than are ever new in a second. A life's processes have numbers by its time, as values must not be sent twice:
what a machine that lost power had sent last may be missing from the journal."""

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Told:
    """A window that was judged, and what is not in its line.

    Attributes:
        result: its line.
        ended_ns: when it ended, nanoseconds since the Unix epoch.
        acks_ns: from sending to each acknowledgement.
        reads_ns: from sending to each first delivery.
        passed_over: what operators tell and is no event, and why, a sentence each.
        waiting: which events that they tell are not answered yet, a sentence each.
    """

    result: WindowResult
    ended_ns: int
    acks_ns: Sequence[int]
    reads_ns: Sequence[int]
    passed_over: Sequence[str]
    waiting: Sequence[str]


@dataclass(frozen=True, slots=True)
class Span:
    """The times of a window, and for how long the audit did not run before it."""

    begin_ns: int
    end_ns: int
    blind_s: float = 0.0
    interrupted: bool = False


class Audit:
    """One life of an audit, from its start to its end or its death.

    Args:
        cluster: that it watches.
        state: what it is.
        load: how much it sends.
        journal: held by this process.
        judge: judges windows.
        tell: called with each window.
        objectives: what is demanded of each window.
    """

    def __init__(
        self,
        cluster: Audited,
        state: State,
        load: Load,
        journal: Journal,
        *,
        judge: Judge,
        tell: Callable[[Told], None],
        objectives: Objectives = NO_OBJECTIVES,
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._journal = journal
        self._judge = judge
        self._tell = tell
        self._objectives = objectives
        self._past = results.read(journal.directory)
        self._reported = {past.window for past in self._past}
        self._ledger, latest_ns = journal.ledger(self._reported)
        self._clock = AuditClock(cluster.clock, latest_ns)
        self._latest_ns = latest_ns
        self._partitions = [TopicPartition(state.topic, number) for number in range(state.partitions)]
        elapsed_s = max(0, self._clock.monotonic_ns() - state.began_ns) // _NS_PER_S
        self._numbers = itertools.count(max(first_process_after(self._ledger), elapsed_s * _PROCESSES_PER_S))
        self._load = load
        self._foreign = Foreign(self._ledger)
        self._leaders = leadership.Leaders()
        self._lost: list[Loss] = [loss for past in self._past for loss in past.losses]
        self._told = ToldEvents(journal, (one for past in self._past for one in past.answers))
        self._open = leadership.to_answer_again(self._past[-1].answers) if self._past else []
        self._kept = sum(past.run_directory is not None for past in self._past)
        self._held_ns: list[tuple[int, int]] = []
        self._clients: CanaryLoad | None = None
        self._is_gone = False
        self._window_ns = 0

    def run(self, window_s: float, for_s: float | None) -> bool:
        """Fill and judge windows; returns whether it came to its end, and False where a signal ended it before.

        Args:
            window_s: how long a window is, in seconds.
            for_s: how long to run, in seconds; None: until a signal comes.
        """
        self._window_ns = round(window_s * _NS_PER_S)
        interrupted = self._interrupted()
        window = max([*self._journal.windows(), *(past.window for past in self._past)], default=0) + 1
        begun_ns = begin_ns = self._clock.monotonic_ns()
        self._blind_s = {window: (begun_ns - self._latest_ns) / _NS_PER_S if self._latest_ns else 0.0}
        self._availability = Availability(self._load, begun_ns)
        self._clients = CanaryLoad(
            self._context(), self._load, self._clock, ledger=self._ledger, journal=self._journal, window=window
        )
        self._clients.start()
        came_to_its_end = False
        pending = [(window, begin_ns)]
        try:
            self._go_on(interrupted)
            while not self._is_gone:
                end_ns = begin_ns + self._window_ns
                is_last = for_s is not None and end_ns - begun_ns >= round(for_s * _NS_PER_S)
                self._pass_until(end_ns)
                if is_last:
                    break
                self._clients.next_window()
                begin_ns = self._clock.monotonic_ns()
                pending.append((window + 1, begin_ns))
                self._close(window, Span(pending[0][1], begin_ns, self._blind_s.get(window, 0.0)))
                pending.pop(0)
                window += 1
            came_to_its_end = True
        except KeyboardInterrupt:
            came_to_its_end = False
        finally:
            self._end([*pending, (window + 1, self._clock.monotonic_ns())])
        return came_to_its_end

    def _end(self, borders: Sequence[tuple[int, int]]) -> None:
        """Send nothing more, and close what is open: windows, each with its beginning, and the end behind them."""
        assert self._clients is not None
        self._clients.end_sends()
        try:
            for (window, begin_ns), (_, end_ns) in itertools.pairwise(borders):
                if begin_ns < end_ns and window not in self._reported and not self._is_gone:
                    self._close(window, Span(begin_ns, end_ns, self._blind_s.get(window, 0.0)))
        finally:
            self._clients.stop()

    def _interrupted(self) -> list[int]:
        """The windows in which the audit was killed: they were not judged."""
        return [number for number in self._journal.windows() if number not in self._reported]

    def _go_on(self, interrupted: Sequence[int]) -> None:
        """Judge what was sent in windows in which the audit was killed."""
        for window in interrupted:
            sends = self._ledger.of_window(window)
            if sends and not self._is_gone:
                begin_ns = min(one.begun_ns for one in sends)
                self._close(window, Span(begin_ns, max(one.begun_ns for one in sends), 0.0, True))

    def _pass_until(self, end_ns: int) -> None:
        assert self._clients is not None
        while (left_s := (end_ns - self._clock.monotonic_ns()) / _NS_PER_S) > 0:
            self._cluster.clock.sleep(min(left_s, LOOK_S))
            self._clients.require_alive()
            self._look()

    def _look(self) -> None:
        seen = self._cluster.target.view().partitions
        now_ns = self._clock.monotonic_ns()
        self._leaders.look(
            {name.partition: int(seen[name].leader) for name in self._partitions if name in seen}, now_ns
        )

    # ------------------------------------------------------------------------------------------------ closing

    def _close(self, window: int, span: Span) -> None:
        """Read everything, judge a window with it, and tell of it."""
        own = self._ledger.of_window(window)
        if self._clients is not None:
            self._clients.wait_for(own, _DRAIN_S)
        told = self._told.due(self._clock.monotonic_ns())
        reading = self._read(window)
        read_ns = self._clock.monotonic_ns()
        expired = self._ledger.older_than(read_ns - round(_SURE_FOR * self._state.keep_s * _NS_PER_S))
        self._ledger.forget(expired)
        judged = accused(window, self._ledger, reading)
        tails = [] if self._clients is None or span.interrupted else self._clients.polls
        polls = [*tails, *reading.polls]
        path, judgement = self._judged(window, span, judged, reading, polls)
        changes = self._leaders.events(reading, read_ns)
        gone = [one for one in judged.sends if reading.is_gone(one)]
        lost = leadership.losses(gone, [*self._open, *changes], read_ns)
        old = self._ledger.older_than(span.end_ns - round(self._state.keep_s * _NS_PER_S))
        undecided = sum(reading.is_undecided(one) for one in self._ledger.before(window + 1))
        unverified = sum(reading.is_undecided(one) for one in old) + sum(one.kind == "ok" for one in expired)
        judgement = judgement.doubted(_doubts(own, undecided, unverified))
        measured = self._measured(own, span)
        result = WindowResult(
            window=window,
            began=as_text(span.begin_ns),
            ended=as_text(span.end_ns),
            outcome=judgement.outcome,
            interrupted=span.interrupted,
            blind_s=span.blind_s,
            **_counted(own),
            lost=sum(one.records for one in lost),
            anomalies=judgement.anomalies,
            reasons=judgement.reasons,
            evidence=judgement.evidence,
            not_asked=judgement.not_asked,
            carried=len(self._ledger.before(window)),
            undecided=undecided,
            unverified=unverified,
            ack=latency(_acks_ns(own)),
            read=None if span.interrupted else latency(_reads_ns(own)),
            partitions=tuple(measured),
            missed=tuple(self._objectives.missed(own, measured)) if self._is_whole(span) else (),
            losses=tuple(lost),
            answers=tuple(
                leadership.answers(
                    [*self._open, *changes, *told],
                    leadership.LookedFor(self._ledger.before(window + 1), reading, old),
                    [*self._lost, *lost],
                    self._state.partitions,
                )
            ),
            run_directory=path,
        )
        ended = [one for one in judged.sends if reading.is_amiss(one)]
        with postponed():
            self._journal.judged(ended, window)
            results.append(self._journal.directory, result)
            self._reported.add(window)
            self._lost += lost
            self._told.note(result.answers)
            self._open = leadership.to_answer_again(result.answers)
            self._leaders.note(reading, changes, read_ns)
            self._carry_on(span, own, [*tails, *reading.polls], reading)
            self._ledger.forget([*ended, *old])
            self._journal.forget(self._ledger)
            reads_ns = [] if span.interrupted else _reads_ns(own)
            unanswered = self._told.passed_over, self._told.waiting
            self._tell(Told(result, span.end_ns, _acks_ns(own), reads_ns, *unanswered))

    def _is_whole(self, span: Span) -> bool:
        """Whether the audit ran through the whole window."""
        return not span.interrupted and span.end_ns - span.begin_ns >= self._window_ns

    def _carry_on(self, span: Span, own: Sequence[CanarySend], polls: Sequence[Poll], reading: Reading) -> None:
        """Note what the audit has reported."""
        self._foreign.note(polls)
        for send in self._ledger.sends.copy().values():
            if send.kind == "ok" and reading.is_sound(send):
                send.seen_ns = max(send.seen_ns, reading.polls[0].begun_ns)
        if self._clients is not None and not span.interrupted:
            self._availability.note(own, self._held_ns)
            self._clients.forget_polls(span.end_ns)
            self._held_ns = [held for held in self._held_ns if held[1] > span.end_ns]

    def _judged(
        self, window: int, span: Span, judged: Accused, reading: Reading, polls: Sequence[Poll]
    ) -> tuple[str | None, Judgement]:
        """The judgement, and where the evidence is, below the directory of the audit."""
        path = self._journal.directory / "windows" / f"{window:06d}"
        shutil.rmtree(path, ignore_errors=True)
        manifest = manifest_of(window, dict(self._cluster.configuration), dict(self._cluster.guarantees), span.begin_ns)
        if not any(poll.polled.records for poll in reading.polls):
            missing = unknown_topics(self._cluster.target, {self._state.topic}, self._cluster.clock)
            self._is_gone = bool(missing)
            manifest = replace(manifest, unknown_topics=[asdict(one) for one in missing])
        write_window(path, manifest, judged, polls, topic=self._state.topic, foreign=self._foreign)
        judgement = self._judge(path)
        if (judgement.outcome is Outcome.PASS and not judgement.anomalies) or self._kept >= MOST_KEPT:
            shutil.rmtree(path)
            return None, judgement
        self._kept += 1
        return str(path.relative_to(self._journal.directory)), judgement

    def _measured(self, own: Sequence[CanarySend], span: Span) -> list[results.PartitionMeasures]:
        if span.interrupted:
            return Availability(self._load, span.begin_ns).of_window(own, (span.begin_ns, span.end_ns), ())
        return self._availability.of_window(own, (span.begin_ns, span.end_ns), self._held_ns)

    # ------------------------------------------------------------------------------------------------ reading

    def _read(self, window: int) -> Reading:
        """Read everything that the topic holds.

        Where it ends before what consumers were given, nothing more is sent there for a while: then nothing may come
        behind the end, if it is one.
        """
        polls: list[Poll] = []
        self._read_partitions(self._partitions, polls, 0.0)
        first = Reading(polls)
        beyond = partitions_beyond(self._ledger.before(window + 1), first)
        if not beyond:
            return first
        since_ns = self._clock.monotonic_ns()
        if self._clients is not None:
            self._clients.held.update(beyond)
        try:
            names = [TopicPartition(self._state.topic, number) for number in beyond]
            unread = self._read_partitions(names, polls, QUIET_NS / _NS_PER_S + 1)
        finally:
            if self._clients is not None:
                self._clients.held.clear()
            self._held_ns.append((since_ns, self._clock.monotonic_ns()))
        return Reading(polls, set(beyond) - {name.partition for name in unread})

    def _read_partitions(
        self, partitions: Sequence[TopicPartition], polls: list[Poll], lingers_s: float
    ) -> Sequence[TopicPartition]:
        """Read them from their beginning, into ``polls``; returns those of which no reader came to the end."""
        context = self._context(PollCollector(self._clock, polls.append), partitions)
        reader = FinalReader(context, lingers_s=lingers_s)
        try:
            reader.read(_READ_S)
            return list(reader.unread())
        finally:
            reader.stop()

    def _context(
        self, recorder: PollCollector | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> ClientContext:
        unused = PollCollector(self._clock, lambda _: None)
        names = self._partitions if partitions is None else partitions
        return ClientContext(self._cluster.new_clients, names, recorder or unused, 0, _numbers=self._numbers)


def with_topic(cluster: Audited, state: State, journal: Journal) -> State:
    """The state of an audit that has created its topic; one that has been created is not created again.

    Raises:
        EnvironmentFault: the cluster refuses it, or makes another one.
    """
    if state.created:
        return state
    if state.topic not in {name.topic for name in cluster.target.view().partitions}:
        cluster.target.create_topic(topic_of(state))
    created = state.model_copy(update={"created": True})
    journal.keep(created)
    return created


def _doubts(own: Sequence[CanarySend], undecided: int, unverified: int) -> Iterator[str]:
    """One sentence for each thing that is not known of a window."""
    if undecided:
        yield f"{undecided} acknowledged records were not read, and may yet be."
    if unverified:
        yield f"{unverified} acknowledged records were not read for so long that retention may have deleted them."
    for number in sorted({one.partition for one in own} - {one.partition for one in own if one.kind == "ok"}):
        yield f"Partition {number} acknowledged nothing."


def _counted(own: Sequence[CanarySend]) -> dict[str, int]:
    kinds = [one.kind for one in own]
    numbers = {"acknowledged": kinds.count("ok"), "failed": kinds.count("fail")}
    return {"sent": len(own), **numbers, "unknown": len(own) - sum(numbers.values())}


def _acks_ns(own: Sequence[CanarySend]) -> list[int]:
    return [one.ended_ns - one.begun_ns for one in own if one.kind == "ok" and one.ended_ns is not None]


def _reads_ns(own: Sequence[CanarySend]) -> list[int]:
    return [max(0, one.read_ns - one.begun_ns) for one in own if one.kind == "ok" and one.read_ns is not None]

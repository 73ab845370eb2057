"""command: a program of the user's own runs between an input, which is filled at a steady rate, and an output.

The input are the scenario's topics. The output is a topic, which the run creates, or what the program prints, writes
to a file or posts. Copies of the program are started again when they end, and killed now and then if that is asked.
When the faults are over and the cluster is whole again, the program has the time to finish; then it is asked to end,
and its output is read.

Promised: as under unique_sends; and the program puts out every record of its input at least once, at most once or
exactly once, as the scenario says, the records of a key in their order, if it says so, and nothing else.

Judged: as under unique_sends, but for the consumers, which are the program's; the identity of each record of the input
against the records of the output, and against up to where the program says that it is done: the commit of its group,
or, where the scenario says so, that it has fallen quiet; of an output topic also the replicas.

Missed: what the program does besides its output; whether the output holds more of a record than its identity, so that
a wrong sum is no finding; a sum in which the identities are lost is one, as are results of timers. A record of the
output that the cluster has lost before the harness read it counts as left out, unless the configuration permits the
loss; so does one that a consumer was not given. Programs that only produce have no input: they are tested with the
recorded clients of the pytest plugin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from harness.client_ports import ClientContext, RealTime
from harness.client_tasks.program_input import InputProcesses
from harness.client_tasks.steady_sends import SteadySends, SteadySendsParameters
from harness.clients.librdkafka import ClientError
from harness.clients.output_reader import OutputReader, RawRecord, bounds, read_to_the_end
from harness.errors import UsageError
from harness.history.recorder import Output
from harness.identity import HEADER, held
from harness.model import Offset, TopicPartition
from harness.steps import Seconds
from harness.target import TopicSpec
from harness.user_program.keeping import Keeping
from harness.user_program.posts import Posts
from harness.user_program.program import SINK, Program, missing
from harness.workload import Circumstances, Workload, WorkloadKind

_FILES = "program"
_POSTED = "output-posted.jsonl"
_LOOK_S = 0.2
_ASK_TIMEOUT_S = 3.0
_AGAIN_S = 0.5
_LEADERS_S = 20.0
"""How long leaders and coordinators of a whole cluster may take to answer."""


class CommandParameters(SteadySendsParameters):
    """What a scenario may write about the workload.

    Attributes:
        rate: records per second that are sent to the input.
        idempotent: whether producers with acks=all number their records (KIP-98), so that the input has none twice.
        argv: the command line of the program. In it and in ``env``, ``{bootstrap}``, ``{input}`` (the scenario's
            topics, with commas in between), ``{output}``, ``{group}``, ``{sink}`` and ``{copy}`` stand for what the
            program is given; so do the variables ``SEAWALL_BOOTSTRAP``, ``SEAWALL_INPUT`` ... of its environment.
        env: variables of its environment; ``run.json`` has them, too.
        group: the consumer group in which it commits, ``{group}``.
        cwd: the directory in which it is started; empty: that in which seawall was.
        copies: how many of it run at a time.
        output: where it puts its output: in the ``topic`` ``{output}``, on ``stdout``, in the ``file`` ``{sink}``, or
            by ``http`` to ``{sink}``; outside of a topic a record is a line.
        output_topic: the name of the topic.
        promise: how often it puts out a record of its input.
        order: whether it keeps the order of the records of a key (``per-key``), within a partition of its output, or a
            life of the program.
        identity: where a record of the output has the identity of that of the input, the text under ``id`` in its JSON:
            a JSON pointer into the record, ``header:NAME``, or empty for anywhere in it.
        done: what shows that it is done with a record: its ``group`` has ``committed`` an offset behind it, or
            every copy has run, and put out nothing, for ``quiet_s`` (``quiet``).
        quiet_s: how long nothing is put out before the program is asked to end.
        drain_s: how long it may take to finish when the faults are over.
        restart_s: how long after its end a copy is started again.
        kill_every_s: after how long on the average one of the copies is killed (``kill -9``); 0: none is.
        stop_s: how long a copy may take to end when it is asked to (SIGTERM), before it is killed.
        keys: how many keys the records of each partition have.
    """

    rate: float = Field(default=50.0, gt=0, le=100_000)
    idempotent: bool = True
    argv: tuple[str, ...] = Field(min_length=1)
    env: Mapping[str, str] = {}
    group: str = Field(default="program", min_length=1, max_length=200)
    cwd: str = ""
    copies: int = Field(default=1, ge=1, le=16)
    output: Literal["topic", "stdout", "file", "http"] = "topic"
    output_topic: str = Field(default="output", pattern=r"^[a-zA-Z0-9._-]{1,200}$")
    promise: Literal["at-least-once", "at-most-once", "exactly-once"] = "at-least-once"
    order: Literal["per-key", "none"] = "none"
    identity: str = Field(default="", pattern=rf"^(|/.*|{HEADER}.+)$")
    done: Literal["committed", "quiet"] = "committed"
    quiet_s: Seconds = Field(default=2.0, gt=0)
    drain_s: Seconds = Field(default=30.0, gt=0)
    restart_s: Seconds = Field(default=0.5, ge=0)
    kill_every_s: Seconds = Field(default=0.0, ge=0)
    stop_s: Seconds = Field(default=5.0, gt=0)
    keys: int = Field(default=4, ge=1, le=64)

    @property
    def stands_alone(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`: other clients' records would be in its input."""
        return True

    @property
    def guarantees(self) -> Mapping[str, bool | int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return {
            "program_may_skip": self.promise == "at-most-once",
            "program_may_repeat": self.promise == "at-least-once",
            "program_may_reorder": self.order == "none",
        }

    def with_prefix(self, prefix: str) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.model_copy(update={"output_topic": f"{prefix}{self.output_topic}"})

    def own_topics(self, topics: Sequence[TopicSpec]) -> Sequence[TopicSpec]:
        """See :class:`harness.workload.WorkloadParameters`: the output, replicated as the first topic is."""
        if self.output != "topic":
            return ()
        like, most = topics[0], max(topic.partitions for topic in topics)
        assignment = None if like.assignment is None else like.assignment[:1] * most
        return (TopicSpec(self.output_topic, most, like.replication_factor, assignment, like.configs),)

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        if found.in_virtual_time:
            raise UsageError(
                f"workload command runs a program in real time, and target {found.target!r} has none.",
                "Run it on a target in real time, such as --target builtin.",
            )
        if not found.features.carried.headers:
            raise UsageError(
                f"workload command sends records with headers, and target {found.target!r} stores none.",
                "Run it on a generation or release from 0.11 on.",
            )
        if found.is_sent_to:
            raise UsageError(
                "workload command fills the input by itself, and the schedule sends records that no program knows.",
                "Leave the schedule's sends out.",
            )
        if self.output == "topic" and any(topic.name == self.output_topic for topic in found.topics):
            raise UsageError(
                f"workload command puts its output into {self.output_topic!r}, which is a topic of its input.",
                "Name another one: output_topic.",
            )
        if why := missing(self.argv, self.directory):
            raise UsageError(f"workload.argv: {why}.", "Name the program as a shell would, or by its whole path.")

    @property
    def directory(self) -> Path:
        """In which the program is started."""
        return Path(self.cwd or ".").absolute()


class Command(Workload):
    """Fills an input, keeps a program running, and reads what it puts out."""

    def __init__(self, parameters: CommandParameters, context: ClientContext) -> None:
        super().__init__(context)
        assert context.real_time is not None, "a program runs in real time, or not at all"
        self._real_time: RealTime = context.real_time
        self._parameters = parameters
        self._readers = context.new_clients()
        self._input = sorted(context.partitions)
        self._files = self._real_time.directory / _FILES
        self._posts = Posts(self._files / _POSTED) if parameters.output == "http" else None
        self._keeping: Keeping | None = None
        self._seen: set[tuple[TopicPartition, Offset, tuple[int, ...]]] = set()
        processes = partial(InputProcesses, keys=parameters.keys)
        self._sends = SteadySends(parameters, context, self.clients, processes)

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        if self._posts is not None:
            self._posts.start()
        self._keeping = Keeping(self._program(), self._real_time.failed)
        self._keeping.start()
        if self._output:
            self._readers.begin(self._watched(self._follow()))
        for work in self._sends.works():
            self.begin(work)

    def finish(self, report: Callable[[str], None]) -> None:
        """See :class:`harness.workload.Workload`: let the program finish, end it, and read its output."""
        if self._keeping is None:
            return
        report(f"letting the program finish, for {self._parameters.drain_s:g} s at the most")
        ends = self._ends()
        is_done = ends is not None and self._is_done(self._keeping, ends)
        self._keeping.end()
        recorder, ours = self.context.recorder, self._parameters
        group = ours.group if ours.done == "committed" else None
        op = recorder.invoke_reached(self.context.new_process(), group, self._input)
        reached = self._committed() if group else (ends if is_done and ends is not None else "NOT_QUIET")
        self._readers.stop()
        self._readers.join()
        unread = self._take_output(self._keeping)
        error = unread or (reached if isinstance(reached, str) else None)
        recorder.complete_reached(op, {} if isinstance(reached, str) else reached, error)

    def program(self) -> Mapping[str, object]:
        """See :class:`harness.workload.Workload`."""
        return self._keeping.document() if self._keeping is not None else {}

    def stop(self) -> None:
        """See :class:`harness.workload.Workload`: the program goes on, and is killed no more."""
        super().stop()
        if self._keeping is not None:
            self._keeping.calm()

    def end(self) -> None:
        """See :class:`harness.workload.Workload`."""
        self._readers.stop()
        if self._keeping is not None:
            self._keeping.kill()
        if self._posts is not None:
            self._posts.stop()
        self._readers.join()

    def _named(self, what: str) -> str:
        """The name of a client of the output, and of its group, which the cluster must allow."""
        return f"{self._real_time.prefix or 'seawall-'}{what}"

    @property
    def _output(self) -> list[TopicPartition]:
        """The partitions of the output; empty: it is in no topic."""
        if self._parameters.output != "topic":
            return []
        most = max(name.partition for name in self._input)
        return [TopicPartition(self._parameters.output_topic, number) for number in range(most + 1)]

    def _program(self) -> Program:
        ours = self._parameters
        values = {
            "bootstrap": self._real_time.access.bootstrap,
            "input": ",".join(sorted({name.topic for name in self._input})),
            "output": ours.output_topic if ours.output == "topic" else "",
            "group": f"{self._real_time.prefix}{ours.group}",
            **({SINK: self._posts.url} if self._posts is not None else {}),
        }
        return Program(
            ours.argv, ours.env, str(ours.directory), str(self._files), values, ours.copies, ours.restart_s,
            ours.kill_every_s, ours.stop_s, self.context.seed, ours.output == "stdout", ours.output == "file",
        )  # fmt: skip

    # ------------------------------------------------------------------------------------- how far the program is

    def _ends(self) -> dict[TopicPartition, Offset] | None:
        """Where the input ends; None: a leader does not say."""
        deadline_s = time.monotonic() + _LEADERS_S
        while time.monotonic() < deadline_s:
            try:
                ends = bounds(
                    self._real_time.access, self._named("ends"), self._input, self._real_time.log, stable=False
                )
                return dict(zip(self._input, ends, strict=True))
            except ClientError as refused:
                self._real_time.log.info("the ends of the input: %s", refused)
                time.sleep(_AGAIN_S)
        return None

    def _is_done(self, keeping: Keeping, ends: Mapping[TopicPartition, Offset]) -> bool:
        """Wait until the program is done with the input up to ``ends``, and quiet; returns whether it came to that."""
        by_commit = self._parameters.done == "committed"
        deadline_s = time.monotonic() + self._parameters.drain_s
        before, since_s = self._progress(keeping), time.monotonic()
        while (now_s := time.monotonic()) < deadline_s:
            progress = self._progress(keeping)
            if progress != before or not keeping.all_run:
                before, since_s = progress, now_s
            elif now_s - since_s >= self._parameters.quiet_s and (not by_commit or self._has_committed(ends)):
                return True
            time.sleep(_LOOK_S)
        return False

    def _progress(self, keeping: Keeping) -> tuple[int, int, int]:
        """Numbers that change when the program puts something out, or a copy of it ends."""
        size = sum(path.stat().st_size for path in self._files.glob("output-*.jsonl"))
        return len(self._seen), size, keeping.exits

    def _has_committed(self, ends: Mapping[TopicPartition, Offset]) -> bool:
        reached = self._asked()
        return not isinstance(reached, str) and all(reached.get(name, 0) >= end for name, end in ends.items())

    def _committed(self) -> dict[TopicPartition, Offset] | str:
        """What the program's group has committed, or why that is not known."""
        deadline_s = time.monotonic() + _LEADERS_S
        while isinstance(reached := self._asked(), str) and time.monotonic() < deadline_s:
            time.sleep(_AGAIN_S)
        return reached

    def _asked(self) -> dict[TopicPartition, Offset] | str:
        clients = self.context.new_clients()
        group = clients.group(self._parameters.group)
        try:
            answer = clients.begin(group.committed(self._input, _ASK_TIMEOUT_S))
            clients.join()
            found = answer.result()
            assert found is not None, "the task has ended"
            return found if isinstance(found, str) else {name: one.offset for name, one in found.items()}
        finally:
            group.close()

    # ------------------------------------------------------------------------------------------------ the output

    async def _follow(self) -> None:
        """Read the output topic while the program runs, so that what the cluster loses later is known."""
        while not self._readers.stopping:
            process = self.context.new_process()
            reader = OutputReader(
                self._real_time.access, self._named(f"follow-{process}"), self._output, self._real_time.log
            )
            try:
                while not self._readers.stopping:
                    polled = reader.poll()
                    if isinstance(polled, str):
                        break
                    self.context.recorder.outputs(process, list(self._new(polled)), final=False)
            finally:
                reader.close()
            await self._readers.sleep(_AGAIN_S)

    def _new(self, polled: Iterable[RawRecord]) -> Iterator[Output]:
        """What no reader has read before; a new one begins at the beginning."""
        for record in polled:
            values = tuple(held(record.value, record.key, record.headers, self._parameters.identity))
            if (key := (record.where, record.offset, values)) not in self._seen:
                self._seen.add(key)
                yield from (Output(*record.where, record.offset, value) for value in values or (None,))

    def _take_output(self, keeping: Keeping) -> str | None:
        """Record the whole output after the program's end; returns why it cannot be read, None: it can."""
        at, recorder = self._parameters.identity, self.context.recorder
        for path in self._sinks(keeping):
            lines = [held(line, at=at) for line in _lines(path)]
            found = [Output(None, None, n, value) for n, values in enumerate(lines) for value in values or (None,)]
            recorder.outputs(self.context.new_process(), found, final=True)
        if not self._output:
            return None
        records = read_to_the_end(
            self._real_time.access, self._named("output"), self._output, self._real_time.log, self._parameters.drain_s
        )  # fmt: skip
        if isinstance(records, str):
            return f"OUTPUT_UNREAD: {records}"
        every = [(one, held(one.value, one.key, one.headers, at)) for one in records]
        outputs = [Output(*one.where, one.offset, value) for one, values in every for value in values or (None,)]
        recorder.outputs(self.context.new_process(), outputs, final=True)
        return None

    def _sinks(self, keeping: Keeping) -> Iterator[Path]:
        """The files with the output, one for each life of a copy, or one for all that was posted."""
        program = self._program()
        if self._posts is not None:
            yield self._files / _POSTED
        elif program.prints or program.writes:
            lives = sorted(keeping.lives().items())
            paths = (program.sink(copy, life) for copy, many in lives for life in range(many))
            yield from (path for path in paths if path.exists())


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a sink that are not blank; one that the end of a life has cut short counts if it is whole enough."""
    *whole, rest = path.read_bytes().split(b"\n")
    yield from (line for line in whole if line.strip())
    if held(rest):
        yield rest


KIND = WorkloadKind(
    "command",
    CommandParameters,
    Command,
    {"argv": ["python3", "processor.py", "{input}", "{output}"], "rate": 40, "producers": 2},
)

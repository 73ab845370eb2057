"""Processes of the history that fetch and commit the offsets of a consumer group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.client_ports import CommittedOffset
from harness.history.recorder import Recorder
from harness.history.sends import Completion
from harness.model import GroupProtocol, ProcessId, TopicPartition

REFUSED_AS_A_WHOLE = frozenset({"INVALID_GROUP_ID", "GROUP_AUTHORIZATION_FAILED"})
"""Errors that prove that nothing of a commit was stored: every attempt at it, and every partition in it, must have met
them.

Not among them, though they look it: NOT_COORDINATOR (also the answer to a commit that was appended and then lost its
leader), COORDINATOR_LOAD_IN_PROGRESS and UNKNOWN_TOPIC_OR_PART (librdkafka sends a commit again when its connection has
broken, so this may be the answer to the second attempt; nor need other partitions have met the second of them).
"""


class GroupProcess:
    """Writes down what one client does for a group, an operation at a time, and every attempt is one.

    The broker may still store a commit whose outcome is unknown, so the process ends with it, and the next operation is
    of a new one.

    Args:
        recorder: of the history.
        new_process: gives process numbers that were never used before.
        group: the consumer group.
        protocol: that of the group, if the client is a member.

    Attributes:
        group: as given.
        op: the number of its last operation.
    """

    def __init__(
        self,
        recorder: Recorder,
        new_process: Callable[[], ProcessId],
        group: str,
        protocol: GroupProtocol | None = None,
    ) -> None:
        self._recorder = recorder
        self._new_process = new_process
        self.group = group
        self._protocol = protocol
        self._process: ProcessId | None = None
        self._asked: tuple[TopicPartition, ...] = ()
        self.op = -1

    def ask(self, partitions: Sequence[TopicPartition]) -> None:
        """Begin to ask what is committed of ``partitions``."""
        self._asked = tuple(partitions)
        self.op = self._recorder.invoke_committed(self._number(), self.group, self._asked)

    def told(self, answer: Mapping[TopicPartition, CommittedOffset] | str) -> None:
        """The answer, which leaves out partitions without a commit; or the error's name."""
        if isinstance(answer, str):
            self._recorder.complete_committed(self.op, "fail", error=answer)
            return
        offsets = [answer[name].offset if name in answer else None for name in self._asked]
        self._recorder.complete_committed(self.op, "ok", offsets)

    def begin_commit(self, offsets: Mapping[TopicPartition, CommittedOffset], generation: int | None = None) -> None:
        """Begin to commit ``offsets``; ``generation``: that of the member that does, None: it is no member."""
        plain = {name: committed.offset for name, committed in offsets.items()}
        self.op = self._recorder.invoke_commit(self._number(), self.group, plain, generation, self._protocol)

    def end_commit(self, error: str | None, generation: int | None = None) -> None:
        """The commit ended; ``error``: its name, None for success; ``generation``: as it began, but now."""
        kind: Completion = "ok" if error is None else "fail" if error in REFUSED_AS_A_WHOLE else "info"
        self.end_commit_as(kind, error, generation)

    def end_commit_as(self, kind: Completion, error: str | None, generation: int | None = None) -> None:
        """The commit ended as the transaction did in which it was."""
        self._recorder.complete(self.op, kind, error, generation)
        if kind == "info":
            self._process = None

    def _number(self) -> ProcessId:
        if self._process is None:
            self._process = self._new_process()
        return self._process

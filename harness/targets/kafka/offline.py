"""Asks a real broker which of its log directories are offline (DescribeLogDirs: KIP-112, KIP-113)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from harness.clients.conversation import Conversation
from harness.model import node_id
from harness.targets.addresses import Address
from harness.wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

_DESCRIBE_LOG_DIRS = 4
_ANSWER_TIMEOUT_S = 5.0


def offline_log_dirs(node: str, address: Address) -> set[Path]:
    """The paths of the offline log directories of broker ``node``.

    Raises:
        NoAnswer: it does not answer.
    """
    with closing(Conversation(node_id(node), address, _ANSWER_TIMEOUT_S)) as conversation:
        answer = conversation.ask(DescribeLogDirsRequest(), DescribeLogDirsResponse, _DESCRIBE_LOG_DIRS)
    return {Path(one.log_dir) for one in answer.results if one.error_code}

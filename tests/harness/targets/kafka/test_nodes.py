"""How the processes of a node end, and what that means."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from harness.errors import EnvironmentFault
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.nodes import KafkaNode


def ended(directory: Path, status: int) -> KafkaNode:
    """A node whose process has ended with the exit status ``status``."""
    node = KafkaNode("1", directory, cast("Distribution", None), lambda *_: None)
    [process] = node.processes
    process.start(("/bin/sh", "-c", f"exit {status}"), {})
    assert process.wait(60)
    return node


def test_a_broker_that_ends_with_an_error_has_exited_by_itself(tmp_path: Path) -> None:
    assert ended(tmp_path, 1).has_exited


@pytest.mark.parametrize(("status", "why"), [(3, "has run out of memory"), (70, "was ended by its disk shim")])
def test_what_no_release_is_to_blame_for_is_not_a_broker_s_own_end(tmp_path: Path, status: int, why: str) -> None:
    with pytest.raises(EnvironmentFault, match=f"node 1 {why}"):
        _ = ended(tmp_path, status).has_exited

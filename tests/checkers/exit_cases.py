"""Stories of nodes that end although nothing has ordered them to. Importing this module adds to ``CASES``."""

from __future__ import annotations

from typing import Any

from checkers.nodes_are_accounted import RESTARTS
from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.rest_cases import CASES
from tests.checkers.sampling import SAMPLED, samples
from tests.checkers.story import Story

__all__ = ["CASES"]

MS = 1_000_000
AT_NS = 50 * MS
EXITED = ("node-exit", "VIOLATION", None)
EXCUSED = ("node-exit", "DOCUMENTED", None)


def ended(said: str = "Halting: an assertion failed", node: int = 1, **more: Any) -> dict[str, Any]:
    """A life of a node that ended by itself after 50 ms."""
    usual = {"node": node, "incarnation": 0, "time_ns": AT_NS, "status": 1, "said": said, "blames": ""}
    return {"endings": [usual | more]}


def in_force(
    story: Story, kind: str, *nodes: str, since_ms: int = 40, until_ms: int = 60, proof: str | None = None
) -> None:
    """A fault that worked; ``until_ms`` is when it was proven to be healed."""
    write(story, 2)
    times: dict[str, Any] = dict.fromkeys(("aimed_ns", "injected_ns", "proven_ns"), since_ms * MS)
    times |= dict.fromkeys(("healed_ns", "heal_proven_ns"), until_ms * MS)
    story.fault(**times, kind=kind, nodes=list(nodes), **({"proof": proof} if proof else {}))
    if kind in RESTARTS:
        story.restart(1)
    story.finish()


@case(Outcome.VIOLATION, EXITED, **ended())
def a_broker_that_ends_by_itself_is_found_though_nothing_is_lost(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, EXITED, guarantees=SAMPLED, **ended())
def a_real_broker_that_ends_by_itself_is_found(story: Story) -> None:
    write(story, 2)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, EXITED, **ended(node=100, status=0))
def a_controller_that_ends_by_itself_is_found_whatever_its_status(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, EXITED, **ended())
def a_broker_that_was_started_again_after_it_had_ended_by_itself_is_found(story: Story) -> None:
    write(story, 2)
    story.restart(1)
    story.finish()


@case(Outcome.PASS, EXCUSED, **ended("Halting: the log directory failed with errno 28"))
def a_full_disk_halts_its_broker(story: Story) -> None:
    in_force(story, "disk_full", "1")


@case(Outcome.INVALID, ("node-exit", "INDETERMINATE", None), reason="its proof is about 2", **ended())
def a_full_disk_that_was_another_broker_s_excuses_nothing(story: Story) -> None:
    in_force(story, "disk_full", "1", proof="node 2: a write was refused")


@case(Outcome.INVALID, reason="its environment is to blame", **ended(blames="SIGKILL came from elsewhere"))
def a_full_disk_that_was_another_broker_s_does_not_clear_the_environment(story: Story) -> None:
    in_force(story, "disk_full", "1", proof="node 2: a write was refused")


@case(Outcome.VIOLATION, EXITED, **ended())
def a_full_disk_halts_no_other_broker(story: Story) -> None:
    in_force(story, "disk_full", "2")


@case(Outcome.VIOLATION, EXITED, **ended())
def a_full_disk_that_has_room_again_halts_no_broker(story: Story) -> None:
    in_force(story, "disk_full", "1", since_ms=10, until_ms=20)


@case(Outcome.PASS, EXCUSED, **ended())
def what_a_fault_has_damaged_may_end_its_broker_later(story: Story) -> None:
    in_force(story, "corrupt_log", "1", since_ms=10, until_ms=20)


@case(Outcome.PASS, EXCUSED, **ended())
def a_broker_may_not_come_up_on_what_a_power_loss_has_left(story: Story) -> None:
    in_force(story, "power_loss", "1")


@case(Outcome.VIOLATION, EXITED, **ended())
def a_broker_has_to_come_up_after_a_kill(story: Story) -> None:
    in_force(story, "kill", "1")


@case(Outcome.VIOLATION, EXITED, **ended())
def a_cut_link_ends_no_broker(story: Story) -> None:
    in_force(story, "partition", "1")


TIMED_OUT = "ZooKeeperClientTimeoutException: Timed out waiting for connection while in state: CONNECTING"


@case(Outcome.PASS, EXCUSED, **ended(TIMED_OUT))
def a_broker_that_starts_cut_off_from_its_controller_gives_up(story: Story) -> None:
    in_force(story, "partition", "controller", "1")


@case(Outcome.VIOLATION, EXITED, **ended(TIMED_OUT))
def a_broker_that_gives_up_its_controller_without_a_fault_is_found(story: Story) -> None:
    write(story, 2)
    story.finish()


NOT_ALLOWED = "Halting: log truncation from 5 to the leader's 3 is not allowed"


@case(Outcome.PASS, EXCUSED, generation="0.10", **ended(NOT_ALLOWED))
def an_old_broker_ends_rather_than_cut_its_log(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, EXITED, generation="2.1", **ended(NOT_ALLOWED))
def a_newer_broker_cuts_its_log(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.INVALID, reason="Node 1 ended by signal 9, in its life 0, and nothing had ordered it to, and SIG",
      **ended(status=-9, blames="SIGKILL came from elsewhere"))  # fmt: skip
def a_broker_that_the_machine_has_ended_is_not_to_blame(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.PASS, **ended(blames="the machine refused it (No space left on device)"))
def a_disk_that_a_fault_has_filled_is_not_the_machine_s(story: Story) -> None:
    in_force(story, "disk_full", "1")

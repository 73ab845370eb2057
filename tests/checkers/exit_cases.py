"""Stories of nodes that end although nothing has ordered them to. Importing this module adds to ``CASES``."""

from __future__ import annotations

import json
from typing import Any

from faults import traits_of
from harness.checker import Outcome
from harness.detection.withheld import samples
from harness.fault import ProcessEffect
from harness.model import CLIENTS
from tests.checkers.cases import case, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import Story

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
    if traits_of(kind).process is ProcessEffect.ENDS:
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


FULL = "Halting: the log directory failed with errno 28"
FULL_KAFKA = (
    "[t] ERROR Shutdown broker because all log dirs in /data have failed (kafka.log.LogManager)"
    " | java.io.IOException: No space left on device"
)


@case(Outcome.PASS, EXCUSED, **ended(FULL))
def a_full_disk_halts_its_broker(story: Story) -> None:
    in_force(story, "disk_full", "1")


@case(Outcome.INVALID, ("node-exit", "INDETERMINATE", None), reason="its proof is about 2", **ended(FULL))
def a_full_disk_that_was_another_broker_s_excuses_nothing(story: Story) -> None:
    in_force(story, "disk_full", "1", proof="node 2: a write was refused")


@case(Outcome.INVALID, reason="its environment is to blame", **ended(blames="SIGKILL came from elsewhere"))
def a_full_disk_that_was_another_broker_s_does_not_clear_the_environment(story: Story) -> None:
    in_force(story, "disk_full", "1", proof="node 2: a write was refused")


@case(Outcome.PASS, EXCUSED, guarantees=SAMPLED, **ended(FULL_KAFKA))
def a_full_disk_ends_a_real_broker(story: Story) -> None:
    in_force(story, "disk_full", "1")
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.PASS, EXCUSED, **ended("Halting: the snapshot cannot be written: No space left on device", node=100))
def a_full_disk_ends_a_controller(story: Story) -> None:
    in_force(story, "disk_full", "controller")


@case(Outcome.PASS, EXCUSED, generation="0.10", **ended("[t] INFO Starting the log cleaner (kafka.log.LogCleaner)"))
def a_broker_may_be_gone_without_a_word_of_its_full_disk(story: Story) -> None:
    in_force(story, "disk_full", "1")


@case(Outcome.PASS, EXCUSED, guarantees=SAMPLED,
      **ended("[t] ERROR one (a) | org.apache.kafka.common.errors.NotLeaderOrFollowerException"))  # fmt: skip
def an_error_that_a_request_was_answered_with_ends_no_broker(story: Story) -> None:
    in_force(story, "disk_full", "1")
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, EXITED, **ended())
def a_full_disk_is_no_reason_for_what_a_broker_says_ended_it(story: Story) -> None:
    in_force(story, "disk_full", "1")


@case(Outcome.VIOLATION, EXITED, **ended("KeyError: 3"))
def a_full_disk_is_no_reason_for_an_error_that_a_broker_did_not_catch(story: Story) -> None:
    in_force(story, "disk_full", "1")


@case(Outcome.VIOLATION, EXITED, **ended(FULL))
def a_full_disk_halts_no_other_broker(story: Story) -> None:
    in_force(story, "disk_full", "2")


@case(Outcome.VIOLATION, EXITED, **ended(FULL))
def a_full_disk_that_has_room_again_halts_no_broker(story: Story) -> None:
    in_force(story, "disk_full", "1", since_ms=10, until_ms=20)


@case(Outcome.PASS, EXCUSED, **ended("OSError: the ledger is garbled"))
def what_a_fault_has_damaged_may_end_its_broker_later(story: Story) -> None:
    in_force(story, "corrupt_log", "1", since_ms=10, until_ms=20)


@case(Outcome.VIOLATION, EXITED, **ended())
def what_a_fault_has_damaged_is_no_reason_for_what_a_broker_says_ended_it(story: Story) -> None:
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


def cut(story: Story, *links: tuple[str, str]) -> None:
    """These links were cut as node 1 gave up."""
    in_force(story, "partition", *sorted({end for link in links for end in link} - {CLIENTS}))
    story.faults[-1]["parameters"] = json.dumps({"links": links})


@case(Outcome.PASS, EXCUSED, **ended(TIMED_OUT))
def a_broker_whose_controller_does_not_hear_it_gives_up(story: Story) -> None:
    cut(story, ("1", "controller"))


@case(Outcome.PASS, EXCUSED, **ended(TIMED_OUT))
def a_broker_whose_controllers_do_not_hear_each_other_gives_up(story: Story) -> None:
    cut(story, ("controller-1", "controller-2"))


@case(Outcome.PASS, EXCUSED, **ended(TIMED_OUT))
def a_broker_whose_controller_stands_still_gives_up(story: Story) -> None:
    in_force(story, "pause", "controller")


@case(Outcome.VIOLATION, EXITED, **ended(TIMED_OUT))
def a_broker_that_clients_cannot_reach_has_its_controller(story: Story) -> None:
    cut(story, ("1", CLIENTS))


@case(Outcome.VIOLATION, EXITED, **ended(TIMED_OUT))
def a_controller_that_another_broker_cannot_reach_is_there(story: Story) -> None:
    cut(story, ("2", "controller"))


@case(Outcome.VIOLATION, EXITED, **ended(TIMED_OUT))
def a_broker_that_stands_still_keeps_no_other_from_its_controller(story: Story) -> None:
    in_force(story, "pause", "2")


COMBINED = {
    "target": "process:4.1.0#combined",
    "scenario": {
        "cluster": {"brokers": 3},
        "topics": [{"name": "ledger", "partitions": 1, "replication_factor": 3}],
        "schedule": [{"send": {"per_partition": 2}}],
    },
    "settings": {
        "min.insync.replicas": "2", "unclean.leader.election.enable": "false", "replica.lag.time.max.ms": "10000",
    },
}  # fmt: skip


OF_REAL = SAMPLED | {"unclean_election": False, "retention": False, "settles": False}


@case(Outcome.PASS, EXCUSED, configuration=COMBINED, guarantees=OF_REAL, **ended(TIMED_OUT))
def a_broker_that_stands_still_may_be_the_controller_of_another(story: Story) -> None:
    in_force(story, "pause", "2")
    story.timeline = samples(story.timeline, lambda _: True)


NOT_REGISTERED = (
    "ERROR Exiting Kafka due to fatal exception during startup. (kafka.Kafka$) | java.lang.RuntimeException: Received "
    "a fatal error while waiting for the controller to acknowledge that we are caught up | Caused by: "
    "java.util.concurrent.CancellationException"
)


@case(Outcome.PASS, EXCUSED, configuration=COMBINED, guarantees=OF_REAL, **ended(NOT_REGISTERED))
def a_broker_of_4_3_that_could_not_register_in_time_gives_up(story: Story) -> None:
    in_force(story, "kill", "2")
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, EXITED, **ended(NOT_REGISTERED))
def one_that_no_fault_kept_from_registering_is_found(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, EXITED, **ended(TIMED_OUT))
def a_clock_keeps_no_broker_from_its_controller(story: Story) -> None:
    in_force(story, "clock", "1")


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


@case(Outcome.PASS, **ended(FULL_KAFKA, blames="the machine refused it (No space left on device)"))
def a_disk_that_a_fault_has_filled_is_not_the_machine_s(story: Story) -> None:
    in_force(story, "disk_full", "1")

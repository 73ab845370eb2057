"""Stories of runs whose guarantees are, or are not, those of their configuration. Importing this adds to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.story import GUARANTEES, Row, Story


def configured(**more: Any) -> Row:
    """A manifest whose configuration says what the cluster is set to."""
    topic = {"name": "ledger", "partitions": 1, "replication_factor": 3}
    cluster = {"brokers": 3, "settings": more.pop("written", {})}
    scenario = {"cluster": cluster, "topics": [topic], "schedule": more.pop("schedule", [])} | more.pop("scenario", {})
    settings = {
        "min.insync.replicas": 2, "unclean.leader.election.enable": False, "replica.lag.time.max.ms": 400,
        "broker.session.timeout.ms": 600, "log.retention.ms": 604_800_000,
    } | more.pop("settings", {})  # fmt: skip
    workload = {"name": "unique_sends", "rate": 10.0, "idempotent": True}
    knobs = {"elections": "elr"}
    guarantees = GUARANTEES | {
        "replication_factor": 3, "idempotent_producers": True, "eligible_replicas": True, "retention": False,
        "settles": True, "laggards_leave_ms": 4_000,
    }  # fmt: skip
    configuration = {
        "target": "builtin", "scenario": scenario, "settings": settings, "workload": workload, "knobs": knobs,
    } | more.pop("configuration", {})  # fmt: skip
    said = {name: value for name, value in (guarantees | more).items() if value is not None}
    return {"configuration": configuration, "guarantees": said}


def quiet(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.PASS, **configured())
def guarantees_that_follow_from_the_configuration_pass(story: Story) -> None:
    quiet(story)


@case(Outcome.PASS, **configured(schedule=[{"elect": {"node": 1, "unclean": True}}], unclean_election=True))
def an_operators_unclean_election_is_part_of_the_configuration(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(min_insync_replicas=1),
      reason=r"run\.json guarantees min_insync_replicas 1, and its configuration comes to 2")  # fmt: skip
def a_min_isr_that_is_not_the_configured_one_makes_the_run_invalid(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(unclean_election=True), reason=r"guarantees unclean_election True, .* to False")
def unclean_elections_that_are_not_configured_make_the_run_invalid(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(idempotent_producers=False), reason=r"guarantees idempotent_producers False")
def producers_that_are_configured_to_be_idempotent_are_so(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(eligible_replicas=False), reason=r"guarantees eligible_replicas False")
def eligible_replicas_that_are_configured_are_guaranteed(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(replication_factor=2), reason=r"guarantees replication_factor 2")
def a_replication_factor_that_is_not_the_configured_one_makes_the_run_invalid(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(schedule=[{"delete_records": {"before": 1, "expect": "any"}}], retention=False),
      reason=r"guarantees retention False")  # fmt: skip
def a_step_that_deletes_is_part_of_what_is_guaranteed(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(timeline="sampled"), reason=r"guarantees timeline 'sampled', .* to nothing")
def a_built_in_cluster_has_no_sampled_timeline(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, lost(2, "INDETERMINATE"), regression(2, "INDETERMINATE"),
      **configured(settings={"unclean.leader.election.enable": True}),
      reason=r"guarantees unclean_election False, .* to True")  # fmt: skip
def a_wrong_guarantee_makes_no_violation(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.finish()


@case(Outcome.INVALID, **configured(settles=False), reason=r"guarantees settles False, .* to True")
def a_run_that_came_to_its_end_promises_to_settle(story: Story) -> None:
    quiet(story)


@case(Outcome.PASS, **configured(settles=False, scenario={"outcomes": {"0.10": {"outcome": ["stuck"]}}}))
def what_is_expected_of_a_run_may_be_that_it_does_not_settle(story: Story) -> None:
    quiet(story)


REAL: Row = {
    "configuration": {"target": "process:4.1.0", "settings": {
        "min.insync.replicas": "2", "unclean.leader.election.enable": "false", "replica.lag.time.max.ms": "4000",
    }},
    "timeline": "sampled",
}  # fmt: skip


@case(Outcome.PASS, **configured(**REAL, settles=False, laggards_leave_ms=None))
def real_kafka_promises_less(story: Story) -> None:
    quiet(story)
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.INVALID, **configured(**REAL, laggards_leave_ms=None), reason=r"guarantees settles True, .* to False")
def real_kafka_does_not_promise_to_settle(story: Story) -> None:
    quiet(story)
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.INVALID, **configured(**REAL, settles=False), reason=r"guarantees laggards_leave_ms 4000, .* nothing")
def nobody_sees_every_laggard_of_real_kafka(story: Story) -> None:
    quiet(story)
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.INVALID, **configured(laggards_leave_ms=40), reason=r"guarantees laggards_leave_ms 40, .* to 4000")
def when_laggards_leave_follows_from_the_settings(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(laggards_leave_ms=None), reason=r"guarantees laggards_leave_ms nothing, .* to 4000")
def that_laggards_leave_cannot_be_left_out(story: Story) -> None:
    quiet(story)


@case(Outcome.PASS, **configured(schedule=[{"spoof_fetch": {}}], laggards_leave_ms=None))
def who_fetches_for_another_keeps_it_in_sync(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(retention=True), reason=r"guarantees retention True, .* to False")
def retention_that_nothing_asks_for_makes_the_run_invalid(story: Story) -> None:
    quiet(story)


@case(
    Outcome.PASS,
    **configured(retention=True, written={"log.retention.ms": 1_000}, settings={"log.retention.ms": 1_000}),
)
def a_limit_that_is_written_down_permits_retention(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(written={"log.retention.bytes": 1_000}), reason=r"guarantees retention False")
def a_limit_of_size_is_a_limit(story: Story) -> None:
    quiet(story)


@case(Outcome.PASS, **configured(written={"log.retention.ms": -1}, settings={"log.retention.ms": -1}))
def a_limit_that_is_none_permits_nothing(story: Story) -> None:
    quiet(story)


@case(Outcome.PASS, **configured(retention=True, schedule=[{"send": {"age_s": 600_000, "idempotent": True}}]))
def records_that_are_a_week_old_may_be_deleted(story: Story) -> None:
    quiet(story)


@case(
    Outcome.PASS,
    **configured(configuration={"workload": {"name": "unique_sends", "rate": 10.0, "acks": [1, 0], "producers": 2}}),
)
def who_does_not_wait_sends_once(story: Story) -> None:
    write(story, 2, acks=1)
    story.finish()


@case(Outcome.INVALID, lost(2, "INDETERMINATE"), regression(2, "INDETERMINATE"),
      **configured(configuration={"settings": {}}),
      reason=r"names a target and no setting min\.insync\.replicas, unclean")  # fmt: skip
def settings_that_were_left_out_make_no_violation(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.INVALID, **configured(settings={"min.insync.replicas": "two"}),
      reason=r"cannot be derived from its configuration \(ValueError: .*invalid literal")  # fmt: skip
def a_setting_that_is_no_number_makes_the_run_invalid(story: Story) -> None:
    quiet(story)

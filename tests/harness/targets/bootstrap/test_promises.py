"""What a running cluster is taken to promise, from what it tells, what is asked of it, and what the user says."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.targets.bootstrap.promises import asked, known_settings, refuse_unmet, topic_configs, unkept

DAY_MS = 86_400_000


def test_a_cluster_that_tells_nothing_is_taken_for_one_with_kafkas_defaults() -> None:
    assert asked({}, {}) == {}
    settings = known_settings({}, {}, {})
    assert (settings.min_insync_replicas, settings.replica_lag_time_max_ms) == (1, 30_000)
    assert not settings.unclean_leader_election_enable


def test_topics_are_given_what_the_scenario_has_by_the_names_of_topics() -> None:
    wanted = asked({"min.insync.replicas": 2, "log.segment.bytes": 1000, "replica.lag.time.max.ms": 5}, {})
    assert topic_configs(wanted) == {"min.insync.replicas": "2", "segment.bytes": "1000"}


@pytest.mark.parametrize(
    ("told", "configs"),
    [
        ({"log.retention.hours": "168"}, {}),
        ({"log.retention.hours": "168", "log.retention.ms": str(DAY_MS)}, {"retention.ms": "-1"}),
        ({"log.retention.hours": "168", "log.retention.minutes": "1"}, {"retention.ms": "-1"}),
        ({"log.retention.ms": "-1", "log.retention.hours": "1"}, {}),
        ({"log.retention.bytes": "-1"}, {}),
        ({"log.retention.bytes": "1000"}, {"retention.bytes": "-1"}),
        ({"log.cleanup.policy": "compact"}, {"cleanup.policy": "delete"}),
        (
            {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
            {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
        ),
    ],
)
def test_no_limit_of_the_brokers_deletes_what_is_judged(told: dict[str, str], configs: dict[str, str]) -> None:
    assert topic_configs(asked({}, told)) == configs


def test_a_limit_that_the_scenario_has_is_asked_for() -> None:
    assert topic_configs(asked({"log.retention.ms": 500}, {"log.retention.ms": "60000"})) == {"retention.ms": "500"}


def test_what_the_user_says_counts_most() -> None:
    told = {"min.insync.replicas": "1", "replica.lag.time.max.ms": "10000"}
    settings = known_settings(told, {"min.insync.replicas": "2"}, {"min.insync.replicas": "3"})
    assert (settings.min_insync_replicas, settings.replica_lag_time_max_ms) == (3, 10_000)


def test_a_promise_about_no_setting_is_refused() -> None:
    with pytest.raises(UsageError, match=r"promise=min.isr: no such setting"):
        known_settings({}, {}, {"min.isr": "2"})


def test_settings_of_brokers_that_they_do_not_have_are_refused() -> None:
    refuse_unmet({"replica.lag.time.max.ms": 5, "min.insync.replicas": 2}, {}, "bootstrap:a:1")
    refuse_unmet({"replica.lag.time.max.ms": 5}, {"replica.lag.time.max.ms": "5"}, "bootstrap:a:1")
    with pytest.raises(UsageError, match=r"replica.lag.time.max.ms is 5 in the scenario, and 30000 on the brokers"):
        refuse_unmet({"replica.lag.time.max.ms": 5}, {"replica.lag.time.max.ms": "30000"}, "bootstrap:a:1")


def test_a_topic_that_was_not_made_as_asked_is_seen() -> None:
    configs = {"min.insync.replicas": "2", "retention.ms": "-1"}
    assert list(unkept(configs, {"min.insync.replicas": "1"})) == ["min.insync.replicas is 1, not 2"]
    assert not list(unkept(configs, {**configs, "segment.bytes": "1"}))

"""Runs against real Kafka with TLS, SASL and an authorizer: each way in, each refusal, and where no secret may be."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]

import reports
from checkers import check
from harness.checker import Outcome
from harness.errors import EnvironmentFault, ExitCode, SeawallError, UsageError
from harness.history.run_directory import RunDirectory
from harness.runner import plan, run
from harness.runner.journal import Journal
from harness.scenario import load, parse
from harness.targets.bootstrap.kind import KIND
from harness.targets.bootstrap.target import LEFTOVERS
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.targets.bootstrap.places_of_secrets import JOURNALED, Watch, holding
from tests.harness.targets.bootstrap.places_of_secrets import journals_kept as journals_kept  # noqa: PLC0414 - a fixture
from tests.harness.targets.bootstrap.secured_kafka import PASSWORD, PREFIX, RIGHTS, SecuredKafka, secured_kafka
from tests.harness.targets.bootstrap.token_server import token_server

ONE_BROKER = {"topic.replication_factor": "1", "settings.min.insync.replicas": "1"}
KAFKAS_SESSIONS = {"workload_session_timeout_s": "6"}
"""What brokers take whose group.min.session.timeout.ms is Kafka's default."""

SEED = 7
BY_NIGHT = pytest.mark.nightly("a run each; by day one with SASL_SSL and SCRAM is made")

TLS = "security.protocol=SSL\nssl.ca.location=ca.pem\n"
SASL = TLS.replace("SSL", "SASL_SSL")
KEY = "ssl.certificate.location=alice.pem\nssl.key.location=alice"
LOCKED = f"{KEY}.locked\nssl.key.password=${{env:ALICES}}\n"
ALICE = "sasl.username=alice\nsasl.password=${env:ALICES}\n"
SCRAM = f"{SASL}sasl.mechanism=SCRAM-SHA-512\n"
OIDC = """\
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.method=oidc
sasl.oauthbearer.client.id=alice
sasl.oauthbearer.client.secret=${env:ALICES}
sasl.oauthbearer.token.endpoint.url=%s
"""
TOKEN = "enable.sasl.oauthbearer.unsecure.jwt=true\nsasl.oauthbearer.config=principal=alice\n"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALICES", PASSWORD)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))


@pytest.fixture(autouse=True)
def _unfinished_handshakes_closed() -> Iterator[None]:
    """kafka-python 3.0.12 leaves the socket of a TLS handshake that failed, or was cut off, to the collector."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def target(kafka: SecuredKafka, listener: str, properties: str, prefix: str = PREFIX) -> str:
    """``--target`` for a listener; paths in ``properties`` are of the certificates."""
    file = kafka.certificates.path("client.properties")
    file.write_text(properties)
    return f"bootstrap:{kafka.bootstrap(listener)}#client={file}#prefix={prefix}"


def passes(
    kafka: SecuredKafka, listener: str, properties: str, out: Path, duration_s: float = 2, **overrides: str
) -> RunDirectory:
    keys = {**ONE_BROKER, **{key.replace("_", ".", 1): value for key, value in overrides.items()}}
    made = plan(
        load("random-chaos"), target(kafka, listener, properties), seed=SEED, duration_s=duration_s, overrides=keys
    )
    directory = run(made, out)
    [verdict] = check([directory.path], engine="reference")
    assert verdict.outcome is Outcome.PASS, verdict
    reports.write(directory.path)
    key = kafka.certificates.path("alice.key").read_text().splitlines()[1:-1]
    assert not holding(out, PASSWORD, PASSWORD[-9:], *key)
    left = [name for name in kafka.admin().list_topics(timeout=10).topics if name.startswith(PREFIX)]
    assert not left
    return directory


def test_a_text_is_found_in_a_compressed_table_and_in_a_journal_that_was_removed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"error": [PASSWORD] * 2}), tmp_path / "a.parquet", compression="zstd")
    (tmp_path / "b.json").write_text("{}")
    assert holding(tmp_path, "of another", PASSWORD[-9:]) == [tmp_path / "a.parquet"]
    with Journal(tmp_path / "run") as journal:
        journal.fault_coming("0", "kill", {"password": PASSWORD})
    assert set(holding(tmp_path, PASSWORD[-9:])) == {tmp_path / "a.parquet", tmp_path / JOURNALED}


@pytest.mark.parametrize(
    "client", ["librdkafka", *(pytest.param(one, marks=BY_NIGHT) for one in ("java:4.3.0", "kafka-python"))]
)
def test_scram_over_tls_passes_and_no_secret_is_written(client: str, kafka: SecuredKafka, tmp_path: Path) -> None:
    with Watch(PASSWORD[-9:]) as watch:
        directory = passes(kafka, "SCRAM", SCRAM + ALICE, tmp_path, workload_client=client)
    assert not watch.found
    recorded = directory.manifest().configuration["client"]
    assert recorded["sasl.password"] is None
    assert recorded["sasl.username"] == "alice"


@BY_NIGHT
@pytest.mark.parametrize(
    ("listener", "written"),
    [
        ("TLS", TLS),
        ("MUTUAL", f"{TLS}{KEY}.key\n"),
        ("PASSWORD", f"{SASL}sasl.mechanism=PLAIN\n{ALICE}"),
        ("SCRAM", SCRAM + ALICE),
        ("TOKENS", f"{SASL}sasl.mechanism=OAUTHBEARER\n{TOKEN}"),
    ],
    ids=["tls", "mutual", "plain", "scram", "token"],
)
def test_a_secured_broker_is_killed_and_paused_by_commands(
    listener: str, written: str, kafka: SecuredKafka, tmp_path: Path
) -> None:
    properties = kafka.certificates.path("client.properties")
    properties.write_text(written)
    node = {
        "id": 0,
        "address": "127.0.0.1",
        "port": kafka.port(listener),
        "variables": {"PID_FILE": str(kafka.pid_file)},
        "commands": {"start": kafka.start},
    }
    file = {"bootstrap": [kafka.bootstrap(listener)], "preset": "processes", "nodes": [node]}
    path = tmp_path / "cluster.yml"
    path.write_text(yaml.safe_dump({**file, "client": str(properties), "prefix": PREFIX}))
    harm = {"budget": "any", "faults": [{"fault": one, "node": "any"} for one in ("kill", "pause", "stop")]}
    document = yaml.safe_load(load("random-chaos").text)
    document["chaos"] |= harm
    planned = plan(parse(yaml.safe_dump(document)), f"cluster:{path}", seed=SEED, duration_s=10, overrides=ONE_BROKER)
    directory = run(planned, tmp_path / "runs")
    [verdict] = check([directory.path], engine="reference")
    assert verdict.outcome is Outcome.PASS, verdict
    rows = directory.read_table("faults")
    assert {row["kind"] for row in rows} == {"kill", "pause", "stop"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    reports.write(directory.path)
    assert not holding(tmp_path, PASSWORD, PASSWORD[-9:])


@BY_NIGHT
@pytest.mark.parametrize("client", ["librdkafka", "java:4.3.0", "kafka-python"])
@pytest.mark.parametrize(
    ("listener", "properties"),
    [
        ("TLS", TLS),
        ("MUTUAL", f"{TLS}{KEY}.key\n"),
        ("MUTUAL", TLS + LOCKED),
        ("SCRAM", SCRAM.replace("512", "256") + ALICE),
        ("PASSWORD", f"{SASL}sasl.mechanisms=PLAIN\n{ALICE}"),
        ("ELSEWHERE", f"{TLS}ssl.endpoint.identification.algorithm=none\n"),
    ],
    ids=["tls", "mutual", "locked-key", "scram-256", "plain", "any-name"],
)
def test_each_library_gets_in(listener: str, properties: str, client: str, kafka: SecuredKafka, tmp_path: Path) -> None:
    passes(kafka, listener, properties, tmp_path, workload_client=client)


@BY_NIGHT
@pytest.mark.parametrize(
    ("listener", "properties"),
    [
        ("MUTUAL", f"{TLS}ssl.keystore.location=alice.p12\nssl.keystore.password=${{env:ALICES}}\n"),
        ("TOKENS", f"{SASL}sasl.mechanism=OAUTHBEARER\n{TOKEN}"),
    ],
    ids=["keystore", "token"],
)
def test_librdkafka_gets_in_with_a_keystore_and_with_a_token(
    listener: str, properties: str, kafka: SecuredKafka, tmp_path: Path
) -> None:
    passes(kafka, listener, properties, tmp_path)


@BY_NIGHT
def test_tokens_of_a_server_let_in_and_are_renewed(kafka: SecuredKafka, tmp_path: Path) -> None:
    issued = []
    for lifetime_s in (3600, 5):
        with token_server(PASSWORD, lifetime_s) as server:
            passes(kafka, "TOKENS", SASL + OIDC % server.url, tmp_path, 8)
            issued.append(server.issued)
        assert not holding(tmp_path, PASSWORD, PASSWORD[-9:], server.last)
    assert issued[1] > issued[0]


@BY_NIGHT
def test_a_server_that_gives_no_token_is_named(kafka: SecuredKafka) -> None:
    with token_server("another secret", lifetime_s=6) as server:
        spelled = target(kafka, "TOKENS", SASL + OIDC % server.url)
        named = r"token endpoint that \S+client\.properties names gives the client no token: .*invalid_client"
        with pytest.raises(EnvironmentFault, match=named) as refused:
            KIND.source(spelled.removeprefix("bootstrap:"))
    assert PASSWORD not in str(refused.value)
    assert server.url not in str(refused.value)


@BY_NIGHT
@pytest.mark.parametrize("name", ["consumer_groups", "transactions", "consume_transform_produce", "pipelined_sends"])
def test_the_rights_that_are_documented_are_enough(name: str, kafka: SecuredKafka, tmp_path: Path) -> None:
    longer = {} if name in {"transactions", "pipelined_sends"} else KAFKAS_SESSIONS
    passes(kafka, "SCRAM", SCRAM + ALICE, tmp_path, 6, workload_name=name, **longer)


@BY_NIGHT
def test_share_groups_take_two_rights_more(kafka: SecuredKafka, tmp_path: Path) -> None:
    overrides = {
        **ONE_BROKER,
        "workload.name": "share_groups",
        "workload.client": "java:4.3.0",
        "workload.lock_s": "15",
    }
    few = {**overrides, "workload.deliveries": "10"}
    dave = target(kafka, "SCRAM", SCRAM + ALICE.replace("alice", "dave"), "daves-")
    kafka.allow("dave", "daves-", [*RIGHTS, (ResourceType.GROUP, "ALTER_CONFIGS")])
    with pytest.raises(UsageError, match="has none"):
        plan(load("random-chaos"), dave, seed=SEED, overrides=overrides)
    kafka.allow_to_describe("dave")
    with pytest.raises(UsageError, match=r"workload.deliveries is 20, .* deliver a record 10 times at most"):
        plan(load("random-chaos"), dave, seed=SEED, overrides=overrides)
    with pytest.raises(UsageError, match=r"workload.lock_s is 5, .* lock records for 15 s at least"):
        plan(load("random-chaos"), dave, seed=SEED, overrides={**few, "workload.lock_s": "5"})
    directory = run(plan(load("random-chaos"), dave, seed=SEED, duration_s=6, overrides=few), tmp_path)
    [verdict] = check([directory.path], engine="reference")
    assert verdict.outcome is Outcome.PASS, verdict
    assert "acknowledge" in {row["f"] for row in directory.read_table("history")}


@BY_NIGHT
def test_an_audit_gets_in_and_writes_no_secret(kafka: SecuredKafka, tmp_path: Path, seawall: Seawall) -> None:
    out = tmp_path / "audit"
    words = ("--out", out, "--rate", "20", "--window", "4s", "--keep", "1m", "--for", "4s", "--replication", "1")
    with Watch(PASSWORD[-9:]) as watch:
        said = seawall("audit", "--target", target(kafka, "SCRAM", SCRAM + ALICE), *words, "--metrics", out / "prom")
    assert said.code == ExitCode.PASS, said.err
    assert "Evidence: clients only." in (out / "report.html").read_text()
    assert not watch.found
    assert not holding(tmp_path, PASSWORD, PASSWORD[-9:])
    assert PASSWORD[-9:] not in said.out + said.err


WRONG = ALICE.replace("${env:ALICES}", "not-this-one")
SLOW = pytest.mark.nightly("2 to 10 s each, until librdkafka has given up; by day a wrong password is refused")


@pytest.mark.parametrize(
    ("listener", "properties", "sentence"),
    [
        ("SCRAM", SCRAM + WRONG, r"does not let the user 'alice' in \(SCRAM-SHA-512\): .*invalid credentials"),
        pytest.param("PASSWORD", SCRAM + ALICE, r"supported mechanisms: PLAIN\. Check", marks=SLOW),
        pytest.param("EXPIRED", TLS, r"certificate of the broker at \S+ has expired\.", marks=SLOW),
        pytest.param("ELSEWHERE", TLS, r"certificate of the broker at \S+ is not one for '127\.0\.0\.1'", marks=SLOW),
        pytest.param("TLS", TLS.replace("ca.pem", "other-ca.pem"), r"no authority that is in \S+other-ca", marks=SLOW),
        pytest.param("TLS", "security.protocol=SSL", r"no authority that this machine trusts", marks=SLOW),
        pytest.param("MUTUAL", TLS, r"refuses the client's certificate, or that it has none", marks=SLOW),
        pytest.param("TLS", "", r"listeners are of security\.protocol=PLAINTEXT", marks=SLOW),
        pytest.param("PLAIN", TLS, r"listeners are of security\.protocol=SSL", marks=SLOW),
    ],
    ids=["password", "mechanism", "expired", "name", "authority", "no-authority", "no-key", "plaintext", "no-tls"],
)
def test_who_does_not_get_in_is_told_why(listener: str, properties: str, sentence: str, kafka: SecuredKafka) -> None:
    with pytest.raises(EnvironmentFault, match=sentence) as refused:
        KIND.source(target(kafka, listener, properties).removeprefix("bootstrap:"))
    assert "not-this-one" not in str(refused.value)


def without(kind: str) -> list[tuple[ResourceType, str]]:
    return [(resource, right) for resource, right in RIGHTS if f"{resource.name} {right}" != kind]


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("TOPIC CREATE", r"topic '\S+' was not created: the client lacks the right Create on it"),
        pytest.param("TOPIC WRITE", r"lacks the right Write on topic", marks=BY_NIGHT),
        pytest.param("TOPIC DELETE", r"still topic \S+ \(.*the client lacks the right Delete on it\)", marks=BY_NIGHT),
        pytest.param("GROUP READ", r"lacks the right Read on group", marks=BY_NIGHT),
        pytest.param("TRANSACTIONAL_ID WRITE", r"lacks the right Write on transactional id", marks=BY_NIGHT),
    ],
)
def test_a_right_that_is_missing_is_named(missing: str, sentence: str, kafka: SecuredKafka, tmp_path: Path) -> None:
    prefix = f"{missing.lower().replace(' ', '-')}-"
    kafka.allow("bob", prefix, without(missing))
    spelled = target(kafka, "SCRAM", SCRAM + ALICE.replace("alice", "bob"), prefix)
    overrides = {**ONE_BROKER, "workload.name": "transactions"}
    made = plan(load("random-chaos"), spelled, seed=SEED, duration_s=1, overrides=overrides)
    with pytest.raises(SeawallError, match=sentence):
        run(made, tmp_path)


@BY_NIGHT
def test_topics_that_a_client_may_not_see_any_more_are_not_lost(kafka: SecuredKafka, tmp_path: Path) -> None:
    kafka.allow("carol", "carols-")
    spelled = target(kafka, "SCRAM", SCRAM + ALICE.replace("alice", "carol"), "carols-")
    made = plan(load("random-chaos"), spelled, seed=SEED, duration_s=4, overrides=ONE_BROKER)
    made = replace(made, scenario=made.scenario.model_copy(update={"settle_s": 2.0}))
    withdrawal = threading.Timer(3, kafka.forbid, ("carol", "carols-"))
    withdrawal.start()
    with suppress(SeawallError):  # its topics are not deleted, either
        run(made, tmp_path)
    withdrawal.join()
    [directory] = (RunDirectory(one.parent) for one in tmp_path.rglob("run.json"))
    assert not directory.manifest().unknown_topics
    [verdict] = check([directory.path], engine="reference")
    assert verdict.outcome is not Outcome.VIOLATION, verdict


def test_settings_that_are_withheld_are_taken_as_promised_and_said(kafka: SecuredKafka) -> None:
    made = plan(load("random-chaos"), target(kafka, "SCRAM", SCRAM + ALICE), seed=SEED, overrides=ONE_BROKER)
    assert (
        "the client lacks the right DescribeConfigs on the cluster, so that this is taken as promised: min.insync"
        in (made.system.begins(1))
    )
    assert made.system.properties()["log.retention.ms"] == "-1"


def test_topics_that_were_left_are_deleted_by_the_same_properties(
    kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelled = target(kafka, "SCRAM", SCRAM + ALICE)
    what = {
        "bootstrap": kafka.bootstrap("SCRAM"),
        "topic": f"{PREFIX}gone",
        "client": spelled.split("=")[1].split("#")[0],
    }
    assert LEFTOVERS.remove(what) == []
    monkeypatch.delenv("ALICES")
    with pytest.raises(EnvironmentFault, match=r"may still be at .*environment variable ALICES, which is not set"):
        LEFTOVERS.remove(what)


def test_a_library_that_cannot_have_the_properties_is_refused_before_anything(kafka: SecuredKafka) -> None:
    spelled = target(kafka, "TOKENS", f"{SASL}sasl.mechanism=OAUTHBEARER\n{TOKEN}")
    with pytest.raises(UsageError, match="which seawall has for librdkafka alone"):
        plan(load("random-chaos"), spelled, seed=SEED, overrides={**ONE_BROKER, "workload.client": "kafka-python"})

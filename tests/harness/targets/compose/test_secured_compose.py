"""Brokers of a compose file that let in only certain clients: real Kafka by a password, and by certificates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from checkers import check
from harness.checker import EvidenceTier, Outcome
from harness.controls import WireTaps
from harness.errors import EnvironmentFault, UsageError
from harness.runner import plan, run
from harness.runner.journal import NothingToUndo
from harness.scenario import parse
from harness.targets.compose.foreign_stack import find
from harness.targets.compose.foreign_target import ForeignTarget
from harness.targets.compose.written_stack import read as read_stack
from tests.harness.targets.bootstrap.places_of_secrets import JOURNALED, holding
from tests.harness.targets.bootstrap.places_of_secrets import journals_kept as journals_kept  # noqa: PLC0414 - a fixture
from tests.harness.targets.bootstrap.secured_kafka import Certificates
from tests.harness.targets.cluster.test_commanded_cluster import with_faults
from tests.harness.targets.compose.conftest import ANOTHER_PROJECT, Engine
from tests.harness.targets.compose.test_foreign_target import disguised as disguised  # noqa: PLC0414 - a fixture
from tests.harness.targets.compose.test_foreign_target import three
from tests.harness.targets.compose.test_target import left_of

PASSWORD = "a-password-that-no-artifact-has"
LATE = pytest.mark.nightly("whole runs on brokers in containers, whose images are built first")
SERVED = {
    "KAFKA_SSL_KEYSTORE_TYPE": "PEM",
    "KAFKA_SSL_KEYSTORE_LOCATION": "/certificates/server.both",
    "KAFKA_SSL_TRUSTSTORE_TYPE": "PEM",
    "KAFKA_SSL_TRUSTSTORE_LOCATION": "/certificates/ca.pem",
}
BY_PASSWORD = {
    "EXTERNAL_PROTOCOL": "SASL_SSL",
    "KAFKA_LISTENER_NAME_EXTERNAL_SASL_ENABLED_MECHANISMS": "PLAIN",
    "KAFKA_LISTENER_NAME_EXTERNAL_PLAIN_SASL_JAAS_CONFIG": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
    ),
}
BY_SCRAM = {
    "EXTERNAL_PROTOCOL": "SASL_SSL",
    "KAFKA_LISTENER_NAME_EXTERNAL_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-512",
    "KAFKA_LISTENER_NAME_EXTERNAL_SCRAM___SHA___512_SASL_JAAS_CONFIG": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "SCRAM_USER": f"SCRAM-SHA-512=[name=alice,password={PASSWORD}]",
}
_TOKENS = "org.apache.kafka.common.security.oauthbearer"
BY_TOKEN = {
    "EXTERNAL_PROTOCOL": "SASL_SSL",
    "KAFKA_LISTENER_NAME_EXTERNAL_SASL_ENABLED_MECHANISMS": "OAUTHBEARER",
    "KAFKA_LISTENER_NAME_EXTERNAL_OAUTHBEARER_SASL_JAAS_CONFIG": f"{_TOKENS}.OAuthBearerLoginModule required;",
    "KAFKA_LISTENER_NAME_EXTERNAL_OAUTHBEARER_SASL_SERVER_CALLBACK_HANDLER_CLASS": (
        f"{_TOKENS}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    ),
}
BY_TLS = {"EXTERNAL_PROTOCOL": "SSL"}
BY_CERTIFICATE = {"EXTERNAL_PROTOCOL": "SSL", "KAFKA_LISTENER_NAME_EXTERNAL_SSL_CLIENT_AUTH": "required"}
TLS = "ssl.ca.location=certificates/ca.pem\n"
PASSWORD_FILE = (
    f"security.protocol=SASL_SSL\n{TLS}sasl.mechanism=PLAIN\nsasl.username=alice\n"
    "sasl.password=${env:ALICES_PASSWORD}\n"
)
TLS_FILE = f"security.protocol=SSL\n{TLS}"
SCRAM_FILE = PASSWORD_FILE.replace("PLAIN", "SCRAM-SHA-512")
TOKEN_FILE = (
    f"security.protocol=SASL_SSL\n{TLS}sasl.mechanism=OAUTHBEARER\nenable.sasl.oauthbearer.unsecure.jwt=true\n"
    "sasl.oauthbearer.config=principal=alice\n"
)
CERTIFICATE_FILE = (
    f"security.protocol=SSL\n{TLS}ssl.certificate.location=certificates/alice.pem\n"
    "ssl.key.location=certificates/alice.key\n"
)


def secured(directory: Path, image: str, settings: Mapping[str, str], properties: str) -> str:
    """The target: three brokers, whose listener for clients is secured, and what clients need."""
    certificates = Certificates(directory / "certificates")
    for path in certificates.directory.iterdir():
        path.chmod(0o644)
    file = three(directory, image)
    document = yaml.safe_load(file.read_text())
    for service in document["services"].values():
        service["environment"] = {**SERVED, **settings}
        service["volumes"].append("./certificates:/certificates:ro")
    file.write_text(yaml.safe_dump(document))
    client = directory / "client.properties"
    client.write_text(properties)
    return f"compose:{file}#client={client}"


@LATE
@pytest.mark.parametrize(
    ("settings", "properties"),
    [
        pytest.param(BY_TLS, TLS_FILE, id="TLS"),
        pytest.param(BY_PASSWORD, PASSWORD_FILE, id="TLS and PLAIN"),
        pytest.param(BY_SCRAM, SCRAM_FILE, id="TLS and SCRAM"),
        pytest.param(BY_TOKEN, TOKEN_FILE, id="TLS and OAUTHBEARER"),
        pytest.param(BY_CERTIFICATE, CERTIFICATE_FILE, id="mutual TLS"),
    ],
)
def test_three_brokers_that_let_in_only_known_clients_pass_whatever_befalls_them(
    settings: Mapping[str, str],
    properties: str,
    disguised: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    target = secured(tmp_path, disguised, settings, properties)
    faults = (
        {"fault": "kill", "node": "leader"},
        {"fault": "partition", "links": [["clients", "any"]]},
        {"fault": "partition", "links": [["any", "clients"]]},
    )
    text = with_faults(*faults, at_once=1)
    directory = run(plan(parse(text), target, seed=7, duration_s=6), tmp_path / "runs")
    [verdict] = check([directory.path], engine="reference")
    assert verdict.outcome is Outcome.PASS, verdict
    assert verdict.evidence is EvidenceTier.METADATA
    rows = directory.read_table("faults")
    assert {row["kind"] for row in rows} == {"kill", "partition"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    assert not holding(directory.path, PASSWORD)
    assert PASSWORD not in (tmp_path / JOURNALED).read_text()


@ANOTHER_PROJECT
def test_brokers_are_refused_with_the_reason_when_clients_lack_what_they_want(
    engine: Engine, disguised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", "another")
    target = secured(tmp_path, disguised, BY_PASSWORD, PASSWORD_FILE).removeprefix("compose:")
    foreign = find(read_stack(target))
    assert WireTaps not in foreign.controls
    without = find(read_stack(target.partition("#")[0] + "#broker-*"))
    assert WireTaps in without.controls
    for stack, sentence in ((foreign, "does not let the user 'alice' in"), (without, "wants TLS, and no client prop")):
        refused = ForeignTarget(tmp_path / sentence[-4:], stack, {}, {}, NothingToUndo())
        try:
            with pytest.raises(EnvironmentFault, match=sentence):
                refused.start()
            project = refused.project.name
        finally:
            refused.stop()
        assert not left_of(engine, project)


def test_a_spelling_names_one_pattern_and_one_file_of_properties(tmp_path: Path) -> None:
    for words in ("#a-*#b-*", "#client=a#client=b"):
        with pytest.raises(UsageError, match="and once each #PATTERN and #client=FILE"):
            read_stack(f"{tmp_path}/stack.yml{words}")
    with pytest.raises(UsageError, match=r"client\.properties"):
        read_stack(f"{tmp_path}/stack.yml#client={tmp_path}/client.properties")

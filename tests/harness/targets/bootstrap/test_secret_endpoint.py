"""The URL of a token endpoint may have a password in it, and stands nowhere."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from harness.client_properties import Access
from harness.clients.librdkafka import close_log, configuration, file_log
from harness.property_file import read_properties
from harness.targets.bootstrap.unreachable import unreachable

URL = "http://client:hunter2@127.0.0.1:1/token"
PROPERTIES = f"""\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.method=oidc
sasl.oauthbearer.client.id=alice
sasl.oauthbearer.client.secret=another
sasl.oauthbearer.token.endpoint.url={URL}
"""


@pytest.fixture
def access(tmp_path: Path) -> Access:
    path = tmp_path / "client.properties"
    path.write_text(PROPERTIES)
    return Access("127.0.0.1:1", read_properties(path))


def test_the_error_names_the_file_instead(access: Access) -> None:
    token = KafkaError(KafkaError._AUTHENTICATION, f"Failed to acquire SASL OAUTHBEARER token: {URL} is away")
    said = str(unreachable(access, [token], "", 1))
    assert "client.properties names gives the client no token: (secret) is away." in said
    for heard in ([], [KafkaError(KafkaError._TRANSPORT, f"{URL} is away")]):
        said += str(unreachable(access, heard, f"{URL} is away", 1))
    assert "hunter2" not in said


def test_the_log_of_clients_has_the_line_without_it(access: Access, tmp_path: Path) -> None:
    path = tmp_path / "clients.log"
    log = file_log(path, tmp_path.name)
    try:
        producer = Producer(configuration(access, "client", log))
        until_s = time.monotonic() + 30
        while not (path.exists() and "OIDC token from" in path.read_text()):
            assert time.monotonic() < until_s
            producer.poll(0.1)
    finally:
        close_log(log)
    assert 'Failed to retrieve OIDC token from "(secret)"' in path.read_text()
    assert "hunter2" not in path.read_text()

"""Client properties from a file: what is read, what is refused in one sentence, and what never shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.client_properties import ClientProperties, Secret
from harness.clients.java.security import security as of_java
from harness.clients.kafka_python.security import security as of_kafka_python
from harness.errors import UsageError
from harness.property_file import read_properties

SASL = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=alice\n"
OIDC = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.method=oidc\n"
TOKENS = OIDC.replace("sasl.oauthbearer.method=oidc", "enable.sasl.oauthbearer.unsecure.jwt=true")
TLS = "security.protocol=SSL\n"
HIDDEN = "hunter-2"


def written(directory: Path, text: str) -> Path:
    for name in ("ca.pem", "cert.pem", "store.p12"):
        (directory / name).write_text("-----BEGIN CERTIFICATE-----\n")
    (directory / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    (directory / "old.pem").write_text("-----BEGIN EC PRIVATE KEY-----\n")
    path = directory / "client.properties"
    path.write_text(text)
    return path


def properties(directory: Path, text: str) -> ClientProperties:
    return read_properties(written(directory, text))


def test_secrets_come_from_the_file_the_environment_or_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIED", HIDDEN)
    (tmp_path / "secret").write_text(f"{HIDDEN}\n")
    for value in (HIDDEN, "${env:TRIED}", "${file:secret}", f"${{file:{tmp_path}/secret}}"):
        read = properties(tmp_path, f"# of ours\n! too\n\n{SASL} sasl.password = {value} \n")
        assert read.values["sasl.password"] == HIDDEN
        assert HIDDEN not in repr(read)
        assert read.recorded()["sasl.password"] is None
        assert read.recorded()["sasl.username"] == "alice"


def test_what_is_written_elsewhere_is_secret_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIED", "alice")
    read = properties(tmp_path, SASL.replace("alice", "${env:TRIED}") + "sasl.password=x")
    assert read.values["sasl.username"] == "alice"
    assert read.recorded()["sasl.username"] is None


def test_paths_are_relative_to_the_file_and_recorded(tmp_path: Path) -> None:
    read = properties(tmp_path, "security.protocol=SSL\nssl.ca.location=ca.pem")
    assert read.recorded() == {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")}
    assert not isinstance(read.values["ssl.ca.location"], Secret)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nothing", "line 1: it is not key=value"),
        (f"{HIDDEN}=", "line 1: it is not key=value"),
        ("sasl.pasword=x", r"line 1: sasl\.pasword is no property .* did you mean 'sasl.password'\?"),
        *(
            (f"{name}=1", rf"line 1: {name} is seawall's to set, for it decides what is judged")
            for name in ("acks", "enable.idempotence", "group.id", "isolation.level", "transactional.id", "client.id")
        ),
        ("bootstrap.servers=h:1", "bootstrap.servers is seawall's to set"),
        ("ssl.truststore.location=/x", r"is of Java clients\. Write ssl\.ca\.location"),
        (TLS * 2, "line 2: security.protocol is set twice"),
        ("security.protocol=ssl", "security.protocol is ssl, and none of PLAINTEXT, SSL"),
        (f"{TLS}ssl.ca.location=", "the value of ssl.ca.location is empty"),
        (f"{TLS}ssl.ca.location=none.pem", "none.pem', which cannot be read: No such file"),
        ("ssl.ca.location=ca.pem", "ssl.ca.location is set, and security.protocol is PLAINTEXT, which has no TLS"),
        (f"{TLS}sasl.mechanism=PLAIN", "sasl.mechanism is set, and security.protocol is SSL, which has no SASL"),
        (f"{TLS}ssl.certificate.location=cert.pem", "certificate.location is set, and ssl.key.location is not"),
        (f"{TLS}ssl.key.password={HIDDEN}", "ssl.key.password is set, and ssl.key.location is not"),
        (
            f"{TLS}ssl.certificate.location=cert.pem\nssl.key.location=key.pem\nssl.keystore.location=store.p12",
            "and a client has one key",
        ),
        ("security.protocol=SASL_SSL", "security.protocol is SASL_SSL, and sasl.mechanism is not set"),
        (SASL, "sasl.mechanism is PLAIN, and sasl.password is not set"),
        (SASL.replace("PLAIN\n", "GSSAPI\n"), "sasl.mechanism is GSSAPI, and none of PLAIN, SCRAM-SHA-256"),
        (f"{SASL}sasl.password=${{env:NOT_SET}}", "the environment variable NOT_SET, which is not set"),
        (f"{SASL}sasl.password=${{file:nowhere}}", "is to come from 'nowhere': No such file"),
        (f"{SASL}sasl.password={HIDDEN}\nsasl.oauthbearer.scope=x", "PLAIN, which has no tokens"),
        (f"{OIDC}sasl.password={HIDDEN}", "OAUTHBEARER, which has tokens instead"),
        (OIDC, "neither enable.sasl.oauthbearer.unsecure.jwt nor sasl.oauthbearer.client.id is set"),
        (f"{OIDC}enable.sasl.oauthbearer.unsecure.jwt=true", "method is set, and enable.*unsecure.jwt is, too"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_without_a_secret(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence) as refused:
        properties(tmp_path, text)
    assert HIDDEN not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"client properties '.*nowhere' cannot be read: No such file"):
        read_properties(tmp_path / "nowhere")


def test_java_is_told_a_password_with_any_characters(tmp_path: Path) -> None:
    told = of_java(properties(tmp_path, f'{SASL}sasl.password={HIDDEN}"\\'))
    assert told["sasl.jaas.config"].endswith(rf'required username="alice" password="{HIDDEN}\"\\";')
    assert HIDDEN not in repr(told)


@pytest.mark.parametrize(
    ("text", "translate", "sentence"),
    [
        (f"{TLS}ssl.certificate.location=cert.pem\nssl.key.location=old.pem", of_java, "which is not in PKCS#8"),
        (f"{TLS}ssl.keystore.location=store.p12", of_kafka_python, "kafka-python reads no keystore"),
        (TOKENS, of_java, "which seawall has for librdkafka alone"),
        (TOKENS, of_kafka_python, "which seawall has for librdkafka alone"),
    ],
)
def test_a_library_that_cannot_have_them_is_refused(
    text: str, translate: Callable[[ClientProperties], object], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        translate(properties(tmp_path, text))

"""Client properties as Apache Kafka's own client has them, which reads keys and certificates as PEM since 2.7."""

from __future__ import annotations

from pathlib import Path

from harness.client_properties import (
    CA,
    CERTIFICATE,
    KEY,
    KEY_PASSWORD,
    KEYSTORE,
    KEYSTORE_PASSWORD,
    MECHANISM,
    OAUTHBEARER,
    PASSWORD,
    PROTOCOL,
    USERNAME,
    ClientProperties,
    Secret,
)
from harness.documents import Unfit, text
from harness.errors import UsageError

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PKCS8 = ("-----BEGIN PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----")


def security(properties: ClientProperties) -> dict[str, str]:
    """``properties`` as settings of the Java client; it takes secrets on its standard input, like all that it is asked.

    Raises:
        UsageError: it cannot have them, or a file of keys cannot be read any more.
    """
    if properties == ClientProperties():
        return {}
    if properties.mechanism == OAUTHBEARER:
        raise UsageError(
            f"{properties.path}: {MECHANISM} is {OAUTHBEARER}, which seawall has for librdkafka alone.",
            "Leave workload.client out.",
        )
    given = properties.values
    settings = {PROTOCOL: properties.protocol}
    if properties.has_tls:
        settings["ssl.endpoint.identification.algorithm"] = "https" if properties.checks_names else ""
    if CA in given:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _pem(properties, CA)}
    if KEY in given:
        settings |= _key(properties)
    if KEYSTORE in given:
        settings |= {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": given[KEYSTORE]}
        settings |= {KEYSTORE_PASSWORD: given[KEYSTORE_PASSWORD]} if KEYSTORE_PASSWORD in given else {}
    if properties.mechanism is not None:
        module = _MODULES[properties.mechanism]
        login = f"{module} required username={_quoted(given[USERNAME])} password={_quoted(given[PASSWORD])};"
        settings |= {MECHANISM: properties.mechanism, "sasl.jaas.config": Secret(login)}
    return settings


def _key(properties: ClientProperties) -> dict[str, str]:
    given = properties.values
    key = _pem(properties, KEY)
    if not any(mark in key for mark in _PKCS8):
        raise UsageError(
            f"{properties.path}: {KEY} is {given[KEY]!r}, which is not in PKCS#8, the form that Java reads.",
            "Convert it: openssl pkcs8 -topk8 -in KEY -out NEW.",
        )
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": _pem(properties, CERTIFICATE),
    }
    return settings | ({KEY_PASSWORD: given[KEY_PASSWORD]} if KEY_PASSWORD in given else {})


def _pem(properties: ClientProperties, name: str) -> Secret:
    path = properties.values[name]
    try:
        return Secret(text(Path(path)))
    except (OSError, Unfit):
        raise UsageError(f"{properties.path}: {name} is {path!r}, which is not readable as PEM.") from None


def _quoted(word: str) -> str:
    """As JAAS reads it."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'

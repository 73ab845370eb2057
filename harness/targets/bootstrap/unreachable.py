"""Says in one sentence why a running cluster lets no client in: by librdkafka's word, or that of a TLS handshake."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Sequence

from confluent_kafka import KafkaError

from harness.client_properties import CA, CERTIFICATE, IDENTIFICATION, MECHANISM, PROTOCOL, TOKEN_URL, USERNAME, Access
from harness.errors import EnvironmentFault

_TIMEOUT_S = 3.0
_WHERE = re.compile(r"^\S+://(\S+?)/(bootstrap|\d+): ")
_WHEN = re.compile(r" \(after \d+ms in state \w+\)")
_ALERT = re.compile(r"alert .*certificate|certificate required")
_EXPIRED, _OTHER_NAMES = 10, (62, 64)
"""Codes of OpenSSL, as ``X509_V_ERR_HOSTNAME_MISMATCH``."""

_NO_TOKEN = re.compile(r"Failed to acquire SASL OAUTHBEARER token: (.*)", re.DOTALL)

DECISIVE = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})  # noqa: SLF001 (librdkafka's own codes)
"""Errors that do not go away by themselves."""


def unreachable(access: Access, heard: Sequence[KafkaError], refusal: object, waited_s: float) -> EnvironmentFault:
    """The error of a cluster whose brokers do not answer.

    Args:
        access: to it.
        heard: what librdkafka has said since, the oldest first.
        refusal: what it has said of the question.
        waited_s: for an answer, at the most.
    """
    hidden_in = access.properties.hidden_in
    said = [(one.code(), _WHEN.sub("", _WHERE.sub("", hidden_in(one.str()))).rstrip(".")) for one in heard]
    given, path = access.properties.values, access.properties.path
    for code, text in said:
        if code == KafkaError._AUTHENTICATION and (token := _NO_TOKEN.fullmatch(text)) is not None:  # noqa: SLF001
            return EnvironmentFault(
                f"the token endpoint that {path} names gives the client no token: {token[1]}.",
                f"Check {TOKEN_URL} there, and the client's id and secret.",
            )
        if code == KafkaError._AUTHENTICATION:  # noqa: SLF001
            user = f"user {given[USERNAME]!r}" if USERNAME in access.properties.recorded() else "client"
            return EnvironmentFault(
                f"the cluster at {access.bootstrap} does not let the {user} in ({given.get(MECHANISM)}): {text}.",
                f"Check {path}.",
            )
    if any(code == KafkaError._SSL for code, _ in said) and access.properties.has_tls:  # noqa: SLF001
        for address in access.bootstrap.split(","):
            if (problem := _of_certificate(address, access)) is not None:
                return problem
    decisive = next((text for code, text in reversed(said) if code in DECISIVE), None)
    if decisive is not None:
        return EnvironmentFault(
            f"the cluster at {access.bootstrap} and this client have not agreed on TLS: {decisive}.", f"Check {path}."
        )
    heard_of = [text for code, text in said if code != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001
    if any(_ALERT.search(text) for text in heard_of):
        return EnvironmentFault(
            f"the cluster at {access.bootstrap} refuses the client's certificate, or that it has none: {heard_of[-1]}.",
            f"Check {CERTIFICATE} in {path}.",
        )
    last = heard_of[-1] if heard_of else hidden_in(str(refusal)).rstrip(".")
    return EnvironmentFault(
        f"no broker answers at {access.bootstrap} within {waited_s:g} s: {last}.",
        f"Check the addresses, and that their listeners are of {PROTOCOL}={access.properties.protocol}.",
    )


def _of_certificate(address: str, access: Access) -> EnvironmentFault | None:
    """What is wrong with the certificate that is shown there; None: nothing, or no certificate is."""
    host, _, port = address.rpartition(":")
    host, path = host.strip("[]"), access.properties.path
    context = ssl.create_default_context(cafile=access.properties.values.get(CA))
    context.check_hostname = access.properties.checks_names
    try:
        with socket.create_connection((host, int(port)), _TIMEOUT_S) as plain:
            context.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLCertVerificationError as refused:
        if refused.verify_code == _EXPIRED:
            return EnvironmentFault(f"the certificate of the broker at {address} has expired.", "Renew it there.")
        if refused.verify_code in _OTHER_NAMES:
            return EnvironmentFault(
                f"the certificate of the broker at {address} is not one for {host!r}.",
                f"Use a name that is in it, or set {IDENTIFICATION}=none in {path}.",
            )
        return EnvironmentFault(
            f"the certificate of the broker at {address} is of no authority that {_known(access)}: "
            f"{refused.verify_message}.",
            f"Set {CA} in {path}.",
        )
    except OSError:
        return None
    return None


def _known(access: Access) -> str:
    ca = access.properties.values.get(CA)
    return "this machine trusts" if ca is None else f"is in {ca}"

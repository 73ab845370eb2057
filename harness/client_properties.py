"""Client properties: what a Kafka client is given, besides addresses, to reach a cluster with TLS, SASL, or both.

They have librdkafka's names. What is secret is a :class:`Secret`, which no representation shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UsageError

OAUTHBEARER = "OAUTHBEARER"
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

CA, CERTIFICATE, KEY, KEYSTORE = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
)
KEY_PASSWORD, KEYSTORE_PASSWORD = "ssl.key.password", "ssl.keystore.password"
IDENTIFICATION = "ssl.endpoint.identification.algorithm"
PROTOCOL, MECHANISM, USERNAME, PASSWORD = "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"
METHOD, TOKEN_URL = "sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url"
OIDC_CLIENT, OIDC_SECRET = "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"
OIDC_SCOPE, OIDC_EXTENSIONS = "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions"
UNSECURED, UNSECURED_CLAIMS = "enable.sasl.oauthbearer.unsecure.jwt", "sasl.oauthbearer.config"

FILES = (CA, CERTIFICATE, KEY, KEYSTORE)
"""The properties whose values are paths of files."""

SHOWN = frozenset({PROTOCOL, MECHANISM, USERNAME, METHOD, OIDC_CLIENT, OIDC_SCOPE, UNSECURED, IDENTIFICATION, *FILES})
"""The properties whose values may be written down; those of all others are secret."""

KNOWN = (
    *(PROTOCOL, CA, IDENTIFICATION, CERTIFICATE, KEY, KEY_PASSWORD, KEYSTORE, KEYSTORE_PASSWORD),
    *(MECHANISM, USERNAME, PASSWORD),
    *(METHOD, OIDC_CLIENT, OIDC_SECRET, TOKEN_URL, OIDC_SCOPE, OIDC_EXTENSIONS, UNSECURED, UNSECURED_CLAIMS),
)

_NEEDED_BY_OIDC = (METHOD, OIDC_CLIENT, OIDC_SECRET, TOKEN_URL)
_OF_OIDC = (*_NEEDED_BY_OIDC, OIDC_SCOPE, OIDC_EXTENSIONS)
_OF_TOKENS = (*_OF_OIDC, UNSECURED, UNSECURED_CLAIMS)
_NEEDS = {
    KEY_PASSWORD: KEY,
    KEYSTORE_PASSWORD: KEYSTORE,
    CERTIFICATE: KEY,
    KEY: CERTIFICATE,
    UNSECURED_CLAIMS: UNSECURED,
}
_CHOICES = {
    PROTOCOL: PROTOCOLS,
    MECHANISM: (*PASSWORD_MECHANISMS, OAUTHBEARER),
    IDENTIFICATION: ("https", "none"),
    METHOD: ("oidc",),
    UNSECURED: ("true",),
}


class Secret(str):
    """A text that ``repr``, and so a traceback or a failed assertion, does not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        """What stands for it."""
        return "(secret)"


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """The security of a client's connections.

    Attributes:
        values: by librdkafka's names, all of them in ``KNOWN``; secrets are :class:`Secret`.
        path: of the file that they are from; None: there is none.

    Raises:
        UsageError: they contradict each other, or one lacks another.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None

    def __post_init__(self) -> None:
        """See Raises."""
        for problem in self._problems():
            raise UsageError(f"{self.path}: {problem}.")

    @property
    def protocol(self) -> str:
        """One of ``PROTOCOLS``; Kafka's default is PLAINTEXT."""
        return self.values.get(PROTOCOL, "PLAINTEXT")

    @property
    def mechanism(self) -> str | None:
        """Of SASL; None: there is no SASL."""
        return self.values.get(MECHANISM)

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def checks_names(self) -> bool:
        """Whether the name of a broker must be in its certificate."""
        return self.values.get(IDENTIFICATION, "https") == "https"

    def recorded(self) -> dict[str, str | None]:
        """By name what may be written down; None: it is secret."""
        return {name: None if isinstance(value, Secret) else value for name, value in self.values.items()}

    def hidden_in(self, text: str) -> str:
        """The same text, with something else in the place of every secret in it."""
        secrets = [value for value in self.values.values() if isinstance(value, Secret)]
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, repr(secret))
        return text

    def _problems(self) -> Iterator[str]:
        for name, choices in _CHOICES.items():
            if name in self.values and self.values[name] not in choices:
                shown = self.recorded()[name] or "a secret"
                yield f"{name} is {shown}, and none of {', '.join(choices)}"
        if self.protocol.startswith("SASL") and self.mechanism is None:
            yield f"{PROTOCOL} is {self.protocol}, and {MECHANISM} is not set"
        for name in self.values:
            for holds, why in self._against(name):
                if holds:
                    yield f"{name} is set, and {why}"
        if KEYSTORE in self.values and KEY in self.values:
            yield f"{KEYSTORE} and {KEY} are set, and a client has one key"
        yield from self._missing()

    def _against(self, name: str) -> Iterator[tuple[bool, str]]:
        """What may speak against a property that is set, each with whether it does."""
        tokens = self.mechanism == OAUTHBEARER
        yield name.startswith("ssl.") and not self.has_tls, f"{PROTOCOL} is {self.protocol}, which has no TLS"
        has_sasl = self.protocol.startswith("SASL")
        yield "sasl." in name and not has_sasl, f"{PROTOCOL} is {self.protocol}, which has no SASL"
        yield name in _NEEDS and _NEEDS[name] not in self.values, f"{_NEEDS.get(name)} is not"
        yield name in _OF_TOKENS and not tokens, f"{MECHANISM} is {self.mechanism}, which has no tokens"
        yield name in {USERNAME, PASSWORD} and tokens, f"{MECHANISM} is {OAUTHBEARER}, which has tokens instead"
        yield name in _OF_OIDC and UNSECURED in self.values, f"{UNSECURED} is, too"

    def _missing(self) -> Iterator[str]:
        if self.mechanism in PASSWORD_MECHANISMS:
            for name in (USERNAME, PASSWORD):
                if name not in self.values:
                    yield f"{MECHANISM} is {self.mechanism}, and {name} is not set"
        if self.mechanism == OAUTHBEARER and UNSECURED not in self.values:
            for name in _NEEDED_BY_OIDC:
                if name not in self.values:
                    yield f"{MECHANISM} is {OAUTHBEARER}, and neither {UNSECURED} nor {name} is set"


PLAINTEXT = ClientProperties()
"""Neither TLS nor SASL."""


@dataclass(frozen=True, slots=True)
class Access:
    """How clients reach a cluster.

    Attributes:
        bootstrap: ``host:port,...``.
        properties: of each connection.
    """

    bootstrap: str
    properties: ClientProperties = PLAINTEXT

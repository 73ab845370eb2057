"""Client properties as kafka-python has them, which speaks TLS by Python's own ``ssl``."""

from __future__ import annotations

from typing import Any

from harness.client_properties import (
    CA,
    CERTIFICATE,
    KEY,
    KEY_PASSWORD,
    KEYSTORE,
    MECHANISM,
    OAUTHBEARER,
    PASSWORD,
    USERNAME,
    ClientProperties,
)
from harness.errors import UsageError

_NAMES = {
    CA: "ssl_cafile",
    CERTIFICATE: "ssl_certfile",
    KEY: "ssl_keyfile",
    KEY_PASSWORD: "ssl_password",
    MECHANISM: "sasl_mechanism",
    USERNAME: "sasl_plain_username",
    PASSWORD: "sasl_plain_password",
}


def security(properties: ClientProperties) -> dict[str, Any]:
    """``properties`` as settings of kafka-python.

    Raises:
        UsageError: it cannot have them.
    """
    if KEYSTORE in properties.values:
        raise UsageError(
            f"{properties.path}: {KEYSTORE} is set, and kafka-python reads no keystore.",
            f"Write {CERTIFICATE} and {KEY}.",
        )
    if properties.mechanism == OAUTHBEARER:
        raise UsageError(
            f"{properties.path}: {MECHANISM} is {OAUTHBEARER}, which seawall has for librdkafka alone.",
            "Leave workload.client out.",
        )
    own = {_NAMES[name]: value for name, value in properties.values.items() if name in _NAMES}
    return {"security_protocol": properties.protocol, "ssl_check_hostname": properties.checks_names, **own}

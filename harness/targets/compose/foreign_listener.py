"""Finds out why a broker of another make answers no client: its listener wants TLS, or a password."""

from __future__ import annotations

import socket
import ssl
import struct

from harness.targets.addresses import Address

_TIMEOUT_S = 1.0
_MECHANISM = b"PLAIN"
_HANDSHAKE = struct.pack(">hhih", 17, 0, 0, -1) + struct.pack(">h", len(_MECHANISM)) + _MECHANISM
"""A SaslHandshake request, version 0, with no client id. Kafka's listener without SASL offers no mechanism."""

_METADATA = struct.pack(">hhihi", 3, 1, 0, -1, -1)
"""A Metadata request, version 1, about all topics. A listener that wants SASL first ends the connection for it."""

_OFFERED = struct.Struct(">ihi")
"""What its answer begins with: correlation id, error code, and how many mechanisms are offered."""

_OTHER_PROTOCOL = ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""What OpenSSL says of an answer that is none of TLS."""


def wants(address: Address) -> str:
    """What the listener at ``address`` wants of clients beyond plain text; empty: nothing that it would tell."""
    if speaks_tls(address, _TIMEOUT_S):
        return "TLS"
    return "SASL" if _offers_mechanisms(address) and _hangs_up_on_metadata(address) else ""


def speaks_tls(address: Address, timeout_s: float) -> bool:
    """Whether it answers a TLS handshake, be it with a refusal."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(address, timeout_s) as plain:
            context.wrap_socket(plain).close()
    except ssl.SSLError as refused:
        return refused.reason is not None and refused.reason not in _OTHER_PROTOCOL
    except OSError:
        return False
    return True


def _offers_mechanisms(address: Address) -> bool:
    try:
        with socket.create_connection(address, _TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(_HANDSHAKE)) + _HANDSHAKE)
            with connection.makefile("rb") as answer:
                answer.read(4)  # its length
                correlation, _, offered = _OFFERED.unpack(answer.read(_OFFERED.size))
    except (OSError, struct.error):
        return False
    return bool(correlation == 0 and offered > 0)


def _hangs_up_on_metadata(address: Address) -> bool:
    """Whether it ends the connection of a client that asks before it has authenticated.

    Brokers of some makes name mechanisms to any client, and answer this one.
    """
    try:
        with socket.create_connection(address, _TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(_METADATA)) + _METADATA)
            return connection.recv(4) == b""
    except ConnectionResetError:
        return True
    except OSError:
        return False

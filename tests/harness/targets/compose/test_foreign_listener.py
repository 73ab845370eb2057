"""What a listener that answers no client wants of it; the listeners are sockets of this process."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from harness.targets.addresses import Address
from harness.targets.compose.foreign_listener import wants

Answer = Callable[[socket.socket], object]


@contextmanager
def listener(answer: Answer) -> Iterator[Address]:
    """Where each connection gets this answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=_serve, args=(server, answer))
        serving.start()
        try:
            yield server.getsockname()
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(server: socket.socket, answer: Answer) -> None:
    with suppress(OSError):  # it is shut down in the end
        while True:
            with closing(server.accept()[0]) as connection, suppress(OSError):
                connection.settimeout(5.0)
                answer(connection)


def handshaken(offered: int) -> Answer:
    """What Kafka answers a SaslHandshake, and nothing else, with."""

    def answer(connection: socket.socket) -> None:
        (size,) = struct.unpack(">i", connection.recv(4))
        if size > 1000:
            return
        api_key, _, correlation = struct.unpack(">hhi", connection.recv(size)[:8])
        if api_key == 17:
            body = struct.pack(">ihi", correlation, 33 if offered else 34, offered)
            connection.sendall(struct.pack(">i", len(body)) + body)

    return answer


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not on this machine")
    directory = tmp_path_factory.mktemp("tls")
    words = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=broker", "-days", "2")
    subprocess.run((*words, "-keyout", "both.pem", "-out", "cert.pem"), cwd=directory, check=True, capture_output=True)
    with (directory / "both.pem").open("a") as both:
        both.write((directory / "cert.pem").read_text())
    return directory / "both.pem"


@pytest.mark.parametrize("of_clients", [ssl.CERT_NONE, ssl.CERT_REQUIRED])
def test_a_listener_of_tls_is_known_whether_it_wants_a_certificate_or_not(
    certificate: Path, of_clients: ssl.VerifyMode
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = of_clients
    with listener(lambda connection: context.wrap_socket(connection, server_side=True).close()) as address:
        assert wants(address) == "TLS"


@pytest.mark.parametrize(("offered", "wanted"), [(1, "SASL"), (0, "")])
def test_a_listener_that_offers_mechanisms_wants_a_password(offered: int, wanted: str) -> None:
    with listener(handshaken(offered)) as address:
        assert wants(address) == wanted


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["nothing", "http"])
def test_a_listener_of_another_protocol_and_one_that_only_closes_want_nothing_that_is_known(said: bytes) -> None:
    with listener(lambda connection: connection.sendall(said)) as address:
        assert wants(address) == ""


def test_where_nothing_listens_nothing_is_wanted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    assert wants(address) == ""


def test_a_listener_that_offers_mechanisms_and_answers_all_the_same_wants_nothing() -> None:
    offering = handshaken(2)

    def answer(connection: socket.socket) -> None:
        if struct.unpack(">i", connection.recv(4, socket.MSG_PEEK))[0] < 1000:
            api_key = struct.unpack(">ih", connection.recv(6, socket.MSG_PEEK))[1]
            if api_key == 3:
                connection.sendall(struct.pack(">i", 4) + connection.recv(12)[-4:])
            else:
                offering(connection)

    with listener(answer) as address:
        assert wants(address) == ""

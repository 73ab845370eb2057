"""A server that gives clients tokens without a signature (OAuth 2.0 client credentials: RFC 6749, 4.4)."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class TokenServer(ThreadingHTTPServer):
    """Gives a token to each client that knows the secret, and refuses others with 401.

    Attributes:
        secret: of every client.
        lifetime_s: after how many seconds a token expires.
        issued: how many tokens it has given.
        last: the last of them.
    """

    def __init__(self, secret: str, lifetime_s: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.secret = secret
        self.lifetime_s = lifetime_s
        self.issued = 0
        self.last = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/token"

    def token(self, client: str) -> str:
        now = int(time.time())
        claims = {"sub": client, "iat": now, "exp": now + self.lifetime_s, "number": self.issued}
        self.issued += 1
        self.last = f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
        return self.last


class _Handler(BaseHTTPRequestHandler):
    server: TokenServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        client, _, secret = (
            base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode().partition(":")
        )
        known = secret == self.server.secret
        answer = (
            {"access_token": self.server.token(client), "token_type": "Bearer"}
            if known
            else {"error": "invalid_client"}
        )
        body = json.dumps(answer).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _encoded(part: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


@contextmanager
def token_server(secret: str, lifetime_s: int) -> Iterator[TokenServer]:
    """Serve in a thread until the end."""
    with TokenServer(secret, lifetime_s) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()

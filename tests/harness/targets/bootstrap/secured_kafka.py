"""One broker of real Kafka with a listener for each way to be secured, and certificates made for it by openssl."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from harness.java import find_java
from harness.targets.kafka.jvm import LOG4J_2
from tests.harness.targets.contract import fetched_or_skip

RELEASE = "4.3.0"
PASSWORD = 'h42 "quoted\\" pass-word'
"""Of the user ``alice``, by any mechanism: with what Java has to be told in another way."""

PREFIX = "team-"
USERS = ("alice", "bob", "carol", "dave")
RIGHTS = (
    *((ResourceType.TOPIC, one) for one in ("CREATE", "DELETE", "READ", "WRITE")),
    (ResourceType.GROUP, "READ"),
    (ResourceType.TRANSACTIONAL_ID, "WRITE"),
)
"""What docs/targets.md says is enough."""

LISTENERS = ("PLAIN", "TLS", "MUTUAL", "SCRAM", "PASSWORD", "TOKENS", "EXPIRED", "ELSEWHERE")
_STARTS_S = 90.0


class Certificates:
    """A certificate authority, and what it has signed, as PEM in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        for name in ("ca", "other-ca"):
            words = ("req", "-x509", *_NEW_KEY, "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem")
            self._openssl(*words, "-subj", f"/CN={name}", "-days", "2")
        self._signed("server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        self._signed("elsewhere", "subjectAltName=DNS:kafka.example")
        self._signed("expired", "subjectAltName=DNS:localhost,IP:127.0.0.1", days=-1)
        self._signed("alice", "extendedKeyUsage=clientAuth")
        for name in ("server", "elsewhere", "expired"):
            whole = self.path(f"{name}.key").read_text() + self.path(f"{name}.pem").read_text()
            self.path(f"{name}.both").write_text(whole)
        secret = ("-passout", f"pass:{PASSWORD}")
        to_lock = ("-topk8", "-v1", "PBE-SHA1-3DES", "-in", "alice.key", "-out", "alice.locked")
        self._openssl("pkcs8", *to_lock, *secret)
        to_store = ("-export", "-in", "alice.pem", "-inkey", "alice.key", "-out", "alice.p12")
        self._openssl("pkcs12", *to_store, *secret)

    def path(self, name: str) -> Path:
        return self.directory / name

    def _signed(self, name: str, extension: str, days: int = 2) -> None:
        self.path(f"{name}.ext").write_text(extension)
        self._openssl(
            "req", *_NEW_KEY, "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"
        )
        words = ("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        self._openssl(*words, "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem")

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.directory, check=True, capture_output=True)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


class SecuredKafka:
    """The broker; each listener is at a port of 127.0.0.1.

    Attributes:
        certificates: of it and of ``alice``, who has the rights that are needed; the others of ``USERS`` have none.
        start: the shell command that starts it, and writes its process id into ``pid_file``.
    """

    def __init__(self, certificates: Certificates, ports: dict[str, int], start: str, pid_file: Path) -> None:
        self.certificates = certificates
        self.start = start
        self.pid_file = pid_file
        self._ports = ports

    def port(self, listener: str) -> int:
        return self._ports[listener]

    def pid(self) -> int:
        return int(self.pid_file.read_text())

    def bootstrap(self, listener: str) -> str:
        return f"127.0.0.1:{self.port(listener)}"

    def admin(self) -> AdminClient:
        """Of a user who may do everything."""
        return AdminClient({"bootstrap.servers": self.bootstrap("PLAIN")})

    def allow(self, user: str, prefix: str, rights: Sequence[tuple[ResourceType, str]] = RIGHTS) -> None:
        bindings = [
            AclBinding(
                *(kind, prefix, ResourcePatternType.PREFIXED, f"User:{user}", "*"),
                *(AclOperation[right], AclPermissionType.ALLOW),
            )
            for kind, right in rights
        ]
        admin = self.admin()
        for answer in admin.create_acls(bindings).values():
            answer.result(30)

    def allow_to_describe(self, user: str) -> None:
        """Let a user read the brokers' settings."""
        of_cluster = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL)
        right = (AclOperation.DESCRIBE_CONFIGS, AclPermissionType.ALLOW)
        admin = self.admin()
        [answer] = admin.create_acls([AclBinding(*of_cluster, f"User:{user}", "*", *right)]).values()
        answer.result(30)

    def forbid(self, user: str, prefix: str) -> None:
        """Take away what :meth:`allow` has given."""
        filters = [
            AclBindingFilter(
                *(kind, prefix, ResourcePatternType.PREFIXED, f"User:{user}", "*"),
                *(AclOperation[right], AclPermissionType.ALLOW),
            )
            for kind, right in RIGHTS
        ]
        admin = self.admin()
        for answer in admin.delete_acls(filters).values():
            answer.result(30)


@contextmanager
def secured_kafka(directory: Path) -> Iterator[SecuredKafka]:
    """Start the broker, and end it."""
    certificates = Certificates(directory / "certificates")
    classpath = fetched_or_skip(RELEASE).classpath
    ports = dict(zip((*LISTENERS, "CONTROLLER"), _free_ports(len(LISTENERS) + 1), strict=True))
    properties = directory / "server.properties"
    properties.write_text("\n".join(_lines(directory, certificates, ports)))
    logging = directory / "log4j2.properties"
    logging.write_text(LOG4J_2)
    java = [
        find_java("Kafka", ""),
        "-Xmx384m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={logging}",
        "-cp",
    ]
    java.append(classpath)
    users = [f"SCRAM-SHA-{size}=[name={name},password={PASSWORD}]" for size in (256, 512) for name in USERS]
    added = [word for one in users for word in ("--add-scram", one)]
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties)]
    done = subprocess.run([*formatting, "--standalone", *added], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    log, pid_file = directory / "server.log", directory / "pid"
    broker = shlex.join([*java, "kafka.Kafka", str(properties)])
    start = f"nohup {broker} >>{log} 2>&1 </dev/null & echo $! >{pid_file}"
    kafka = SecuredKafka(certificates, ports, start, pid_file)
    subprocess.run(start, shell=True, check=True)
    try:
        _await(kafka, log)
        for name in ("alice", "CN=alice"):
            kafka.allow(name, PREFIX)
        yield kafka
    finally:
        with suppress(ProcessLookupError):
            os.kill(kafka.pid(), signal.SIGKILL)


def _lines(directory: Path, certificates: Certificates, ports: dict[str, int]) -> Iterator[str]:
    spoken = dict.fromkeys(LISTENERS, "SASL_SSL") | {"PLAIN": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    spoken |= dict.fromkeys(("TLS", "MUTUAL", "EXPIRED", "ELSEWHERE"), "SSL")
    served = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    yield "process.roles=broker,controller\nnode.id=0"
    yield f"controller.quorum.bootstrap.servers=127.0.0.1:{ports['CONTROLLER']}"
    yield f"log.dirs={directory / 'data'}\nlisteners={served}\ncontroller.listener.names=CONTROLLER"
    yield f"listener.security.protocol.map={','.join(f'{name}:{one}' for name, one in spoken.items())}"
    yield "inter.broker.listener.name=PLAIN"
    yield "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS"
    for setting in ("offsets.topic.replication.factor", "transaction.state.log.replication.factor"):
        yield f"{setting}=1"
    yield "transaction.state.log.min.isr=1\noffsets.topic.num.partitions=4\ntransaction.state.log.num.partitions=4"
    yield "share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1"
    yield "group.initial.rebalance.delay.ms=0"
    yield f"ssl.truststore.type=PEM\nssl.truststore.location={certificates.path('ca.pem')}\nssl.keystore.type=PEM"
    yield f"ssl.keystore.location={certificates.path('server.both')}"
    for name in ("expired", "elsewhere"):
        yield f"listener.name.{name}.ssl.keystore.type=PEM"
        yield f"listener.name.{name}.ssl.keystore.location={certificates.path(f'{name}.both')}"
    yield "listener.name.mutual.ssl.client.auth=required"
    yield "listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512"
    package = "org.apache.kafka.common.security"
    for size in (256, 512):
        yield f"listener.name.scram.scram-sha-{size}.sasl.jaas.config={package}.scram.ScramLoginModule required;"
    yield "listener.name.password.sasl.enabled.mechanisms=PLAIN"
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    login = f'{package}.plain.PlainLoginModule required user_alice="{quoted}";'
    yield f"listener.name.password.plain.sasl.jaas.config={login}"
    yield "listener.name.tokens.sasl.enabled.mechanisms=OAUTHBEARER"
    yield f"listener.name.tokens.oauthbearer.sasl.jaas.config={package}.oauthbearer.OAuthBearerLoginModule required;"
    unsecured = f"{package}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    yield f"listener.name.tokens.oauthbearer.sasl.server.callback.handler.class={unsecured}"


def _free_ports(number: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [one.getsockname()[1] for one in sockets]


def _await(kafka: SecuredKafka, log: Path) -> None:
    deadline = time.monotonic() + _STARTS_S
    while not log.exists() or "Kafka Server started" not in log.read_text(errors="replace"):
        is_late = time.monotonic() > deadline
        assert Path(f"/proc/{kafka.pid()}").exists() and not is_late, log.read_text(errors="replace")[-3000:]  # noqa: PT018
        time.sleep(0.1)

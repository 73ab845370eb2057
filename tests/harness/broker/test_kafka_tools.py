"""Kafka's own command-line tools, those of Kafka 4.3.0, against a built-in cluster of real processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from harness import program
from harness.targets.kafka.fetching import Distribution, pom
from harness.targets.kafka.releases import release
from tests.harness.broker.cluster import Cluster, wait_until
from tests.harness.short_java import short_java
from tests.harness.targets.contract import fetched_or_skip

pytestmark = pytest.mark.nightly("starts a JVM for each command; by day other clients administer topics and groups")

RELEASE = "4.3.0"
TOOLS = "org.apache.kafka.tools."

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """The jars of Kafka's tools, which a release that Maven has fetched for its brokers lacks."""
    fetched = fetched_or_skip(RELEASE)  # so that a machine without Java skips first
    if (fetched.home / "libs" / f"kafka-tools-{RELEASE}.jar").is_file():
        return fetched
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"Kafka {RELEASE} has no kafka-tools in the cache, and there is no Maven (mvn) to get it")
    home = tmp_path_factory.mktemp("tools")
    wanted = release(RELEASE)
    more = replace(wanted.artifact, name="kafka-tools")
    (home / "pom.xml").write_text(pom(replace(wanted, family=replace(wanted.family, jars=(more,)))))
    words = (maven, "--batch-mode", "--quiet", "dependency:copy-dependencies", f"-DoutputDirectory={home / 'libs'}")
    done = program.run(words, 600.0, directory=home)
    assert done.returncode == 0, done.stdout + done.stderr
    return Distribution(wanted, home)


@pytest.fixture
def tool(tools: Distribution, cluster: Cluster) -> Tool:
    """Runs a tool with arguments, and standard input if any, and returns what it prints."""

    def run(name: str, arguments: str, given: str = "") -> str:
        main = name if "." in name and not name.startswith(("consumer.", "reassign.")) else TOOLS + name
        asked = [*short_java(tools), main, "--bootstrap-server", cluster.bootstrap, *arguments.split()]
        done = subprocess.run(asked, input=given, capture_output=True, text=True, timeout=180, check=False)
        return done.stdout + done.stderr

    return run


def test_they_administer_topics(tool: Tool, cluster: Cluster) -> None:
    configured = "--entity-type topics --entity-name tool"
    created = tool("TopicCommand", "--create --topic tool --partitions 1 --config cleanup.policy=compact")
    assert "Created topic tool." in created
    wait_until(lambda: "tool" in tool("TopicCommand", "--list").split(), "the topic to be listed")
    configs = "kafka.admin.ConfigCommand"
    assert "Completed" in tool(configs, f"--alter {configured} --add-config segment.ms=7000,flush.ms=3")
    assert "Completed" in tool(configs, f"--alter {configured} --delete-config flush.ms")
    described = tool(configs, f"--describe {configured}")
    assert "cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG" in described
    assert "segment.ms=7000" in described
    assert "flush.ms" not in described
    assert "Unknown topic config name: no.such" in tool(configs, f"--alter {configured} --add-config no.such=1")
    tool("TopicCommand", "--alter --topic tool --partitions 3")
    wait_until(lambda: "PartitionCount: 3" in tool("TopicCommand", "--describe --topic tool"), "the partitions")
    tool("TopicCommand", "--delete --topic tool")
    wait_until(lambda: "tool" not in tool("TopicCommand", "--list").split(), "the topic to be gone")
    for broker in cluster.ids:
        assert not list((cluster.directory / f"data-{broker}").glob("tool-*"))


def test_they_send_and_read_and_administer_groups(tool: Tool, cluster: Cluster) -> None:
    cluster.create_topic("lines")
    lines = [f"line-{number}" for number in range(20)]
    tool("ConsoleProducer", "--topic lines --command-property acks=all", given="\n".join(lines) + "\n")
    reading = "--topic lines --from-beginning --timeout-ms 10000 --max-messages 20 --group readers"
    read = tool("consumer.ConsoleConsumer", reading)
    assert [line for line in read.splitlines() if line.startswith("line-")] == lines
    groups = "consumer.group.ConsumerGroupCommand"
    assert "readers" in tool(groups, "--list").split()
    assert re.search(r"readers\s+Classic\s+consumer", tool("GroupsCommand", "--list"))
    assert re.search(r"readers\s+lines\s+0\s+20\s+20\s+0", tool(groups, "--describe --group readers"))
    assert re.search(r"readers .* Empty\s+0", tool(groups, "--describe --group readers --state"))
    reset = tool(groups, "--reset-offsets --group readers --topic lines --to-offset 5 --execute")
    assert re.search(r"readers\s+lines\s+0\s+5", reset)
    assert re.search(r"readers\s+lines\s+0\s+5\s+20\s+15", tool(groups, "--describe --group readers"))
    assert "Successful" in tool(groups, "--delete-offsets --group readers --topic lines")
    assert "successful" in tool(groups, "--delete --group readers")
    assert "readers" not in tool(groups, "--list").split()
    member = tool("VerifiableConsumer", "--topic lines --group-id kip848 --group-protocol consumer --max-messages 5")
    assert "partitions_assigned" in member
    assert re.search(r"kip848\s+Consumer\s+consumer", tool("GroupsCommand", "--list"))


def test_they_ask_for_offsets_and_delete_records(tool: Tool, cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("old")
    sent = tool("VerifiableProducer", "--topic old --max-messages 10 --acks -1")
    assert '"acked":10' in sent
    assert "old:0:10" in tool("GetOffsetShell", "--topic old")
    assert "old:0:9" in tool("GetOffsetShell", "--topic old --time -3")
    orders = tmp_path / "orders.json"
    orders.write_text(json.dumps({"partitions": [{"topic": "old", "partition": 0, "offset": 7}], "version": 1}))
    assert "low_watermark: 7" in tool("DeleteRecordsCommand", f"--offset-json-file {orders}")
    assert "old:0:7" in tool("GetOffsetShell", "--topic old --time -2")
    directories = json.loads(tool("LogDirsCommand", "--describe --topic-list old").splitlines()[-1])
    assert [one["broker"] for one in directories["brokers"]] == [0, 1, 2]
    assert "already elected" in tool("LeaderElectionCommand", "--election-type preferred --topic old --partition 0")


def test_they_look_into_transactions_and_end_one(tool: Tool, cluster: Cluster) -> None:
    cluster.create_topic("paid")
    asked = "--topic paid --num-records 50 --record-size 100 --throughput -1 --transactional-id done"
    assert "50 records sent" in tool("ProducerPerformance", f"{asked} --transaction-duration-ms 100")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "open"})
    producer.init_transactions(30.0)
    producer.begin_transaction()
    producer.produce("paid", b"never committed")
    producer.flush(30.0)
    transactions = "TransactionsCommand"
    listed = tool(transactions, "list")
    assert re.search(r"done\s.*CompleteCommit", listed)
    assert re.search(r"open\s.*Ongoing", listed)
    assert re.search(r"open\s.*Ongoing.*paid-0", tool(transactions, "describe --transactional-id open"))
    for broker in ("", " --broker-id 1", " --broker-id 2"):  # followers know the producers in their logs, too
        described = tool(transactions, f"describe-producers --topic paid --partition 0{broker}")
        assert len(re.findall(r"^\d+", described, re.MULTILINE)) == 2, described
        assert "Failed" not in tool(transactions, f"find-hanging{broker or ' --broker-id 0'}")
    ended = tool(transactions, "forceTerminateTransaction --transactionalId open")
    assert re.search(r"open\s.*Empty", tool(transactions, "list")), ended
    with pytest.raises(KafkaException, match="_FENCED"):
        producer.commit_transaction(30.0)
    del producer  # which closes it; a close of a fenced one raises

"""How many sends a second a cluster acknowledges under pipelined load and faults, and how soon the verdict is there.

``python tests/bench/load.py [TARGET ...] [--seconds S] [--rate R] [--calm] [--tap]``, on a machine that does nothing
else; ``make bench`` runs it on the built-in cluster. It runs ``random-chaos`` as a user would, and watches the
processes from outside. With ``--tap`` it measures each twice, without and with a wire tap, and prints the ratio.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import psutil
import pyarrow.compute as pc
import pyarrow.dataset as ds
import typer

_LOOK_S = 0.5
_MIB = 1 << 20
_NS_PER_S = 1_000_000_000
_LOAD: dict[str, Any] = {
    "name": "pipelined_sends", "producers": 4, "burst": 1000, "bursts": 16, "batch": 500, "size": 100,
    "acks": ["all"], "idempotent": True, "delivery_timeout_s": 3.0,
}  # fmt: skip
_COLUMNS = (
    "target", "consumers", "tap", "acknowledged", "a second", "while any was", "verdict", "after",
    "CPUs: seawall, nodes", "MiB",
)  # fmt: skip
_AT = re.compile(r"^ *([0-9.]+) s  (.*)")
_NODES = ("harness.broker", "kafka.Kafka", "QuorumPeerMain")


class Look(NamedTuple):
    """What the processes had taken at some time: processor seconds of seawall and of the nodes, seawall's memory."""

    at_s: float
    own_cpu_s: float
    nodes_cpu_s: float
    own_mib: float


class Watch(threading.Thread):
    """Looks at a run of seawall and at its nodes twice a second; ``looks`` are what it has seen."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.looks: list[Look] = []
        self._process = process
        self._nodes: dict[int, float] = {}

    def run(self) -> None:
        """Until the process has ended."""
        begun = time.monotonic()
        while True:
            try:
                own = self._process.cpu_times()
                memory = self._process.memory_info().rss / _MIB
                self._look_at_nodes()
            except psutil.Error:
                return
            at_s = time.monotonic() - begun
            self.looks.append(Look(at_s, own.user + own.system, sum(self._nodes.values()), memory))
            time.sleep(_LOOK_S)

    def _look_at_nodes(self) -> None:
        for child in self._process.children(recursive=True):
            try:
                if any(word in part for part in child.cmdline() for word in _NODES):
                    times = child.cpu_times()
                    self._nodes[child.pid] = times.user + times.system
            except psutil.NoSuchProcess:
                continue


class Measured(NamedTuple):
    """What came of one run.

    Attributes:
        acknowledged: sends. ``loaded_s``: between the first send's begin and the last one's end; ``served_s``: of that
            the tenths of a second in which any was acknowledged. In the others faults leave no partition with a leader
            and enough members of its ISR.
        judged_s: from the end of the load to the verdict.
        own_cpu, nodes_cpu: processors in use under load, of seawall and of the nodes.
        early_mib, late_mib: the most memory of seawall in the first and in the second half of the load.
    """

    verdict: str
    acknowledged: int
    loaded_s: float
    served_s: float
    judged_s: float
    own_cpu: float
    nodes_cpu: float
    early_mib: float
    late_mib: float


def calm_scenario(seconds: float, path: Path) -> str:
    """Write a scenario in which nothing goes wrong; returns its path."""
    document = {
        "id": "calm", "title": "Load alone", "source": "tests/bench/load.py", "settle_s": 60,
        "topics": [{"name": "ledger", "partitions": 8, "replication_factor": 3}],
        "cluster": {"settings": {"min.insync.replicas": 2}},
        "workload": {"name": "pipelined_sends"},
        "schedule": [{"wait_s": seconds}],
    }  # fmt: skip
    path.write_text(json.dumps(document))
    return str(path)


def measure(target: str, scenario: list[str], load: dict[str, Any], out: Path) -> Measured:
    """Run a scenario with pipelined load on ``target``."""
    settings = [f"--set=workload.{name}={json.dumps(value)}" for name, value in load.items()]
    command = [str(Path(sys.executable).with_name("seawall")), "run", *scenario, "--target", target, "--seed", "1"]
    process = psutil.Popen(
        [*command, *settings, "--out", str(out), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = Watch(process)
    watch.start()
    times: dict[str, float] = {}
    for line in process.stderr:
        if found := _AT.match(line):
            times.setdefault(found[2].split(" ")[0], float(found[1]))
    printed = json.loads(process.stdout.read())
    process.wait()
    if "stopping" not in times:
        raise SystemExit(f"{target}: {printed['error']}")
    begin_s, end_s = times["starting"], times["stopping"]
    [run] = printed["runs"]
    acknowledged, loaded_s, served_s = _acknowledged(Path(run["run_directory"]))
    under_load = [look for look in watch.looks if begin_s <= look.at_s <= end_s]
    first, last, half = under_load[0], under_load[-1], len(under_load) // 2
    span = last.at_s - first.at_s
    return Measured(
        run["verdict"],
        acknowledged,
        loaded_s,
        served_s,
        watch.looks[-1].at_s - end_s,
        (last.own_cpu_s - first.own_cpu_s) / span,
        (last.nodes_cpu_s - first.nodes_cpu_s) / span,
        max(look.own_mib for look in under_load[:half]),
        max(look.own_mib for look in under_load[half:]),
    )


def _acknowledged(run: Path) -> tuple[int, float, float]:
    """How many sends were acknowledged, for how long there were sends, and in how much of that some acknowledged."""
    rows = ds.dataset(run / "history").to_table(columns=["type", "time_ns"], filter=ds.field("f") == "send")
    times, is_ok = rows["time_ns"], pc.equal(rows["type"], "ok")
    span_s = (pc.max(times).as_py() - pc.min(times).as_py()) / _NS_PER_S
    tenths = pc.unique(pc.divide(times.filter(is_ok), _NS_PER_S // 10))
    return pc.sum(is_ok).as_py(), span_s, len(tenths) / 10


def main(
    targets: Annotated[list[str] | None, typer.Argument(metavar="[TARGET ...]")] = None,
    seconds: float = 60.0,
    rate: str = "100000",
    *,
    calm: bool = False,
    tap: bool = False,
) -> None:
    """Measure each target with a tailing consumer and without, and print a row of a table for each."""
    typer.echo(f"| {' | '.join(_COLUMNS)} |")
    typer.echo("|---" * len(_COLUMNS) + "|")
    untapped = 0.0
    for target, consumers, tapped in product(targets or ["builtin"], (1, 0), (False, True) if tap else (False,)):
        with tempfile.TemporaryDirectory() as out:
            scenario = ["random-chaos", "--duration-s", f"{seconds:g}"]
            if calm:
                scenario = [calm_scenario(seconds, Path(out) / "calm.yaml")]
            scenario += ["--tap"] if tapped else []
            one = measure(target, scenario, {**_LOAD, "rate": _number(rate), "consumers": consumers}, Path(out))
        rate_found = one.acknowledged / one.loaded_s
        untapped = untapped if tapped else rate_found
        how = f"yes: {rate_found / untapped:.2f} of that without" if tapped else "no"
        cells = (
            target, str(consumers), how, f"{one.acknowledged:,}", f"{rate_found:,.0f}",
            f"{one.acknowledged / one.served_s:,.0f} in {one.served_s:.0f} s", one.verdict, f"{one.judged_s:.0f} s",
            f"{one.own_cpu:.2f}, {one.nodes_cpu:.2f}", f"{one.early_mib:.0f}, {one.late_mib:.0f}",
        )  # fmt: skip
        typer.echo(f"| {' | '.join(cells)} |")


def _number(rate: str) -> float | str:
    return rate if rate == "max" else float(rate)


if __name__ == "__main__":
    typer.run(main)

"""``seawall audit``: watches a cluster in production by canary records of its own, window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.outcome import Quiet
from harness.cli.terminal import be_quiet, remark
from harness.errors import EnvironmentFault, ExitCode, UsageError, worst

if TYPE_CHECKING:
    from harness.audit.audit import Told
    from harness.audit.ceiling import Load
    from harness.audit.journal import Journal, State
    from harness.audit.objectives import Objectives
    from harness.audit.result import WindowResult

_MOST_LOG_BYTES = 5_000_000
"""How long the log of clients gets before a new one begins, of which two are kept: an outage fills 15 GB a day."""


def audit(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the audit keeps everything; an audit that is there goes on.")
    ],
    target: Annotated[
        str | None, typer.Option(metavar="TARGET", help="The running cluster: bootstrap:HOST:PORT,...[#OPTION...].")
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="How long, and then the topic is deleted: 2h, 72h; default: until a signal."
        ),
    ] = None,
    rate: Annotated[float, typer.Option(metavar="N", help="Records per second, all partitions together.")] = 10.0,
    window: Annotated[str, typer.Option(metavar="TIME", help="How long a window is.")] = "5m",
    keep: Annotated[
        str | None, typer.Option(metavar="TIME", help="For how long each record is looked for again; default: 1h.")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of the canary topic; default: one for each broker.")
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Replicas of each; default: 3, or as many as there are brokers."),
    ] = None,
    size: Annotated[int, typer.Option(metavar="BYTES", min=0, help="To which a record is filled up.")] = 0,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Prometheus metrics: a PORT of loopback, HOST:PORT, or a FILE."),
    ] = None,
    max_ack_p99: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Within what time 99 % of a window's sends have to be acknowledged: 0.5s."),
    ] = None,
    max_read_p99: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Within what time 99 % of a window's acknowledged records have to be read: 2s."
        ),
    ] = None,
    min_availability: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT", min=0, max=100, help="For how much of a window each partition has to acknowledge."
        ),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="'TIME WHAT'", help="What may have lost records, and when; may be given several times."),
    ] = None,
    end: Annotated[
        bool, typer.Option("--end", help="Delete the topic of the audit in DIR, and do nothing else.")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Audit a running cluster: canary records at a bounded rate, no faults; judge each window, and report it.

    A signal ends it after the window's judgement, and the same --out goes on with the same topic. The exit code is that
    of the gravest window of this process; a window that misses an objective counts as a violation.
    """
    from harness.audit.cluster import from_anywhere
    from harness.audit.journal import Journal
    from harness.audit.objectives import Objectives

    be_quiet(quiet)
    target = None if target is None else from_anywhere(target)
    times = _seconds("--window", window), None if for_ is None else _seconds("--for", for_)
    objectives = Objectives(
        None if max_ack_p99 is None else _seconds("--max-ack-p99", max_ack_p99),
        None if max_read_p99 is None else _seconds("--max-read-p99", max_read_p99),
        None if min_availability is None else _share("--min-availability", min_availability),
    )
    journal = Journal(out)
    with journal.held():
        state = journal.state()
        if end:
            return _delete(journal, state)
        _tell_events(journal, event or ())
        if state is None and target is None:
            raise UsageError(f"{out} holds no audit, and no cluster is named.", "Name one by --target.")
        if state is not None and state.ended:
            raise UsageError(f"the audit in {out} has ended.", "Name another directory.")
        state = _going_on(state, target, partitions, replication, keep) if state is not None else None
        load_of = _load(rate, size)
        if state is None:
            keep_s = _seconds("--keep", keep or "1h")
            load_of(1).refuse_times(keep_s, times[0])
            state = _begin(journal, str(target), partitions, replication, keep_s, load_of)
        return _run(journal, state, load_of(state.partitions), times, metrics, objectives)


def _load(rate: float, size: int) -> Callable[[int], Load]:
    from harness.audit.ceiling import Load

    Load(rate, 1, size)  # refuses what is too much before the cluster is asked for anything
    return lambda partitions: Load(rate, partitions, size)


def _seconds(option: str, written: str) -> float:
    from harness.nightly.plan_values import seconds

    try:
        return seconds(written)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def _share(option: str, percent: float) -> float:
    if not percent <= 100:  # nor is NaN
        raise UsageError(f"{option} {percent:g} is no percentage.", "Write a number from 0 to 100.")
    return percent / 100


def _tell_events(journal: Journal, events: Sequence[str]) -> None:
    from harness.audit.leaders import told

    for line in events:
        told(line)
    journal.tell(events)


def _going_on(
    state: State, target: str | None, partitions: int | None, replication: int | None, keep: str | None
) -> State | None:
    """The state of an audit that goes on: its topic was made when it began; None: it was refused, so it begins anew.

    The topic may be there all the same, of a creation that was not answered; it is deleted.
    """
    from harness.audit.cluster import removed

    kept = None if keep is None else _seconds("--keep", keep)
    given = {
        "--target": (target, state.target),
        "--partitions": (partitions, state.partitions),
        "--replication": (replication, state.replication_factor),
        "--keep": (kept, state.keep_s),
    }
    if target is not None and not state.created:
        removed(state)
        return None
    for option, (wanted, known) in given.items():
        if wanted is not None and wanted != known:
            raise UsageError(
                f"{option} {wanted} is not what the audit there began with, {known}.",
                "Leave it out, or name another directory.",
            )
    return state


def _begin(
    journal: Journal, target: str, partitions: int | None, replication: int | None, keep_s: float,
    load_of: Callable[[int], Load],
) -> State:  # fmt: skip
    import time

    from harness.audit.cluster import Wanted, begun, cluster_named

    state = begun(target, cluster_named(target), Wanted(partitions, replication), keep_s, time.time_ns())
    load_of(state.partitions)
    journal.keep(state)
    return state


def _run(
    journal: Journal, state: State, load: Load, times: tuple[float, float | None], metrics: str | None,
    objectives: Objectives,
) -> int:  # fmt: skip
    from harness.audit.audit import Audit, with_topic
    from harness.audit.cluster import audited, cluster_named
    from harness.audit.judging import judge_beside
    from harness.audit.metrics import Metrics, published
    from harness.clients.librdkafka import close_log, file_log

    window_s, for_s = times
    load.refuse_times(state.keep_s, window_s)
    log = file_log(journal.directory / "clients.log", journal.directory.name, most_bytes=_MOST_LOG_BYTES)
    try:
        measured = Metrics()
        renew = published(measured, metrics) if metrics is not None else lambda: None
        renew()
        cluster = audited(state, cluster_named(state.target, state.prefix), load, log)
        state = with_topic(cluster, state, journal)
        said = [*_said(state, load, window_s), *objectives.said()]
        for sentence in said:
            remark(sentence)
        codes: list[ExitCode] = []
        complaints: set[str] = set()

        def tell(told: Told) -> None:
            from harness.audit import page, result

            measured.take(told)
            renew()
            unanswered = [*told.passed_over, *told.waiting]
            title = state.target.partition("#")[0]
            page.write(journal.directory, title, said, result.read(journal.directory), unanswered)
            for sentence in told.passed_over:
                if sentence not in complaints:
                    complaints.add(sentence)
                    remark(sentence)
            codes.append(told.result.exit_code)
            remark(_line(told.result))

        watching = Audit(cluster, state, load, journal, judge=judge_beside, tell=tell, objectives=objectives)
        came_to_its_end = watching.run(window_s, for_s)
    finally:
        close_log(log)
    if came_to_its_end:
        _delete(journal, state)
    else:
        remark(f"topic {state.topic} is still there: the same --out goes on with it, and --end deletes it.")
    return worst(codes)


def _said(state: State, load: Load, window_s: float) -> list[str]:
    stored = load.rate * load.record_bytes * 3 * state.keep_s / 1e6
    return [
        f"Canary topic {state.topic}: {state.partitions} partitions, {state.replication_factor} replicas of each.",
        f"{load.rate:g} records/s of {load.record_bytes} bytes: at most {stored:,.1f} MB on disks for each replica.",
        f"Windows of {window_s:g} s; every record is looked for again for {state.keep_s:g} s.",
    ]


def _line(result: WindowResult) -> str:
    ack = "-" if result.ack is None else f"{result.ack.p99_ms:,.1f} ms"
    available = min((one.availability for one in result.partitions), default=0.0)
    line = (
        f"{result.ended}  window {result.window}: {result.outcome.headline}, {result.acknowledged:,} of "
        f"{result.sent:,} acknowledged, {result.lost:,} lost, p99 {ack}, available {available:.2%}"
    )
    found = [f"{number:,} {kind}" for kind, number in result.anomalies.items()]
    found += [f"blind for {result.blind_s:,.0f} s before"] if result.blind_s else []
    found += ["killed in it"] if result.interrupted else []
    found += result.missed
    return "; ".join([line, *found])


def _delete(journal: Journal, state: State | None) -> int:
    from harness.audit.cluster import removed

    if state is None:
        raise UsageError(f"{journal.directory} holds no audit.")
    try:
        names = removed(state)
    except EnvironmentFault as refused:
        raise EnvironmentFault(
            f"topic {state.topic} may still be there: {refused.sentence}",
            f"seawall audit --out {journal.directory} --end",
        ) from None
    journal.keep(state.model_copy(update={"ended": True}))
    remark(f"deleted topic {names[0]}" if names else f"topic {state.topic} was not there any more")
    return ExitCode.PASS

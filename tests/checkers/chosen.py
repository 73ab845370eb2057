"""Which rows of a recorded run an edit is about, whatever the run recorded."""

from __future__ import annotations

from collections.abc import Callable

from tests.checkers.edited import Run
from tests.checkers.story import CONTROLLER, Row


def acknowledgement(run: Run) -> list[Row]:
    """The row that acknowledges a record in the middle of a partition."""
    return [run.acknowledged()]


def delivery(run: Run) -> list[Row]:
    """The final read's row of that record."""
    return run.finals(value=run.acknowledged()["value"])


def record(run: Run) -> list[Row]:
    """That record in the log of the leader that the partition has in the end."""
    ours = run.acknowledged()
    leaders = run.rows("timeline", kind="final", role="leader", topic=ours["topic"], partition=ours["partition"])
    return [copy for copy in run.copies(ours) if copy["node"] == leaders[-1]["node"]]


def records(run: Run) -> list[Row]:
    """That record in all logs."""
    return run.copies(run.acknowledged())


def invocation(run: Run) -> list[Row]:
    """The row that begins to send that record."""
    return run.rows("history", f="send", type="invoke", value=run.acknowledged()["value"])


def closing(run: Run) -> list[Row]:
    """The end mark of the history."""
    return run.rows("history", f="close")


def last_rows(run: Run) -> list[Row]:
    """What is last said of the nodes' lives, which is their end mark."""
    return run.rows("timeline", kind="final", node=1, topic=None)[:1]


def ends(run: Run) -> list[Row]:
    """How one replica of the run's topics was found in the end."""
    found = [row for row in run.rows("timeline", kind="final", node=1) if row["topic"] in ("audit", "ledger")]
    return [row for row in found if row["incarnation"] == found[-1]["incarnation"]][:1]


def tail(run: Run) -> list[Row]:
    """The last three rows that the first life of a killed node has written."""
    return [row for row in run.rows("timeline", node=0, incarnation=0) if row["kind"] != "final"][-3:]


def leading(run: Run) -> list[Row]:
    """What a leader says of itself in the middle of the run, while it leads with a watermark above three."""
    found = [row for row in run.rows("timeline", kind="state", role="leader") if row["high_watermark"] > 3]
    return [found[len(found) // 2]]


def election(run: Run) -> list[Row]:
    """An election after the first of its partition."""
    return [row for row in run.rows("timeline", kind="election") if row["leader_epoch"] > 0][:1]


def shrinking(run: Run) -> list[Row]:
    """A decision on an ISR."""
    return run.rows("timeline", kind="isr", node=CONTROLLER)[:1]


def kill(run: Run) -> list[Row]:
    """A fault that kills a broker."""
    return [fault for fault in run.rows("faults", kind="kill") if fault["nodes"] != ["controller"]][:1]


def powerless(run: Run) -> list[Row]:
    """A power loss."""
    return run.rows("faults", kind="power_loss")[:1]


def every_state(run: Run) -> list[Row]:
    """All that the nodes say of their replicas."""
    return run.rows("timeline", kind="state")


def everything(table: str) -> Callable[[Run], list[Row]]:
    """Every row of a table."""
    return lambda run: run.tables[table]


def named(kind: str, **known: object) -> Callable[[Run], list[Row]]:
    """The rows of the history of which this is true."""
    return lambda run: run.rows("history", f=kind, **known)


def life(run: Run) -> list[Row]:
    """All that a broker said in its second life."""
    return run.rows("timeline", node=0, incarnation=1)


def controllers(run: Run) -> list[Row]:
    """All that the controller said."""
    return run.rows("timeline", node=CONTROLLER)

"""Plans the steps of a schedule for one generation, and refuses what contradicts itself whatever target runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import faults
from harness.errors import UsageError
from harness.fault import Fault, nodes_named_by
from harness.model import CONTROLLER, NodeId, TopicPartition
from harness.runner.expectation import performed
from harness.runner.quorum import Coming
from harness.scenario import NUMBERED
from harness.schedule import Step
from harness.selection import ANY, FOLLOWER, LEADER
from harness.steps import Send, meant
from harness.target import ClusterView
from harness.targets.kafka.layout import Control

NODE_FIELDS = ("node", "isolate", "between", "links")
"""The fields of faults that name nodes."""


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """The steps of a schedule, by the index that each has in the scenario.

    Attributes:
        steps: those that are performed on the generation.
        faults: the fault of each ``inject`` and ``hold`` step.
    """

    steps: Mapping[int, Step]
    faults: Mapping[int, Fault]

    def path(self, index: int) -> str:
        """Where the scenario has a step."""
        return f"schedule[{index}].{self.steps[index].kind}"

    def sends(self) -> list[Send]:
        """The orders to send, in order."""
        return [step.send for step in self.steps.values() if step.send is not None]

    def coming(self, brokers: int, control: Control, seed: int) -> dict[int, Coming]:
        """Each fault with its claims, unless selectors resolve only during the run."""
        view = ClusterView(0, tuple(map(NodeId, range(brokers))), {})
        aimed_later = (LEADER, FOLLOWER, ANY, *((CONTROLLER,) if control is not Control.ONE else ()))
        return {
            index: Coming(fault, None if is_later else fault.aimed(view, seed).claims())
            for index, fault in self.faults.items()
            for is_later in [any(word in aimed_later for word in nodes_named_by(fault, NODE_FIELDS))]
        }


def planned_schedule(steps: Iterable[Step], generation: str) -> PlannedSchedule:
    """The steps of a schedule that are performed on ``generation``.

    Raises:
        UsageError: a fault is malformed or has no name, or a step names a generation that is unknown.
    """
    chosen = dict(performed(steps, generation))
    return PlannedSchedule(chosen, dict(steps_faults(chosen)))


def steps_faults(steps: Mapping[int, Step]) -> Iterator[tuple[int, Fault]]:
    """The faults of ``steps``, with their indexes. Raises as :func:`planned_schedule`."""
    for index, step in steps.items():
        if step.hold is not None:
            yield index, faults.parse({"fault": "partition", "links": step.hold.links}, f"schedule[{index}].hold")
        elif step.inject is not None:
            path = f"schedule[{index}].inject"
            written = dict(step.inject)
            if not isinstance(written.pop("as", None), str):
                raise UsageError(f"{path}: 'as' is missing: a later step heals the fault by that name.")
            yield index, faults.parse(written, path)


def refuse_overlaps(schedule: PlannedSchedule, coming: Mapping[int, Coming]) -> None:
    """Refuse simultaneous faults with the same claims; where selectors resolve later, the nemesis does it."""
    claimed: dict[str, str] = {}
    for index, step in schedule.steps.items():
        claimed = {claim: name for claim, name in claimed.items() if name not in (step.heal, step.release)}
        for claim in (coming[index].claims or ()) if index in coming else ():
            if claim in claimed:
                raise UsageError(
                    f"{schedule.path(index)}: {step.name!r} and {claimed[claim]!r}, which is in force, "
                    f"both need {claim} to themselves.",
                    f"Heal {claimed[claim]!r} first.",
                )
            claimed[claim] = step.name or ""


def refuse_names_given_twice(schedule: PlannedSchedule, partition: TopicPartition) -> None:
    """Refuse to give two records of ``partition`` the same name, which must identify a record."""
    given: set[str] = set()
    numbered: list[range] = []
    sent = 0
    for index, step in schedule.steps.items():
        if step.send is None or partition not in meant([partition], step.send):
            continue
        numbers = range(sent, sent + step.send.count)
        sent = numbers.stop
        if step.send.records is None:
            numbered.append(numbers)
            names = [name for name in given if _is_numbered(name, [numbers])]
        else:
            names = [name for name in step.send.records if name in given or _is_numbered(name, numbered)]
            names += [name for name, times in Counter(step.send.records).items() if times > 1]
            given.update(step.send.records)
        if names:
            raise UsageError(
                f"{schedule.path(index)}: {partition} has been sent a record named {min(names)!r} already.",
                "Records of per_partition are m<n>, where n counts the records sent to the partition before.",
            )


def _is_numbered(name: str, rows: Iterable[range]) -> bool:
    """Whether ``name`` is ``m<n>`` with an n out of ``rows``."""
    found = NUMBERED.fullmatch(name)
    return found is not None and found[1] == "m" and any(int(found[2]) in row for row in rows)

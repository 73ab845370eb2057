"""The faults. To add one: one file that implements ``harness.fault.Fault``, and its class in :data:`AnyFault`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from faults.clock import Clock
from faults.corrupt_log import CorruptLog
from faults.disk_full import DiskFull
from faults.kill import Kill
from faults.log_dir_failure import LogDirFailure
from faults.partition import Partition
from faults.pause import Pause
from faults.power_loss import PowerLoss
from faults.stall import Stall
from faults.stop import Stop
from faults.wipe_disk import WipeDisk
from harness.errors import UsageError
from harness.fault import DiskEffect, Fault, FaultTraits, ProcessEffect
from harness.model import is_broker
from harness.plugins import Registry, takes
from harness.spelling import closest
from harness.target import Target
from harness.validation import shortened, validated

AnyFault = (
    Kill | Stop | Pause | Partition | Stall | DiskFull | Clock | PowerLoss | WipeDisk | CorruptLog | LogDirFailure
)


def _flaw(kind: str, loaded: Any) -> str:
    """What is wrong with a plugin's fault; empty: nothing is."""
    if not (isinstance(loaded, type) and issubclass(loaded, BaseModel)):
        return f"{loaded!r} is no class of a pydantic model."
    if getattr(loaded, "kind", None) != kind:
        return f"its kind is {getattr(loaded, 'kind', None)!r}, not {kind!r}."
    traits = getattr(loaded, "traits", None)
    wrong = [] if isinstance(traits, FaultTraits) else ["traits"]
    wrong += [] if Target in getattr(getattr(loaded, "needs", None), "__mro__", ()) else ["needs"]
    wrong += [name for name in _METHODS if not callable(getattr(loaded, name, None))]
    is_of_clocks = isinstance(traits, FaultTraits) and traits.moves_clock
    wrong += ["clock_error_ms"] if is_of_clocks and not hasattr(loaded, "clock_error_ms") else []
    if wrong:
        return f"it does not define {wrong[0]!r}, see harness/fault.py."
    wrong = [name for name, given in _METHODS.items() if not takes(getattr(loaded, name), 1 + given)]
    return f"its {wrong[0]!r} takes other arguments, see harness/fault.py." if wrong else ""


_METHODS = {"aimed": 2, "nodes": 0, "claims": 0, "parameters": 0, "inject": 1, "probe": 1, "heal": 1, "probe_healed": 1}
"""The methods of a fault, with the number of their arguments."""

KINDS: Registry[type[Any]] = Registry("seawall.faults", {fault.kind: fault for fault in get_args(AnyFault)}, _flaw)
"""The class of each kind of fault, those of installed plugins included."""


def restart_of(node: str) -> Fault:
    """The fault by which the harness itself restarts a node: it ends the process, and healing starts it again."""
    return Kill(node=int(node) if is_broker(node) else node)


_UNKNOWN = FaultTraits(
    process=ProcessEffect.NONE,
    disk=DiskEffect.NOTHING,
    cuts_links=False,
    moves_clock=False,
    shown_as=None,
    column=None,
    column_on_controller=None,
)


def traits_of(kind: str) -> FaultTraits:
    """The traits of a recorded fault, by its kind.

    A kind that this version does not have, and what only the simulator can do, has none: it ends no process, takes
    nothing from a disk, cuts no link and moves no clock. Code that asks whether a fault *cannot* keep a node from
    others treats it as one that can.
    """
    traits: FaultTraits = KINDS[kind].traits if kind in KINDS else _UNKNOWN
    return traits


def parse(written: Mapping[str, Any], path: str) -> Fault:
    """The fault that a scenario writes as ``{fault: disk_full, node: leader, free_bytes: 4096}``.

    ``path``: where it is written, for the error.

    Raises:
        UsageError: an unknown kind, key or value.
    """
    parameters = dict(written)
    kind = parameters.pop("fault", None)
    if kind is None:
        raise UsageError(f"{path}: 'fault' is missing.", f"Write one of {', '.join(KINDS)}.")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"{path}: unknown fault {shortened(kind)}; {closest(str(kind), KINDS)}")
    fault: Fault = validated(KINDS[kind], parameters, path)
    return fault

"""Fences requests of earlier controllers, and requests that a controller sent to an earlier life of this broker."""

from __future__ import annotations

from harness.broker.controller_link import ControllerLink
from harness.error_codes import ErrorCode


class ControllerFence:
    """Accepts requests of the newest controller known to the broker.

    Args:
        link: has the epoch that the broker is registered with.
        fences_epochs: whether the generation fences by controller epoch.

    Attributes:
        controller_epoch: of the newest controller; -1 before the first accepted request.
    """

    def __init__(self, link: ControllerLink, *, fences_epochs: bool) -> None:
        self.controller_epoch = -1
        self._session = -1
        self._link = link
        self._fences_epochs = fences_epochs

    def refusal_of(self, session: int, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """The error for a request from an older controller, connection or life of the broker; NONE: it is accepted.

        Connections count because a healed link may deliver the requests of an abandoned connection after those of its
        successor. A broker that is not registered accepts nothing: the controller meant such a request for an earlier
        life, whose log the broker may have lost, and repeats it until the broker accepts it.
        """
        is_older = controller_epoch < self.controller_epoch or session < self._session
        if is_older and self._fences_epochs:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if not self._link.registered or 0 <= broker_epoch < self._link.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        self.controller_epoch = controller_epoch
        self._session = session
        return ErrorCode.NONE

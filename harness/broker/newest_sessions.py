"""The newest connection of each broker to the controller, so that it can refuse the requests of older ones."""

from __future__ import annotations

from harness.broker.session import Session


class NewestSessions:
    """The number of the newest session of each peer that has sent a request."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def heard_on(self, session: Session) -> None:
        """A broker sent a request over ``session``."""
        self._newest[session.peer] = max(self._newest.get(session.peer, -1), session.number)

    def is_abandoned(self, session: Session) -> bool:
        """Whether its broker has sent a request over a newer one: a healed link may deliver what the old one held."""
        return session.number < self._newest.get(session.peer, -1)

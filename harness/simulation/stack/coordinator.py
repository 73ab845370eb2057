"""How a client in virtual time finds the coordinator of its group or transactional id, and asks it."""

from __future__ import annotations

from harness.error_codes import ErrorCode
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.links import Address
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.coordination import FindCoordinatorRequest, FindCoordinatorResponse

ELSEWHERE = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
"""After these errors a client looks for the coordinator again."""

BACKOFF_S = 0.05
_FIND_COORDINATOR_VERSION = 2
_GROUP = 0
_ASK_TIMEOUT_S = 1.0


class Coordinator:
    """The coordinator of a group, as its client knows it.

    Args:
        client: its connections.
        group: which group.
    """

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._group = group
        self._address: Address | None = None

    def forget(self) -> None:
        """Look for it again before the next request."""
        self._address = None

    async def ask(
        self, key: ApiKey, version: int, body: Message, timeout_s: float = _ASK_TIMEOUT_S, purpose: str = ""
    ) -> Message | None:
        """Ask it; it is looked for first where it is not known. None: there is no answer."""
        if self._address is None:
            self._address = await coordinator_of(self._client, self._group)
        if self._address is None:
            await self._client.sleep(BACKOFF_S)
            return None
        answer = await self._client.ask(self._address, Call(key, version, body, timeout_s), purpose)
        if isinstance(answer, Silence):
            self._address = None
            return None
        return answer


async def coordinator_of(client: Client, key: str, kind: int = _GROUP) -> Address | None:
    """Where the coordinator of a group or a transactional id is, by the word of one of the brokers; None: of none."""
    wanted = FindCoordinatorRequest(key, kind)
    found = await client.ask_anybody(Call(ApiKey.FIND_COORDINATOR, _FIND_COORDINATOR_VERSION, wanted, _ASK_TIMEOUT_S))
    if not isinstance(found, FindCoordinatorResponse) or found.error_code:
        return None
    return found.host, found.port

"""How the rows of the history become what a report draws."""

from reports import rows
from tests.checkers.clients import burst
from tests.checkers.story import Story


def test_each_send_of_a_burst_has_its_own_invocation_and_end() -> None:
    story = Story()
    burst(story, 0, "info", 1, stored=(0, 2))
    sends = rows.sends([row for row in story.history if row["f"] == "send"])
    invoked = {row["value"]: row["time_ns"] for row in story.history if row["type"] == "invoke"}
    assert sorted((send.value, send.type, send.invoked_ns) for send in sends) == [
        (0, "ok", invoked[0]),
        (1, "info", invoked[1]),
        (2, "ok", invoked[2]),
    ]

"""The simulated network: order, gates, deaths, pauses and losses."""

from __future__ import annotations

from functools import partial

import pytest

from harness.broker.ports import Connection
from harness.model import CLIENTS, Link
from harness.simulation.stack.links import CALM, LinkConditions
from harness.simulation.stack.network import SimulatedNetwork, Stream
from harness.simulation.stack.scheduler import VirtualScheduler

ADDRESS = ("10.0.0.10", 9092)
HELD = Link("1", "0")


class End:
    """One end of a connection, and everything that was heard there."""

    def __init__(self) -> None:
        self.heard: list[bytes | str] = []
        self.connection: Stream | None = None

    def connected(self, connection: Connection) -> End:
        assert isinstance(connection, Stream)
        self.connection = connection
        return self

    def on_frame(self, frame: memoryview) -> None:
        assert not frame.readonly, "a broker patches offsets in place"
        self.heard.append(bytes(frame))

    def on_lost(self) -> None:
        self.heard.append("lost")

    def say(self, *words: bytes) -> None:
        assert self.connection is not None
        for word in words:
            self.connection.send([word])

    def close(self) -> None:
        assert self.connection is not None
        self.connection.close()


class Pair:
    """Node 0, which listens, and node ``peer``, which is connected to it."""

    def __init__(self, conditions: LinkConditions = CALM, peer: str = "1", seed: int = 0) -> None:
        self.world = VirtualScheduler(seed, conditions)
        self.server, self.client = End(), End()
        self.zero = SimulatedNetwork(self.world, "0")
        self.peer = SimulatedNetwork(self.world, peer)
        self.zero.listen(ADDRESS, self.server.connected)
        self.peer.connect(ADDRESS, "0", self.client.connected, lambda: self.client.heard.append("refused"))
        self.world.sleep(0.01)


def test_frames_of_one_connection_keep_their_order_however_long_they_travel() -> None:
    pair = Pair(LinkConditions(delay_ns=(0, 50_000_000)))
    words = [b"%d" % number for number in range(100)]
    pair.world.sleep(1)
    pair.client.say(*words)
    pair.world.sleep(1)
    assert pair.server.heard == words


def test_a_frame_travels_no_shorter_and_no_longer_than_the_weather_of_its_own_link_says() -> None:
    pair = Pair()
    pair.world.links.local[Link("1", "0")] = LinkConditions(delay_ns=(20_000_000, 30_000_000))
    pair.client.say(b"there")
    pair.server.say(b"back")
    pair.world.sleep(0)
    assert (pair.server.heard, pair.client.heard) == ([], [b"back"])
    pair.world.sleep(0.0199)
    assert pair.server.heard == []
    pair.world.sleep(0.0102)
    assert pair.server.heard == [b"there"]


def test_frames_travel_for_as_long_as_chance_says_within_the_weather() -> None:
    world = VirtualScheduler(3)
    drawn = [world.links.travel_ns(LinkConditions(delay_ns=(10, 1000))) for _ in range(200)]
    assert min(drawn) >= 10
    assert max(drawn) < 1000
    assert len(set(drawn)) > 100
    again = VirtualScheduler(3)
    assert drawn == [again.links.travel_ns(LinkConditions(delay_ns=(10, 1000))) for _ in range(200)]


def test_nobody_listens_is_a_failure_and_not_a_connection() -> None:
    world = VirtualScheduler()
    failures: list[str] = []
    SimulatedNetwork(world, "1").connect(ADDRESS, "0", End().connected, lambda: failures.append("refused"))
    world.sleep(0)
    assert failures == ["refused"]


def test_an_address_has_one_listener_until_it_dies() -> None:
    pair = Pair()
    with pytest.raises(OSError, match="in use"):
        SimulatedNetwork(pair.world, "0").listen(ADDRESS, End().connected)
    pair.zero.die()
    SimulatedNetwork(pair.world, "0").listen(ADDRESS, End().connected)


def test_the_peer_of_a_machine_that_has_lost_its_power_learns_nothing_of_it() -> None:
    gone, closed = Pair(peer=CLIENTS), Pair(peer=CLIENTS)
    for pair in (gone, closed):
        pair.client.say(b"sent before")
    gone.peer.vanish()
    for pair in (gone, closed):
        pair.client.close()
        pair.client.say(b"sent after")
        pair.server.say(b"an answer")
        pair.world.sleep(60)
    assert (gone.server.heard, gone.client.heard) == ([b"sent before"], ["lost"])
    assert (closed.server.heard, closed.client.heard) == ([b"sent before", "lost"], ["lost"])


def test_a_peer_is_named_for_its_node_and_a_client_for_no_node() -> None:
    node, client = Pair(peer="2"), Pair(peer=CLIENTS)
    assert node.server.connection is not None
    assert client.server.connection is not None
    assert (node.server.connection.peer, client.server.connection.peer) == ("2", CLIENTS)


def test_a_cut_link_holds_its_frames_in_order_and_the_reverse_link_does_not() -> None:
    pair = Pair()
    pair.zero.cut([HELD])
    pair.client.say(b"one", b"two")
    pair.server.say(b"back")
    pair.world.sleep(1)
    assert (pair.server.heard, pair.client.heard) == ([], [b"back"])
    assert pair.zero.held_bytes(HELD) == 2 * (4 + 3)
    assert pair.zero.held_bytes(Link("0", "1")) == 0
    pair.zero.cut([])
    pair.world.sleep(0)
    assert pair.server.heard == [b"one", b"two"]
    assert pair.zero.held_bytes(HELD) == 0


def test_the_end_of_a_connection_is_not_noticed_over_a_cut_link() -> None:
    pair = Pair()
    pair.zero.cut([HELD])
    pair.client.say(b"last words")
    pair.peer.die()
    pair.world.sleep(1)
    assert pair.server.heard == []
    pair.zero.cut([])
    pair.world.sleep(0)
    assert pair.server.heard == [b"last words", "lost"]


def test_a_connection_that_is_made_over_a_cut_link_stands_but_carries_nothing() -> None:
    pair = Pair()
    pair.zero.cut([HELD])
    late = End()
    pair.peer.connect(ADDRESS, "0", late.connected, lambda: None)
    pair.world.sleep(0)
    late.say(b"held")
    pair.world.sleep(1)
    assert late.connection is not None
    assert pair.server.heard == []


def test_a_stalled_link_holds_the_connections_of_now_and_lets_new_ones_through() -> None:
    pair, new = Pair(), End()
    pair.zero.stall([HELD], stalled=True)
    pair.client.say(b"late")
    pair.client.close()
    pair.peer.connect(ADDRESS, "0", new.connected, lambda: None)
    pair.world.sleep(0.01)
    new.say(b"again")
    pair.world.sleep(0.01)
    assert pair.server.heard == [b"again"]  # the listener gives every connection the same end
    assert (pair.zero.stalled_bytes(HELD), pair.zero.held_bytes(HELD)) == (8, 0)
    pair.zero.stall([HELD], stalled=False)
    pair.world.sleep(0.01)
    assert pair.server.heard == [b"again", b"late", "lost"]
    assert pair.zero.stalled_bytes(HELD) == 0


def test_frames_to_clients_over_a_cut_link_die_with_the_node_that_holds_them() -> None:
    pair = Pair(peer=CLIENTS)
    pair.zero.cut([Link("0", CLIENTS)])
    pair.server.say(b"held")
    pair.world.sleep(1)
    assert pair.zero.held_bytes(Link("0", CLIENTS)) == 4 + 4
    pair.zero.die()
    pair.world.sleep(0)
    assert pair.client.heard == ["lost"]


def test_frames_to_clients_leave_after_mending_and_a_close_after_them() -> None:
    pair = Pair(peer=CLIENTS)
    pair.zero.cut([Link("0", CLIENTS)])
    pair.server.say(b"held")
    pair.server.close()
    pair.world.sleep(1)
    assert (pair.server.heard, pair.client.heard) == ([], [])
    pair.zero.cut([])
    pair.world.sleep(0)
    assert (pair.server.heard, pair.client.heard) == (["lost"], [b"held", "lost"])


def test_what_was_sent_before_a_death_arrives_and_then_the_end() -> None:
    pair = Pair(LinkConditions(delay_ns=(1_000_000, 1_000_000)))
    pair.server.say(b"last words")
    pair.zero.die()
    pair.server.say(b"from the grave")
    pair.world.sleep(1)
    assert pair.client.heard == [b"last words", "lost"]
    assert pair.server.heard == []


def test_each_end_learns_once_that_a_connection_was_closed_whoever_closed_it() -> None:
    pair = Pair()
    pair.client.close()
    pair.client.close()
    pair.server.close()
    pair.world.sleep(1)
    assert (pair.client.heard, pair.server.heard) == (["lost"], ["lost"])
    assert pair.zero.streams == pair.peer.streams == {}


def test_a_closed_connection_delivers_nothing_more_to_whoever_closed_it() -> None:
    pair = Pair(LinkConditions(delay_ns=(1_000_000, 1_000_000)))
    pair.server.say(b"on its way")
    pair.client.close()
    pair.world.sleep(1)
    assert pair.client.heard == ["lost"]


def test_a_frozen_node_does_nothing_and_then_hears_before_its_alarms_go_off() -> None:
    pair = Pair()
    acts: list[str] = []
    pair.zero.call_later(0.1, lambda: acts.append(f"alarm after {len(pair.server.heard)} frames"))
    pair.zero.freeze()
    pair.client.say(b"one", b"two")
    pair.world.sleep(1)
    assert (pair.server.heard, acts) == ([], [])
    pair.zero.thaw()
    pair.world.sleep(0)
    assert (pair.server.heard, acts) == ([b"one", b"two"], ["alarm after 2 frames"])


def test_a_frozen_node_is_connected_to_by_its_kernel() -> None:
    pair = Pair()
    pair.zero.freeze()
    late = End()
    pair.peer.connect(ADDRESS, "0", late.connected, lambda: None)
    pair.world.sleep(0)
    late.say(b"patience")
    pair.world.sleep(1)
    assert late.connection is not None
    pair.zero.thaw()
    pair.world.sleep(0)
    assert pair.server.heard == [b"patience"]


def test_a_node_killed_while_frozen_never_does_what_was_due() -> None:
    pair = Pair()
    acts: list[str] = []
    pair.zero.call_later(0.1, lambda: acts.append("alarm"))
    pair.zero.freeze()
    pair.world.sleep(1)
    pair.zero.die()
    pair.zero.thaw()
    pair.world.sleep(1)
    assert acts == []
    assert pair.client.heard == ["lost"]


def test_an_owner_that_has_enough_is_given_nothing_until_it_wants_more_and_then_later() -> None:
    pair = Pair()
    assert pair.server.connection is not None
    pair.server.connection.pause()
    pair.client.say(b"one")
    pair.world.sleep(0)
    pair.server.connection.resume()
    assert pair.server.heard == []
    pair.world.sleep(0)
    assert pair.server.heard == [b"one"]


def test_a_severed_connection_is_lost_at_both_ends_with_all_that_was_under_way() -> None:
    pair = Pair(LinkConditions(delay_ns=(1_000_000, 1_000_000)))
    pair.client.say(b"under way")
    assert pair.peer.sever("0") == 1
    pair.world.sleep(1)
    assert (pair.client.heard, pair.server.heard) == (["lost"], ["lost"])


def test_losses_take_the_connection_and_never_a_frame_out_of_the_middle() -> None:
    outcomes = []
    for seed in range(30):
        pair = Pair(seed=seed)
        pair.world.links.conditions = LinkConditions(delay_ns=(0, 0), loss=0.05)
        pair.client.say(*(b"%d" % number for number in range(30)))
        pair.world.sleep(1)
        frames = [word for word in pair.server.heard if word != "lost"]
        assert frames == [b"%d" % number for number in range(len(frames))]
        outcomes.append((len(frames) == 30, pair.server.heard[-1:] == ["lost"]))
    assert set(outcomes) == {(True, False), (False, True)}


def test_a_cancelled_alarm_stays_silent_and_many_of_them_take_no_room() -> None:
    world = VirtualScheduler()
    network = SimulatedNetwork(world, "0")
    acts: list[int] = []
    alarms = [network.call_later(1 + number / 1e6, partial(acts.append, number)) for number in range(5000)]
    for alarm in alarms[1:]:
        alarm.cancel()
        alarm.cancel()
    assert len(world._heap) < 1000
    world.sleep(2)
    assert acts == [0]
    alarms[0].cancel()


def test_acts_that_are_due_together_happen_in_the_order_of_their_making() -> None:
    world = VirtualScheduler()
    network = SimulatedNetwork(world, "0")
    acts: list[int] = []
    for number in range(50):
        network.call_later(0.5, partial(acts.append, number))
    world.sleep(1)
    assert acts == list(range(50))


def test_sleeping_until_something_holds_ends_when_it_does_or_when_the_time_is_up() -> None:
    world = VirtualScheduler()
    begin_ns = world.now_ns
    assert world.sleep_until(lambda: world.now_ns - begin_ns >= 20_000_000, 1.0)
    assert not world.sleep_until(lambda: False, 0.1)
    assert (world.now_ns - begin_ns) / 1e9 == pytest.approx(0.12)

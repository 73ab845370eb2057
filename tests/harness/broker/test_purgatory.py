from collections.abc import Callable

from harness.broker.purgatory import Purgatory
from harness.model import TopicPartition
from harness.simulation.stack.network import SimulatedNetwork
from harness.simulation.stack.scheduler import VirtualScheduler

ONE, TWO = TopicPartition("t", 1), TopicPartition("t", 2)


class Request:
    def __init__(self, ready: Callable[[], bool] = lambda: False) -> None:
        self.ready = ready
        self.tried = 0
        self.expired = 0

    def try_complete(self, partition: TopicPartition) -> bool:
        self.tried += 1
        return self.ready()

    def expire(self) -> None:
        self.expired += 1


def test_a_finished_waiter_is_forgotten_under_every_partition_it_watched() -> None:
    network = SimulatedNetwork(VirtualScheduler())
    purgatory = Purgatory(network)
    request = Request(lambda: True)
    purgatory.park(request, [ONE, TWO], 1.0)
    purgatory.wake(ONE)
    purgatory.wake(TWO)
    network.world.sleep(2.0)
    assert (request.tried, request.expired, len(purgatory)) == (1, 0, 0)


def test_a_waiter_that_cannot_complete_stays_until_its_time_is_up() -> None:
    network = SimulatedNetwork(VirtualScheduler())
    purgatory = Purgatory(network)
    request = Request()
    purgatory.park(request, [ONE], 1.0)
    purgatory.wake(ONE)
    network.world.sleep(0.9)
    assert request.expired == 0
    network.world.sleep(0.2)
    purgatory.wake(ONE)
    assert (request.tried, request.expired, len(purgatory)) == (1, 1, 0)


def test_only_those_who_watch_the_partition_are_woken_in_the_order_they_came() -> None:
    purgatory = Purgatory(SimulatedNetwork(VirtualScheduler()))
    woken: list[str] = []

    def note(name: str) -> Callable[[], bool]:
        def ready() -> bool:
            woken.append(name)
            return False

        return ready

    for name, partition in (("first", ONE), ("other", TWO), ("second", ONE)):
        purgatory.park(Request(note(name)), [partition], 1.0)
    purgatory.wake(ONE)
    assert woken == ["first", "second"]


def test_a_waiter_may_name_a_partition_twice() -> None:
    purgatory = Purgatory(SimulatedNetwork(VirtualScheduler()))
    request = Request(lambda: True)
    purgatory.park(request, [ONE, ONE], 1.0)
    purgatory.wake(ONE)
    assert (request.tried, len(purgatory)) == (1, 0)


def test_a_waiter_that_removes_another_while_being_woken_spares_it() -> None:
    purgatory = Purgatory(SimulatedNetwork(VirtualScheduler()))
    second = Request()

    def remove_second() -> bool:
        purgatory.remove(second)
        return True

    purgatory.park(Request(remove_second), [ONE], 1.0)
    purgatory.park(second, [ONE], 1.0)
    purgatory.wake(ONE)
    assert (second.tried, len(purgatory)) == (0, 0)


def test_a_clean_stop_answers_everyone() -> None:
    purgatory = Purgatory(SimulatedNetwork(VirtualScheduler()))
    request = Request()
    purgatory.park(request, [ONE], 1.0)
    purgatory.expire_all()
    assert (request.expired, len(purgatory)) == (1, 0)

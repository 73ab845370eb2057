import pytest

from harness.simulation.stack.tasks import Promise, Task, Window, run_all


async def doubled(promise: Promise[int]) -> int:
    return 2 * await promise


def test_a_task_goes_on_when_the_promise_it_waits_for_is_kept_and_only_once() -> None:
    promise: Promise[int] = Promise()
    task = Task(doubled(promise))
    assert (task.is_done, task.result()) == (False, None)
    promise.keep(4)
    promise.keep(5)
    assert (task.is_done, task.result()) == (True, 8)


def test_a_promise_that_was_kept_before_is_not_waited_for() -> None:
    promise: Promise[int] = Promise()
    promise.keep(3)
    assert promise.is_kept
    assert Task(doubled(promise)).result() == 6


def test_a_bug_in_a_task_is_raised_where_its_result_is_looked_at() -> None:
    promise: Promise[int] = Promise()

    async def breaks() -> int:
        raise ValueError(f"a bug after {await promise}")

    task = Task(breaks())
    promise.keep(1)
    assert task.is_done
    with pytest.raises(ValueError, match="a bug after 1"):
        task.result()


def test_two_may_not_wait_for_one_promise() -> None:
    promise: Promise[int] = Promise()
    Task(doubled(promise))
    with pytest.raises(AssertionError, match="two wait"):
        Task(doubled(promise)).result()


def test_a_window_lets_tasks_in_by_the_order_in_which_they_came() -> None:
    window, entered = Window(2), list[int]()

    async def enter(number: int) -> None:
        await window.enter()
        entered.append(number)

    for number in range(4):
        Task(enter(number))
    assert entered == [0, 1]
    window.leave()
    assert entered == [0, 1, 2]
    Task(enter(4))
    window.leave()
    window.leave()
    assert entered == [0, 1, 2, 3, 4]
    for _ in range(2):
        window.leave()
    Task(enter(5))
    assert entered[-1] == 5, "the window is free again"


def test_works_side_by_side_begin_in_order_and_end_when_the_last_has_ended() -> None:
    promises = [Promise[int]() for _ in range(3)]
    ended: list[int] = []

    async def work(promise: Promise[int]) -> None:
        ended.append(await promise)

    task = Task(run_all([work(promise) for promise in promises]))
    promises[2].keep(2)
    promises[0].keep(0)
    assert (ended, task.is_done) == ([2, 0], False)
    promises[1].keep(1)
    assert (ended, task.is_done) == ([2, 0, 1], True)


def test_a_bug_in_one_of_several_works_is_raised_when_all_have_ended() -> None:
    promise: Promise[int] = Promise()

    async def breaks() -> None:
        raise ValueError("a bug")

    async def waits() -> None:
        await promise

    task = Task(run_all([breaks(), waits()]))
    assert not task.is_done
    promise.keep(1)
    with pytest.raises(ValueError, match="a bug"):
        task.result()

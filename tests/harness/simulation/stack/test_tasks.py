import pytest

from harness.simulation.stack.tasks import Promise, Task


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

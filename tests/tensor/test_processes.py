"""Tensors in memory that processes share, and the processes of torch.multiprocessing under `backlight run`."""

import multiprocessing
import os

import pytest

import backlight
from backlight.torch_api.stand_ins import processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
FORK = multiprocessing.get_context("fork")


def test_a_shared_tensor_is_what_another_process_writes():
    total = backlight.zeros(3).share_memory_()
    process = FORK.Process(target=lambda: total.add_(2))
    process.start()
    process.join()
    assert total.tolist() == [2, 2, 2]


def test_sharing_moves_values_strides_and_dtype():
    x = backlight.arange(6, dtype=backlight.int16).reshape(2, 3).t()
    before = x.tolist()
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert x[0].is_shared()
    assert x.detach().is_shared()
    assert (x.tolist(), x.dtype) == (before, backlight.int16)


def test_sharing_twice_keeps_the_memory():
    x = backlight.ones(2).share_memory_()
    pointer = x.data_ptr()
    assert x.share_memory_().data_ptr() == pointer


def test_gradients_reach_a_shared_leaf():
    layer = backlight.nn.Linear(2, 1).share_memory()
    layer(backlight.ones(1, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1]]
    with backlight.no_grad():
        layer.weight.fill_(3)
    assert layer.weight.is_shared()


def test_a_queue_passes_the_memory_of_a_shared_tensor_and_the_values_of_another():
    queue, answer = FORK.Queue(), FORK.Queue()
    shared, own = backlight.zeros(2).share_memory_(), backlight.zeros(2)

    def write():
        for _ in range(2):
            queue.get().add_(1)
        answer.put("done")

    process = FORK.Process(target=write)
    process.start()
    queue.put(shared)
    queue.put(own)
    assert answer.get(timeout=60) == "done"
    process.join()
    assert (shared.tolist(), own.tolist()) == ([1, 1], [0, 0])


def test_a_part_of_a_shared_tensor_arrives_as_the_same_part():
    queue, answer = FORK.Queue(), FORK.Queue()
    base = backlight.arange(6.0).share_memory_()

    def write():
        part = queue.get()
        part.mul_(10)
        answer.put(part.tolist())

    process = FORK.Process(target=write)
    process.start()
    queue.put(base[1::2])
    assert answer.get(timeout=60) == [10, 30, 50]
    process.join()
    assert base.tolist() == [0, 10, 2, 30, 4, 50]


def test_a_result_with_a_history_is_not_sent():
    x = backlight.ones(2, requires_grad=True).share_memory_() * 2
    x.detach().share_memory_()
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        multiprocessing.reduction.ForkingPickler.dumps(x)


# --- spawn ------------------------------------------------------------------------------------------------------------


def add_number(number, total):
    total[number] += number + 1


def test_spawn_calls_the_function_with_each_number():
    total = backlight.zeros(3).share_memory_()
    assert processes.spawn(add_number, (total,), nprocs=3) is None
    assert total.tolist() == [1, 2, 3]


def fail(number):
    if number == 1:
        raise ValueError("the second one")


def leave(number):
    os._exit(7)


def test_an_exception_in_a_process_is_raised_with_its_traceback():
    with pytest.raises(processes.ProcessRaisedException, match="ValueError: the second one") as caught:
        processes.spawn(fail, nprocs=2)
    assert caught.value.error_index == 1


def test_an_exit_of_a_process_is_an_error_that_names_its_code():
    for _ in range(30):  # its pipe closes before its exit code can be read, which one join in ten fell between
        with pytest.raises(processes.ProcessExitedException, match="process 0 terminated with exit code 7") as caught:
            processes.spawn(leave)
        assert caught.value.exit_code == 7


def test_processes_that_are_not_joined_can_be_waited_for():
    started = processes.spawn(fail, nprocs=1, join=False)
    assert len(started.pids()) == 1
    while not started.join():
        pass


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver", None])
def test_each_start_method_forks(method):
    assert processes.get_context(method).get_start_method() == "fork"


def test_an_unknown_method_or_strategy_is_refused():
    with pytest.raises(ValueError, match="cannot find context for 'thread'"):
        processes.set_start_method("thread")
    with pytest.raises(AssertionError, match="nowhere"):
        processes.set_sharing_strategy("nowhere")

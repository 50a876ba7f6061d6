"""Compiled kernels decline numbers that are none, and calls end in MemoryError wherever memory runs out.

What may crash runs in a process of its own.
"""

import importlib
import subprocess
import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

import backlight as bl
from backlight.kernels.native import compiled
from backlight.kernels.random.mersenne_twister import seeded
from backlight.nn import functional

pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled kernels are not built")
HUGE = 2**100


class Declined(Exception):
    """Raised in place of a kernel's NumPy reference."""


def native(name: str):
    """Return the compiled kernel of a name, whose reference says that it declined."""

    def reference(*args):
        raise Declined

    reference.__name__ = name
    return compiled.kernel(reference)


class Index:
    """A number that is no int."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


class Raises:
    def __index__(self):
        raise KeyError


@pytest.mark.parametrize("d", [1.0, -1.0, 1e300, -np.inf])
@pytest.mark.parametrize("c", [5.0, np.inf])
def test_gamma_numbers_decline_parameters_for_which_drawing_would_not_end(d, c):
    numbers = [np.zeros(2), np.zeros(1), np.array([d]), np.array([c])]
    with pytest.raises(Declined):
        native("random_gammas")(seeded(7), 1, *numbers)


def test_binomial_numbers_decline_counts_for_which_drawing_would_not_end():
    with pytest.raises(Declined):
        native("random_binomials")(seeded(7), 1, np.array([np.nan]), np.array([0.3]))


@pytest.mark.parametrize("place", [2, 3, 4, 5])
def test_gamma_numbers_decline_arrays_that_are_too_short(place):
    arguments = [seeded(7), 3, np.zeros(2), np.zeros(3), np.zeros(3), np.zeros(3)]
    arguments[place] = arguments[place][:-1]
    with pytest.raises(Declined):
        native("random_gammas")(*arguments)


@pytest.mark.parametrize("dim", [HUGE, -HUGE, 2**63, "0", 1.0, None, Raises(), Index(HUGE), 2, -2, 0])
def test_rows_decline_what_is_not_their_last_dim(dim):
    x = np.ones((2, 3), "f4")
    for name in ("softmax", "log_softmax"):
        with pytest.raises(Declined):
            native(name)(x, dim)
        with pytest.raises(Declined):
            native(f"{name}_gradient")(x, x, dim)


@pytest.mark.parametrize("dim", [-1, 1, Index(1), Index(-1), True])
def test_rows_take_their_last_dim_as_any_integer(dim):
    assert native("softmax")(np.zeros((3, 2), "f4"), dim).tolist() == [[0.5, 0.5]] * 3


@pytest.mark.parametrize("dims", [(HUGE,), (-HUGE,), (0, HUGE), (1, 1), (2,), (-3,), ("0",), (None,)])
def test_sums_decline_dims_that_are_none(dims):
    with pytest.raises(Declined):
        native("summed")(np.ones((2, 3), "f4"), dims, False)


@pytest.mark.parametrize("last", [HUGE, 2**63 - 1, -1])
def test_a_random_order_of_more_than_there_can_be_is_declined(last):
    with pytest.raises(Declined):
        native("random_order")(np.zeros(625, "u4"), last)


def test_a_generators_state_may_name_any_word():
    for place in (623, 624, 625, 2**32 - 1):
        state = np.arange(625, dtype="u4")
        state[624] = place
        assert len(native("random_words")(state, 3)) == 3
        assert state[624] <= 624


# --- programs ---------------------------------------------------------------------------------------------------------


def options_are_read_before_the_arrays_that_they_may_free():
    class Frees(int):
        def __float__(self):
            values.resize(1, refcheck=False)
            return 2.0

    values = np.ones(1 << 22)
    native("scale_in_place")(values, Frees())
    assert values.tolist() == [2.0]


def switched():
    with bl.no_grad(), bl.inference_mode(False):
        pass


# From two leaves of four numbers, what is called while memory runs out. Nothing is recorded by Python code here: that
# asks for frames by `f_back`, which in CPython 3.11 gives None and leaves its MemoryError set.
CALLS = {
    "an op": lambda x, y: lambda: x * y,
    "an op beside a number": lambda x, y: lambda: x * 2.5 + 1,
    "an op that keeps its output": lambda x, y: x.tanh,
    "a reduction": lambda x, y: x.detach().sum,
    "a matrix product": lambda x, y: partial(bl.matmul, x.detach().reshape(2, 2), y.detach().reshape(2, 2)),
    "a kernel of rows": lambda x, y: partial(functional.softmax, x.detach(), 0),
    "out": lambda x, y: partial(bl.exp, x.detach(), out=bl.zeros(4)),
    "a backward pass": lambda x, y: (x * y + x).tanh().sum().backward,
    "a backward pass of several outputs": lambda x, y: sum(x.split(2)).sum().backward,
    "modes": lambda x, y: switched,
    "an op in anomaly mode": lambda x, y: lambda: (x * y).exp(),
    "a backward pass in anomaly mode": lambda x, y: (x * y).exp().sum().backward,
}

# Python 3.13.0 crashes where a generator expression is made without memory, in any program.
WITH_GENERATORS = {"out", "a backward pass of several outputs"}


def without_memory_every_call_ends_in_memory_error_or_its_result():
    fails = importlib.import_module("_testcapi")
    for name, prepared in CALLS.items():
        if name in WITH_GENERATORS and sys.version_info >= (3, 13):
            continue
        ended = set()
        for allocation in range(150):
            x, y = (
                bl.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True),
                bl.tensor([4.0, 3.0, 2.0, 1.0], requires_grad=True),
            )
            prepared(x, y)()
            x.grad = y.grad = None
            call = prepared(x, y)
            with bl.autograd.detect_anomaly() if "anomaly" in name else nullcontext():
                fails.set_nomemory(allocation, allocation + 1)
                try:
                    call()
                    problem = None
                except BaseException as raised:
                    problem = raised
                finally:
                    fails.remove_mem_hooks()
            assert problem is None or isinstance(problem, MemoryError), (name, allocation, repr(problem))
            ended.add(type(problem))
            assert bl.is_grad_enabled() and not bl.is_inference_mode_enabled(), (name, allocation)
            x.grad = None
            (x * y).sum().backward()
            assert x.grad.tolist() == [4, 3, 2, 1], (name, allocation)
        assert type(None) in ended and len(ended) > 1, (name, ended)


@pytest.mark.parametrize(
    "name",
    [
        "options_are_read_before_the_arrays_that_they_may_free",
        "without_memory_every_call_ends_in_memory_error_or_its_result",
    ],
)
def test_in_a_process_of_its_own(name):
    if name.startswith("without_memory"):
        pytest.importorskip("_testcapi", reason="this Python was built without its test modules")
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", __file__, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    globals()[sys.argv[1]]()

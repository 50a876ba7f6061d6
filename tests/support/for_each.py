"""One check of many samples in one test: what a test costs by itself is paid once, and no failure hides the next."""

import functools
import inspect
import itertools
import random
import sys
from collections.abc import Callable, Iterable

import numpy as np
import pytest

import backlight

FAILURES = (Exception, pytest.fail.Exception)  # the second is what `pytest.raises` ends in


def seed_all() -> None:
    """Set every generator that tests draw from to the same numbers."""
    random.seed(0)
    np.random.seed(0)
    backlight.default_generator.manual_seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)  # torch.manual_seed takes 60 times as long


def for_each(samples: Iterable, check: Callable) -> None:
    """Run a check of each sample, each with the random numbers that a test of its own would have.

    Args:
        samples: what is checked; a tuple is given as several arguments.
        check: raises what is wrong with a sample.

    Raises:
        BaseExceptionGroup: what failed, each with a note that says for which sample; or that there is no sample.
    """
    failed, count, skipped = [], 0, []
    for sample in samples:
        count += 1
        seed_all()
        try:
            check(*sample) if isinstance(sample, tuple) else check(sample)
        except pytest.skip.Exception as reason:
            skipped.append(reason)
        except FAILURES as problem:
            problem.add_note(f"for {sample!r}")
            failed.append(problem)
    assert count, "there is nothing to check"
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {count} fail", failed)
    if len(skipped) == count:
        raise skipped[0]


def together(**values: Iterable) -> Callable:
    """Give a test each combination of values one after the other, as `parametrize` does in a test each.

    It is for tests that take a moment and share nothing that they change; what fixtures give them is made once.
    """
    combinations = [dict(zip(values, some)) for some in itertools.product(*values.values())]

    def folded(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(**given):
            for_each(combinations, lambda sample: test(**given, **sample))

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in values]
        run.__signature__ = signature.replace(parameters=left)
        return run

    return folded

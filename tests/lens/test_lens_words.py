"""What the lens says where nothing was recorded, and whose line a warning has while PyTorch is watched."""

import sys
import warnings

import pytest
import torch

import backlight
from backlight import lens

NOTHING = "nothing was recorded: no op with a gradient ran in the block"


@pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])
def test_a_watch_that_saw_nothing_says_so(t):
    with lens.watch(engine=t.__name__) as watch:
        t.ones(2).sum()
    assert watch.record.tree() == NOTHING
    assert watch.record.replay().text() == NOTHING
    assert NOTHING.capitalize() in watch.record.html()


def test_a_page_of_something_does_not_say_that_there_is_nothing():
    with lens.watch() as watch:
        torch.ones(2, requires_grad=True).sum().backward()
    assert NOTHING.capitalize() not in watch.record.html()


def line() -> int:
    return sys._getframe(1).f_lineno


def places(caught) -> list[tuple[str, int]]:
    return [(one.filename, one.lineno) for one in caught]


def test_warnings_of_pytorch_have_the_users_line_while_it_is_watched():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with warnings.catch_warnings(record=True) as caught, lens.watch(engine="torch"):
        warnings.simplefilter("always")
        lines = [line() + 1]
        assert y.grad is None
        lines.append(line() + 1)
        torch.nn.functional.mse_loss(x, torch.ones(2, 2))
        lines.append(line() + 1)
        torch.nn.functional.softmax(x)
    assert places(caught) == [(__file__, one) for one in lines]


def test_a_line_is_warned_of_once_and_another_line_too():
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught, lens.watch(engine="torch"):
        warnings.simplefilter("default")
        for _ in range(3):
            torch.nn.functional.softmax(x)
        torch.nn.functional.softmax(x)
    assert len(caught) == 2 and len(set(places(caught))) == 2


def test_filters_for_the_users_module_hold_in_a_watch():
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught, lens.watch(engine="torch"):
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__)
        torch.nn.functional.softmax(x)
        warnings.filterwarnings("error", module=__name__)
        with pytest.raises(UserWarning, match="Implicit dimension"):
            torch.nn.functional.softmax(x)
    assert caught == []


def test_warnings_are_shown_as_before_after_a_watch():
    before = warnings.showwarning
    with lens.watch(engine="torch"):
        assert warnings.showwarning is not before
    assert warnings.showwarning is before

"""Interpreters: asked about each op of their thread, innermost first, and gone without a trace."""

import threading

import backlight
from backlight.dispatch.dispatcher import composite_function, interpreting
from backlight.dispatch.interpreters import UNHANDLED, Interpreter


class Notes(Interpreter):
    """Notes the ops that it is asked about; gives `answers[name]` where there is one."""

    def __init__(self, **answers):
        self.seen, self.answers = [], answers

    def op(self, op, function, args, kwargs):
        self.seen.append(op.name)
        return self.answers.get(op.name, UNHANDLED)


class Doubling(Notes):
    """Runs each op on the interpreters below, and doubles what comes back."""

    def op(self, op, function, args, kwargs):
        self.seen.append(op.name)
        return function(*args, **kwargs) * 2


def test_compiled_and_other_ops_are_seen_in_order():
    x = backlight.ones(3, requires_grad=True)
    with interpreting(Notes()) as notes:
        (x.tanh() * 2).reshape(3, 1).sum(dim=0)
    assert notes.seen == ["tanh", "mul", "view", "sum"]


def test_an_answer_stands_for_the_op():
    with interpreting(Notes(tanh="answered")):
        assert backlight.ones(3).tanh() == "answered"
    assert backlight.ones(3).tanh().shape == (3,)


def test_what_an_interpreter_calls_goes_to_those_below():
    x = backlight.zeros(2)
    with interpreting(Notes()) as outer, interpreting(Doubling()) as inner:
        assert x.exp().tolist() == [2, 2]
    assert inner.seen == ["exp"]
    assert outer.seen == ["exp", "mul"]


class Batching(Notes):
    opens_batches = True


def test_what_opens_batches_is_asked_first_and_leaves_the_others_on():
    x = backlight.zeros(2)

    class Twice(Batching):
        def op(self, op, function, args, kwargs):
            self.seen.append(op.name)
            return function(*args, **kwargs)

    with interpreting(Twice()) as outer, interpreting(Notes(exp="answered")) as inner:
        assert x.exp() == "answered"
    assert (outer.seen, inner.seen) == (["exp"], ["exp"])


@composite_function
def _function(x):
    return x + 1


def test_a_function_that_is_no_op_may_be_asked_about_as_a_whole():
    class Whole(Interpreter):
        def composite(self, function, args, kwargs):
            return UNHANDLED if args[0] is None else (function.__name__, args, kwargs)

    x = backlight.ones(2)
    with interpreting(Whole()):
        assert _function(x) == ("_function", (x,), {})
    assert _function(x).tolist() == [2, 2]


def test_another_thread_is_not_interpreted():
    with interpreting(Notes()) as notes:
        thread = threading.Thread(target=lambda: backlight.ones(3).tanh())
        thread.start()
        thread.join()
    assert notes.seen == []


def test_an_op_made_of_others_for_other_dims_is_seen_as_these():
    with interpreting(Notes()) as notes:
        backlight.ones(2, 3, 4) @ backlight.ones(4, 2)
    assert notes.seen == ["view", "mm", "unsafe_view"]


def test_an_error_leaves_the_stack_as_it_was():
    class Failing(Interpreter):
        def op(self, op, function, args, kwargs):
            raise KeyError(op.name)

    with interpreting(Notes()) as outer, interpreting(Failing()):
        for _ in range(2):
            try:
                backlight.ones(2).exp()
            except KeyError as problem:
                assert problem.args == ("exp",)
    backlight.ones(2).exp()
    assert outer.seen == []

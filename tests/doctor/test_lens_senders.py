"""How an event reaches the doctor's detectors, in Python and in C, and what the engines tell cheaply."""

import numpy as np
import pytest
import torch as rival

import backlight as ours
from backlight.kernels.native import core
from backlight.lens import doctor
from backlight.lens.doctor.engine_watch import _PythonSender
from backlight.lens.engines import engine_named, engine_of

SENDERS = [_PythonSender, *([] if core is None else [core.Sender])]
each_sender = pytest.mark.parametrize("sender", SENDERS)


class Watch:
    """What a sender needs of an `EngineWatch`."""

    def __init__(self):
        self.busy, self.read, self.given_up = False, None, []

    def _give_up(self, detector, problem):
        self.given_up.append((detector, str(problem)))


class Listening:
    """A detector that notes what it gets, and may fail."""

    def __init__(self, watch, problem=None):
        self.watch, self.problem, self.got = watch, problem, []

    def called(self, *args):
        self.got.append((args, self.watch.busy, self.watch.read))
        if self.problem is not None:
            raise self.problem


@each_sender
def test_an_event_goes_to_all_listeners_while_the_watch_is_busy(sender):
    watch = Watch()
    first, second = Listening(watch), Listening(watch)
    sender(watch, [first.called, second.called])(1, "two")
    assert first.got == second.got == [((1, "two"), True, {})]
    assert (watch.busy, watch.read) == (False, None)


@each_sender
def test_nothing_is_sent_while_a_detector_runs(sender):
    watch = Watch()
    listening = Listening(watch)
    send = sender(watch, (listening.called,))
    watch.busy = True
    send()
    assert listening.got == []
    assert watch.busy


@each_sender
def test_a_detector_that_fails_is_given_up_and_the_others_go_on(sender):
    watch = Watch()
    failing, other = Listening(watch, ValueError("mine")), Listening(watch)
    sender(watch, [failing.called, other.called])()
    assert watch.given_up == [(failing, "mine")]
    assert len(other.got) == 1
    assert (watch.busy, watch.read) == (False, None)


@each_sender
def test_an_interrupt_leaves_the_watch_as_it_was(sender):
    watch = Watch()
    interrupted, other = Listening(watch, KeyboardInterrupt()), Listening(watch)
    with pytest.raises(KeyboardInterrupt):
        sender(watch, [interrupted.called, other.called])()
    assert other.got == watch.given_up == []
    assert (watch.busy, watch.read) == (False, None)


@each_sender
def test_listeners_that_are_taken_off_meanwhile_get_the_event_still(sender):
    watch = Watch()
    listeners = []
    other = Listening(watch)
    listeners += [listeners.clear, other.called]
    send = sender(watch, listeners)
    send()
    send()
    assert len(other.got) == 1


@pytest.mark.parametrize("engine", ["backlight", "torch"])
def test_next_number_lies_between_earlier_and_later_nodes(engine):
    found, module = engine_named(engine), engine_named(engine).module
    x = module.ones(2, requires_grad=True)
    before = x * 2
    number = found.next_number()
    after = x * 2
    assert before.grad_fn._sequence_nr() < number <= after.grad_fn._sequence_nr()


@pytest.mark.parametrize(
    "tensor",
    [rival.tensor([1 + 2j]).conj(), rival.tensor([1 + 2j]).conj().imag, rival.ones(2, requires_grad=True)],
    ids=["conjugated", "negated", "requires grad"],
)
def test_array_gives_the_values_of_what_is_only_marked(tensor):
    assert np.array_equal(engine_of(tensor).array(tensor), tensor.detach().resolve_conj().resolve_neg().numpy())


@pytest.mark.parametrize("torch", [rival, ours], ids=["torch", "backlight"])
def test_listeners_to_one_function_hear_of_it_in_their_order_and_it_is_patched_once(torch):
    normal, heard = torch.distributions.Normal, []
    original = normal.sample
    with doctor(engines=[engine_of(torch.ones(1))]) as report:
        watch = report.session.watches[0]
        patched = normal.sample
        for name in ("first", "second"):
            watch.after(normal, "sample", lambda frame, *rest, name=name: heard.append((name, frame.f_code.co_name)))
        assert normal.sample is patched
        normal(0.0, 1.0).sample()
    here = "test_listeners_to_one_function_hear_of_it_in_their_order_and_it_is_patched_once"
    assert heard == [("first", here), ("second", here)]
    assert normal.sample is original

"""The compiled core refuses what it cannot use: classes, plans, signatures, modes; and frees what it took by then.

Each program loads the native module alone, in a process of its own, and gives it classes made here: so it can be given
what backlight never gives it, and a crash fails one test.
"""

import gc
import importlib.util
import operator
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(importlib.util.find_spec("backlight").submodule_search_locations[0]) / "kernels"
BUILT = sorted(path for path in FOLDER.glob("_native*") if path.suffix in (".so", ".pyd"))
GRAD, OUT = -1, -2


class State:
    __slots__ = ("__dict__", "__weakref__", "_data", "_edge", "_storage", "_view")
    _accumulator = _grad = _hooks = _post_accumulate_hooks = None


class Tensor(State):
    __slots__ = ()


class Node:
    __slots__ = ("code", "edges", "extra", "lasti", "sequence")


class Product(Node):
    __slots__ = ("a", "a_version", "b", "b_version", "broadcast_restore", "out", "out_storage", "out_version", "scale")


class Output:
    __slots__ = ("node", "number")


class Storage:
    __slots__ = ("version",)


class Latest:
    __slots__ = ("code",)


class Recording:
    __slots__ = ("everywhere", "switched_off")


class Modes(threading.local):
    grad_enabled, inference = True, False


def load():
    """Return the native module, without backlight."""
    spec = importlib.util.spec_from_file_location("_native", BUILT[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts() -> dict:
    """Return all that the core must be given; an op is its own plan."""
    recording = Recording()
    recording.everywhere, recording.switched_off = True, 0
    latest = Latest()
    latest.code = None
    classes = {cls.__name__: cls for cls in (Tensor, Node, Output, Storage)}
    markers = {"TensorState": State, "LEAF": object(), "NOT_SAVED": object(), "latest": latest, "recording": recording}
    functions = {
        "user_frame": lambda frame: frame,
        "add_to_grad": None,
        "say_where": None,
        "nonfinite_node": None,
    }
    return {**classes, **markers, **functions, "modes": Modes(), "USER_FILES": {__file__}, "prepare": lambda op: op}


def tensor(given: dict, numbers, leaf: bool = False) -> Tensor:
    made = Tensor()
    made._data, made._edge, made._storage, made._view = np.array(numbers, "f4"), None, None, None
    if leaf:
        made._edge = given["LEAF"]
    return made


def instruction(module, name: str, to: int, *read: int) -> bytes:
    return bytes([module.INSTRUCTIONS.index(name), to, *(read + (0, 0, 0))[:3]])


def plan(module, **changed) -> tuple:
    """Return a plan of a product of two inputs that broadcasts, with some of its parts changed."""
    product = 2, instruction(module, "MUL", 2, 0, 1), ()
    whole = {
        "inputs": 2,
        "forward": product,
        "node_class": Product,
        "edges": ((0, ((GRAD, 1), product)), (1, ((GRAD, 0), product))),
        "saved": ((0, 2, "a", "a_version"), (1, 1, "b", "b_version")),
        "out": False,
        "broadcasts": True,
        "constants": (),
    }
    return tuple({**whole, **changed}.values())


def raised(call, *args) -> Exception | None:
    """Return what a call raises, or None."""
    try:
        call(*args)
    except Exception as problem:
        return problem.with_traceback(None)
    return None


# --- programs ---------------------------------------------------------------------------------------------------------


def incomplete_setup_is_refused_and_releases_what_it_took():
    module, given = load(), parts()
    tracked = [given[name] for name in ("LEAF", "modes", "latest", "prepare")]
    before = [sys.getrefcount(one) for one in tracked]
    for name in given:
        problem = raised(module.core_setup, {key: value for key, value in given.items() if key != name})
        assert isinstance(problem, KeyError) and name in str(problem), problem
    for name in ("Tensor", "TensorState", "Node", "Output", "Storage"):
        for wrong in (5, int, object, Counter):  # an empty object of a class is made without what its base needs
            assert isinstance(raised(module.core_setup, {**given, name: wrong}), TypeError), (name, wrong)
    for name in ("latest", "recording", "USER_FILES"):
        problem = raised(module.core_setup, {**given, name: object()})
        assert isinstance(problem, (TypeError, AttributeError)), (name, problem)
    del wrong
    problem = None
    gc.collect()
    assert [sys.getrefcount(one) for one in tracked] == before
    module.core_setup(given)
    assert isinstance(raised(module.core_setup, given), RuntimeError)


def tensors_must_have_the_slots_of_their_state():
    class Hiding(State):
        __slots__ = ("_data",)

    module, given = load(), parts()
    problem = raised(module.core_setup, {**given, "Tensor": Hiding})
    assert isinstance(problem, TypeError) and "_data" in str(problem), problem


def setup_may_be_entered_while_it_runs():
    class Curious(type):
        def __getattribute__(cls, name):
            if name == "_data" and not entered:
                entered.append(name)
                module.core_setup(given)
            return type.__getattribute__(cls, name)

    class Looked(State, metaclass=Curious):
        __slots__ = ()

    module, given, entered = load(), parts(), []
    problem = raised(module.core_setup, {**given, "Tensor": Looked})
    assert entered and isinstance(problem, RuntimeError), problem
    x = tensor(given, [1, 2])
    assert module.core_function(None, plan(module))(x, x)._data.tolist() == [1, 4]


def a_usable_plan_computes_and_records():
    module, given = load(), parts()
    module.core_setup(given)
    x, y = tensor(given, [1, 2, 3], leaf=True), tensor(given, [4, 5, 6], leaf=True)
    out = module.core_function(None, plan(module))(x, y)
    assert out._data.tolist() == [4, 10, 18]
    assert type(out._edge) is Product and out._edge.edges == (x, y)
    assert module.core_backward_pass([out._edge], [np.ones(3, "f4")], False, None, None, None, False, -1) == []
    assert (x._grad._data.tolist(), y._grad._data.tolist()) == ([4, 5, 6], [1, 2, 3])
    fewest = (1, instruction(module, "NEG", 0, 0), ()), None, (), (), False, False, ()
    assert module.core_function(None, (1, *fewest))(x)._data.tolist() == [-1, -2, -3]


def unusable_plans(module) -> dict[str, tuple]:
    """Return plans that index beyond something, or read what nobody wrote."""

    def steps(*many, sources=2, constants=()):
        return sources, b"".join(instruction(module, *one) for one in many), constants

    product = plan(module)[1]
    multiply, add = ("MUL", 2, 0, 1), ("ADD", 3, 2, 0)
    rule = ((GRAD, 1), product)
    saved = (0, 2, "a", "a_version")
    forwards = {
        "no instruction": steps(),
        "part of an instruction": (2, b"\0" * 4, ()),
        "too many instructions": steps(*[multiply] * 25),
        "an instruction that does not exist": (2, bytes([len(module.INSTRUCTIONS), 2, 0, 1, 0]), ()),
        "a register that does not exist": steps(("MUL", 2, 0, 10)),
        "a third register that does not exist": steps(("NEG", 2, 0, 0, 255)),
        "a result in a source": steps(("MUL", 1, 0, 1), multiply),
        "a result beyond the scratch": steps(("MUL", 10, 0, 1), multiply),
        "scratch that nothing was written to": steps(("ADD", 3, 2, 0)),
        "scratch that is written later": steps(("ADD", 3, 2, 0), multiply),
        "other scratch than was written": steps(("MUL", 4, 0, 1), add),
        "a third operand that nothing was written to": steps(("WHERE", 2, 0, 1, 5)),
        "too many sources": steps(multiply, sources=9),
        "fewer than no sources": steps(multiply, sources=-1),
        "more sources than inputs": steps(multiply, sources=3),
        "too many constants": steps(multiply, constants=(1.0,) * 9),
        "a constant that is no number": steps(multiply, constants=("1",)),
    }
    changed = {
        "no inputs": {"inputs": 0},
        "five inputs": {"inputs": 5},
        "fewer than no inputs": {"inputs": -1},
        "a class that is no node's": {"node_class": int},
        "a class that is none": {"node_class": 5},
        "edges without a class": {"node_class": None},
        "five edges": {"edges": ((0, None),) * 5},
        "an edge to a missing input": {"edges": ((2, rule),)},
        "an edge to input -1": {"edges": ((-1, rule),)},
        "an edge that is no tuple": {"edges": (5,)},
        "a derivative that is no tuple": {"edges": ((0, 5),)},
        "a derivative of too few sources": {"edges": ((0, ((GRAD,), product)),)},
        "a derivative that reads what is not kept": {"saved": (saved,)},
        "a derivative that reads input 4": {"edges": ((0, ((GRAD, 4), product)),)},
        "a derivative that reads input 64": {"edges": ((0, ((GRAD, 64), product)),)},
        "a derivative that reads a huge input": {"edges": ((0, ((GRAD, 2**70), product)),)},
        "a derivative that reads the output": {"edges": ((0, ((GRAD, OUT), product)),)},
        "an input kept twice": {"saved": (saved, saved)},
        "a missing input kept": {"saved": ((2, 0, "a", "a_version"),)},
        "input -1 kept": {"saved": ((-1, 0, "a", "a_version"),)},
        "a slot that is missing": {"saved": ((0, 0, "c", "a_version"),)},
        "a version's slot that is missing": {"saved": ((0, 0, "a", "c_version"),)},
        "no slots for the output": {"node_class": Node, "edges": (), "saved": (), "broadcasts": False, "out": True},
        "no slot for broadcasting": {"node_class": Node, "edges": (), "saved": ()},
        "five options": {"constants": (("scale", 1.0),) * 5},
        "an option without a slot": {"constants": (("shift", 1.0),)},
        "an option that is no tuple": {"constants": (5,)},
    }
    changed |= {f"forward: {name}": {"forward": forward} for name, forward in forwards.items()}
    changed |= {f"derivative: {name}": {"edges": ((0, ((GRAD, 1), forward)),)} for name, forward in forwards.items()}
    del changed["derivative: more sources than inputs"]  # a derivative has more: refused for the number of its sources
    return {name: plan(module, **one) for name, one in changed.items()} | {
        "no tuple": 5,
        "too short": plan(module)[:7],
        "too long": (*plan(module), 1),
    }


def unusable_plans_are_refused():
    module, given = load(), parts()
    module.core_setup(given)
    x = tensor(given, [1, 2, 3])
    for name, one in unusable_plans(module).items():
        problem = raised(module.core_function(operator.mul, one), x, x)
        assert isinstance(problem, (ValueError, TypeError, OverflowError, AttributeError)), (name, problem)
    calls, classes = len(gc.get_objects()), sys.getrefcount(Product)
    for _ in range(50):
        for one in unusable_plans(module).values():
            raised(module.core_function(operator.mul, one), x, x)
    gc.collect()
    assert sys.getrefcount(Product) <= classes and len(gc.get_objects()) < calls + 1000


def a_plan_that_no_node_runs_by_goes_with_its_function():
    module, given = load(), parts()
    module.core_setup(given)
    x, program = tensor(given, [1, 2]), (1, instruction(module, "NEG", 0, 0), ())
    fewest = 1, program, None, (), (), False, False, ()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(1000):
        module.core_function(None, fewest)(x)
    after, _ = tracemalloc.get_traced_memory()
    assert after - before < 100_000  # a thousand plans take a megabyte and more


def signatures_must_index_their_own_parameters():
    module, given = load(), parts()
    module.core_setup(given)
    wrong = {
        "positional ones below none": ((1,), ("x",), -1, False),
        "positional ones beyond all": ((1,), ("x",), 2, False),
        "a list that spreads over none": ((1,), ("x",), 0, True),
        "fewer than none, spread": ((1,), ("x",), -5, True),
        "a kind that is no number": (("x",), ("x",), 1, False),
        "a kind below 0": ((-1,), ("x",), 1, False),
        "a kind beyond 64 bits": ((2**64,), ("x",), 1, False),
    }
    for name, row in wrong.items():
        module.core_kinds(lambda function, row=row: [row], lambda *args: None, ((Tensor, 1),))
        problem = raised(module.checked_function(len, "m", "n"), (1, 2))
        assert isinstance(problem, (ValueError, TypeError, OverflowError)), (name, problem)
    unread = 5, (1,), ((1,), ("x", "y"), 1, False), ((1,) * 17, ("x",) * 17, 1, False), ((1,), (5,), 1, False)
    for rows in ({}, *([row] for row in unread)):
        module.core_kinds(lambda function, rows=rows: rows, lambda *args: None, ((Tensor, 1),))
        assert module.checked_function(len, "m", "n")((1, 2)) == 2

    class Shrinks:
        def __bool__(self):
            rows.clear()
            return True

    rows = [((64,), ("x",), 1, Shrinks()), ((64,), ("x",), 1, False)]
    module.core_kinds(lambda function: rows, lambda *args: None, ((Tensor, 1),))
    assert module.checked_function(len, "m", "n")("ab") == 2 and not rows


def types_of_arguments_change_together_or_not_at_all():
    module, given = load(), parts()
    module.core_setup(given)
    asked = []
    rows = [((4,), ("x",), 1, False)]
    module.core_kinds(lambda function: rows, lambda *args: asked.append(args), ((Tensor, 1), (Latest, 4)))
    for wrong in (((Tensor, 1), 5), ((Output, 1), (5, 4)), ((Tensor, 1),) * 9):
        assert raised(module.core_kinds, lambda function: None, None, wrong) is not None
    assert module.checked_function(type, "m", "n")(Latest()) is Latest and not asked  # Latest is still known
    assert module.checked_function(type, "m", "n")(Output()) is Output and asked


def grad_modes_need_a_dict_and_a_count():
    class Odd:
        __dict__ = 5

    class Counts:
        __slots__ = ("everywhere", "switched_off")

    module, recording = load(), Recording()
    assert isinstance(raised(module.set_recording, False), RuntimeError)
    recording.everywhere, recording.switched_off = True, 0
    modes = Modes()
    module.grad_setup(modes, recording)
    assert module.set_recording(False) is True and module.set_recording(True) is False

    class Half:
        __slots__ = ("a", "b", "c", "d", "everywhere")

    assert isinstance(raised(module.grad_setup, modes, Half()), AttributeError)
    for _ in range(3):
        assert module.set_recording(False) is True and recording.switched_off == 1 and recording.everywhere is False
        assert module.set_recording(True) is False and recording.switched_off == 0 and recording.everywhere is True
    for count in (2**63 - 1, 2**63, 2**70, -(2**70), "1", None):
        recording.switched_off = count
        assert raised(module.set_recording, False) is not None
        assert module.set_recording(True) is True  # as it was: the switch was undone
    del recording.switched_off
    assert isinstance(raised(module.set_recording, False), RuntimeError)
    module.grad_setup(Odd(), Counts())
    assert isinstance(raised(module.set_recording, False), TypeError)


def without_memory_a_switch_of_grad_mode_is_undone():
    fails = importlib.import_module("_testcapi")
    module, recording = load(), Recording()
    recording.everywhere, recording.switched_off = True, 1000  # beyond the ints that are kept
    lost = 0
    for kind in ("requested", "inferring"):
        for allocation in range(12):
            modes = Modes()
            modes.__dict__.clear()
            module.grad_setup(modes, recording)
            block = module.GradBlock()
            setattr(block, kind, int(kind == "inferring"))
            enter, leave, failed = block.__enter__, block.__exit__, False
            fails.set_nomemory(allocation, allocation + 1)
            try:
                enter()
            except MemoryError:
                failed = True
            fails.remove_mem_hooks()
            lost += failed
            if not failed:
                leave(None, None, None)
            switches = [modes.__dict__.get(name, name in ("requested", "grad_enabled")) for name in SWITCHES]
            assert switches == [True, True, False, False] and recording.switched_off == 1000, (allocation, switches)
            assert raised(leave, None, None, None) is not None
    assert lost


SWITCHES = ("requested", "grad_enabled", "inference", "marks")


def without_memory_plans_and_setup_fail_cleanly():
    fails = importlib.import_module("_testcapi")
    module, given = load(), parts()
    for allocation in range(60):
        fails.set_nomemory(allocation, allocation + 1)
        try:
            module.core_setup(given)
        except MemoryError:
            continue
        finally:
            fails.remove_mem_hooks()
        break
    assert allocation > 10
    x, whole = tensor(given, [1, 2, 3], leaf=True), plan(module, constants=(("scale", 1.5),))
    failed = 0
    for allocation in range(60):
        function = module.core_function(operator.mul, whole)
        fails.set_nomemory(allocation, allocation + 1)
        try:
            out = function(x, x)
        except MemoryError:
            failed += 1
            continue
        finally:
            fails.remove_mem_hooks()
        assert out._data.tolist() == [1, 4, 9] and out._edge.scale == 1.5
    assert failed > 5


def without_memory_a_backward_pass_fails_cleanly():
    fails = importlib.import_module("_testcapi")
    module, given = load(), parts()
    given["say_where"] = lambda problem, node: None
    module.core_setup(given)
    function, failed, ones = module.core_function(operator.mul, plan(module)), 0, np.ones(3, "f4")
    for allocation in range(60):
        x, y = tensor(given, [1, 2, 3], leaf=True), tensor(given, [4, 5, 6], leaf=True)
        roots, grads = [function(function(x, y), y)._edge], [ones]
        fails.set_nomemory(allocation, allocation + 1)
        try:
            done = module.core_backward_pass(roots, grads, False, None, None, None, False, -1)
        except MemoryError:
            failed += 1
            continue
        finally:
            fails.remove_mem_hooks()
        assert done == [] and x._grad._data.tolist() == [16, 25, 36] and y._grad._data.tolist() == [8, 20, 36]
    assert failed > 5
    assert sys.getrefcount(ones) == 3


def without_memory_the_module_fails_to_load_with_an_exception():
    fails = importlib.import_module("_testcapi")
    spec = importlib.util.spec_from_file_location("_native", BUILT[0])
    for allocation in range(3000):
        fails.set_nomemory(allocation, allocation + 1)
        try:
            module = spec.loader.create_module(spec)
        except (MemoryError, ImportError):
            continue
        finally:
            fails.remove_mem_hooks()
        break
    assert None not in module.INSTRUCTIONS and len(module.INSTRUCTIONS) > 20


NEEDS_TESTCAPI = tuple(name for name in globals() if name.startswith("without_memory"))
PROGRAMS = (
    incomplete_setup_is_refused_and_releases_what_it_took,
    tensors_must_have_the_slots_of_their_state,
    setup_may_be_entered_while_it_runs,
    a_usable_plan_computes_and_records,
    unusable_plans_are_refused,
    a_plan_that_no_node_runs_by_goes_with_its_function,
    signatures_must_index_their_own_parameters,
    types_of_arguments_change_together_or_not_at_all,
    grad_modes_need_a_dict_and_a_count,
    *(globals()[name] for name in NEEDS_TESTCAPI),
)


@pytest.mark.skipif(not BUILT, reason="the compiled kernels are not built")
@pytest.mark.parametrize("name", [program.__name__ for program in PROGRAMS])
def test_the_core_alone(name):
    if name in NEEDS_TESTCAPI:
        pytest.importorskip("_testcapi", reason="this Python was built without its test modules")
    command = [sys.executable, "-X", "faulthandler", __file__, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    globals()[sys.argv[1]]()

"""Attributes deleted, exchanged or replaced by rubbish: an exception, never the end of the interpreter.

Every program runs in a process of its own, forked from one that imported backlight; then an untouched graph must still
work in it.
"""

import json
import subprocess
import sys

import pytest

NO_INPUTS = "False, None, None, None, False, -1"  # the arguments of a pass over all that the roots reach
WITH = "\ntry:\n    (a * 2).sum().backward()\nfinally:\n    "

START = """
import copy, gc, pickle
import backlight as bl
from backlight.engine.node import Node, Output
from backlight.engine.tensor_state import TensorState
a = bl.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = bl.tensor([4.0, 5.0, 6.0], requires_grad=True)
y = a * b
z = (a.exp() + b).tanh()
parts = bl.stack([a, b]).unbind(0)
"""
END = """
c = bl.tensor([1.0, 2.0], requires_grad=True)
(c * 3).sum().backward()
assert c.grad.tolist() == [3.0, 3.0]
"""
BAD = [
    "None",
    "()",
    "(None,)",
    "(1, 2)",
    "(a,) * 9",
    "[a, b]",
    "'text'",
    "5",
    "object()",
    "2**70",
    "bl.zeros(3)",
    "y.grad_fn",
    "a",
]
TENSOR_SLOTS = ("_data", "_edge", "_storage", "_view")
NODE_SLOTS = (
    "edges",
    "sequence",
    "code",
    "lasti",
    "extra",
    "broadcast_restore",
    "input",
    "input_version",
    "other",
    "other_version",
)
USES = (
    "y.sum().backward()",
    "(y + z).sum().backward()",
    "(a * 2).sum().backward()",
    "repr(y); (y * y).sum()",
    "copy.deepcopy(y)",
)


def assignments():
    """Return programs that delete or replace each slot that C reads."""
    for use in USES[:3]:
        for name in NODE_SLOTS:
            yield f"del y.grad_fn.{name}", use
            for value in BAD:
                yield f"y.grad_fn.{name} = {value}", use
    for use in USES:
        for tensor in ("y", "a"):
            for name in TENSOR_SLOTS:
                yield f"del {tensor}.{name}", use
                for value in BAD:
                    yield f"{tensor}.{name} = {value}", use
    for slot in ("out", "out_storage", "out_version"):
        yield f"del z.grad_fn.{slot}", "z.sum().backward()"
        for value in BAD:
            yield f"z.grad_fn.{slot} = {value}", "z.sum().backward()"
    for slot in ("node", "number"):
        yield f"del parts[0]._edge.{slot}", "parts[0].sum().backward()"
        for value in [*BAD, "-1", "7"]:
            yield f"parts[0]._edge.{slot} = {value}", "(parts[0] * parts[1]).sum().backward()"


NAMED = {
    "a tensor without slots": "t = bl.Tensor.__new__(bl.Tensor); t * 2",
    "a tensor without slots, beside one": "a * bl.Tensor.__new__(bl.Tensor)",
    "a subclass with slots, without values": "class T(bl.Tensor):\n    __slots__ = ('more',)\na * T.__new__(T)",
    "a node without slots": "y._edge = type(y.grad_fn).__new__(type(y.grad_fn)); y.sum().backward()",
    "an edge without slots": "y._edge = Output.__new__(Output); y.sum().backward()",
    "a state without slots": "y.grad_fn.edges = (TensorState(), a); y.sum().backward()",
    "half-built objects found by the collector": (
        "t = bl.Tensor.__new__(bl.Tensor)\n[repr(o) for o in gc.get_objects() if type(o) is bl.Tensor]"
    ),
    "another class of nodes": "y.grad_fn.__class__ = type((a + b).grad_fn); y.sum().backward()",
    "another class of tensors": "class T(bl.Tensor): pass\na.__class__ = T\n(a * 2).sum().backward()",
    "made twice": "a.__init__(); (a * 2).sum().backward()",
    "what was saved is freed": "y.sum().backward(); y.sum().backward()",
    "outputs by the billion": "type(parts[0].grad_fn).outputs = 2**40; parts[0].sum().backward()",
    "fewer outputs": "parts[0].grad_fn.outputs = 1; (parts[0] * parts[1]).sum().backward()",
    "a slot of the class deleted": "del type(y.grad_fn).edges; y.sum().backward()",
    "another class's slot": "type((a - b).grad_fn).broadcast_restore = bl.Tensor._data; (a - b).sum().backward()",
    "a storage that deletes": """
class Deleting:
    @property
    def version(self):
        for node in (y.grad_fn,):
            del node.input, node.other, node.edges
        del a._data, b._data
        gc.collect()
        return 0
a._storage = Deleting()
y.sum().backward()
""",
    "a number that compares by deleting": """
class Odd(int):
    def __eq__(self, other):
        del a._data, b._data
        return True
    __hash__ = int.__hash__
y.grad_fn.input_version = Odd(0)
a.add_
y.sum().backward()
""",
    "a plan of another class's slots": """
from backlight.kernels.native import core
from backlight.codegen import core_ops
function = core.core_function(lambda *args: None, y.grad_fn.op)
op = copy.copy(y.grad_fn.op)
op.node_class = int
core.core_function(lambda *args: None, op)(a, b)
""",
    "the op table exchanged": (
        "from backlight.codegen.declaration import TABLE as T\nT['mul'], T['exp'] = T['exp'], T['mul']\n"
        "(a * b).exp().sum().backward()"
    ),
    "a pass over rubbish": f"core.core_backward_pass([None, 5, a], [None, None, None], {NO_INPUTS})",
    "a pass from more roots than gradients": f"core.core_backward_pass([y.grad_fn] * 9, [], {NO_INPUTS})",
    "a pass from nothing": f"core.core_backward_pass([None], [a._data], {NO_INPUTS})",
    "a pass from an Output of another node": (
        f"core.core_backward_pass([Output(y.grad_fn, 2**40)], [a._data], {NO_INPUTS})"
    ),
    "a pass to rubbish": (
        "core.core_backward_pass([y.grad_fn], [a._data], False, None, None, [None, 5, a, Output(a, 1)], False, -1)"
    ),
    "a pass to an output that does not exist": (
        "core.core_backward_pass([y.grad_fn], [a._data], False, None, None, [Output(y.grad_fn, 2**40)], False, -1)"
    ),
    "the core set up again": "core.core_setup({'Tensor': int})",
    "marks that are no storages": f"core.core_mark(lambda: 5){WITH}core.core_mark(None)",
    "reports that fail": f"core.core_returned(5){WITH}core.core_returned(None)",
    "a dispatch that fails": f"core.core_dispatch(5, None, True){WITH}core.core_dispatch(None, None, False)",
    "functions that cannot be compared": (
        "class Odd:\n    def __hash__(self): return hash(bl.zeros)\n    def __eq__(self, other): raise ValueError\n"
        "core.core_dispatch(lambda *call: None, None, False, False, {Odd(): 1})\nbl.zeros(2)"
        f"{WITH}core.core_dispatch(None, None, False)"
    ),
    "functions that are no dict": "core.core_dispatch(None, None, False, False, 5)",
    "a function that stands for itself": (
        "f = core.core_function(lambda *args: None, y.grad_fn.op)\ncore.core_implement(f, f)\nf(a, b, a, b)"
    ),
    "copies and pickles of half-built ones": "t = bl.Tensor.__new__(bl.Tensor)\ncopy.copy(t)\npickle.dumps(t)",
    "a copied node": "copy.copy(y.grad_fn)",
    "a block whose generator became a number": """
block = blocks.GeneratorBlock()
block.steps = (n for n in range(3))
block.__enter__()
block.steps = 5
block.__exit__(None, None, None)
""",
    "a generator that its block lets go while it runs": """
def steps():
    block.steps = None
    yield 1
block = blocks.GeneratorBlock()
block.steps = steps()
block.__enter__()
""",
    "a setting that is made again while it reads": """
class Target:
    def __getattribute__(self, name):
        setting.__init__(a, "_" + "grad", None)
        raise AttributeError
    def __getattr__(self, name):
        return [name * n for n in range(99)]
setting = blocks.Setting(Target(), "".join(["ra", "re"]), 1)
setting.__enter__()
""",
    "a setting without values": "blocks.Setting.__new__(blocks.Setting).__enter__()",
    "a context's setting without values": "blocks.ContextSetting.__new__(blocks.ContextSetting).__enter__()",
    "a context's setting left": "blocks.ContextSetting.__new__(blocks.ContextSetting).__exit__(None, None, None)",
    "a count of blocks that was deleted": """
from backlight.engine.grad_mode import recording
del recording.switched_off
try:
    bl.set_grad_enabled(False)
finally:
    recording.switched_off = 0
    bl.set_grad_enabled(True)
""",
}

RUNNER = f"""
import json, os, sys, warnings
warnings.simplefilter("ignore")
START, END, programs = {START!r}, {END!r}, json.load(sys.stdin)
import backlight as bl
from backlight.kernels.native import compiled, core
warm = {{}}
exec(START + "(y.sum() + z.sum() + parts[0].sum() + (a - b).sum()).backward()" + END, warm)
ended = []
for program in programs:
    child = os.fork()
    if not child:
        code = 1
        try:
            space = {{"core": core, "blocks": compiled}}
            exec(START, space)
            try:
                exec(program, space)
            except Exception as problem:
                if isinstance(problem, (SystemError, AssertionError)):
                    os._exit(4)
            exec(END, space)
            space.clear()
            code = 0
        finally:
            os._exit(code)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(ended))
"""


def endings(programs: list[str]) -> list[int]:
    """Run each program in a process of its own; return how they ended."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("use", sorted({use for _, use in assignments()}))
def test_no_slot_can_end_the_interpreter(use):
    programs = [f"{change}\n{then}" for change, then in assignments() if then == use]
    wrong = [(program, code) for program, code in zip(programs, endings(programs)) if code]
    assert not wrong


def test_named_programs_end_in_exceptions():
    wrong = [(name, code) for name, code in zip(NAMED, endings(list(NAMED.values()))) if code]
    assert not wrong

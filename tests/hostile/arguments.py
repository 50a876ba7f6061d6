"""Hostile arguments, and how they get into a call."""

import copy
import random

from hostile.call import Call, Tree
from hostile.names import parameters

_NUMBERS = """
0 1 -1 2 7 -7 100 2**31 2**31-1 -2**31 2**32 2**53+1 2**62 2**63-1 2**63 -2**63 -2**63-1 2**64 10**30 -10**30
True False 0.0 -0.0 1.5 -2.5 1e-320 1e30 -1e30 1e308 float('nan') float('inf') -float('inf') 1j
"""
NUMBERS = _NUMBERS.split()

_PLAIN = """
None ... '' 'x' 'mean' 'sum' 'none' 'cpu' 'cuda' b'x' [] () {} set() {'a':1} [[]] [[[]]] ((),) [None] ['x']
(1,'x') [1,[2]] [2**63] (2**63-1,) (-1,) (-1,-1) (0,0) [0,0,0] [1.5] [float('nan')] [True] (2,)*70 [1]*1000
range(3) slice(None) slice(2**63) iter([1]) lambda*a:a type object() torch NotImplemented torch.float32
torch.int8 torch.bool torch.Tensor torch.float16 torch.bfloat16 torch.device('cpu') torch.strided
torch.channels_last torch.Size([2]) Exception
"""
PLAIN = _PLAIN.split()

_NUMPY = """
np.int64(3) np.float32(2.5) np.bool_(True) np.uint64(2**64-1) np.array(2) np.ones((2,3))
np.ones((2,3),'float32') np.array(['a']) np.array([object()]) np.zeros((0,3)) np.array([1+2j])
np.ones((2,3))[::-1] np.datetime64('2020-01-01')
"""
NUMPY = _NUMPY.split()

_OBJECTS = """
RaisingIndex() WrongIndex() ChangingIndex() HugeIndex() RaisingLen() NegativeLen() HugeLen() RaisingIter()
LyingLen() RaisingEq() RaisingFloat() WrongFloat() RaisingBool() RaisingHash() RaisingGetattr() RaisingRepr()
OddInt(2) OddFloat(2.5) OddStr('sum') OddTuple((2,3)) OddList([2,3]) Foreign()
"""
OBJECTS = _OBJECTS.split()

SHAPES = [
    "()",
    "(0,)",
    "(1,)",
    "(3,)",
    "(2, 3)",
    "(3, 2)",
    "(0, 3)",
    "(2, 0, 3)",
    "(2, 3, 4)",
    "(3, 3)",
    "(1, 1, 4, 4)",
]
SHAPES += ["(2, 2, 3, 4, 5)", "(1,) * 30"]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "int16", "bool"]
FORMS = [
    "T(SHAPE, 'DTYPE')",
    "T(SHAPE, 'DTYPE')",
    "T(SHAPE, grad=True)",
    "T(SHAPE, 'float64', grad=True)",
    "T((3, 4), 'DTYPE').t()",
    "T((4, 6), 'DTYPE')[::2, 1::2]",
    "T((1, 3), 'DTYPE').expand(4, 3)",
    "T((1, 1), 'DTYPE').expand(3, 2**21)",
    "T((0, 1), 'DTYPE').expand(0, 2**62)",
    "T((2, 3), grad=True) * 2",
    "T((2, 3), grad=True)[0]",
    "T((2, 3), grad=True).detach()",
    "T((2, 3)) * float('nan')",
    "T((2, 3)) * float('inf')",
    "T((2, 3), 'int64') * 2**62",
    "V([-1, 5], 'int64')",
    "V([2**63 - 1, -2**63], 'int64')",
    "V(2, 'int64')",
    "V(2**62, 'int64')",
    "V(True, 'bool')",
    "V(2.5, 'float32')",
    "P((2, 3))",
    "Sub(T((2, 3)))",
    "torch.empty((2, 3), device='meta')",
]
ODD_NAMES = ["bogus", "out", "dtype", "axis", "keepdims", "dim", "self", "input", "size", "device", "layout", "x"]


def hostile(draw: random.Random) -> str:
    """Return the source of some hostile value."""
    kind = draw.random()
    if kind < 0.35:
        return draw.choice(NUMBERS)
    if kind < 0.55:
        return draw.choice(PLAIN)
    if kind < 0.62:
        return draw.choice(NUMPY)
    if kind < 0.72:
        return draw.choice(OBJECTS)
    return hostile_tensor(draw)


def hostile_tensor(draw: random.Random) -> str:
    """Return the source of some odd tensor."""
    form = draw.choice(FORMS)
    return form.replace("SHAPE", draw.choice(SHAPES)).replace("DTYPE", draw.choice(DTYPES))


def mutated(call: Call, draw: random.Random) -> Call:
    """Return a call with one to three things about it made hostile; sometimes the valid call itself."""
    call = copy.deepcopy(call)
    for _ in range(draw.choice([0, 1, 1, 1, 1, 1, 2, 2, 3])):
        draw.choices(_MUTATIONS, _WEIGHTS)[0](call, draw)
    return call


def _replace(call: Call, draw: random.Random) -> None:
    """Put a hostile value in the place of an argument, or of an element of one."""
    groups: list = [call.args, call.kwargs, *([call.inputs] if call.inputs else [])]
    group = draw.choice([one for one in groups if one] or [call.args])
    if not group:
        return
    key = draw.choice(list(group) if isinstance(group, dict) else range(len(group)))
    if call.target.startswith(".") and group is call.args and key == 0:
        group[0] = hostile_tensor(draw)
    else:
        group[key] = _replaced(group[key], draw)


def _replaced(tree: Tree, draw: random.Random) -> Tree:
    if isinstance(tree, list) and len(tree) > 1 and draw.random() < 0.5:
        place = draw.randrange(1, len(tree))
        return [*tree[:place], _replaced(tree[place], draw), *tree[place + 1 :]]
    if isinstance(tree, str) and tree.startswith(("T(", "V(")) and draw.random() < 0.6:
        return hostile_tensor(draw)
    if isinstance(tree, str) and tree.lstrip("-")[:1].isdigit() and draw.random() < 0.6:
        return draw.choice(NUMBERS)
    return hostile(draw)


def _drop(call: Call, draw: random.Random) -> None:
    """Leave out an argument."""
    if call.kwargs and draw.random() < 0.5:
        del call.kwargs[draw.choice(list(call.kwargs))]
    elif len(call.args) > (1 if call.target.startswith(".") else 0):
        del call.args[draw.randrange(1 if call.target.startswith(".") else 0, len(call.args))]


def _add(call: Call, draw: random.Random) -> None:
    """Give one argument more."""
    call.args.append(hostile(draw))


def _name(call: Call, draw: random.Random) -> None:
    """Give an argument by a name: one that the function has, or an unknown one."""
    names = [one for one in parameters(call.target) if one not in call.kwargs]
    name = (
        draw.choice(names[len(call.args) :] or names or ODD_NAMES) if draw.random() < 0.75 else draw.choice(ODD_NAMES)
    )
    call.kwargs[name] = "A0" if name == "out" and call.args and draw.random() < 0.5 else hostile(draw)


def _wrap(call: Call, draw: random.Random) -> None:
    """Put an argument into a list, or an element twice."""
    first = 1 if call.target.startswith(".") else 0
    if len(call.args) > first:
        place = draw.randrange(first, len(call.args))
        tree = call.args[place]
        if isinstance(tree, list) and len(tree) > 1 and draw.random() < 0.7:
            call.args[place] = [*tree, tree[1]]
        else:
            call.args[place] = [draw.choice("(["), *[tree] * draw.choice([1, 1, 2])]


def _swap(call: Call, draw: random.Random) -> None:
    """Exchange two arguments."""
    first = 1 if call.target.startswith(".") else 0
    if len(call.args) > first + 1:
        left, right = draw.sample(range(first, len(call.args)), 2)
        call.args[left], call.args[right] = call.args[right], call.args[left]


_MUTATIONS = [_replace, _name, _drop, _add, _wrap, _swap]
_WEIGHTS = [10, 4, 1, 1.5, 1.5, 0.7]

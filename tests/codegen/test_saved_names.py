"""Nodes have PyTorch's names, `_saved_…` attributes and next_functions."""

import pytest
import torch

import backlight

START = [[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 4.0]]

ALIKE = {
    "sum": lambda lib, x: x.sum(),
    "exp": lambda lib, x: x.exp(),
    "select": lambda lib, x: x[0],
    "slice": lambda lib, x: x[1:2],
    "view": lambda lib, x: x.reshape(-1),
    "expand": lambda lib, x: x.expand(2, 3, 3),
    "split": lambda lib, x: x.split(2)[0],
    "largest along a dim": lambda lib, x: x.max(1).values,
    "sorted": lambda lib, x: x.sort(0).values,
    "repeat": lambda lib, x: x.repeat(2, 1),
    "trace": lambda lib, x: x.trace(),
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([0, 2])),
    "product": lambda lib, x: x * x,
    "with a constant": lambda lib, x: x * lib.ones(3),
    "power": lambda lib, x: x**3,
    "softmax": lambda lib, x: x.softmax(0),
    "where": lambda lib, x: lib.where(x > 1, x, lib.ones(3)),
    "qr": lambda lib, x: lib.linalg.qr(x)[0],
    "inverse": lambda lib, x: lib.linalg.inv(x),
    "cholesky": lambda lib, x: lib.linalg.cholesky(x),
    "eigenvalues": lambda lib, x: lib.linalg.eigh(x)[0],
}


def shown(value):
    """Return a value in a form that is equal for both libraries."""
    if hasattr(value, "detach"):
        return [round(abs(one), 5) for one in value.flatten().tolist()]  # signs of vectors are LAPACK's choice
    return tuple(value) if isinstance(value, (list, tuple)) else value


def face(lib, program) -> dict:
    """Return all that a node shows of itself and of what it keeps."""
    node = program(lib, lib.tensor(START, requires_grad=True)).grad_fn
    names = [name for name in dir(node) if name.startswith(("_saved_", "_raw_saved_"))]
    found = {name: shown(getattr(node, name)) for name in names if name.startswith("_saved_")}
    found |= {name: shown(getattr(node, name).unpack_hook) for name in names if name.startswith("_raw_")}
    edges = [(None if end is None else end.name(), number) for end, number in node.next_functions]
    return {"name": node.name(), "edges": edges, "metadata": node.metadata, **found}


@pytest.mark.parametrize("program", ALIKE.values(), ids=ALIKE)
def test_a_node_shows_what_pytorchs_does(program):
    assert face(backlight, program) == face(torch, program)


def test_several_kept_outputs_are_shown_and_packed_one_by_one():
    q, r = backlight.linalg.qr(backlight.tensor(START, requires_grad=True))
    packed = []
    q.grad_fn._raw_saved_R.register_hooks(lambda saved: packed.append(saved) or saved.detach(), lambda held: held)
    assert packed[0].tolist() == r.tolist() == q.grad_fn._saved_R.tolist()
    assert q.grad_fn._saved_Q.grad_fn is q.grad_fn
    q.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        _ = q.grad_fn._saved_Q
    with pytest.raises(RuntimeError, match="after it has been freed"):
        q.grad_fn._raw_saved_Q.register_hooks(lambda saved: saved, lambda held: held)


def test_later_nodes_have_higher_numbers():
    x = backlight.ones(2, requires_grad=True)
    h = x * 2
    y = h.exp()
    assert h.grad_fn._sequence_nr() < y.grad_fn._sequence_nr()
    assert h.grad_fn.next_functions[0][0]._sequence_nr() == 2**64 - 1

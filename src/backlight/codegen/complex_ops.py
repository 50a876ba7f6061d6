"""Complex numbers in ops: how derivatives written for real numbers serve complex ones too, and who refuses them.

NOTE [Complex ops]
Gradients of a real loss L are PyTorch's, the conjugate Wirtinger derivatives grad = ∂L/∂z̄: the direction of steepest
ascent. For w = f(z) with f holomorphic

    grad_z = grad_w · conj(f'(z)) = conj(conj(grad_w) · f'(z))

so a rule written for real numbers, `grad · f'(z)`, serves complex ones if it is called between two conjugations. An op
declares it with `complex=`:
    "linear"        the rule is linear with real coefficients (sums, shapes, indices): it commutes with the conjugation,
                    and serves as it is
    "holomorphic"   the rule is called between two conjugations, by a class of nodes that complex results get
    "own"           the op is not holomorphic (abs, real, angle): its rule is written for complex numbers
    None            the op refuses complex arrays with PyTorch's error
An op that refuses compares the dtypes of its arrays; one that is "holomorphic" that of a result, when it records. So
nothing is computed of complex numbers by an op that does not declare how.

A real input of an op whose result is complex gets the real part of its gradient (`restore` in runtime_support.py).
Under create_graph the conjugations are ops themselves; a decomposition is differentiated by ops that conjugate.
"""

import functools

import numpy as np

from backlight.codegen.declaration import HOLOMORPHIC, Op
from backlight.codegen.op_table import TENSOR_OPS
from backlight.engine.node import Edges, Gradients
from backlight.engine.tensor_state import TensorState


def conjugate(grad: Gradients):
    """Return the complex conjugate of a gradient, an array or a tensor, or of each in a list; None stays None."""
    if grad is None:
        return None
    if isinstance(grad, (list, tuple)):
        return [conjugate(one) for one in grad]
    if isinstance(grad, TensorState):
        return TENSOR_OPS.conj_physical(grad) if grad._data.dtype.kind in "cW" else grad
    return np.conjugate(grad) if grad.dtype.kind in "cW" else grad


def adjoint(matrices: np.ndarray | TensorState):
    """Return the conjugate transpose of matrices, arrays or a tensor; of real ones the transpose."""
    return conjugate(matrices).mT


@functools.cache
def complex_node_class(op: Op) -> type:
    """Return the class of an op's nodes whose result is complex: the op's own, or one between two conjugations."""
    plain = op.node_class
    if op.complex != HOLOMORPHIC:
        return plain

    def backward(node, grad: Gradients, edges: Edges, keep: bool):
        return tuple(conjugate(plain.backward(node, conjugate(grad), edges, keep)))

    def backward_graph(node, grad: Gradients, edges: Edges):
        if op.decomposed is not None:
            return plain.backward_graph(node, grad, edges)
        return tuple(conjugate(plain.backward_graph(node, conjugate(grad), edges)))

    body = {"__slots__": (), "__module__": plain.__module__, "backward": backward, "backward_graph": backward_graph}
    return type(plain.__name__, (plain,), body)

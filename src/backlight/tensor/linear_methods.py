"""Tensor's methods from the linear family, a line each."""

from backlight.graph.state import TensorState
from backlight.ops import products
from backlight.ops import softmax as softmaxes


class LinearMethods:
    """The part of Tensor that belongs to the linear family."""

    __slots__ = ()

    matmul = products.matmul
    mm = products.mm
    bmm = products.bmm
    mv = products.mv
    dot = products.dot
    vdot = products.vdot
    softmax = softmaxes.softmax
    log_softmax = softmaxes.log_softmax

    def __matmul__(self, other):
        return products.matmul(self, other) if isinstance(other, TensorState) else NotImplemented

"""Tensor's methods from the linear family, a line each."""

from backlight.graph.state import TensorState
from backlight.ops import cholesky as choleskys
from backlight.ops import (
    contractions,
    determinants,
    matrix_functions,
    matrix_sums,
    products,
    pseudoinverse,
    reflections,
    removed,
    singular_values,
    solves,
)
from backlight.ops import lu as lus
from backlight.ops import qr as qrs
from backlight.ops import softmax as softmaxes
from backlight.ops.declare import operator_of
from backlight.ops.inplace import inplace


class LinearMethods:
    """The part of Tensor that belongs to the linear family."""

    __slots__ = ()

    matmul = products.matmul
    mm = products.mm
    bmm = products.bmm
    mv = products.mv
    dot = products.dot
    vdot = products.vdot

    inner = contractions.inner
    outer = contractions.outer
    ger = contractions.ger
    kron = contractions.kron
    cross = contractions.cross

    addmm = matrix_sums.addmm
    addmv = matrix_sums.addmv
    addr = matrix_sums.addr
    addbmm = matrix_sums.addbmm
    baddbmm = matrix_sums.baddbmm
    addmm_ = inplace(matrix_sums.addmm)
    addmv_ = inplace(matrix_sums.addmv)
    addr_ = inplace(matrix_sums.addr)
    addbmm_ = inplace(matrix_sums.addbmm)
    baddbmm_ = inplace(matrix_sums.baddbmm)

    cholesky = choleskys.cholesky
    cholesky_inverse = choleskys.cholesky_inverse
    cholesky_solve = choleskys.cholesky_solve
    lu = lus.lu
    lu_solve = lus.lu_solve
    inverse = solves.inverse
    triangular_solve = solves.triangular_solve
    det = determinants.det
    logdet = determinants.logdet
    slogdet = determinants.slogdet
    qr = qrs.qr
    geqrf = qrs.geqrf
    orgqr = reflections.orgqr
    ormqr = reflections.ormqr
    svd = singular_values.svd
    pinverse = pseudoinverse.pinverse
    eig = removed.eig
    lstsq = removed.lstsq
    solve = removed.solve
    symeig = removed.symeig
    matrix_exp = matrix_functions.matrix_exp
    matrix_power = matrix_functions.matrix_power

    __matmul__ = operator_of(products.matrix_product)

    softmax = softmaxes.softmax
    log_softmax = softmaxes.log_softmax

    def __rmatmul__(self, other):
        return products.matmul(other, self) if isinstance(other, TensorState) else NotImplemented

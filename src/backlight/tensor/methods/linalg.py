"""Tensor's methods of linear algebra, a line each."""

from backlight.codegen.declaration import operator_of
from backlight.engine.tensor_state import TensorState
from backlight.ops.inplace import inplace
from backlight.ops.linalg import (
    addmm_family,
    contractions,
    determinants,
    householder,
    linear_systems,
    matrix_functions,
    matrix_products,
    pseudoinverse,
    singular_values,
)
from backlight.ops.linalg import cholesky as choleskys
from backlight.ops.linalg import lu as lus
from backlight.ops.linalg import qr as qrs
from backlight.ops.nn import softmax as softmaxes
from backlight.torch_api import removed_functions


class LinearMethods:
    """Tensor's methods of linear algebra."""

    __slots__ = ()

    matmul = matrix_products.matmul
    mm = matrix_products.mm
    bmm = matrix_products.bmm
    mv = matrix_products.mv
    dot = matrix_products.dot
    vdot = matrix_products.vdot

    inner = contractions.inner
    outer = contractions.outer
    ger = contractions.ger
    kron = contractions.kron
    cross = contractions.cross

    addmm = addmm_family.addmm
    addmv = addmm_family.addmv
    addr = addmm_family.addr
    addbmm = addmm_family.addbmm
    baddbmm = addmm_family.baddbmm
    addmm_ = inplace(addmm_family.addmm)
    addmv_ = inplace(addmm_family.addmv)
    addr_ = inplace(addmm_family.addr)
    addbmm_ = inplace(addmm_family.addbmm)
    baddbmm_ = inplace(addmm_family.baddbmm)

    cholesky = choleskys.cholesky
    cholesky_inverse = choleskys.cholesky_inverse
    cholesky_solve = choleskys.cholesky_solve
    lu = lus.lu
    lu_solve = lus.lu_solve
    inverse = linear_systems.inverse
    triangular_solve = linear_systems.triangular_solve
    det = determinants.det
    logdet = determinants.logdet
    slogdet = determinants.slogdet
    qr = qrs.qr
    geqrf = qrs.geqrf
    orgqr = householder.orgqr
    ormqr = householder.ormqr
    svd = singular_values.svd
    pinverse = pseudoinverse.pinverse
    eig = removed_functions.eig
    lstsq = removed_functions.lstsq
    solve = removed_functions.solve
    symeig = removed_functions.symeig
    matrix_exp = matrix_functions.matrix_exp
    matrix_power = matrix_functions.matrix_power

    __matmul__ = operator_of(matrix_products.matrix_product)

    softmax = softmaxes.softmax
    log_softmax = softmaxes.log_softmax

    def __rmatmul__(self, other):
        return matrix_products.matmul(other, self) if isinstance(other, TensorState) else NotImplemented

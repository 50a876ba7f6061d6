"""Gamma and Dirichlet numbers as part of a graph: their gradients hold each number's quantile fixed.

Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, arXiv:1805.08498.
"""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.errors import UnsupportedError
from backlight.kernels.random.dirichlet_gradient import dirichlet_grad
from backlight.kernels.random.gamma import standard_gamma_grad
from backlight.ops.number_operands import no_integers

__all__ = ["_dirichlet_grad", "_standard_gamma_grad"]


@op(node="StandardGammaBackward0")
def drawn_gamma(xp, input: Array, numbers: np.ndarray):
    """The numbers drawn, of the gamma distributions of rate 1 and the shapes in `input`."""
    return numbers


drawn_gamma.derivative("input", formula="grad · ∂out/∂input at the same quantile")(
    lambda grad, input, out, ops: grad * ops._standard_gamma_grad(input, out)
)


@op(node="SampleDirichletBackward0")
def drawn_dirichlet(xp, input: Array, numbers: np.ndarray):
    """The numbers drawn, of the Dirichlet distributions of the concentrations in `input`."""
    return numbers


@drawn_dirichlet.derivative("input", formula="not known: an error, as in PyTorch")
def drawn_dirichlet_input(grad: Array):
    raise UnsupportedError(
        "derivative for aten::_sample_dirichlet is not implemented\n  distributions.Dirichlet(…).rsample() has one"
    )


@op(name="_standard_gamma_grad", promote="same", dtype_error=no_integers("_standard_gamma_grad_cpu"))
def _standard_gamma_grad(xp, input: Array, output: Array):
    """The gradient of gamma numbers `output` with respect to their shapes `input`."""
    return standard_gamma_grad(xp.asarray(input), xp.asarray(output))[()]


@op(name="_dirichlet_grad", promote="same", dtype_error=no_integers("_dirichlet_grad_cpu"))
def _dirichlet_grad(xp, x: Array, alpha: Array, total: Array):
    """The gradient of Dirichlet numbers with respect to their concentrations, for one share each: see Dirichlet."""
    return dirichlet_grad(*(xp.asarray(one) for one in (x, alpha, total)))[()]


def _without_derivative(function, name: str, *inputs: str) -> None:
    for one in inputs:

        @function.derivative(one, formula="not known: an error, as in PyTorch")
        def refuse(grad: Array):
            raise UnsupportedError(
                f"the derivative for '{name}' is not implemented.\n  Second derivatives of drawn numbers do not exist"
            )


_without_derivative(_standard_gamma_grad, "_standard_gamma_grad", "input", "output")
_without_derivative(_dirichlet_grad, "_dirichlet_grad", "x", "alpha", "total")

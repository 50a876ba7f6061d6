"""Calls with absurd counts end at once: with PyTorch's value, or with one error.

Rows of PYTORCH_TOO are evaluated on PyTorch in the same run. Those of OURS_ONLY would run there for hours, or overflow
a count in C without an error.
"""

import warnings

import numpy as np
import pytest
import torch
from parity import KINDS, evaluate, lines

import backlight

POLYNOMIALS = [f"{shift}chebyshev_polynomial_{letter}" for shift in ("", "shifted_") for letter in "tuvw"]
POLYNOMIALS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
DEGREES = (-1.0, -0.5, 0.0, 0.9, 1.0, 2.0, 6.0, 7.0, 9.0, 31.0, 500.0, 600.0, 9.3e18, 1e30)
POINTS = (-3.0, -1.0, -0.9999, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0001, 2.0, 300.0)

PYTORCH_TOO = lines("""
torch.polygamma(200, torch.tensor([0.25, 0.5, 3.0]))
torch.polygamma(10**6, torch.tensor([0.25, 0.5, 3.0]))
torch.polygamma(2**63, torch.tensor([0.5]))
torch.mvlgamma(torch.tensor([1e20], dtype=torch.float64), 10**5)
torch.combinations(torch.arange(4), 5)
torch.linalg.matrix_power(torch.eye(2), 2**62)
torch.linalg.multi_dot([torch.eye(2)] * 200)
torch.vander(torch.ones(3), 10**18)
torch.linspace(0, 1, 2**62)
torch.logspace(0, 1, 2**62)
torch.arange(2**62)
torch.arange(1e30)
torch.arange(0, 1e30, 1e-30)
torch.arange(0.0, 1.0, 1e-320)
torch.arange(0, 1, float("nan"))
torch.arange(3, -1, -float("inf"))
torch.hann_window(2**62)
torch.kaiser_window(2**62)
torch.signal.windows.hann(2**63 - 1)
torch.signal.windows.gaussian(2**63 - 1)
torch.fft.fftfreq(2**62)
torch.fft.rfftfreq(2**62)
torch.triu_indices(2**62, 1)
torch.triu_indices(2**63 - 1, 2**63 - 1)
torch.pow(torch.tensor([2, 3]), 2**63 - 1)
torch.randint(5, 5, (3,))
""")

OURS_ONLY = lines("""
torch.special.laguerre_polynomial_l(torch.tensor([0.5]), 1e15)
torch.special.legendre_polynomial_p(torch.tensor([0.5]), 2**62)
torch.polygamma(2**31, torch.ones(2))
torch.mvlgamma(torch.ones(2), 2**63 - 1)
torch.ones(2).mvlgamma_(2**63 - 1)
torch.mvlgamma(torch.ones(2), 10**9)
torch.combinations(torch.arange(60), 30)
torch.combinations(torch.arange(3), 10**9)
torch.combinations(torch.arange(30), 15, with_replacement=True)
torch.tensor_split(torch.ones(3), 2**62)
torch.histogramdd(torch.ones(3, 3), [2**30] * 3)
torch.hann_window(2**63 - 1)
torch.tril_indices(2**63 - 1, 2**63 - 1)
torch.svd_lowrank(torch.ones(3, 3), 1, niter=10**6)
torch.pca_lowrank(torch.ones(3, 3), 1, niter=10**6)
torch.meshgrid(*[torch.ones(3)] * 40, indexing="ij")
""")


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_a_polynomial_of_any_degree_is_that_of_pytorch(name):
    for degree in DEGREES:
        ours = getattr(backlight.special, name)(backlight.tensor(POINTS, dtype=backlight.float64), degree)
        theirs = getattr(torch.special, name)(torch.tensor(POINTS, dtype=torch.float64), degree)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-6, 1e-6, err_msg=f"{name} of degree {degree}")


@pytest.mark.parametrize("expression", PYTORCH_TOO)
def test_a_call_with_an_absurd_count_ends_as_in_pytorch(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = evaluate(backlight, expression), evaluate(torch, expression)
    if not isinstance(theirs, Exception):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-6, err_msg=expression)
        return
    kind = next(kind for kind in KINDS if isinstance(theirs, kind))
    assert isinstance(ours, kind), f"{ours!r}, PyTorch raises {theirs!r}"
    said = str(theirs).splitlines()[0].split("sizes=")[0].rstrip(".")[:100]  # sizes that overflowed there differ
    assert str(ours).startswith(said), f"{ours!r}, PyTorch raises {theirs!r}"


@pytest.mark.parametrize("expression", OURS_ONLY)
def test_a_call_that_pytorch_would_not_end_is_refused(expression):
    assert isinstance(evaluate(backlight, expression), RuntimeError)


INF, NAN = float("inf"), float("nan")
DEFECTS = {
    "infinity": [[INF, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "infinity last": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, INF]],
    "infinity below": [[2.0, 0.0, 0.0], [INF, 2.0, 0.0], [0.0, 0.0, 2.0]],
    "NaN": [[NAN, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "NaN last": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, NAN, NAN]],
}
DECOMPOSITIONS = lines("""
torch.linalg.svd(A)[1]
torch.linalg.svd(A, full_matrices=False)[1]
torch.linalg.svdvals(A)
torch.linalg.matrix_norm(A, 2)
torch.linalg.cond(A)
torch.linalg.matrix_rank(A)
torch.linalg.cholesky(A)
torch.linalg.cholesky_ex(A)[1]
torch.linalg.cholesky_ex(A, check_errors=True)[0]
torch.linalg.cholesky(torch.stack([torch.eye(3), A]))
torch.linalg.svdvals(torch.stack([torch.eye(3), A]))
torch.cholesky(A)
""")


@pytest.mark.parametrize("expression", DECOMPOSITIONS)
def test_a_matrix_with_nan_or_infinity_ends_a_decomposition_as_in_pytorch(expression):
    for defect, rows in DEFECTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, theirs = [_with_matrix(module, expression, rows) for module in (backlight, torch)]
        if isinstance(theirs, Exception):
            assert type(ours).__name__.endswith("LinAlgError"), f"{expression}, {defect}: {ours!r}"
            assert str(ours).startswith(str(theirs).splitlines()[0].rstrip(".")), f"{expression}, {defect}: {ours!r}"
        else:
            assert not isinstance(ours, Exception), f"{expression}, {defect}: {ours!r}, PyTorch gives {theirs}"
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-5, err_msg=f"{expression}, {defect}")


def _with_matrix(module, expression: str, rows):
    try:
        return eval(expression, {"torch": module, "A": module.tensor(rows)})
    except Exception as problem:
        return problem


def test_the_slopes_of_a_determinant_of_infinity_end():
    matrix = backlight.tensor([[INF, 0.0], [0.0, 0.0]], requires_grad=True)
    backlight.det(matrix).backward()
    assert backlight.isnan(matrix.grad).all()

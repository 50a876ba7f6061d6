"""QR, singular values, eigenvalues, least squares, functions of matrices: PyTorch's words, infinities, no elements."""

import numpy as np
import pytest
import torch
from case import assert_same
from filled import BOTH
from snippets import assert_shows_the_same

import backlight

MESSAGES = """
torch.linalg.qr(torch.ones(2))
torch.linalg.qr(torch.eye(2), mode="x")
torch.linalg.qr(torch.eye(2).long())
torch.linalg.qr(torch.ones(3, 2, requires_grad=True), mode="complete").R.sum().backward()
torch.linalg.qr(torch.ones(3, 2, requires_grad=True), mode="r").R.sum().backward()
torch.geqrf(torch.eye(2, requires_grad=True))[0].sum().backward()
torch.linalg.householder_product(torch.ones(3), torch.ones(2))
torch.linalg.householder_product(torch.ones(2, 3), torch.ones(2))
torch.linalg.householder_product(torch.ones(3, 2), torch.ones(3))
torch.linalg.householder_product(torch.ones(4, 3, 2), torch.ones(2))
torch.linalg.householder_product(torch.ones(4, 3, 2), torch.ones(3, 2))
torch.linalg.householder_product(torch.ones(3, 2), torch.ones(2).double())
torch.orgqr(torch.ones(3, 2).long(), torch.ones(2).long())
torch.ormqr(torch.ones(3), torch.ones(2), torch.ones(3, 2))
torch.ormqr(torch.ones(3, 2), torch.ones(2), torch.ones(2))
torch.ormqr(torch.ones(3, 2), torch.ones(3), torch.ones(3, 2))
torch.ormqr(torch.ones(3, 2), torch.ones(2), torch.ones(2, 2))
torch.ormqr(torch.ones(3, 2), torch.ones(2), torch.ones(2, 2), left=False)
torch.ormqr(torch.ones(4, 3, 2), torch.ones(3, 2), torch.ones(4, 3, 2))
torch.ormqr(torch.ones(4, 3, 2), torch.ones(4, 2), torch.ones(3, 3, 2))
torch.ormqr(torch.ones(3, 2), torch.ones(2).double(), torch.ones(3, 2))
torch.ormqr(torch.ones(3, 2), torch.ones(2), torch.ones(3, 2).double())
torch.linalg.svd(torch.ones(2))
torch.linalg.svd(torch.eye(2).long())
torch.svd(torch.ones(2))
torch.svd(torch.eye(2, requires_grad=True), compute_uv=False).U.sum().backward()
torch.linalg.svd(torch.eye(2), driver="gesvd")
torch.linalg.svdvals(torch.ones(2))
torch.linalg.svd(torch.full((2, 2), float("nan")))
torch.linalg.svd(torch.full((3, 2, 2), float("nan")))
torch.linalg.eigh(torch.ones(2, 3))
torch.linalg.eigh(torch.eye(2).long())
torch.linalg.eigh(torch.eye(2), UPLO="x")
torch.linalg.eigh(torch.ones(2))
torch.linalg.eigvalsh(torch.ones(2, 3))
torch.linalg.pinv(torch.ones(2))
torch.linalg.pinv(torch.ones(2, 3), hermitian=True)
torch.linalg.pinv(torch.eye(2).long())
torch.linalg.cond(torch.ones(2, 3), 1)
torch.linalg.cond(torch.ones(2, 3), "x")
torch.linalg.cond(torch.ones(2), 2)
torch.linalg.cond(torch.eye(2), 3)
torch.linalg.matrix_rank(torch.ones(2))
torch.linalg.matrix_rank(torch.ones(2, 2).long())
torch.linalg.matrix_rank(torch.ones(2, 3), hermitian=True)
torch.linalg.lstsq(torch.ones(2), torch.ones(2))
torch.linalg.lstsq(torch.ones(3, 2), torch.ones(2))
torch.linalg.lstsq(torch.ones(3, 2), torch.ones(2, 2))
torch.linalg.lstsq(torch.ones(3, 2), torch.ones(()))
torch.linalg.lstsq(torch.ones(3, 2), torch.ones(3, 2).double())
torch.linalg.lstsq(torch.ones(3, 2), torch.ones(3, 2), driver="x")
torch.linalg.lstsq(torch.ones(4, 3, 2), torch.ones(3))
torch.linalg.lstsq(torch.ones(4, 3, 2), torch.ones(3, 2))
torch.linalg.matrix_power(torch.ones(2), 2)
torch.linalg.matrix_power(torch.ones(2, 3), 2)
torch.linalg.matrix_power(torch.ones(2, 2), 2.5)
torch.matrix_power(torch.zeros(2, 2), -1)
torch.matrix_power(torch.ones(2, 2).long(), -3)
torch.matrix_exp(torch.ones(2))
torch.matrix_exp(torch.ones(2, 3))
torch.matrix_exp(torch.ones(2, 2).long())
torch.linalg.tensorinv(torch.ones(4, 2, 3))
torch.linalg.tensorinv(torch.ones(4, 2, 2), ind=0)
torch.linalg.tensorinv(torch.zeros(4, 2, 2), ind=1)
torch.linalg.tensorsolve(torch.ones(2, 3, 4), torch.ones(2, 2))
torch.linalg.tensorsolve(torch.ones(2, 3, 6), torch.ones(2, 3), dims=(0,))
torch.linalg.vander(torch.ones(()))
torch.linalg.vander(torch.ones(2), N=1)
torch.linalg.matrix_norm(torch.ones(2), "nuc")
torch.linalg.matrix_norm(torch.ones(2, 2), 3)
torch.linalg.matrix_norm(torch.ones(2, 2), "x")
torch.linalg.matrix_norm(torch.eye(2).long(), 2)
torch.linalg.matrix_norm(torch.eye(2).half(), 2)
torch.linalg.matrix_norm(torch.eye(2).double(), 2, dtype=torch.float32)
torch.linalg.norm(torch.ones(2, 2, 2), 2)
torch.linalg.norm(torch.ones(2), "nuc")
torch.linalg.norm(torch.ones(2, 2, 2), "nuc", dim=1)
torch.norm(torch.ones(2, 2, 2), "nuc")
torch.linalg.matrix_norm(torch.ones(2, 2, 2), "nuc", dim=(0, 0))
torch.pca_lowrank(torch.ones(2, 2), q=3)
torch.linalg.ldl_factor(torch.eye(2, requires_grad=True))[0].sum().backward()
torch.linalg.ldl_factor(torch.ones(2, 3))
torch.linalg.ldl_factor(torch.eye(2).long())
torch.linalg.ldl_factor(torch.ones(2))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2]), torch.ones(3, 2))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2, 3]), torch.ones(2, 2))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2]), torch.ones(2, 2).double())
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1.0, 2.0]), torch.ones(2, 2))
torch.linalg.ldl_solve(torch.eye(2, requires_grad=True), torch.tensor([1, 2]), torch.ones(2, 2)).sum().backward()
torch.eig(torch.eye(2))
torch.matrix_rank(torch.eye(2))
torch.ones(2, 2).symeig()
torch.ones(2, 2).solve(torch.ones(2, 2))
torch.ones(2, 2).lstsq(torch.ones(2, 2))
torch.pca_lowrank(torch.ones(2, 2), niter=-1)
"""


@pytest.mark.parametrize("source", MESSAGES.strip().splitlines())
def test_a_mistake_is_told_in_pytorchs_words(source):
    assert assert_shows_the_same(source) is not None


SILENT = """
print(torch.linalg.svd(torch.full((2, 2), float("inf"))))
print(torch.linalg.svdvals(torch.stack([torch.full((2, 2), float("inf")), torch.eye(2)])))
print(torch.qr(torch.eye(2)))
print(torch.linalg.ldl_factor_ex(torch.zeros(2, 2)))
print(torch.linalg.ldl_factor(torch.ones(0, 2, 2)), torch.linalg.ldl_factor(torch.ones(2, 0, 0)))
print(torch.linalg.svd(torch.zeros(2, 3)).S, torch.svd(torch.eye(2), compute_uv=False))
print(torch.linalg.eigh(torch.full((2, 2), float("nan"))).eigenvalues)
print(torch.linalg.cond(torch.zeros(2, 2), 1), torch.linalg.cond(torch.ones(2, 2), float("inf")))
print(torch.linalg.cond(torch.zeros(2, 2)), torch.linalg.cond(torch.zeros(0, 0)))
print(torch.linalg.cond(torch.ones(0, 2, 2)))
print(torch.linalg.cond(torch.eye(2), "nuc"), torch.linalg.cond(torch.eye(3), "fro"))
print(torch.linalg.lstsq(torch.eye(3, 2), torch.ones(3)))
print(torch.linalg.lstsq(torch.eye(3, 2), torch.ones(3, 1), driver="gelsd"))
print(torch.linalg.lstsq(torch.eye(3, 2).expand(2, 3, 2), torch.ones(2, 3), driver="gels"))
print(torch.linalg.matrix_rank(torch.zeros(2, 2)), torch.linalg.matrix_rank(torch.eye(3), 0.5))
print(torch.linalg.matrix_rank(torch.eye(3), atol=2.0), torch.linalg.matrix_rank(torch.zeros(2, 0, 3)))
print(torch.linalg.matrix_rank(torch.diag(torch.tensor([2.0, -1.0, 0.0])), hermitian=True))
print(torch.linalg.pinv(torch.zeros(2, 3)), torch.linalg.pinv(torch.diag(torch.tensor([2.0, 1.0])), rtol=0.6))
print(torch.linalg.pinv(torch.eye(2).expand(2, 2, 2), atol=torch.tensor([0.5, 2.0])))
print(torch.matrix_power(torch.ones(2, 2).long(), 3), torch.matrix_power(torch.ones(2, 2).long(), 0))
print(torch.matrix_exp(torch.zeros(2, 2)), torch.matrix_exp(torch.zeros(0, 2, 2)))
print(torch.matrix_exp(torch.ones(1, 1).half()))
print(torch.linalg.matrix_norm(torch.zeros(0, 2), 2), torch.linalg.matrix_norm(torch.zeros(0, 2), "nuc"))
print(torch.linalg.matrix_norm(torch.eye(2), 2, dtype=torch.float64), torch.linalg.matrix_norm(torch.eye(2).half(), 1))
print(torch.linalg.vander(torch.arange(3)), torch.linalg.vander(torch.tensor(2.0), N=3))
print(torch.linalg.householder_product(torch.ones(3, 2), torch.zeros(0)))
"""


@pytest.mark.parametrize("source", SILENT.strip().splitlines())
def test_special_matrices_show_what_pytorch_shows(source):
    assert_shows_the_same(source)


NODES = {
    "linalg.qr": "LinalgQrBackward0",
    "linalg.svd": "LinalgSvdBackward0",
    "linalg.svdvals": "LinalgSvdBackward0",
    "linalg.eigvalsh": "LinalgEighBackward0",
    "linalg.pinv": "LinalgPinvBackward0",
    "linalg.matrix_exp": "LinalgMatrixExpBackward0",
    "linalg.cond": "SqueezeBackward1",
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_have_pytorchs_names(name):
    for module in BOTH:
        found = getattr(module.linalg, name.split(".")[1])(module.eye(2).requires_grad_())
        found = found[0] if isinstance(found, tuple) else found
        assert found.grad_fn.name() == NODES[name]


SHAPES = [(0, 0), (3, 0), (0, 3), (2, 0, 3), (0, 3, 3), (2, 3, 0)]


@pytest.mark.parametrize("name", ["qr", "svd", "svdvals", "pinv", "eigh", "eigvalsh", "matrix_exp", "matrix_rank"])
@pytest.mark.parametrize("shape", SHAPES)
def test_matrices_without_elements(name, shape):
    if name in ("eigh", "eigvalsh", "matrix_exp") and shape[-1] != shape[-2]:
        shape = (*shape[:-2], 0, 0)
    ours, theirs = (getattr(t.linalg, name)(t.ones(shape, requires_grad=True)) for t in BOTH)
    assert_same(ours, theirs, 0, 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_matrices_without_elements(shape):
    for name in ("qr", "svd", "pinv"):
        x = backlight.ones(shape, requires_grad=True)
        found = getattr(backlight.linalg, name)(x)
        sum(one.sum() for one in (found if isinstance(found, tuple) else [found])).backward()
        assert x.grad.shape == shape


def test_eigenvectors_of_any_matrix_are_complex_and_solve_their_equation():
    matrix = backlight.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=backlight.float64)
    values, vectors = backlight.linalg.eig(matrix)
    assert sorted(value.imag for value in values.tolist()) == pytest.approx([-1, 1])
    assert backlight.allclose(matrix.cdouble() @ vectors, vectors * values)
    assert backlight.equal(backlight.linalg.eigvals(matrix), values)


@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_matrices_without_eigenvalues_are_refused(name):
    with pytest.raises(RuntimeError, match="input tensor should not contain infs or NaNs"):
        getattr(backlight.linalg, name)(backlight.full((2, 2), float("nan")))


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_the_exponential_is_exact_for_small_and_large_norms(scale, kind):
    matrices = np.random.default_rng(0).normal(size=(4, 5, 5)) * scale * np.array([1, 0.1, 0, 0.5])[:, None, None]
    ours, theirs = (t.matrix_exp(t.tensor(matrices, dtype=getattr(t, kind))).numpy() for t in BOTH)
    size = np.abs(theirs).max((-2, -1), keepdims=True)
    np.testing.assert_allclose(ours / size, theirs / size, atol=1e-12 if kind == "float64" else 1e-4)


def test_equal_singular_values_have_gradients_where_only_the_values_are_used():
    for module in BOTH:
        x = module.eye(3).requires_grad_()
        module.linalg.svdvals(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-6)


def test_low_rank_matrices_are_found_again():
    rng = np.random.default_rng(3)
    matrix = backlight.tensor(rng.normal(size=(8, 3)) @ rng.normal(size=(3, 20)))
    left, sizes, right = backlight.svd_lowrank(matrix, q=4)
    np.testing.assert_allclose(((left * sizes) @ right.mT).numpy(), matrix.numpy(), atol=1e-10)
    assert (left.shape, sizes.shape, right.shape) == ((8, 4), (4,), (20, 4))
    _, principal, _ = backlight.pca_lowrank(matrix, q=3)
    centred = matrix.numpy() - matrix.numpy().mean(0)
    np.testing.assert_allclose(principal.numpy(), np.linalg.svd(centred)[1][:3], rtol=1e-8)


def test_pinv_projects_and_lstsq_takes_the_solution_of_least_norm():
    rng = np.random.default_rng(4)
    matrix, right = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 4)), rng.normal(size=(5, 3))
    found = backlight.linalg.lstsq(backlight.tensor(matrix), backlight.tensor(right))
    np.testing.assert_allclose(found.solution.numpy(), np.linalg.lstsq(matrix, right, rcond=1e-10)[0], atol=1e-10)
    assert found.rank.item() == torch.linalg.lstsq(torch.tensor(matrix), torch.tensor(right)).rank.item() == 2


@pytest.mark.parametrize("size", [1, 2, 3, 6, 20, 90])
def test_ldl_exchanges_what_lapack_exchanges(size):
    rng = np.random.default_rng(size)
    matrices = rng.normal(size=(4, size, size)) * (1 - 0.9 * np.eye(size))
    matrices = matrices + matrices.mT
    ours, theirs = (t.linalg.ldl_factor(t.tensor(matrices)) for t in BOTH)
    assert ours.pivots.tolist() == theirs.pivots.tolist()
    np.testing.assert_allclose(ours.LD.numpy(), theirs.LD.numpy(), rtol=1e-6, atol=1e-9)
    right = rng.normal(size=(4, size, 2))
    found = backlight.linalg.ldl_solve(*ours, backlight.tensor(right)).numpy()
    np.testing.assert_allclose(matrices @ found, right, atol=1e-7)


def test_ldl_says_where_its_matrix_is_singular():
    with pytest.raises(backlight.linalg.LinAlgError, match=r"torch.linalg.ldl_factor: D\[1,1\] is zero"):
        backlight.linalg.ldl_factor(backlight.zeros(2, 2))

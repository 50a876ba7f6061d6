"""Linear algebra: failures in PyTorch's words, batches, matrices without rows, singular matrices, large matrices."""

import numpy as np
import pytest
import torch
from case import assert_same
from filled import BOTH
from snippets import assert_shows_the_same

import backlight
from backlight.autograd import gradcheck, gradgradcheck

MESSAGES = """
torch.linalg.inv(torch.zeros(2, 2))
torch.linalg.inv(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
torch.linalg.inv(torch.tensor([[1., 2], [2, 4]]))
torch.linalg.inv(torch.zeros(2, 3))
torch.linalg.inv(torch.zeros(2))
torch.linalg.inv(torch.zeros(2, 2, dtype=torch.int64))
torch.linalg.inv(torch.zeros(2, 2, dtype=torch.float16))
torch.linalg.inv_ex(torch.zeros(2, 2), check_errors=True)
torch.zeros(2, 2).inverse()
torch.linalg.solve(torch.zeros(2, 2), torch.zeros(2, 2))
torch.linalg.solve(torch.zeros(3, 2, 2), torch.zeros(3, 2, 2))
torch.linalg.solve(torch.eye(2), torch.zeros(3, 2))
torch.linalg.solve(torch.eye(2), torch.zeros(3))
torch.linalg.solve(torch.eye(2), torch.zeros(()))
torch.linalg.solve(torch.eye(2), torch.zeros(2), left=False)
torch.linalg.solve(torch.eye(2), torch.zeros(2, 2).double())
torch.linalg.solve(torch.ones(2, 3), torch.zeros(2, 2))
torch.linalg.solve(torch.eye(2).expand(4, 2, 2), torch.zeros(3, 2, 2))
torch.linalg.solve(torch.eye(2).long(), torch.zeros(2, 2).long())
torch.linalg.solve_triangular(torch.eye(2), torch.zeros(3, 2), upper=True)
torch.linalg.solve_triangular(torch.eye(2), torch.zeros(2), upper=True)
torch.linalg.solve_triangular(torch.ones(2, 3), torch.ones(2, 2), upper=True)
torch.triangular_solve(torch.zeros(3, 2), torch.eye(2))
torch.triangular_solve(torch.zeros(3), torch.eye(2))
torch.linalg.cholesky(-torch.eye(2))
torch.linalg.cholesky(torch.stack([torch.eye(2), -torch.eye(2)]))
torch.linalg.cholesky_ex(-torch.eye(2), check_errors=True)
torch.cholesky(-torch.eye(2))
torch.linalg.cholesky(torch.ones(2, 3))
torch.linalg.cholesky(torch.ones(2))
torch.linalg.cholesky(torch.eye(2).long())
torch.cholesky_inverse(torch.zeros(2, 2))
torch.cholesky_inverse(torch.ones(2, 3))
torch.cholesky_solve(torch.ones(2), torch.eye(2))
torch.cholesky_solve(torch.ones(3, 2), torch.eye(2))
torch.cholesky_solve(torch.ones(2, 2), torch.eye(2).double())
torch.det(torch.ones(2, 3))
torch.det(torch.ones(2))
torch.det(torch.eye(2).long())
torch.slogdet(torch.ones(2, 3))
torch.logdet(torch.ones(2, 3))
torch.logdet(torch.eye(2).long())
torch.linalg.lu(torch.ones(2))
torch.linalg.lu_factor(torch.ones(2))
torch.linalg.lu_factor(torch.eye(2).long())
torch.linalg.lu_factor(torch.zeros(2, 2))
torch.linalg.lu_factor(torch.zeros(2, 2, 2))
torch.linalg.lu_factor_ex(torch.zeros(2, 2), check_errors=True)
torch.linalg.lu_factor(torch.eye(2), pivot=False)
torch.lu(torch.eye(2), pivot=False)
torch.lu_unpack(torch.eye(2), torch.tensor([1, 2]))
torch.linalg.lu_solve(torch.eye(2), torch.tensor([1, 2]), torch.ones(2, 2))
torch.linalg.lu_solve(torch.eye(2), torch.tensor([1, 2, 3], dtype=torch.int32), torch.ones(2, 2))
torch.linalg.lu_solve(torch.eye(2), torch.tensor([1, 2], dtype=torch.int32), torch.ones(3, 2))
torch.linalg.lu_solve(torch.eye(2), torch.tensor([1, 2], dtype=torch.int32), torch.ones(2, 2).double())
torch.lu_solve(torch.ones(2), torch.eye(2), torch.tensor([1, 2], dtype=torch.int32))
"""


@pytest.mark.parametrize("source", MESSAGES.strip().splitlines())
def test_a_mistake_is_told_in_pytorchs_words(source):
    assert assert_shows_the_same(source) is not None


SILENT = """
print(torch.linalg.inv_ex(torch.zeros(2, 2)))
print(torch.linalg.solve_ex(torch.zeros(2, 2), torch.ones(2, 2)))
print(torch.linalg.solve_triangular(torch.zeros(2, 2), torch.ones(2, 2), upper=True))
print(torch.linalg.cholesky_ex(torch.tensor([[4., 2, 1], [2, 1, 3], [1, 3, 1]])))
print(torch.logdet(-torch.eye(3)), torch.linalg.slogdet(torch.zeros(2, 2)))
print(torch.lu(torch.zeros(2, 2)))
print(torch.lu_unpack(torch.eye(2), torch.tensor([2, 2], dtype=torch.int32), unpack_data=False))
print(torch.lu_unpack(torch.eye(2), torch.tensor([2, 2], dtype=torch.int32), unpack_pivots=False))
x = torch.zeros(2, 2, requires_grad=True); torch.slogdet(x)[1].backward(); print(x.grad)
print(torch.cholesky(4 * torch.eye(2)), torch.triangular_solve(torch.ones(2, 2), torch.eye(2)))
print(torch.linalg.LinAlgError.__mro__[-4:-1])
"""


@pytest.mark.parametrize("source", SILENT.strip().splitlines())
def test_a_matrix_that_does_not_do_shows_what_pytorch_shows(source):
    assert_shows_the_same(source)


NODES = {
    "linalg.cholesky": "LinalgCholeskyExBackward0",
    "cholesky": "CholeskyBackward0",
    "linalg.inv": "LinalgInvExBackward0",
    "det": "LinalgDetBackward0",
    "logdet": "WhereBackward0",
}


@pytest.mark.parametrize("name", NODES)
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
def test_nodes_have_pytorchs_names(name):
    for module in BOTH:
        function = module
        for part in name.split("."):
            function = getattr(function, part)
        assert function(module.eye(2).requires_grad_()).grad_fn.name() == NODES[name]


EMPTY = [(0, 0), (2, 0, 0), (0, 3, 3)]


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky", "lu", "lu_factor"])
@pytest.mark.parametrize("shape", EMPTY)
def test_matrices_without_elements(name, shape):
    ours, theirs = (getattr(t.linalg, name)(t.ones(shape)) for t in BOTH)
    assert_same(ours, theirs, 0, 0)


@pytest.mark.parametrize("shape", EMPTY)
def test_gradients_of_matrices_without_elements(shape):
    for name in ("inv", "det", "cholesky", "lu_factor"):
        x = backlight.ones(shape, requires_grad=True)
        found = getattr(backlight.linalg, name)(x)
        (found if isinstance(found, backlight.Tensor) else found[0]).sum().backward()
        assert x.grad.shape == shape


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_determinant_of_a_singular_matrix_has_true_derivatives(rank):
    rng = np.random.default_rng(rank)
    flat = backlight.tensor(rng.normal(size=(2, 3, rank)) @ rng.normal(size=(2, rank, 3)), requires_grad=True)
    assert gradcheck(backlight.det, flat)
    assert gradgradcheck(backlight.det, flat)


def test_the_determinant_has_third_derivatives():
    x = backlight.tensor(np.random.default_rng(0).normal(size=(3, 3)), requires_grad=True)

    def slope(matrix):
        return backlight.autograd.grad(backlight.det(matrix) ** 2, matrix, create_graph=True)[0]

    assert gradgradcheck(slope, x)


def test_the_third_derivative_of_a_singular_matrix_is_refused():
    x = backlight.ones(2, 2, requires_grad=True)
    grads = backlight.det(x) ** 3
    for _ in range(2):
        (grads,) = backlight.autograd.grad(grads.sum(), x, create_graph=True)
    with pytest.raises(backlight.linalg.LinAlgError, match=r"third derivative of linalg\.det: The diagonal element 2"):
        backlight.autograd.grad(grads.sum(), x)


@pytest.mark.parametrize("name", ["cofactors", "cofactor_derivative"])
def test_parts_of_the_determinants_derivative_pass_gradgradcheck(name):
    from backlight.ops.linalg import determinants

    rng = np.random.default_rng(1)
    given = [backlight.tensor(rng.normal(size=(3, 3)), requires_grad=True) for _ in range(1 + (name != "cofactors"))]
    assert gradcheck(getattr(determinants, name), given)
    assert gradgradcheck(getattr(determinants, name), given)


@pytest.mark.parametrize("size", [31, 32, 33, 64, 65, 150])
def test_large_matrices_are_factored_by_panels_and_solved_by_halves(size):
    rng = np.random.default_rng(size)
    matrices = rng.normal(size=(2, size, size))
    order, lower, upper = (one.numpy() for one in backlight.linalg.lu(backlight.tensor(matrices)))
    np.testing.assert_allclose(order @ lower @ upper, matrices, atol=1e-10)
    assert np.abs(lower).max() <= 1
    pivots = backlight.linalg.lu_factor(backlight.tensor(matrices)).pivots
    alone = torch.tensor(matrices)  # one by one: PyTorch's batches of large ones may wait for each other's threads
    assert pivots.tolist() == [torch.linalg.lu_factor(one).pivots.tolist() for one in alone]
    triangles = np.tril(matrices) + size * np.eye(size)
    solved = backlight.linalg.solve_triangular(backlight.tensor(triangles), backlight.tensor(matrices), upper=False)
    np.testing.assert_allclose(triangles @ solved.numpy(), matrices, atol=1e-10)


def test_a_tensor_without_elements_may_be_written_to():
    empty = backlight.ones(0, 3, 3)
    assert empty.copy_(backlight.eye(3)).shape == (0, 3, 3)
    assert empty._version == 1


def test_a_determinant_may_overflow_silently():
    for module in BOTH:
        x = (module.eye(400) * 10).requires_grad_()
        module.det(x).backward()
        assert module.det(x).item() == float("inf")
        assert module.linalg.slogdet(x).logabsdet.item() == pytest.approx(400 * np.log(10), rel=1e-5)


@pytest.mark.parametrize("upper", [True, False])
def test_triangles_with_zeros_and_other_numbers_beside_them_are_solved_as_pytorch_does(upper):
    rng = np.random.default_rng(5)
    whole, right = rng.normal(size=(3, 70, 70)) + 20 * np.eye(70), rng.normal(size=(70, 2))
    whole[1, 40, 40] = 0
    beside = np.tril(np.ones((70, 70), bool), -1) if upper else np.triu(np.ones((70, 70), bool), 1)
    whole[:, beside] = np.nan
    for unit in (False, True):
        ours, theirs = (
            t.linalg.solve_triangular(t.tensor(whole / 20), t.tensor(right), upper=upper, unitriangular=unit)
            for t in BOTH
        )
        finite = np.isfinite(theirs.numpy())
        np.testing.assert_array_equal(np.isfinite(ours.numpy()), finite)
        np.testing.assert_allclose(ours.numpy()[finite], theirs.numpy()[finite], rtol=1e-8)


def test_rows_of_very_different_sizes_are_solved_exactly():
    scales = 10.0 ** -np.arange(0, 150, 3)
    triangle = backlight.tensor(np.tril(np.random.default_rng(6).uniform(0.5, 1, (50, 50))) * scales[:, None])
    right = triangle @ backlight.ones(50, 1, dtype=backlight.float64)
    found = backlight.linalg.solve_triangular(triangle, right, upper=False)
    np.testing.assert_allclose(found.numpy(), 1, rtol=1e-5)


ONE_MATRIX = (
    "cholesky cholesky_ex cond eigh eigvalsh ldl_factor matrix_exp matrix_norm matrix_rank norm pinv vector_norm"
)


@pytest.mark.parametrize(
    "name", [*ONE_MATRIX.split(), "det", "inv", "lu", "lu_factor", "qr", "slogdet", "svd", "svdvals"]
)
def test_arguments_have_the_names_that_pytorch_takes(name):
    word = "input" if name in ONE_MATRIX.split() else "A"
    ours, theirs = (getattr(t.linalg, name)(**{word: 2 * t.eye(2)}) for t in BOTH)
    ours, theirs = (without_signs(one) for one in (ours, theirs))
    assert_same(ours, theirs, 1e-6, 1e-6)


def without_signs(found):
    return tuple(one.abs() for one in found) if isinstance(found, tuple) else found


@pytest.mark.filterwarnings("ignore:torch.(triangular_solve|lu_solve) is deprecated")
def test_arguments_of_equations_have_the_names_that_pytorch_takes():
    for t in BOTH:
        two = 2 * t.eye(2)
        one = t.ones(2, 1)
        found = [
            t.linalg.solve(A=two, B=one, left=True),
            t.linalg.solve_triangular(input=two, B=one, upper=True),
            t.triangular_solve(input=one, A=two)[0],
            2 * t.cholesky_solve(input=one, input2=two),
            t.linalg.lu_solve(LU=two, pivots=t.tensor([1, 2], dtype=t.int32), B=one),
            t.linalg.ldl_solve(LD=two, pivots=t.tensor([1, 2], dtype=t.int32), B=one),
            t.linalg.lstsq(input=two, b=one).solution,
            t.linalg.tensorsolve(input=two, other=one[:, 0])[:, None],
        ]
        assert all(t.allclose(each, t.full((2, 1), 0.5)) for each in found)

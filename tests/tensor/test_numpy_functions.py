"""NumPy's functions on tensors: PyTorch's results where PyTorch gives any, and gradients where it raises."""

import warnings

import numpy as np
import pytest
import torch

import backlight
from backlight.autograd import gradcheck

NAMES = {"np": np, "m": np.array([[0.5, 2.0], [1.5, 1.0]]), "i": np.array([[2, 1], [0, 3]])}

# Each gives in backlight what it gives in PyTorch, type and dtype too: no tensor requires grad. x is float32.
AS_IN_PYTORCH = """
np.exp(x)
np.add(m, x)
np.multiply(i, x)
np.add(x, 1)
np.power(x, 2.0)
np.matmul(x, x)
np.add.reduce(x)
np.multiply.reduce(x, axis=None)
np.maximum.accumulate(x)
np.multiply.outer(x, m)
np.add.reduceat(x, [0])
np.modf(x)
np.divmod(x, m)
np.isnan(x)
np.isfinite(x)
np.logical_and(x > 1, x > 2)
np.exp(x.long())
np.concatenate([x, x])
np.stack([x, m])
np.vstack([x, x])
np.where(x > 1, x, 0.0)
np.linalg.norm(x)
np.linalg.solve(x, x)
np.dot(x, x)
np.reshape(x, (4,))
np.transpose(x)
np.squeeze(x)
np.expand_dims(x, 0)
np.swapaxes(x, 0, 1)
np.argmax(x)
np.argsort(x)
np.sort(x)
np.clip(x, 0, 1)
np.cumsum(x, axis=0)
np.cumprod(x)
np.abs(x)
np.round(x)
np.median(x)
np.ptp(x)
np.take(x, [0])
np.unique(x)
np.tile(x, 2)
np.repeat(x, 2)
np.diff(x)
np.diag(x)
np.trace(x)
np.einsum('ij->i', x)
np.ones_like(x)
np.isclose(x, x)
np.allclose(x, x)
np.nonzero(x)
np.searchsorted(x[0], x[1])
np.shape(x)
np.ndim(x)
np.array(x)
np.asarray(x, dtype=np.float64)
np.array([x, x])
np.float32(x)
x * m
x + i
x - m
x / m
x // m
x % m
x ** m
x @ x.numpy()
x * np.array(2.0)
x[0, 0] * np.ones(2)
divmod(x, m)
x == m
m == x
np.float64(2) * x
x * np.float64(2)
np.float64(2) - x
np.float64(2) / x
np.int64(2) * x
np.float64(1) ** x
np.arange(5)[x.long()]
x[np.array([0, 1])]
np.add(x, x, out=np.zeros((2, 2), np.float32))
np.exp(x[0, 0])
np.array_equal(x, x)
np.nan_to_num(x)
np.mean(m)
"""

# Each has a gradient, which NumPy's own numbers differ to. x and y are float64, m and i arrays.
WITH_GRADIENT = """
np.exp(x)
np.log(x)
np.sin(x) + np.cos(x) * np.tan(x)
np.tanh(x)
np.arctan2(m, x)
np.hypot(x, m)
np.logaddexp(x, y)
np.maximum(x, m)
np.square(x)
np.reciprocal(x)
np.cbrt
np.float_power(x, 2)
np.power(x, i)
np.power(2, x)
np.add(m, x)
np.subtract(m, x)
np.multiply(i, x)
np.divide(x, y)
np.remainder(x, 0.75)
np.matmul(m, x)
np.modf(x)[0]
np.divmod(x, 0.75)[1]
np.exp(x, dtype=np.float64)
np.deg2rad(x)
np.add.reduce(x)
np.add.reduce(x, axis=(0, 1), keepdims=True)
np.add.reduce(x, axis=1, initial=3.0)
np.multiply.reduce(x, axis=None)
np.multiply.reduce(x, axis=(0, 1), keepdims=True)
np.maximum.reduce(x, axis=1)
np.logaddexp.reduce(x, axis=0)
np.add.accumulate(x, axis=1)
np.multiply.accumulate(x)
np.maximum.accumulate(x)
np.multiply.outer(x, m)
np.subtract.outer(m, x)
m * x
m + x
m - x
m / x
m @ x
m ** x
x * m
x - i
x / m
x ** m
x @ m
x % 0.75
np.float64(2) * x
np.sum(x)
np.sum(x, axis=1)
np.sum(x, axis=-1, keepdims=True)
np.sum(x, 0)
np.prod(x, axis=1)
np.mean(x)
np.mean(x, axis=0, keepdims=True)
np.std(x)
np.std(x, axis=1, ddof=1)
np.var(x, axis=(0, 1))
np.max(x, axis=0)
np.min(x)
np.amax(x, axis=1)
np.amin(x)
np.average(x, weights=m)
np.average(x, axis=1, weights=m[0])
np.average(x, axis=0)
np.nansum(x, axis=1)
np.nanmean(x)
np.median(x)
np.median(x, axis=1)
np.quantile(x, 0.3)
np.quantile(x, [0.1, 0.6], axis=1)
np.percentile(x, 40, axis=0)
np.ptp(x, axis=1)
np.linalg.norm(x)
np.linalg.norm(x, axis=1)
np.linalg.norm(x, ord=1, axis=0, keepdims=True)
np.linalg.cholesky(x @ x.T)
np.linalg.det(x)
np.linalg.eigvalsh(x + x.T)
np.linalg.inv(x)
np.linalg.matrix_power(x, 2)
np.linalg.pinv(x)
np.linalg.slogdet(x)[1]
np.linalg.solve(x, m)
np.linalg.solve(m, x)
np.cumsum(x)
np.cumsum(x, axis=1)
np.cumprod(x, axis=0)
np.reshape(x, (4,))
np.reshape(x, -1)
np.ravel(x)
np.transpose(x)
np.transpose(x, (1, 0))
np.matrix_transpose(x)
np.moveaxis(x, 0, 1)
np.swapaxes(x, 0, 1)
np.expand_dims(x, 1)
np.expand_dims(x, (0, 3))
np.squeeze(x[:1])
np.squeeze(x[:1], axis=0)
np.broadcast_to(x, (3, 2, 2))
np.broadcast_arrays(x, np.ones((3, 1, 1)))[0]
np.atleast_2d(x[0])
np.flip(x)
np.flip(x, axis=1)
np.fliplr(x)
np.roll(x, 1)
np.roll(x, 1, axis=1)
np.rot90(x)
np.tile(x, 2)
np.tile(x, (2, 1))
np.repeat(x, 2)
np.repeat(x, [1, 2], axis=0)
np.pad(x, 1)
np.pad(x, ((1, 0), (0, 2)), constant_values=3.0)
np.concatenate([x, y])
np.concatenate([m, x], axis=1)
np.concatenate([x, i], axis=None)
np.append(x, m)
np.stack([x, y], axis=1)
np.vstack([x, m])
np.hstack([x, y])
np.dstack([x, y])
np.column_stack([x, y])
np.split(x, 2)[0]
np.array_split(x, [1], axis=1)[1]
np.meshgrid(x[0], y[1])[0]
np.where(m > 1, x, 0.0)
np.where(x > 1, x, y)
np.where(i, x, m)
np.clip(x, 0.9, None)
np.clip(x, m, 2 * m)
np.sort(x)
np.sort(x, axis=0)
np.take(x, [0, 3])
np.take(x, [[0, -1]], axis=1)
np.take_along_axis(x, i // 2, axis=1)
np.nan_to_num(x)
np.copy(x)
np.abs(-x)
np.dot(x, m)
np.dot(m[0], x[0])
np.dot(x, 2.0)
np.vdot(x, y)
np.inner(x, m)
np.outer(x, m)
np.kron(x, m)
np.tensordot(x, m, axes=1)
np.tensordot(x, m, axes=([0], [1]))
np.einsum('ij,jk->ik', x, m)
np.cross(np.append(x[0], x[1])[:3], [1.0, 2.0, 3.0])
np.diff(x)
np.diff(x, axis=0, prepend=m[:1])
np.trapezoid(x)
np.trapezoid(x, [0.0, 2.0])
np.diagonal(x)
np.trace(x)
np.diag(x)
np.tril(x)
np.triu(x, 1)
np.sinc(x)
"""


def lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line and line != "np.cbrt"]


def shown(value):
    if isinstance(value, (tuple, list)):
        return [shown(one) for one in value]
    kind, values = type(value).__name__, value.tolist() if hasattr(value, "tolist") else value
    return kind.lower().removeprefix("size"), str(getattr(value, "dtype", "")), values


def of(module, expression: str):
    x = module.tensor([[0.5, 1.0], [2.0, 3.5]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's __array_wrap__ and __array__, written for NumPy 1
        return eval(expression, NAMES, {"x": x})


@pytest.mark.parametrize("expression", lines(AS_IN_PYTORCH))
def test_without_grad_numpy_gives_what_it_gives_on_pytorchs_tensors(expression):
    ours, theirs = of(backlight, expression), of(torch, expression)
    assert shown(ours) == shown(theirs)


def leaves() -> dict:
    x = backlight.tensor([[0.6, 1.1], [2.3, 3.4]], dtype=backlight.float64, requires_grad=True)
    return {"x": x, "y": backlight.tensor([[1.2, 0.4], [0.7, 1.9]], dtype=backlight.float64, requires_grad=True)}


@pytest.mark.parametrize("expression", lines(WITH_GRADIENT))
def test_with_grad_numpy_functions_are_part_of_the_graph(expression):
    given = leaves()
    result = eval(expression, NAMES, given)
    expected = eval(expression, NAMES, {name: value.detach().numpy() for name, value in given.items()})
    assert isinstance(result, backlight.Tensor)
    assert result.grad_fn is not None
    assert result.numpy(force=True).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-11)
    assert gradcheck(lambda x, y: eval(expression, NAMES, {"x": x, "y": y}), tuple(given.values()))


@pytest.mark.parametrize("expression", ["np.multiply(i, x)", "i * x", "m + x", "x - m", "np.concatenate([m, x])"])
def test_the_dtype_is_numpys_whether_a_gradient_is_required_or_not(expression):
    x = backlight.tensor([[0.5, 1.0], [2.0, 3.5]], requires_grad=True)
    result = eval(expression, NAMES, {"x": x})
    assert result.dtype is backlight.float64
    result.sum().backward()
    assert x.grad.dtype is backlight.float32


def test_what_pytorch_refuses_without_grad_is_numpys_result_as_a_tensor():
    x = backlight.tensor([[0.5, 1.0], [2.0, 3.5]])
    for function in (np.sum, np.mean, np.std, np.var, np.prod, np.max, np.min):
        found = function(x, axis=1)
        assert isinstance(found, backlight.Tensor)
        assert found.tolist() == function(x.numpy(), axis=1).tolist()
    assert np.all(x).item() is True
    assert np.flip(x).tolist() == [[3.5, 2.0], [1.0, 0.5]]


@pytest.mark.parametrize("expression", ["np.argmax(x)", "np.argsort(x)", "np.isnan(x)", "np.allclose(x, m)", "x == m"])
def test_what_has_no_gradient_is_the_same_with_grad(expression):
    x = leaves()["x"]
    assert shown(eval(expression, NAMES, {"x": x})) == shown(eval(expression, NAMES, {"x": x.detach()}))


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("np.cbrt(x)", r"np\.cbrt cannot be recorded here: there is no op with a derivative"),
        ("np.add(x, 1, out=np.zeros((2, 2)))", r"an array given as out= cannot remember"),
        ("np.add(x, 1, where=m > 1)", r"where= leaves elements undefined: choose with np\.where"),
        ("np.sum(x, where=m > 1)", r"np\.sum cannot be recorded here: where= is not taken"),
        ("np.add.at(np.zeros(2), [0], x)", "its method at has no derivative here"),
        ("np.add.reduceat(x, [0])", "its method reduceat"),
        ("np.reshape(x, 4, order='F')", "order='F' is not taken"),
        ("np.interp(x[0], x[0], x[1])", ""),
        ("np.array(x)", ""),
        ("np.asarray(x)", ""),
    ],
)
def test_what_cannot_be_recorded_says_pytorchs_words_and_why(expression, why):
    with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor that requires grad\.[^\n]*(\n.*)?" + why):
        eval(expression, NAMES, leaves())


def test_an_array_is_written_to_by_a_tensor_without_grad_and_by_no_other():
    array = np.ones((2, 2))
    array += backlight.ones(2, 2)
    assert array.tolist() == [[2, 2], [2, 2]]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        array += leaves()["x"]


def test_a_tensor_is_no_place_for_a_ufuncs_result():
    x = backlight.ones(2)
    with pytest.raises(TypeError, match="return arrays must be of ArrayType"):
        np.add(x, x, out=x)
    with pytest.raises(TypeError, match="first operand must be array"):
        np.add.at(x, [0], 1.0)


def test_classes_with_an_opinion_of_their_own_are_asked():
    class Other:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return "asked"

    assert np.add(backlight.ones(2), Other()) == "asked"

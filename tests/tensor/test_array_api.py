"""The array API standard's namespace: every name is there and computes what NumPy's namespace of that standard does."""

import inspect

import numpy as np
import pytest

import backlight
from backlight.autograd import gradcheck

xp = backlight.ones(1).__array_namespace__()

# Version 2024.12, without complex numbers and unsigned integers of more than 8 bits.
CONSTANTS = "e inf nan newaxis pi"
DTYPES = "bool int8 int16 int32 int64 uint8 float32 float64"
FUNCTIONS = """
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros
zeros_like astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type abs acos acosh add asin asinh
atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj
copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot isfinite isinf isnan less
less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan
tanh trunc take take_along_axis matmul matrix_transpose tensordot vecdot concat expand_dims flip moveaxis permute_dims
repeat reshape roll squeeze stack tile unstack argmax argmin count_nonzero nonzero searchsorted where unique_all
unique_counts unique_inverse unique_values argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all
any diff
"""
LINALG = """
cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr
slogdet solve svd svdvals tensordot trace vecdot vector_norm
"""

# x is float64 (2, 3), m a float64 matrix (3, 3), v float64 (3,), i int64 (2, 3), b bool (2, 3).
CALLS = """
xp.abs(-x)
xp.acos(x / 9)
xp.acosh(x + 1)
xp.add(x, 1)
xp.add(i, x)
xp.asin(x / 9)
xp.asinh(x)
xp.atan(x)
xp.atan2(x, m[:2])
xp.atanh(x / 9)
xp.bitwise_and(i, 3)
xp.bitwise_left_shift(i, 1)
xp.bitwise_invert(i)
xp.bitwise_or(b, ~b)
xp.bitwise_right_shift(i, 1)
xp.bitwise_xor(i, 5)
xp.ceil(x)
xp.clip(x, 1, 2)
xp.clip(x)
xp.clip(x, max=2.5)
xp.conj(x)
xp.copysign(x, -1.0)
xp.cos(x)
xp.cosh(x)
xp.divide(1, x)
xp.equal(x, x)
xp.exp(x)
xp.expm1(x)
xp.floor(x)
xp.floor_divide(x, 0.75)
xp.floor_divide(i, 2)
xp.greater(x, 2)
xp.greater_equal(2.0, x)
xp.hypot(x, 3.0)
xp.isfinite(x)
xp.isinf(x)
xp.isnan(x)
xp.less(i, 3)
xp.less_equal(x, x)
xp.log(x)
xp.log1p(x)
xp.log2(x)
xp.log10(x)
xp.logaddexp(x, x)
xp.logical_and(b, True)
xp.logical_not(b)
xp.logical_or(b, b)
xp.logical_xor(b, ~b)
xp.maximum(x, 2)
xp.minimum(2.0, x)
xp.multiply(x, x)
xp.negative(x)
xp.nextafter(x, 9.0)
xp.not_equal(x, 2.0)
xp.positive(x)
xp.pow(x, 2)
xp.pow(2, x)
xp.real(x)
xp.reciprocal(x)
xp.remainder(x, -0.75)
xp.round(x)
xp.sign(x - 2)
xp.signbit(x - 2)
xp.sin(x)
xp.sinh(x)
xp.square(x)
xp.sqrt(x)
xp.subtract(x, x)
xp.tan(x)
xp.tanh(x)
xp.trunc(x)
xp.matmul(x, m)
xp.matrix_transpose(x)
xp.tensordot(x, m, axes=1)
xp.tensordot(x, m, axes=((1,), (0,)))
xp.vecdot(x, v)
xp.vecdot(x, x, axis=0)
xp.broadcast_to(v, (2, 3))
xp.broadcast_arrays(v, x)[0]
xp.concat([x, i])
xp.concat([x, x], axis=1)
xp.concat([x, v], axis=None)
xp.expand_dims(x, axis=1)
xp.expand_dims(x, axis=-1)
xp.flip(x)
xp.flip(x, axis=1)
xp.flip(x, axis=(0,))
xp.moveaxis(x, 0, 1)
xp.permute_dims(x, (1, 0))
xp.repeat(x, 2)
xp.repeat(x, i[0], axis=1)
xp.reshape(x, (3, -1))
xp.reshape(x, (6,), copy=True)
xp.roll(x, 1)
xp.roll(x, 1, axis=1)
xp.roll(x, (1, 2), axis=(0, 1))
xp.squeeze(x[:1], axis=0)
xp.stack([x, i], axis=1)
xp.tile(x, (2, 1))
xp.unstack(x)[1]
xp.unstack(x, axis=1)[2]
xp.argmax(x)
xp.argmax(x, axis=1, keepdims=True)
xp.argmin(x, axis=0)
xp.count_nonzero(i, axis=1)
xp.count_nonzero(b)
xp.nonzero(i)[1]
xp.searchsorted(v, x)
xp.searchsorted(v, x, side='right')
xp.where(b, x, 0.0)
xp.where(b, x, i)
xp.take(x, i[0] // 3, axis=0)
xp.take(v, i[0] // 3)
xp.take_along_axis(x, i // 3, axis=1)
xp.unique_all(i).values
xp.unique_all(i).indices
xp.unique_all(i).inverse_indices
xp.unique_all(i).counts
xp.unique_counts(i).counts
xp.unique_inverse(i).inverse_indices
xp.sort(xp.unique_values(i))
xp.sort(x, axis=0)
xp.argsort(x)
xp.cumulative_sum(x, axis=0)
xp.cumulative_sum(v, include_initial=True)
xp.cumulative_sum(i, axis=1, include_initial=True)
xp.cumulative_prod(v)
xp.max(x)
xp.max(x, axis=1, keepdims=True)
xp.mean(x, axis=(0, 1))
xp.mean(x, axis=())
xp.min(x, axis=0)
xp.prod(x)
xp.prod(i, axis=1)
xp.prod(x, axis=(0, 1), keepdims=True)
xp.std(x, axis=1)
xp.std(x, correction=1)
xp.sum(x)
xp.sum(i, axis=0)
xp.sum(b, axis=1)
xp.sum(x, axis=(), keepdims=True)
xp.sum(x, dtype=xp.float32, axis=1)
xp.var(x, axis=(0, 1), correction=2.0)
xp.all(i)
xp.all(b, axis=1)
xp.any(b, axis=(0, 1), keepdims=True)
xp.diff(x)
xp.diff(x, axis=0, n=1)
xp.diff(v, n=2)
xp.astype(x, xp.float32)
xp.astype(x, xp.int64)
xp.astype(i, xp.bool)
xp.arange(5)
xp.arange(1, 6, 2)
xp.arange(5, 1)
xp.arange(0.0, 1.0, 0.25, dtype=xp.float64)
xp.asarray([1, 2])
xp.asarray([1.5], dtype=xp.float64)
xp.eye(3, dtype=xp.float64)
xp.eye(2, 3, k=1, dtype=xp.float64)
xp.eye(3, 2, k=-2, dtype=xp.int64)
xp.eye(2, k=5, dtype=xp.int64)
xp.full((2,), 7)
xp.full(3, 2.0, dtype=xp.float64)
xp.full_like(x, 3)
xp.linspace(0.0, 1.0, 5, dtype=xp.float64)
xp.linspace(0.0, 1.0, 5, dtype=xp.float64, endpoint=False)
xp.meshgrid(v, x[0])[1]
xp.meshgrid(v, x[0], indexing='ij')[0]
xp.ones((2, 3), dtype=xp.float32)
xp.ones_like(i)
xp.tril(m)
xp.triu(m, k=1)
xp.zeros(4, dtype=xp.int32)
xp.zeros_like(x, dtype=xp.int8)
xp.linalg.cholesky(m @ m.mT)
xp.linalg.cross(x, x[:1])
xp.linalg.det(m)
xp.linalg.diagonal(m, offset=1)
xp.linalg.eigh(m + m.mT).eigenvalues
xp.abs(xp.linalg.eigh(m + m.mT).eigenvectors)
xp.linalg.eigvalsh(m + m.mT)
xp.linalg.inv(m)
xp.linalg.matrix_power(m, 3)
xp.linalg.matrix_rank(m)
xp.linalg.pinv(x)
xp.abs(xp.linalg.qr(m).R)
xp.abs(xp.linalg.svd(m, full_matrices=False).Vh)
xp.linalg.svd(x).S
xp.linalg.svdvals(m)
xp.linalg.matrix_norm(m)
xp.linalg.matrix_norm(m, ord=1, keepdims=True)
xp.linalg.outer(v, v)
xp.linalg.slogdet(m)[1]
xp.linalg.solve(m, v)
xp.linalg.solve(m, m)
xp.linalg.trace(m, offset=-1)
xp.linalg.vecdot(x, x)
xp.linalg.vector_norm(x)
xp.linalg.vector_norm(x, axis=1, ord=1, keepdims=True)
"""
CALLS = [line for line in CALLS.split("\n") if line]


def arrays() -> dict:
    return {
        "x": np.array([[0.6, 3.1, 1.35], [2.2, 0.85, 4.1]]),
        "m": np.array([[4.0, 1.0, 0.5], [0.25, 3.0, 1.0], [1.5, 0.5, 2.0]]),
        "v": np.array([0.5, 1.5, 2.5]),
        "i": np.array([[1, 4, 2], [2, 5, 1]]),
        "b": np.array([[True, False, True], [True, True, True]]),
    }


def tensors() -> dict:
    return {name: xp.asarray(value) for name, value in arrays().items()}


@pytest.mark.parametrize("call", CALLS)
def test_computes_what_numpys_namespace_does(call):
    ours, expected = eval(call, {"xp": xp, **tensors()}), np.asarray(eval(call, {"xp": np, **arrays()}))
    assert isinstance(ours, backlight.Tensor)
    assert ours.numpy().dtype == expected.dtype
    assert tuple(ours.shape) == expected.shape
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12, atol=1e-13)


WHOLE = (
    "bitwise",
    "arg",
    "unique",
    "searchsorted",
    "equal",
    "less",
    "greater",
    "logical",
    "is",
    "count",
    "signbit",
    "arange",
)
WHOLE += (
    "asarray",
    "floor_divide",
    "eye",
    "full",
    "linspace",
    "ones",
    "zeros",
    "all",
    "any",
    "nonzero",
    "not_equal",
    "nextafter",
)
WHOLE += ("linalg.matrix_rank",)
SMOOTH = [call for call in CALLS if not call.removeprefix("xp.").startswith(WHOLE) and "xp.float" not in call]
SMOOTH = [call for call in SMOOTH if "(i" not in call and "xp.int" not in call and "(b" not in call]


@pytest.mark.parametrize("call", SMOOTH)
def test_gradients_go_through(call):
    given = tensors()
    floats = {name: given[name].requires_grad_() for name in "xmv"}

    def run(x, m, v):
        return eval(call, {"xp": xp, **given, "x": x, "m": m, "v": v})

    assert run(**floats).requires_grad
    assert gradcheck(run, tuple(floats.values()))


def test_every_name_of_the_standard_is_there():
    names = f"{CONSTANTS} {DTYPES} {FUNCTIONS} linalg __array_api_version__ __array_namespace_info__".split()
    assert [name for name in names if not hasattr(xp, name)] == []
    assert [name for name in LINALG.split() if not hasattr(xp.linalg, name)] == []
    assert xp.__array_api_version__ == "2024.12"
    called = "".join(CALLS)
    untested = {name for name in FUNCTIONS.split() if f"xp.{name}(" not in called}
    assert untested == {"empty", "empty_like", "from_dlpack", "can_cast", "finfo", "iinfo", "isdtype", "result_type"}


def test_public_functions_say_what_they_do():
    for name in FUNCTIONS.split():
        function = getattr(xp, name)
        assert inspect.isclass(function) or callable(function)
    assert xp.sum.__doc__.startswith("Sum over")


def test_dtypes_can_be_asked_about():
    info = xp.__array_namespace_info__()
    assert info.dtypes(kind="real floating") == {"float32": xp.float32, "float64": xp.float64}
    assert set(info.dtypes()) == set(DTYPES.split())
    assert info.dtypes(kind=("bool", "unsigned integer")) == {"bool": xp.bool, "uint8": xp.uint8}
    assert info.default_dtypes()["integral"] is xp.int64
    assert str(info.default_device()) == "cpu"
    assert [str(each) for each in info.devices()] == ["cpu"]
    assert info.capabilities()["boolean indexing"] is True
    with pytest.raises(ValueError, match="kind must be one of bool"):
        info.dtypes(kind="real")
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(backlight.bfloat16, "numeric")
    assert xp.isdtype(xp.int8, (xp.bool, "integral"))
    assert not xp.isdtype(xp.bool, "numeric")
    assert not xp.isdtype(xp.int64, xp.int32)
    assert xp.finfo(xp.float32).bits == 32
    assert xp.iinfo(xp.int8).max == 127


def test_promotion_can_be_asked_about():
    assert xp.result_type(xp.int8, xp.int32, xp.uint8) is xp.int32
    assert xp.result_type(xp.ones(2, dtype=xp.float64), xp.float32, 3) is xp.float64
    assert xp.result_type(xp.int32, 2.5) is xp.float32
    assert xp.can_cast(xp.int8, xp.int32)
    assert not xp.can_cast(xp.ones(2, dtype=xp.float64), xp.float32)
    with pytest.raises(TypeError, match="a tensor or a dtype at least"):
        xp.result_type(1, 2.0)


def test_memory_is_shared_and_made_as_told():
    x = xp.asarray(np.arange(3.0))
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=True) is not x
    assert xp.astype(x, xp.float64) is not x
    assert xp.astype(x, xp.float64, copy=False) is x
    assert xp.from_dlpack(x).data_ptr() == x.data_ptr()
    assert xp.empty((2, 0)).shape == (2, 0)
    assert xp.empty_like(x).dtype is xp.float64
    assert xp.reshape(x, (3, 1), copy=False).data_ptr() == x.data_ptr()
    assert x.to_device("cpu") is x


def test_sorting_backward_keeps_equal_elements_in_order():
    x = xp.asarray([1.0, 2.0, 1.0, 2.0])
    assert xp.argsort(x, descending=True).tolist() == [1, 3, 0, 2]
    assert xp.sort(x, descending=True).tolist() == [2, 2, 1, 1]


def test_what_the_standard_forbids_is_refused():
    with pytest.raises(ValueError, match="axis to squeeze out"):
        xp.squeeze(xp.ones((2, 1)), 0)
    with pytest.raises(ValueError, match="axis must be given for a tensor of 2 dims"):
        xp.cumulative_sum(xp.ones((2, 2)))
    with pytest.raises(ValueError, match="api_version must be one of"):
        xp.ones(1).__array_namespace__(api_version="2035.01")

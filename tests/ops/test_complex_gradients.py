"""Gradients of complex numbers: PyTorch's convention, mixed with real ones, through views of parts."""

import warnings

import numpy as np
import pytest
import torch

import backlight
from backlight.autograd import forward_ad, functional

NUMBERS = [0.6 + 0.8j, -1.1 + 0.3j, 0.4 - 1.2j, 1.5 + 0.2j]
REALS = [0.7, 1.3, 0.4, 2.1]


def same(ours, theirs) -> None:
    """Compare tensors of the two modules, nested in tuples and lists; None is only None."""
    if theirs is None or isinstance(theirs, (bool, str)):
        assert ours == theirs
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            same(one, other)
    else:
        assert str(ours.dtype) == str(theirs.dtype)
        assert tuple(ours.shape) == tuple(theirs.shape)
        mine, other = ours.detach().resolve_conj().numpy(), theirs.detach().resolve_conj().numpy()
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


def on_both(run) -> None:
    """Assert that a function of the module gives the same in both."""
    same(run(backlight), run(torch))


def leaves(t):
    """Return a complex and a real leaf of double precision."""
    z = t.tensor(NUMBERS, dtype=t.complex128, requires_grad=True)
    x = t.tensor(REALS, dtype=t.float64, requires_grad=True)
    return z, x


EXPRESSIONS = {
    "mixed product": lambda t, z, x: (z * x).abs().sum(),
    "mixed sum and quotient": lambda t, z, x: ((z + x) / (x - 2j * z)).abs().sum(),
    "power of both": lambda t, z, x: (z**x + x**z).real.sum(),
    "power of numbers": lambda t, z, x: (z**3 + z**2.5 + z ** (1 + 1j) + 2**z + (1j) ** z + x**1j).imag.sum(),
    "functions": lambda t, z, x: (z.exp() + z.log() + z.sqrt() + z.tanh() + z.sin() * z.cos()).abs().sum(),
    "inverse functions": lambda t, z, x: (
        z.asin() * z.acos() + z.atan() + z.asinh() * z.acosh() + z.atanh()
    ).real.sum(),
    "parts": lambda t, z, x: (z.real * z.imag + z.angle() * z.abs()).sum(),
    "conjugates": lambda t, z, x: (z.conj() * z * z.conj().exp()).imag.sum(),
    "sgn": lambda t, z, x: (z.sgn() * x).real.sum(),
    "made of parts": lambda t, z, x: (t.complex(x, x * x) * z).real.sum(),
    "made of sizes and angles": lambda t, z, x: (t.polar(x, x * x) * z).imag.sum(),
    "views of parts": lambda t, z, x: (t.view_as_real(z * z)[:, 1] * x).sum(),
    "views as complex": lambda t, z, x: t.view_as_complex(x.reshape(2, 2) * 1.0).abs().sum(),
    "reductions": lambda t, z, x: (z.sum() * z.mean() * z.prod() / z.cumsum(0)[2] / z.cumprod(0)[1]).abs(),
    "spread": lambda t, z, x: z.var() + z.std(),
    "norms": lambda t, z, x: z.norm() + t.linalg.vector_norm(z, 1) + t.linalg.vector_norm(z, 3) + t.dist(z, x + 0j),
    "dot": lambda t, z, x: (t.dot(z, z + 1) + t.vdot(z, z * 2j) + t.vdot(z * 2, z)).abs(),
    "matmul": lambda t, z, x: ((z.reshape(2, 2) @ z.reshape(2, 2).mH) @ z[:2]).abs().sum(),
    "einsum": lambda t, z, x: t.einsum("ij,jk,k->i", z.reshape(2, 2), z.reshape(2, 2).conj(), z[:2]).imag.sum(),
    "where": lambda t, z, x: t.where(t.tensor([True, False, True, False]), z * x, z.conj()).abs().sum(),
    "joined": lambda t, z, x: (t.cat([z, z * x]) * t.stack([z, z]).reshape(-1)).real.sum(),
    "picked": lambda t, z, x: (z[[0, 2, 2]] * z[1:].flip(0) * z.roll(1)[:3]).abs().sum(),
    "scattered": lambda t, z, x: (z * 1).scatter_add(0, t.tensor([0, 1, 1, 2]), z * z).abs().sum(),
    "filled": lambda t, z, x: z.masked_fill(t.tensor([True, False, False, True]), 2j).abs().prod(),
    "solved": lambda t, z, x: t.linalg.solve(z.reshape(2, 2), z[:2]).abs().sum(),
    "determinants": lambda t, z, x: t.linalg.det(z.reshape(2, 2)).abs() + t.linalg.slogdet(z.reshape(2, 2))[1],
    "spectra": lambda t, z, x: t.fft.fft(z, norm="ortho").abs().sum() + t.fft.rfft(x).abs().sum(),
    "signals": lambda t, z, x: t.fft.irfft(z).square().sum() + t.fft.hfft(z).sin().sum() + t.fft.ihfft(x).abs().sum(),
    "several dims": lambda t, z, x: t.fft.fft2(z.reshape(2, 2)).abs().sum() + t.fft.rfftn(x.reshape(2, 2)).abs().sum(),
    "cast": lambda t, z, x: (x.to(t.complex128) * z).real.sum(),
    "sigmoid": lambda t, z, x: t.sigmoid(z).abs().sum(),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_gradients_are_pytorchs(name):
    def run(t):
        z, x = leaves(t)
        loss = EXPRESSIONS[name](t, z, x)
        return loss, t.autograd.grad(loss, [z, x], allow_unused=True)

    on_both(run)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_second_gradients_are_pytorchs(name):
    def run(t):
        z, x = leaves(t)
        first = t.autograd.grad(EXPRESSIONS[name](t, z, x), [z, x], create_graph=True, allow_unused=True)
        size = sum((one.abs() ** 2).sum() for one in first if one is not None)
        found = t.autograd.grad(size, [z, x], allow_unused=True)
        return [t.zeros(1) if one is None else one for one in found]

    on_both(run)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_gradients_hold_to_finite_differences(name):
    def loss(z, x):
        return EXPRESSIONS[name](backlight, z, x)

    assert backlight.autograd.gradcheck(loss, leaves(backlight))
    assert backlight.autograd.gradgradcheck(loss, leaves(backlight))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_tangents_are_the_gradients_products(name):
    """For a real loss the tangent is Re ⟨conj(grad), direction⟩."""
    z, x = leaves(backlight)
    turned, along = z.detach() * 1j, x.detach() * 0.5
    grads = backlight.autograd.grad(EXPRESSIONS[name](backlight, z, x), [z, x], allow_unused=True)
    pairs = [(grad, way) for grad, way in zip(grads, (turned, along)) if grad is not None]
    expected = sum(float((grad.conj() * way).real.sum()) for grad, way in pairs)
    with forward_ad.dual_level():
        loss = EXPRESSIONS[name](backlight, forward_ad.make_dual(z, turned), forward_ad.make_dual(x, along))
        assert float(forward_ad.unpack_dual(loss).tangent.detach()) == pytest.approx(expected, rel=1e-6)


def test_gradcheck_finds_a_derivative_that_is_not_conjugated():
    class Square(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    z, _ = leaves(backlight)
    assert not backlight.autograd.gradcheck(Square.apply, (z,), raise_exception=False)
    with pytest.raises(backlight.autograd.gradcheck.__globals__["GradcheckError"], match="Jacobian mismatch"):
        backlight.autograd.gradcheck(Square.apply, (z,))


def test_backward_of_a_complex_number_raises_pytorchs_error():
    z, _ = leaves(backlight)
    with pytest.raises(RuntimeError, match=r"only for real scalar outputs but got torch\.complex128"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match=r"Mismatch in dtype: grad_output\[0\] has a dtype of torch.float32"):
        z.sum().backward(backlight.tensor(1.0))


def test_gradients_accumulate_pass_hooks_and_are_retained():
    def run(t):
        z, x = leaves(t)
        z.register_hook(lambda grad: grad * 2j)
        product = z * x
        product.retain_grad()
        product.abs().sum().backward(retain_graph=True)
        product.real.sum().backward()
        return z.grad, x.grad, product.grad

    on_both(run)


def written_real(t, z):
    z.real.mul_(2)


def written_imag(t, z):
    t.view_as_real(z)[..., 1].zero_()


def assigned_imag(t, z):
    z.imag = t.tensor(REALS, dtype=t.float64)


def written_squares(t, z):
    part = t.view_as_real(z)
    part[:2].pow_(2)
    part[3, 0] = 5


def written_elements(t, z):
    z[1:3].mul_(1j)
    z[0] = 5j


@pytest.mark.parametrize("write", [written_real, written_imag, assigned_imag, written_squares, written_elements])
def test_writes_into_views_of_parts_have_pytorchs_gradients(write):
    def run(t):
        z, _ = leaves(t)
        made = z * (1 + 1j)
        seen = made.imag
        write(t, made)
        loss = (made * made).abs().sum() + seen.sum()
        (grad,) = t.autograd.grad(loss, z, create_graph=True)
        return made, grad, *t.autograd.grad((grad.abs() ** 2).sum(), z)

    on_both(run)


def test_writes_into_complex_views_of_real_tensors_have_pytorchs_gradients():
    def run(t):
        _, x = leaves(t)
        made = (x * 2).reshape(2, 2)
        t.view_as_complex(made).mul_(1 + 2j)
        return made, *t.autograd.grad((made**3).sum(), x)

    on_both(run)


def test_in_place_ops_write_complex_numbers():
    def run(t):
        z, _ = leaves(t)
        made = z * 1
        made.mul_(z).add_(1j).exp_()
        return made, *t.autograd.grad(made.abs().sum(), z)

    on_both(run)


def test_a_saved_tensor_that_was_written_to_is_found_out():
    z, _ = leaves(backlight)
    made = z * 1
    loss = (made * made).abs().sum()
    made.real.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_jacobians_and_products_of_functional():
    def run(t):
        z, _ = leaves(t)
        names = torch.autograd.functional if t is torch else functional
        return names.vjp(lambda one: (one * one).abs(), z, t.ones(4, dtype=t.float64))

    on_both(run)


def test_vmap_maps_over_complex_tensors():
    def run(t):
        z, _ = leaves(t)
        rows = t.stack([z, z * 1j])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return t.vmap(lambda row: t.fft.fft(row * row.conj()).abs())(rows)

    on_both(run)


def test_saved_tensor_hooks_see_complex_tensors():
    z, x = leaves(backlight)
    packed = []

    def pack(tensor):
        packed.append(tensor.dtype)
        return tensor

    with backlight.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = (z * x).exp().abs().sum()
    loss.backward()
    assert backlight.complex128 in packed
    again, other = leaves(backlight)
    (again * other).exp().abs().sum().backward()
    assert z.grad.tolist() == again.grad.tolist()

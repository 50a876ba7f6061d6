"""Steps with complex tensors: leaves, ops, parts, views as pairs of reals, writes, gradients back to reals."""

from fuzzing.machine import SHAPES, step

UNARY = ["sin", "tanh", "square", "neg", "conj", "clone", "sigmoid", "exp"]


def is_complex(one) -> bool:
    return one.is_complex()


@step("complex leaf", 2)
def leaf(m, a, b, k):
    shape = SHAPES[a % len(SHAPES)]
    parts = m.numbers(shape), m.numbers(shape)
    return m.t.complex(*parts).requires_grad_(k % 4 != 0)


@step("complex of reals", 2)
def of_reals(m, a, b, k):
    x = m.floating(a).double()
    return [
        lambda: m.t.complex(x * 1, x * 0.5),  # PyTorch's node keeps both, though only their dtypes are needed
        lambda: m.t.polar(x * x + 0.5, x * 1) * 1,  # PyTorch's derivative is one of the result, and wrong for abs < 0
        lambda: x * 1j,
        lambda: x.to(m.t.complex128),
    ][k % 4]()


@step("complex unary", 3)
def unary(m, a, b, k):
    x = m.pick(a, is_complex)
    return getattr(x.tanh() if k % len(UNARY) == 7 else x, UNARY[k % len(UNARY)])().resolve_conj()


@step("complex binary", 3)
def binary(m, a, b, k):
    x = m.pick(a, is_complex)
    y = m.broadcasting(x, b)
    return [
        lambda: x * y,
        lambda: x + y,
        lambda: y - x,
        lambda: x / (y * y + 2.5 + 1j),
        lambda: x * (0.5 - 1j),
        lambda: (x * x.conj()).sum(),
    ][k % 6]()


@step("real of complex", 3)
def real_of(m, a, b, k):
    x = m.pick(a, is_complex)
    return [
        lambda: x.real * 1.0,
        lambda: x.imag * 1.0,
        lambda: (x * 0.3 + (2 + 1j)).abs(),
        lambda: m.t.view_as_real(x).sum(-1),
        lambda: (x.conj() * x).real.sum(),
        lambda: (x.sum() * (1 + 1j)).real,
    ][k % 6]()


@step("complex write", 1)
def write(m, a, b, k):
    x = m.pick(a, lambda one: one.is_complex() and one.numel())
    return [
        lambda: x.mul_(0.5j),
        lambda: x.add_(1 - 0.5j),
        lambda: x.zero_(),
    ][k % 3]()

"""Steps that write: in place on leaves, results, bases, views, views of views; through `.data` and `detach()` too."""

import numpy as np

from fuzzing.machine import SHAPES, Impossible, step

UNARY_WRITES = ["tanh_", "sigmoid_", "sin_", "neg_", "zero_", "cos_", "relu_", "square_"]


def target(m, number):
    """Return a tensor that may mostly be written to: not a leaf that requires grad while recording."""
    recording = m.t.is_grad_enabled()
    return m.pick(
        number,
        lambda one: (
            one.is_floating_point()
            and (
                0 not in one.stride() or one.numel() < 2
            )  # PyTorch refuses most writes to expanded memory, warns of some: see `write_expanded`
            and one.is_inference() <= m.t.is_inference_mode_enabled()  # PyTorch writes before it refuses
            and (number % 20 == 19 or not (recording and of_leaf(one)))
        ),
    )


def of_leaf(one) -> bool:
    """Tell whether a tensor is a leaf that requires grad, or a view of one."""
    base = one if one._base is None else one._base
    return base.requires_grad and base.is_leaf


@step("write", 6)
def write(m, a, b, k):
    x = target(m, a)
    if k % 4 < 2:
        return getattr(x, UNARY_WRITES[k // 4 % len(UNARY_WRITES)])()
    y = m.fitting_into(x, b)
    if y.is_floating_point():
        y = y.to(x.dtype)  # beside a wider operand we record the cast of the result as a node of its own
    return [
        lambda: x.add_(y),
        lambda: x.mul_(y),
        lambda: x.sub_(y, alpha=0.5),
        lambda: x.copy_(y),
        lambda: x.div_(y * y + 1.5),
        lambda: x.addcmul_(y, y, value=0.1),
        lambda: x.lerp_(y.to(x.dtype).expand(x.shape).clone(), 0.3),
    ][k // 4 % 7]()


@step("write a number", 4)
def write_number(m, a, b, k):
    x = target(m, a)
    mask = m.numbers(x.shape) > 0
    return [
        lambda: x.add_(0.5),
        lambda: x.mul_(0.75),
        lambda: x.fill_(0.3),
        lambda: x.masked_fill_(mask, 0.1),
        lambda: x.clamp_(-2, 2),
        lambda: x.pow_(2),
        lambda: x.div_(2),
        lambda: x.sub_(1),
    ][k % 8]()


@step("operator in place", 3)
def operator(m, a, b, k):
    x = target(m, a)
    before = x
    if k % 4 == 0:
        x += 1
    elif k % 4 == 1:
        x *= 0.5
    elif k % 4 == 2:
        x -= m.fitting_into(x, b).to(x.dtype)
    else:
        x /= 2.0
    m.note("same", x is before)
    return x


@step("write to expanded memory", 2)
def write_expanded(m, a, b, k):
    """PyTorch refuses most; of others its backward refuses to write a gradient into what was there."""
    x = m.pick(
        a,
        lambda one: (
            one.is_floating_point()
            and one.numel()
            and 0 in one.stride()
            and one.is_inference() <= m.t.is_inference_mode_enabled()
        ),
    )
    value = m.pick(b, lambda one: one.is_floating_point() and not one.dim())
    rows, mask = m.t.tensor([0, b % x.shape[0] if x.dim() else 0]), m.numbers(x.shape) > 0
    first = [
        lambda: x.zero_(),
        lambda: x.fill_(0.3),
        lambda: x.fill_(value),
        lambda: x.mul_(0.5),
        lambda: x.copy_(m.fitting_into(x, b)),
        lambda: x.sin_(),
        lambda: x.masked_fill_(mask, 0.3),
        lambda: x.masked_fill_(mask, value),
        lambda: x.index_fill_(0, rows, 0.3),
        lambda: x.index_put_((rows,), value.to(x.dtype)) if x.dim() else x.zero_(),
        lambda: x.index_put_((rows,), value.to(x.dtype), accumulate=True) if x.dim() else x.zero_(),
        lambda: x.tril_() if x.dim() > 1 else x.zero_(),
    ]
    return first[k % 12]()


@step("assign", 6)
def assign(m, a, b, k):
    x = target(m, a)
    value = 0.25 if k % 2 and x.dim() else m.pick(b, lambda one: fits_rows(m, one, x))
    if not x.dim():
        x[()] = value
        return x
    n = x.shape[0]
    where = [
        lambda: b % n if n else ...,
        lambda: slice(1, None),
        lambda: ...,
        lambda: slice(None, None, 2),
        lambda: m.numbers(x.shape) > 0 if k % 2 else -1 if n else ...,
        lambda: [0, -1] if n else ...,
        lambda: (..., 0) if x.shape[-1] else ...,
    ][k // 2 % 7]()
    x[where] = value
    return x


def fits_rows(m, one, x) -> bool:
    """Tell whether a tensor fits each row of `x`, and shares no memory with it."""
    fits = one.dim() < max(x.dim(), 1) and all(s in (1, r) for s, r in zip(one.shape[::-1], x.shape[::-1]))
    return fits and one is not x and not np.shares_memory(m.array(one), m.array(x))


@step("write rows", 3)
def write_rows(m, a, b, k):
    x = m.pick(a, lambda one: one.is_floating_point() and one.dim() and one.numel() and 0 not in one.stride())
    if x.is_inference() and not m.t.is_inference_mode_enabled():  # PyTorch writes before it refuses
        raise Impossible
    rows = m.t.tensor([0, b % x.shape[0]])
    source = m.numbers((2, *x.shape[1:]), x.dtype)
    if m.t.is_grad_enabled() and x.requires_grad and x.is_leaf:
        x = x * 1
    return [
        lambda: x.index_fill_(0, rows, 0.4),
        lambda: x.index_add_(0, rows, source),
        lambda: x.index_copy_(0, m.t.tensor([0]), source[:1]),
        lambda: x.scatter_(0, m.t.zeros(x.shape, dtype=m.t.int64)[:1], source[:1]),
        lambda: x.index_put_((rows,), source, accumulate=True),
        lambda: x.masked_fill_(m.numbers(x.shape) > 0, 0.2),
    ][k % 6]()


@step("write through a view", 5)
def write_through(m, a, b, k):
    x = target(m, a)
    if not x.dim() or not x.numel():
        return x.view(-1).mul_(0.5) if x.is_contiguous() else x.mul_(0.5)
    part = [
        lambda: x[b % x.shape[0]],
        lambda: x[1:][None][0],
        lambda: x.transpose(0, -1),
        lambda: x.view(-1)[1:3] if x.is_contiguous() else x[0],
        lambda: x.diagonal() if x.dim() == 2 else x[::2],
        lambda: x.unsqueeze(0).narrow(1, 0, 1),
    ][k % 6]()
    if k // 6 % 2:
        part.mul_(0.5)
    else:
        part.add_(m.fitting_into(part, b).to(part.dtype))
    return (x, part) if k % 3 == 0 else x


@step("write unrecorded", 4)
def write_unrecorded(m, a, b, k):
    """Two kinds of tensors are left out.

    * 0-d results, through `.data`: a node that saved one keeps its number, where PyTorch uses the one written.
    * Inference tensors outside of inference mode: PyTorch lets their detached twins be written to, we refuse.
    """

    def fits(one):
        whole = one if one._base is None else one._base
        allowed = one.is_inference() <= m.t.is_inference_mode_enabled()
        return one.is_floating_point() and allowed and (k % 3 != 2 or whole.dim())

    x = m.pick(a, fits)
    if k % 3 == 0:
        with m.t.no_grad():
            x.mul_(0.75)
    elif k % 3 == 1:
        x.detach().add_(0.1)
    else:
        x.data.mul_(0.5)
    return x


@step("write integers", 1)
def write_integers(m, a, b, k):
    """Write to a copy: nodes keep copies of indices and of converted integers, where PyTorch refuses after a write."""
    x = m.pick(a, lambda one: not one.is_floating_point() and one.dtype != m.t.bool).clone()
    return [
        lambda: x.add_(1),
        lambda: x.mul_(2),
        lambda: x.fill_(3),
        lambda: x.add_(1.5),
    ][k % 4]()


@step("replace the data", 1)
def replace_data(m, a, b, k):
    """Of a new leaf: what the nodes made before see then depends on whether they kept the tensor or a view of it."""
    x = m.numbers(SHAPES[a % len(SHAPES)]).requires_grad_()
    x.data = m.numbers(SHAPES[a % len(SHAPES)])
    m.note("version", m.version(x))
    return x

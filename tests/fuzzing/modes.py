"""Steps that switch recording, for the next few steps or for one call, and flags of tensors."""

from fuzzing.machine import step


@step("mode", 3)
def mode(m, a, b, k):
    t = m.t
    context = [
        lambda: t.no_grad(),
        lambda: t.enable_grad(),
        lambda: t.set_grad_enabled(b % 2 == 0),
        lambda: t.no_grad(),
    ][k % 4]()
    m.enter_modes(1 + a % 3, context)


@step("inference mode", 1)
def inference(m, a, b, k):
    if k % 2 == 0:
        m.enter_modes(1 + a % 3, m.t.inference_mode(b % 3 != 0))


@step("made in inference mode", 2)
def made_in_inference(m, a, b, k):
    """Tensors and views made in inference mode, used and written outside of it and inside."""
    x = m.floating(a)
    with m.t.inference_mode():
        made = [lambda: x * 2, lambda: x[...], lambda: x.detach(), lambda: m.numbers(x.shape, x.dtype)][k % 4]()
        if k // 4 % 3 == 0 and not x.is_inference() and not made._is_view():
            made.mul_(0.5)
    m.note("inference", made.is_inference(), made.requires_grad, made.grad_fn is None)
    return made


@step("decorated", 1)
def decorated(m, a, b, k):
    t, x = m.t, m.floating(a)

    def work(value):
        m.note("modes", t.is_grad_enabled(), t.is_inference_mode_enabled())
        return value * 2

    wrap = [t.no_grad(), t.no_grad, t.enable_grad(), t.set_grad_enabled(b % 2 == 0)][k % 4]
    out = wrap(work)(x)
    m.note("modes", t.is_grad_enabled(), t.is_inference_mode_enabled())
    return out


@step("requires_grad_", 2)
def requires_grad(m, a, b, k):
    """Views of the tensor must not be around: PyTorch's require grad from then on, through no node."""
    bases = [id(one._base) for one in m.pool if one._base is not None]
    x = m.pick(a, lambda one: id(one) not in bases and (k % 5 == 0 or (one.is_leaf and one.is_floating_point())))
    if k % 2:
        return x.requires_grad_(b % 3 != 0)
    x.requires_grad = b % 3 != 0
    return x

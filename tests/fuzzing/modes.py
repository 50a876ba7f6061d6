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
    if k % 4 == 0:
        m.enter_modes(1 + a % 2, m.t.inference_mode(b % 3 != 0))


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

"""Steps that run backward, in every way, and that read, write and reset `.grad`."""

from fuzzing.machine import HookFailure, Impossible, step


def came(m, gradients) -> list:
    """Return gradients as operands: behind a sum, since views, versions and strides of gradients are the engine's."""
    return [m.t.stack([one]).sum(0) for one in gradients if m.gradient(one) is not None]


def came_recorded(m, gradients) -> list:
    """The same of a recorded backward; all are made to require grad (see `Machine.gradient`)."""
    return [one + m.anchor for one in came(m, gradients)]


def root_of(m, number):
    """Return a result, mostly one of the last, and a gradient for it where it needs one."""
    if m.t.is_inference_mode_enabled():  # PyTorch's gradients could then never be added to
        raise Impossible
    root = m.computed(number)
    grad = None if root.numel() == 1 else m.t.ones_like(root.detach()) * 0.5
    return root, grad


@step("backward", 6)
def backward(m, a, b, k):
    root, grad = root_of(m, a)
    root.backward(grad, retain_graph=k % 4 != 0)


@step("backward and free", 2)
def backward_and_free(m, a, b, k):
    root, grad = root_of(m, a)
    root.backward(grad)


@step("backward into inputs", 3)
def backward_into(m, a, b, k):
    root, grad = root_of(m, a)
    inputs = m.leaf(b) if k % 3 else [m.differentiable(b), m.leaf(k)]
    root.backward(grad, retain_graph=k % 4 != 0, inputs=inputs)


@step("backward of several", 2)
def backward_of_several(m, a, b, k):
    (first, grad), (second, other) = root_of(m, a), root_of(m, b)
    m.t.autograd.backward([first, second], [grad, other], retain_graph=k % 4 != 0)


@step("backward with graph", 2)
def backward_with_graph(m, a, b, k):
    root, grad = root_of(m, a)
    m.twice = True
    root.backward(grad, create_graph=True)
    leaves = [one.grad for one in m.pool if one._base is None and one.is_leaf and one.grad is not None]
    return came_recorded(m, leaves[-1:]) if k % 2 else None


@step("grad", 5)
def grad(m, a, b, k):
    root, start = root_of(m, a)
    inputs = [m.differentiable(b)] + ([m.leaf(k)] if k % 2 else [])
    found = m.t.autograd.grad(
        root,
        inputs,
        start,
        retain_graph=k % 5 != 0,
        allow_unused=k % 7 != 0 or m.twice,
        materialize_grads=k % 3 == 0 and k % 7 != 0,
    )
    m.note("found", *[m.gradient(one) for one in found])
    return came(m, found)


@step("grad with graph", 5)
def grad_with_graph(m, a, b, k):
    root, start = root_of(m, a)
    inputs = [m.differentiable(b)] + ([m.leaf(k)] if k % 2 else [])
    m.twice = True
    found = m.t.autograd.grad(root, inputs, start, create_graph=True, allow_unused=True, materialize_grads=k % 3 == 0)
    m.note("found", *[m.gradient(one) for one in found])
    return came_recorded(m, found)


@step("gradient penalty", 2)
def penalty(m, a, b, k):
    root, start = root_of(m, a)
    m.twice = True
    (slope,) = m.t.autograd.grad(root, [m.leaf(b)], start, create_graph=True, allow_unused=True)
    if slope is None:
        raise Impossible
    (slope * slope + m.anchor).sum().backward(retain_graph=k % 2 == 0)


@step("misuse backward", 1)
def misuse(m, a, b, k):
    x = m.pick(a)
    if k % 4 == 0:
        x.backward()
    elif k % 4 == 1:
        x.backward(m.numbers((7,)))
    elif k % 4 == 2:
        m.t.autograd.grad(x.sum(), [m.pick(b)])
    else:
        x.sum().backward(m.numbers((1,)))


@step("zero grad", 2)
def zero_grad(m, a, b, k):
    for one in m.pool if k % 2 else [m.leaf(a)]:
        if one.is_leaf and one.grad is not None:
            if b % 2:
                one.grad = None
            else:
                one.grad.detach_()
                one.grad.zero_()


@step("write to grad", 2)
def write_to_grad(m, a, b, k):
    x = m.leaf(a)
    if k % 6 in (0, 3) and m.t.is_inference_mode_enabled():
        return None  # backward refuses to add to it; PyTorch adds before it refuses
    if k % 6 == 0:
        x.grad = m.numbers(x.shape, x.dtype)
    elif k % 6 == 1:
        x.grad = m.numbers((5,))
    elif k % 6 == 2:
        del x.grad
    elif k % 6 == 3:
        x.grad = m.pick(b) * 1  # views of it keep their history here when backward, which records nothing, adds to it
    elif x.grad is not None:
        with m.t.no_grad():
            x.grad.mul_(0.5)
        return came(m, [x.grad]) if k % 6 == 5 else None
    return None


@step("descend", 2)
def descend(m, a, b, k):
    with m.t.no_grad():
        for one in m.pool:
            if one._base is None and one.is_leaf and one.requires_grad and one.grad is not None:
                one.sub_(one.grad, alpha=0.01)
                if k % 2:
                    one.grad = None


@step("retain grad", 3)
def retain(m, a, b, k):
    x = m.pick(a) if k % 7 == 0 else m.differentiable(a)
    x.retain_grad()
    return x


@step("nested failure", 1)
def nested_failure(m, a, b, k):
    root, grad = root_of(m, a)

    def fail(_):
        raise HookFailure("a hook failed")

    handle = m.differentiable(b).register_hook(fail)
    try:
        root.backward(grad, retain_graph=True)
    finally:
        handle.remove()

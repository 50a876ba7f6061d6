"""Steps that register and remove hooks: they look, change, remove themselves, fail, start another backward."""

from fuzzing.machine import HookFailure, Impossible, step


def seen(m, one):
    """Return what the trace keeps of a gradient."""
    return (
        None
        if m.gradient(one) is None
        else (m.values(one), None if m.twice else (one.requires_grad, one.grad_fn is None))
    )


@step("hook", 6)
def hook(m, a, b, k):
    number, x = m.hook_number(), m.pick(a) if k % 11 == 0 else m.differentiable(a)
    kind = k // 11 % 10

    def called(grad):
        if m.twice and m.gradient(grad) is None:
            return None
        m.note("hook", number, seen(m, grad), m.t.is_grad_enabled())
        if grad is None:
            return None
        if kind == 1:
            return grad * 0.5
        if kind == 2:
            handle.remove()
        if kind == 3 and b % 3 == 0:
            raise HookFailure(f"hook {number} failed")
        if kind == 4:
            return grad.new_zeros(()) if b % 4 == 0 else grad.clone()
        if kind == 5:
            m.handles.append(x.register_hook(lambda again: m.note("late hook", number, seen(m, again))))
        if kind == 6:
            with m.t.enable_grad():
                y = m.t.ones(2, requires_grad=True)
                (y * y).sum().backward()
            m.note("nested", m.values(y.grad))
        if kind == 7 and b % 4 == 0:
            return 3.0
        return None

    assert x.grad_fn is None or x.requires_grad  # PyTorch 2.13 crashes on a view whose base came to require grad later,
    handle = x.register_hook(called)  # unless it was looked at
    m.handles.append(handle)


def node_of(m, number, k):
    """Return a node: a tensor's own, or that which accumulates into a leaf."""
    x = m.differentiable(number) if k % 5 == 0 else m.computed(number)
    if x.is_leaf and (x.is_inference() or m.t.is_inference_mode_enabled()):  # it has no views that are recorded
        raise Impossible
    with m.t.enable_grad():
        node = x.view_as(x).grad_fn.next_functions[0][0] if x.is_leaf else x.grad_fn
    return node


@step("node hook", 3)
def node_hook(m, a, b, k):
    number, node = m.hook_number(), node_of(m, a, k)
    m.nodes_kept.append(node)  # PyTorch's AccumulateGrad is lost with its hooks if nobody holds it
    kind = k // 5 % 6

    def called(grads, outputs):
        if m.twice and all(m.gradient(one) is None for one in outputs):
            return None
        inputs = [one for one, (end, _) in zip(grads, node.next_functions) if end is not None]  # others may come or not
        if node.name().startswith(("Stack", "Cat")):  # PyTorch gives a list's gradients all, also if one was asked for
            inputs = []
        m.note("node hook", number, [seen(m, one) for one in inputs], [seen(m, one) for one in outputs])
        if kind == 1:
            return tuple(None if one is None else one * 0.5 for one in grads)
        if kind == 2:
            handle.remove()
        if kind == 3 and b % 3 == 0:
            raise HookFailure(f"node hook {number} failed")
        return None

    handle = node.register_hook(called)
    m.handles.append(handle)


@step("node prehook", 3)
def node_prehook(m, a, b, k):
    number, node = m.hook_number(), node_of(m, a, k)
    m.nodes_kept.append(node)
    kind = k // 5 % 6

    def called(outputs):
        if m.twice and all(m.gradient(one) is None for one in outputs):
            return None
        m.note("node prehook", number, [seen(m, one) for one in outputs])
        if kind == 1:
            return tuple(None if one is None else one * 0.5 for one in outputs)
        if kind == 2:
            handle.remove()
        if kind == 3 and b % 3 == 0:
            raise HookFailure(f"node prehook {number} failed")
        return None

    handle = node.register_prehook(called)
    m.handles.append(handle)


@step("post-accumulate hook", 3)
def post_accumulate(m, a, b, k):
    number, x = m.hook_number(), m.differentiable(a) if k % 7 == 0 else m.leaf(a)
    kind = k // 7 % 6

    def called(leaf):
        if m.twice and m.gradient(leaf.grad) is None:
            return None
        m.note("post-accumulate", number, leaf is x, seen(m, leaf.grad))
        if kind == 1:
            leaf.grad = None
        if kind == 2:
            handle.remove()
        if kind == 3 and leaf.grad is not None and not leaf.is_inference():  # PyTorch writes before it refuses
            with m.t.no_grad():
                leaf.sub_(leaf.grad, alpha=0.1)
        if kind == 4 and b % 3 == 0:
            raise HookFailure(f"post-accumulate hook {number} failed")
        return None

    handle = x.register_post_accumulate_grad_hook(called)
    m.handles.append(handle)


@step("remove a hook", 3)
def remove(m, a, b, k):
    if m.handles:
        m.handles[-1 - a % len(m.handles)].remove()

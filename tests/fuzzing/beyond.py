"""Steps beyond the plain walk: dual numbers, functions of functions, checkpoints, batches, saved tensors, edges."""

from fuzzing.gradients import came
from fuzzing.machine import HookFailure, Impossible, step


def smooth(m, number: int):
    """Return a floating tensor that has elements and was not made in inference mode, outside of that mode."""
    if m.t.is_inference_mode_enabled():
        raise Impossible
    return m.pick(number, lambda one: one.is_floating_point() and one.numel() and not one.is_inference())


@step("dual", 3)
def dual(m, a, b, k):
    """Write in place to a dual number, or to a view of one, and look at all tangents."""
    x = smooth(m, a)
    forward_ad, tangent = m.t.autograd.forward_ad, m.numbers(x.shape, x.dtype)
    with forward_ad.dual_level():
        one = forward_ad.make_dual(x * 1 if k % 3 else x.detach().clone(), tangent)
        part = one[: 1 + b % 2] if one.dim() else one.view(1)
        [
            lambda: one.mul_(2),
            lambda: one.sin_(),
            lambda: part.mul_(3),
            lambda: part.zero_(),
            lambda: one.copy_(m.numbers(x.shape, x.dtype)),
            lambda: part.detach().mul_(2),
            lambda: one.add_(one),
            lambda: part.copy_(forward_ad.make_dual(part.detach().clone(), m.numbers(part.shape, x.dtype))),
        ][k // 3 % 8]()
        for each in (one, part, one * part[0] if one.dim() else one.exp(), one.detach()):
            primal, found = forward_ad.unpack_dual(each)
            m.note("dual", m.values(primal), None if found is None else m.values(found))
        tangent = forward_ad.unpack_dual(one.tanh() * one).tangent
        return None if tangent is None else came(m, [tangent.detach()])  # its strides are the engine's


@step("function of functions", 2)
def func(m, a, b, k):
    if m.open_modes:  # PyTorch refuses hooks of saved tensors
        raise Impossible
    x, t = smooth(m, a), m.t
    if 0 in x.stride():  # PyTorch fails to copy a tangent into memory that is expanded as its primal's
        raise Impossible
    factor = m.numbers(x.shape, x.dtype)

    def score(value):
        return (value.sin() * factor).sum()

    def layer(value):
        return (value * factor).tanh()

    found = [
        lambda: t.func.grad(score)(x),
        lambda: t.func.vjp(layer, x)[1](factor)[0],
        lambda: t.func.jvp(layer, (x,), (factor,))[1],
        lambda: t.func.vmap(layer, in_dims=0)(x) if not x.dim() else t.func.vmap(lambda row: row.tanh() * 2)(x),
        lambda: t.func.grad(lambda value: t.func.grad(score)(value).pow(2).sum())(x),
        lambda: t.autograd.functional.vjp(layer, x.detach(), factor)[1],
        lambda: t.autograd.functional.jacobian(layer, x.detach()).sum() * 1,
        lambda: t.autograd.functional.hvp(score, x.detach(), factor)[1],
    ][k % 8]()
    return came(m, [found.detach()])  # its nodes and strides are other ones than PyTorch's


@step("checkpoint", 2)
def checkpoint(m, a, b, k):
    x = smooth(m, a)
    number = m.hook_number()

    def part(value):
        m.note("checkpoint", number, m.t.is_grad_enabled())
        if k % 7 == 6 and b % 5 == 0 and m.t.is_grad_enabled():
            raise HookFailure(f"part {number} failed")
        return (value * 2).sin() * value

    return m.t.utils.checkpoint.checkpoint(part, x, use_reentrant=k % 2 == 0)


@step("batched grad", 2)
def batched(m, a, b, k):
    """Of a graph without hooks and Functions: these look at the values, which PyTorch refuses in a batch."""
    x, leaf = smooth(m, a).detach(), m.leaf(b).detach().clone()
    if leaf.is_inference():
        raise Impossible
    leaf.requires_grad_()
    root = [lambda: leaf.sin() * leaf, lambda: (leaf * leaf).sum(0), lambda: leaf.tanh().exp() + 1][k % 3]()
    inputs = [leaf, x.requires_grad_()] if k % 2 else [leaf]
    starts = m.numbers((2, *root.shape), root.dtype)
    found = m.t.autograd.grad(root, inputs, starts, is_grads_batched=True, allow_unused=k % 5 != 0)
    m.note("found", *[m.gradient(one) for one in found])


@step("saved tensors hooks", 2)
def saved(m, a, b, k):
    """Pack copies: what a node saves, and so how often hooks are called, is the engine's affair."""
    graph = m.t.autograd.graph
    context = [
        lambda: graph.saved_tensors_hooks(lambda one: one.detach().clone(), lambda packed: packed),
        lambda: graph.saved_tensors_hooks(
            lambda one: one.detach().numpy(force=True).copy(), lambda packed: m.t.tensor(packed)
        ),
        lambda: graph.save_on_cpu(),
        lambda: graph.disable_saved_tensors_hooks("not here"),
    ][k % 4]()
    m.enter_modes(1 + a % 3, context)


@step("multi grad hook", 2)
def multi(m, a, b, k):
    """Of results only, which are no roots: PyTorch's `grad` refuses such hooks of leaves, and forgets a lone root."""
    if not m.t.is_grad_enabled():
        raise Impossible
    number, found = m.hook_number(), [smooth(m, a) * m.anchor.exp(), smooth(m, b) * m.anchor.exp()]

    def called(grads):
        seen = [m.gradient(one) for one in (grads if k % 2 else [grads])]
        if not m.twice or any(one is not None for one in seen):
            m.note("multi hook", number, seen)

    mode = "all" if k % 2 else "any"
    m.handles.append(m.t.autograd.graph.register_multi_grad_hook(found, called, mode=mode))
    return [one * 1 for one in found]


@step("edges as ends", 2)
def edges_as_ends(m, a, b, k):
    """Start a backward from an edge, and ask for the gradient of another."""
    graph = m.t.autograd.graph
    root, end = m.computed(a), m.differentiable(b)
    if m.t.is_inference_mode_enabled() or any(one.is_inference() for one in (root, end)):
        raise Impossible
    start = m.t.ones_like(root.detach()) * 0.5
    source, target = graph.get_gradient_edge(root), graph.get_gradient_edge(end)
    if k % 3 == 0:
        m.t.autograd.backward([source], [start], inputs=[target] if end.is_leaf and k % 2 else None, retain_graph=True)
        return
    found = m.t.autograd.grad([source], [target if k % 3 == 1 else end], [start], retain_graph=True, allow_unused=True)
    m.note("found", m.gradient(found[0]))


@step("write to one of several", 3)
def write_several(m, a, b, k):
    x = smooth(m, a)
    if not x.dim():
        raise Impossible
    x, dim = m.apart(x), b % x.dim()  # of equal elements each engine's topk takes another
    first = [
        lambda: x.unbind(dim)[0],
        lambda: x.split(1, dim)[-1],
        lambda: x.topk(1, dim)[0],
        lambda: x.sort(dim)[0],
        lambda: x.max(dim)[0],
        lambda: x.chunk(2, dim)[0],
        lambda: m.t.aminmax(x)[0],
    ][k // 2 % 7]()
    first.mul_(2) if k % 3 else first.detach().mul_(2)
    return x if first._is_view() else (x, first)


@step("out", 2)
def out(m, a, b, k):
    x = smooth(m, a)
    y = m.alike(x, b)
    into = [lambda: m.numbers(x.shape, x.dtype), lambda: m.alike(x, k), lambda: m.numbers((0,), x.dtype)][k % 3]()
    if into.is_inference():  # PyTorch writes to it before it refuses
        raise Impossible
    name = ["add", "mul", "maximum", "sub"][k // 3 % 4]
    return getattr(m.t, name)(x, y, out=into)

"""Steps that make views: of one kind after another, several at once, of views, detached."""

from fuzzing.machine import Impossible, step


@step("view", 10)
def view(m, a, b, k):
    x = m.pick(a)
    dims = x.dim()
    dim = b % max(dims, 1)
    size = x.shape[dim] if dims else 1
    found = [
        lambda: x.view(-1) if x.is_contiguous() else x.unsqueeze(0),
        lambda: x.unsqueeze(b % (dims + 1)),
        lambda: x.view_as(x) if x.is_contiguous() else x[...],
        lambda: x.expand(2, *x.shape),
        lambda: x.squeeze(),
        lambda: x.as_strided(tuple(x.shape), x.stride()),
        lambda: x[...],
        lambda: x[None],
    ]
    if dims and size:
        start = k // 20 % size
        found += [
            lambda: x.select(dim, start),
            lambda: x.narrow(dim, start, size - start),
            lambda: x[start:],
            lambda: x[::2],
            lambda: x[-1],
            lambda: x.transpose(0, dim),
            lambda: x.flatten(),
            lambda: x.movedim(0, dim),
            lambda: x.unfold(dim, 1, 1),
            lambda: x.permute(*range(dims)[::-1]),
        ]
    if dims == 2:
        found += [
            lambda: x.diagonal(),
            lambda: x.t(),
            lambda: x[:, 1:],
            lambda: x.mT,
            lambda: x.as_strided((2,), (1,)) if x.numel() > 1 and x.is_contiguous() else x.t(),
            lambda: x.expand_as(x),
        ]
    return found[k % len(found)]()


@step("several views", 3)
def several(m, a, b, k):
    x = m.pick(a, lambda one: one.dim() and one.numel())
    dim = b % x.dim()
    return m.refused_when_written(
        [
            lambda: x.unbind(dim),
            lambda: x.chunk(2, dim),
            lambda: x.split(1, dim),
            lambda: m.t.tensor_split(x, 2, dim),
            lambda: x.split([1, x.shape[dim] - 1], dim),
            lambda: tuple(x),
        ][k % 6]()[:3]
    )


@step("detach", 2)
def detach(m, a, b, k):
    x = m.pick(a)
    return x.detach() if k % 3 else x.data


@step("shape in place", 1)
def shape_in_place(m, a, b, k):
    if not m.t.is_grad_enabled():  # behind the graph's back only errors come of it, in other words
        raise Impossible
    x = m.floating(a) * 1  # PyTorch calls other views of the same memory AsStrided afterwards
    if k % 3 == 0:
        x.unsqueeze_(0)
    elif k % 3 == 1:
        x.transpose_(0, -1)
    elif x.dim():
        x.squeeze_(0)
    return x


@step("detach in place", 1)
def detach_in_place(m, a, b, k):
    return m.computed(a).sin().detach_()  # PyTorch refuses to use it if a node had saved it, which is harmless here

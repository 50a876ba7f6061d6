"""Steps with tensors whose dims lie in another order in memory: channels last, permuted, with dims of size 1."""

from fuzzing.machine import step

SHAPES = [(2, 3, 2, 2), (2, 1, 3, 2), (1, 3, 2, 2), (2, 3, 1, 1), (1, 2, 2, 3, 2), (3, 4), (2, 3, 4)]


def format_of(m, x, k):
    """Return a memory format that a tensor may have."""
    last = {4: m.t.channels_last, 5: m.t.channels_last_3d}.get(x.dim(), m.t.contiguous_format)
    return [last, last, m.t.contiguous_format, m.t.preserve_format][k % 4]


@step("leaf in another order", 3)
def leaf(m, a, b, k):
    x = m.numbers(SHAPES[a % len(SHAPES)])
    if k % 3 and x.dim() > 3:
        x = x.contiguous(memory_format=format_of(m, x, 0))
    else:
        x = x.permute(tuple(reversed(range(x.dim())))).clone()
    return x.requires_grad_(b % 4 != 0)


@step("copy in a memory format", 3)
def copy(m, a, b, k):
    x = m.floating(a)
    wanted = format_of(m, x, b)
    return [
        lambda: x.clone(memory_format=wanted),
        lambda: x.to(memory_format=wanted),
        lambda: x.to(m.t.float64, copy=True, memory_format=wanted),
        lambda: x.contiguous(memory_format=wanted),
        lambda: m.t.zeros_like(x, memory_format=wanted),
        lambda: m.t.full_like(x, 0.5, memory_format=wanted) * x,
        lambda: x.permute(tuple(reversed(range(x.dim())))).clone() if x.dim() else x,
        lambda: x.detach(),
    ][k % 8]()


@step("layers of planes", 4)
def layers(m, a, b, k):
    x = m.pick(a, lambda one: one.is_floating_point() and one.dim() == 4 and one.numel() and min(one.shape[2:]) > 1)
    f = m.t.nn.functional
    y = m.pick(b, lambda one: one.shape == x.shape and one.dtype == x.dtype)
    return [
        lambda: f.conv2d(x, m.numbers((2, x.shape[1], 1, 1), x.dtype)),
        lambda: f.avg_pool2d(x, 2),
        lambda: f.max_pool2d(m.apart(x), 2, return_indices=True)[0],
        lambda: f.interpolate(x, scale_factor=2),
        lambda: f.pad(x, (1, 0, 0, 1)),
        lambda: f.pad(x, (1, 0, 1, 0), mode="replicate"),
        lambda: m.t.cat([x, y], b % 4),
        lambda: m.t.stack([x, y], b % 5),
        lambda: f.adaptive_avg_pool2d(x, 1),
        lambda: x + m.numbers((x.shape[1], 1, 1), x.dtype),
        lambda: x.softmax(b % 4),
        lambda: x.flip(b % 4),
        lambda: x.view(-1),
    ][k % 13]()


@step("strides", 3)
def strides(m, a, b, k):
    x = m.pick(a)
    if x.numel():
        m.note("strides", tuple(x.stride()), *[x.is_contiguous(memory_format=format_of(m, x, one)) for one in range(3)])

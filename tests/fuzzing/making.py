"""Steps that make tensors: leaves, ops of many kinds with broadcasting, promotion, reductions, indexing."""

from fuzzing.machine import SHAPES, Impossible, step

UNARY = [
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "neg",
    "square",
    "erf",
    "atan",
    "softplus",
    "clone",
    "contiguous",
    "sinc",
    "expm1",
]
BINARY = ["add", "sub", "mul", "maximum", "minimum", "atan2", "hypot", "div", "remainder", "pow"]


@step("leaf", 4)
def leaf(m, a, b, k):
    dtype = m.t.float32 if b % 5 == 4 else m.t.float64
    return m.numbers(SHAPES[a % len(SHAPES)], dtype).requires_grad_(k % 4 != 0)


@step("integers", 1)
def integers(m, a, b, k):
    shape = SHAPES[a % len(SHAPES)]
    return (m.numbers(shape) * 3).to(m.t.int64 if k % 2 else m.t.int32)


@step("unary", 8)
def unary(m, a, b, k):
    x, name = m.floating(a), UNARY[k % len(UNARY)]
    if name == "softplus":
        return m.t.nn.functional.softplus(x)
    return getattr(x.tanh() if name == "expm1" else x, name)()


@step("unary of spread values", 3)
def unary_of_spread(m, a, b, k):
    x = m.apart(m.floating(a))
    return [
        lambda: x.relu(),
        lambda: x.abs(),
        lambda: x.clamp(-0.5, 0.7),
        lambda: x.sign() * x,
        lambda: x.round() + x,
        lambda: m.t.maximum(x, x * 0.2),
        lambda: x.clamp(min=0.1),
    ][k % 7]()


@step("binary", 8)
def binary(m, a, b, k):
    x = m.floating(a)
    y, name = m.broadcasting(x, b), BINARY[k % len(BINARY)]
    if y.is_complex() and x.is_inference():  # there are two reasons to refuse some of these
        raise Impossible
    if name in ("maximum", "minimum", "remainder"):
        x = m.apart(x)
    if name in ("div", "remainder", "hypot", "atan2"):
        y = y * y + 1.5
    if name == "pow":
        x = x * x + 0.5
        y = y.tanh() if y.is_floating_point() else y.clamp(-1, 2)
    return getattr(m.t, name)(x, y)


@step("number", 4)
def number(m, a, b, k):
    x = m.pick(a)
    return [
        lambda: x + 1,
        lambda: 2.5 - x,
        lambda: x * 0.5,
        lambda: x / 3,
        lambda: 1 / (x * x + 1.0),
        lambda: x**2,
        lambda: -x,
        lambda: m.t.add(x, 1.5, alpha=2),
        lambda: x // 2 + x,
        lambda: 0.5 ** x.tanh().contiguous() if x.is_floating_point() else x + x,  # PyTorch forgets the strides here
    ][k % 10]()


@step("where", 3)
def where(m, a, b, k):
    x = m.floating(a)
    y = m.broadcasting(x, b)
    mask = m.numbers(x.shape) > 0
    if k % 3 == 0:
        return m.t.where(mask, x, y)
    if k % 3 == 1:
        return x.masked_fill(mask, 0.25)
    return m.t.where(mask, x, 1.5)


@step("matmul", 4)
def matmul(m, a, b, k):
    x = m.pick(a, lambda one: one.is_floating_point() and one.dim() and not one.is_inference())
    y = m.pick(  # PyTorch keeps views of some, which may be saved where an inference tensor may not
        b,
        lambda one: (
            not one.is_inference()
            and one.dtype == x.dtype
            and one.dim() >= 1
            and one.shape[-1] == x.shape[-1]
            and (one.dim() == 1) >= (x.dim() == 1)  # a vector times a matrix is one node here, two in PyTorch
        ),
    )
    if k % 3 == 0 and x.dim() == 2 and y.dim() == 2:
        return m.t.nn.functional.linear(x, y) * 0.2
    return m.t.matmul(x, y.transpose(-1, -2) if y.dim() > 1 else y) * 0.2


@step("sum", 4)
def reduce_sum(m, a, b, k):
    x = m.pick(a)
    dim = b % max(x.dim(), 1)
    return [
        lambda: x.sum(),
        lambda: x.sum(dim),
        lambda: x.sum(dim, keepdim=True),
        lambda: x.sum(dtype=m.t.complex128 if x.is_complex() else m.t.float64),  # a cast is a node of its own here
        lambda: x.cumsum(dim),
    ][k % 5]()


@step("reduction", 4)
def reduction(m, a, b, k):
    x = m.filled(a)
    dim = b % max(x.dim(), 1)
    return [
        lambda: x.mean(),
        lambda: x.mean(dim, keepdim=True),
        lambda: x.logsumexp(dim),
        lambda: x.softmax(dim),
        lambda: x.log_softmax(dim),
        lambda: (x * x + 1).norm(),
        lambda: m.apart(x).amax(dim),
        lambda: m.apart(x).max(),
        lambda: m.apart(x).min(dim),
        lambda: m.apart(x).sort(dim),
        lambda: x.tanh().prod(),
        lambda: x.var(dim, unbiased=False),
        lambda: m.apart(x).argmax(dim),
        lambda: m.apart(x).topk(1, dim) if x.dim() else x.mean(),
    ][k % 14]()


@step("index", 5)
def index(m, a, b, k):
    x = m.filled(a, 1)
    n = x.shape[0]
    rows = m.t.tensor([b % n, 0, (b + 1) % n])
    # take and gather get a tensor of their own: PyTorch's nodes keep it, though only its shape is needed.
    return [
        lambda: x[rows],
        lambda: x[[0, -1]],
        lambda: x[m.numbers(x.shape) > 0],
        lambda: x.index_select(0, rows),
        lambda: (x * 1).gather(0, m.t.zeros(x.shape, dtype=m.t.int64)),
        lambda: x[..., -1:][rows],
        lambda: (x * 1).take(rows),
        lambda: x[None, rows],
        lambda: x.index_fill(0, rows, 0.5),
        lambda: x.index_add(0, rows, m.numbers((3, *x.shape[1:]), x.dtype)),
        lambda: x.scatter(0, m.t.zeros((1, *x.shape[1:]), dtype=m.t.int64), 0.5),
        lambda: x[m.numbers(x.shape[:1]) > 0],
    ][k % 12]()


@step("join", 4)
def join(m, a, b, k):
    x = m.floating(a)
    y = m.alike(x, b)
    made = [
        lambda: m.t.stack([x, y], k // 4 % (x.dim() + 1)),
        lambda: m.t.cat([x, y]) if x.dim() else m.t.stack([x, y]),
        lambda: m.t.cat([x, y, x], -1) if x.dim() else m.t.hstack([x, y]),
    ][k % 3]()
    return made * 1 if x.is_inference() and y.is_inference() else made  # PyTorch's is a view of nothing


@step("rearranged", 2)
def rearranged(m, a, b, k):
    x = m.floating(a, 1)
    return [
        lambda: x.flip(0),
        lambda: x.roll(1, 0),
        lambda: x.repeat(2, *[1] * (x.dim() - 1)) * 1,  # in inference mode PyTorch's is a view of nothing
        lambda: x.reshape(-1),
        lambda: x.t().reshape(-1) if x.dim() == 2 else x.flatten(),
        lambda: x.tril() if x.dim() > 1 else x.clone(),
        lambda: m.t.nn.functional.pad(x, (1, 2)),
        lambda: m.t.diag(x[0]) if x.dim() == 2 and x.shape[0] else x.clone(),
    ][k % 8]()


@step("cast", 2)
def cast(m, a, b, k):
    x = m.pick(a)
    return [
        lambda: x.to(m.t.float32),
        lambda: x.double(),
        lambda: x.to(m.t.float64),
        lambda: x.float().double(),
        lambda: x.type_as(m.pick(b)) if m.pick(b).dtype != m.t.bool else x,
        lambda: x.clone().detach().requires_grad_(x.is_floating_point()),
    ][k % 6]()


@step("new leaf from values", 1)
def new_leaf(m, a, b, k):
    x = m.floating(a)
    return m.t.zeros_like(x, requires_grad=k % 2 == 0) if k % 3 else m.t.ones_like(x)


@step("read a value", 1)
def read(m, a, b, k):
    x = m.pick(a)
    if k % 4 == 0:
        m.note("item", x.sum().item())
    elif k % 4 == 1:
        m.note("item", x.item())
    elif k % 4 == 2:
        m.note("numpy", x.numpy().copy())
    else:
        m.note("truth", bool(x.sum() > 0.123))

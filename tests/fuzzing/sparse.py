"""Steps with sparse gradients: rows looked up in a table, bags of rows, COO tensors, sums with dense gradients.

What a step leaves are dense tensors: other steps expect these.
"""

from fuzzing.machine import Impossible, step


def table_of(m, number: int):
    """Return a leaf of two dims that has rows, whose `.grad` other steps do not read."""
    x = m.pick(number, lambda one: one.is_floating_point() and one.dim() == 2 and one.numel())
    if m.t.is_inference_mode_enabled() or not m.t.is_grad_enabled():
        raise Impossible
    return x.detach().clone().requires_grad_()


def noted(m, grad):
    """Write a gradient into the trace: its layout, its entries, its values.

    Coalesced: PyTorch merges entries of contiguous values only, and which gradient is expanded is the engine's affair;
    so are how often a dense one has been written to, and its strides in dims of size 1.
    """
    if grad is None or not grad.is_sparse:
        m.note("sparse", None if grad is None else m.values(grad))
        return None if grad is None else grad.clone(memory_format=m.t.contiguous_format)
    whole = grad.coalesce()
    m.note("sparse", tuple(grad.shape), whole._nnz(), grad.sparse_dim(), grad.dense_dim(), grad.requires_grad)
    m.note("sparse", m.values(whole.indices()), m.values(whole.values()))
    return grad.to_dense()


@step("sparse embedding", 3)
def embedding(m, a, b, k):
    """Look rows up one or several times, and accumulate, with a dense gradient before or after.

    Not with a 0-d index: beside a padding row PyTorch's backward fails at its mask.
    """
    table, functional = table_of(m, a), m.t.nn.functional
    rows = (m.numbers([(1,), (3,), (2, 2), (0,)][b % 4]) * 7).abs().to(m.t.int64) % table.shape[0]
    number = m.hook_number()
    if k % 3 == 0:
        m.handles.append(table.register_hook(lambda grad: m.note("hook", number, grad.is_sparse, tuple(grad.shape))))
    out = functional.embedding(
        rows, table, padding_idx=0 if k // 3 % 3 == 0 else None, scale_grad_by_freq=k // 9 % 3 == 0, sparse=True
    )
    losses = [(out * out).sum(), table.sin().sum()]
    for loss in [losses[:1], losses, losses[::-1], losses[:1] * 2][k // 27 % 4]:
        loss.backward(retain_graph=True)
    return noted(m, table.grad)


@step("sparse embedding in one graph", 1)
def in_one_graph(m, a, b, k):
    """A table used sparsely twice, or sparsely and densely, in one backward."""
    table, functional = table_of(m, a), m.t.nn.functional
    rows = m.t.tensor([b % table.shape[0], 0, b % table.shape[0]])
    first = functional.embedding(rows, table, sparse=True).sin().sum()
    second = [
        lambda: functional.embedding(rows[:2], table, sparse=True).sum(),
        lambda: functional.embedding(rows[:2], table).sum(),
        lambda: (table * table).sum(),
        lambda: table[0].sum(),
    ][k % 4]()
    total = first + second if k // 4 % 2 else second + first
    if k // 8 % 2:
        return noted(m, m.t.autograd.grad(total, [table])[0])
    total.backward()
    return noted(m, table.grad)


@step("sparse bags", 1)
def bags(m, a, b, k):
    table = table_of(m, a)
    rows = (m.numbers((5,)) * 7).abs().to(m.t.int64) % table.shape[0]
    out = m.t.nn.functional.embedding_bag(
        rows, table, m.t.tensor([0, b % 6, 5]), mode=("sum", "mean")[k % 2], sparse=True
    )
    (out * out).sum().backward()
    noted(m, table.grad)
    return out.detach()


@step("sparse optimizer", 1)
def optimizer(m, a, b, k):
    """Two steps of an optimizer along a sparse gradient between 1 and 3: SparseAdam would magnify one near 0."""
    table, optim = table_of(m, a), m.t.optim
    rows = m.t.tensor([b % table.shape[0], 0])
    kinds = [
        lambda: optim.SparseAdam([table], lr=0.1),
        lambda: optim.SGD([table], lr=0.1, momentum=(0, 0.9)[k // 3 % 2]),
        lambda: optim.Adagrad([table], lr=0.1),
    ]
    steps = kinds[k % 3]()
    for _ in range(2):
        steps.zero_grad(set_to_none=k // 6 % 2 == 0)
        out = m.t.nn.functional.embedding(rows, table, sparse=True)
        ((out * out + 1).sqrt() + out * 2).sum().backward()
        steps.step()
    noted(m, table.grad)
    return table.detach()


@step("coordinates", 2)
def coordinates(m, a, b, k):
    """Make a COO tensor of values that may require grad, and compute with it."""
    x = m.pick(a, lambda one: one.is_floating_point() and one.dim() == 1 and one.numel() and not one.is_inference())
    if m.t.is_inference_mode_enabled():
        raise Impossible
    n = x.shape[0]
    places = m.t.stack([m.t.arange(n) % 2, (m.t.arange(n) * (b % 3)) % 4])
    s = m.t.sparse_coo_tensor(places, x, (2, 4))
    dense = m.numbers((4, 3), x.dtype)
    found = [
        lambda: s.to_dense(),
        lambda: m.t.sparse.mm(s, dense),
        lambda: s.coalesce().to_dense() * 2,
        lambda: (s * 2).to_dense(),
        lambda: (s.t() if k // 8 % 2 else s.transpose(0, 1)).to_dense(),
        lambda: (s + s).to_dense(),
        lambda: m.t.sparse.sum(s, 0).to_dense(),
        lambda: s @ dense,
    ][k % 8]()
    return found * 1

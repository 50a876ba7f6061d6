"""Several tensors made one, and one made several."""

from case import Case, integers, normal

A, B = normal(2, 3), normal(4, 3)
VECTOR, OTHER = normal(3), normal(2)

CASES = [
    Case("cat", lambda t, x, y: t.cat((x, y)), [A, B], integer=True),
    Case("cat/dim", lambda t, x, y: t.concat([x, y, x], dim=-1), [A, normal(2, 2)]),
    Case("cat/dtypes", lambda t, x, n: t.concatenate([x, n], axis=1), [A, integers(2, 2)]),
    Case("cat/empty vector", lambda t, x, e: t.cat([e, x]), [A, normal(0)]),
    Case("cat/one", lambda t, x: t.cat([x]), [A]),
    Case("cat/hstack", lambda t, x, y: (t.hstack([x, y]), t.hstack([x[0], y[0, :2]])), [A, A]),
    Case("cat/vstack", lambda t, x, v: (t.vstack([x, v]), t.row_stack([v, v])), [A, VECTOR]),
    Case("cat/dstack", lambda t, x, v: (t.dstack([x, x]), t.dstack([v, v])), [A, VECTOR]),
    Case("cat/column_stack", lambda t, x, v: t.column_stack([v, x, v]), [A, OTHER]),
    Case("stack", lambda t, x, y: (t.stack([x, y]), t.stack((x, y), -1), t.stack([x, y], 1)), [A, A], integer=True),
    Case("stack/0-d", lambda t, x, y: t.stack([x, y, x]), [normal(), normal()]),
    Case("stack/cartesian_prod", lambda t, x, y: t.cartesian_prod(x, y), [VECTOR, OTHER], integer=True),
    Case("block_diag", lambda t, x, v, s: t.block_diag(x, v, s), [A, VECTOR, normal()], integer=True),
    Case("meshgrid", lambda t, x, y: t.meshgrid(x, y, indexing="ij"), [VECTOR, OTHER], integer=True),
    Case("meshgrid/xy", lambda t, x, y, s: t.meshgrid([x, y, s], indexing="xy"), [VECTOR, OTHER, normal()]),
    Case("combinations", lambda t, x: (t.combinations(x), t.combinations(x, 3, True)), [normal(4)], integer=True),
    Case("split", lambda t, x: t.split(x, 3), [B], integer=True),
    Case("split/dim", lambda t, x: x.split(2, -1)[0], [B]),
    Case("split/chunk", lambda t, x: (t.chunk(x, 3), x.chunk(2, 1)), [B]),
    Case("split/empty", lambda t, x: x.split(0), [normal(0, 3)]),
    Case("split_with_sizes", lambda t, x: x.split([1, 0, 3]), [B], integer=True),
    Case("unsafe_split", lambda t, x: (t.unsafe_split(x, 3), x.unsafe_chunk(2, 1)), [B]),
    Case("unbind", lambda t, x: (t.unbind(x), x.unbind(-1)[1]), [A], integer=True),
    Case("unbind/iteration", lambda t, x: list(x)[1:], [A]),
    Case("tensor_split", lambda t, x: (t.tensor_split(x, 3), x.tensor_split([1, 2], dim=1)), [B], integer=True),
    Case("tensor_split/hsplit", lambda t, x: (t.hsplit(x, 3), x.vsplit([1, 3])), [B]),
    Case("tensor_split/dsplit", lambda t, x: t.dsplit(x, 2), [normal(1, 2, 4)]),
]

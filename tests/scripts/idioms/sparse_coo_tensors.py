"""Sparse tensors made, printed, read, converted and added."""

import torch
from said import attempt

s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
print(s, s.shape, s.dtype, s.layout, s.is_sparse, s.sparse_dim(), s.dense_dim(), s._nnz(), s.is_coalesced())
c = s.coalesce()
print(c, c.indices(), c.values(), c.to_dense(), c is c.coalesce())
print(s + s, s - c, s * 2, s / 4, -s, s * s, s.t(), s.transpose(0, 1).to_dense())
dense = torch.arange(6.0).reshape(2, 3)
print(dense + s, dense.sub(s, alpha=2), s * dense, dense.sparse_mask(c), dense.to_sparse())
print(dense.add_(s, alpha=10), s.mul_(3), s.add_(c), s.clone().zero_())
print(s.double(), s.int(), s.to(torch.float16).dtype, s.type(), s.norm(), s.sum(), torch.sparse.sum(s, 0))
print(torch.sparse.sum(s, dim=[0, 1]), s[1], s[0, 2], s.index_select(1, torch.tensor([0, 2])), torch.cat([s, c], 1))
rows = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.arange(4.0).reshape(2, 2), (3, 2))
print(
    rows,
    rows.dense_dim(),
    rows.to_dense(),
    torch.sparse.sum(rows, 1),
    rows.tanh(),
    rows.pow(2),
    rows.unsqueeze(0).shape,
)
print(torch.zeros_like(s), torch.sparse_coo_tensor((2, 2)), torch.sparse_coo_tensor([[0, 3]], [True, False]))
values = s._values()
values.add_(1)
print(s, s.detach().mul_(2) is s, s.data.is_sparse, s.grad)
for wrong in (
    lambda: s + dense,
    lambda: s + 1,
    lambda: s.indices(),
    lambda: s.numpy(),
    lambda: s.exp(),
    lambda: s.view(3, 2),
    lambda: s.argmax(),
    lambda: torch.sigmoid(s),
    lambda: s / dense,
    lambda: dense.coalesce(),
    lambda: s + s.t(),
    lambda: s[0:1],
    lambda: s.__setitem__(0, 1.0),
    lambda: s.copy_(dense),
    lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]),
):
    attempt("call", wrong)

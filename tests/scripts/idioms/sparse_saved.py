"""Sparse tensors saved, pickled and copied."""

import copy
import io
import pickle

import torch
from torch import nn

s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
file = io.BytesIO()
torch.save({"raw": s, "coalesced": s.coalesce(), "layout": s.layout}, file)
file.seek(0)
loaded = torch.load(file)
print(loaded, loaded["coalesced"].is_coalesced(), loaded["raw"].is_coalesced())
print(pickle.loads(pickle.dumps(s)), copy.copy(s).is_sparse)
twin = copy.deepcopy(s.requires_grad_())
print(twin, twin.requires_grad, twin._values().data_ptr() == s._values().data_ptr())
table = nn.Embedding(3, 2, sparse=True)
table(torch.tensor([1])).sum().backward()
again = copy.deepcopy(table)
print(again.weight.grad, again.weight.grad is table.weight.grad)
table.double()
print(table.weight.grad.dtype, table.weight.grad.is_sparse)
file = io.BytesIO()
torch.save(table.state_dict(), file)
file.seek(0)
print(torch.load(file)["weight"].shape)

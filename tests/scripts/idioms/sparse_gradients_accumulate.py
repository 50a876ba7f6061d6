"""Sparse gradients that add up, meet dense ones, go through hooks, and are cleared."""

import torch
from said import attempt
from torch import nn

table = nn.Embedding.from_pretrained(torch.arange(8.0).reshape(4, 2), freeze=False, sparse=True)
weight = table.weight
table(torch.tensor([1, 2, 1])).pow(2).sum().backward()
first = weight.grad
print(first)
table(torch.tensor([3, 0])).sum().backward()
print(weight.grad, weight.grad is first)
weight.sum().backward()
print(weight.grad, weight.grad is first)
table(torch.tensor([3, 0])).sum().backward()
print(weight.grad)
table.zero_grad()
(table(torch.tensor([0, 1])).sum() + 3 * table(torch.tensor([2, 1])).sum()).backward()
print(weight.grad)
table.zero_grad(set_to_none=False)
print(weight.grad)
weight.grad = None
((weight * 2).sum() + table(torch.tensor([2])).sum()).backward()
print(weight.grad)
(grad,) = torch.autograd.grad(table(torch.tensor([[2, 1]])).pow(3).sum(), weight, create_graph=True)
print(grad.is_sparse, grad._nnz(), grad.requires_grad)
weight.grad = None
grad.to_dense().sum().backward()
print(weight.grad)
weight.grad = None
handle = weight.register_hook(lambda grad: grad * 2)
weight.register_post_accumulate_grad_hook(lambda param: print("accumulated", param.grad._nnz()))
table(torch.tensor([1, 1])).sum().backward()
handle.remove()
print(weight.grad)
weight.grad._values().clamp_(max=1.5)
print(weight.grad.coalesce())
attempt("call", lambda: nn.utils.clip_grad_norm_(table.parameters(), 1.0))
scaled = nn.Embedding(3, 2, sparse=True, scale_grad_by_freq=True)
attempt("call", lambda: scaled(torch.tensor([1])).sum().backward())
attempt("call", lambda: nn.EmbeddingBag(3, 2, mode="max", sparse=True)(torch.tensor([[1]])))

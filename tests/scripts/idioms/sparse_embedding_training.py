"""Embeddings with sparse gradients, each table with an optimizer that takes them."""

import torch
from torch import nn

torch.manual_seed(0)
words, tags = nn.Embedding(12, 4, sparse=True, padding_idx=0), nn.EmbeddingBag(6, 4, mode="sum", sparse=True)
head = nn.Linear(4, 2)
print(words, tags)
sparse = torch.optim.SparseAdam([*words.parameters(), *tags.parameters()], lr=0.1)
dense = torch.optim.Adam(head.parameters(), lr=0.1)
texts = torch.tensor([[1, 2, 2, 0], [3, 1, 0, 0], [5, 5, 4, 2]])
bags, offsets = torch.tensor([0, 3, 3, 5, 1]), torch.tensor([0, 2, 4])
for step in range(4):
    sparse.zero_grad()
    dense.zero_grad()
    hidden = words(texts).mean(1) + tags(bags, offsets)
    loss = nn.functional.cross_entropy(head(hidden), torch.tensor([0, 1, 0]))
    loss.backward()
    grad = words.weight.grad
    print(step, round(loss.item(), 4), grad.layout, grad._nnz(), grad.is_coalesced(), head.weight.grad.is_sparse)
    sparse.step()
    dense.step()
print(words.weight.grad.coalesce().indices(), tags.weight.grad._indices())
state = sparse.state_dict()
print(sorted(state["state"][0]), state["state"][0]["step"], state["param_groups"][0]["betas"])
print((words.weight[6:] == words.weight[6:].detach()).all(), words.weight.grad.to_dense()[0])

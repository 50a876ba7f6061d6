"""A graph convolution: products of a sparse adjacency matrix, with gradients for it where they are wanted."""

import torch
from torch import nn

torch.manual_seed(0)
edges = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 3, 3, 0]])
weights = torch.tensor([0.5, 0.25, 0.25, 1.0, 0.5, 0.5])
adjacency = torch.sparse_coo_tensor(edges, weights, (4, 4))
features = torch.arange(12.0).reshape(4, 3) / 10


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.full((inputs, outputs), 0.1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, adj):
        return torch.spmm(adj, x @ self.weight) + self.bias


first, second = Convolution(3, 4), Convolution(4, 2)
out = second(first(features, adjacency).relu(), adjacency)
out.pow(2).sum().backward()
print(out, first.weight.grad, second.bias.grad)
print(
    adjacency @ features,
    torch.sparse.mm(adjacency, features),
    torch.mm(adjacency, features),
    adjacency.mv(features[:, 0]),
)
print(
    (adjacency @ adjacency).to_dense(),
    features.t() @ adjacency,
    torch.sparse.addmm(torch.ones(4, 3), adjacency, features),
)
learned = adjacency.coalesce().requires_grad_()
torch.sparse.mm(learned, features).pow(2).sum().backward()
print(learned.grad)
dense_grad = adjacency.coalesce().requires_grad_()
(dense_grad @ features).pow(2).sum().backward()
print(dense_grad.grad)
values = weights.clone().requires_grad_()
torch.sparse.sum(torch.sparse_coo_tensor(edges, values, (4, 4)) * 3).backward()
print(values.grad)
